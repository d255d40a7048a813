"""EPUB books."""

import posixpath
from typing import Any
from urllib.parse import unquote

from conspectus.sources.files.extract import Extract, Refused
from conspectus.sources.files.html import visible
from conspectus.sources.files.zip_xml import Archive, attribute, child, local

PAGES = frozenset({"application/xhtml+xml", "text/html", "text/x-oeb1-document", "application/x-dtbook+xml"})


def read_book(archive: Archive) -> Extract:
    """Return the text of an EPUB. Raises Refused."""
    container = archive.xml("META-INF/container.xml")
    files = (attribute(element, "full-path") for element in container.iter() if local(element) == "rootfile")
    name = next(files, "")
    if name not in archive:
        raise Refused("a damaged book: its package is missing")
    package = archive.xml(name)
    listed = archive.xml("META-INF/encryption.xml")
    names = (attribute(element, "URI") for element in listed.iter() if local(element) == "CipherReference")
    locked = frozenset(unquote(name).lower() for name in names)
    chapters = [chapter for chapter in _spine(package, posixpath.dirname(name)) if chapter in archive]
    if chapters and locked.issuperset(chapter.lower() for chapter in chapters):
        raise Refused("is encrypted: its publisher allows only certain programs to read it")
    texts = [_chapter(archive.read(chapter)) for chapter in chapters if chapter.lower() not in locked]
    metadata = child(package, "metadata")
    details = {name: _details(metadata, name) for name in ("title", "creator", "language")}
    return Extract(
        "\n\n".join(filter(None, texts)),
        "application/epub+zip",
        title=next(iter(details["title"]), ""),
        author=", ".join(details["creator"]) or None,
        metadata={"language": details["language"][0]} if details["language"] else {},
    )


def _details(metadata: Any | None, name: str) -> list[str]:
    """Return the texts of the elements of that name in the metadata of a book."""
    elements = () if metadata is None else (element for element in metadata if local(element) == name)
    return list(filter(None, (" ".join((element.text or "").split()) for element in elements)))


def _chapter(data: bytes) -> str:
    """Return the text of a chapter, decoded as UTF-8 unless it is invalid and declares another encoding."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return visible(data).text()
    return visible(data, "utf-8").text()


def _spine(package: Any, folder: str) -> list[str]:
    manifest, spine = child(package, "manifest"), child(package, "spine")
    items = {attribute(element, "id"): element for element in (() if manifest is None else manifest)}
    order = [items.get(attribute(reference, "idref")) for reference in (() if spine is None else spine)]
    pages = [
        element for element in order if element is not None and attribute(element, "media-type") in PAGES
    ]
    links = [unquote(attribute(page, "href").partition("#")[0]) for page in pages]
    return list(dict.fromkeys(posixpath.normpath(posixpath.join(folder, link)) for link in links))
