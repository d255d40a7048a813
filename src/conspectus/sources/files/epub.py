"""EPUB: the chapters in reading order, headings and lists as Markdown."""

import posixpath
from typing import Any
from urllib.parse import unquote

from conspectus.sources.files.html import visible
from conspectus.sources.files.markdown_blocks import Extract, Refused
from conspectus.sources.files.zip_xml import Archive, attribute, child, local

PAGES = frozenset({"application/xhtml+xml", "text/html", "text/x-oeb1-document", "application/x-dtbook+xml"})


def read_book(archive: Archive) -> Extract:
    """The text of an EPUB. Raises Refused."""
    container = archive.xml("META-INF/container.xml")
    files = (attribute(each, "full-path") for each in container.iter() if local(each) == "rootfile")
    name = next(files, "")
    if name not in archive:
        raise Refused("a damaged book: its package is missing")
    package = archive.xml(name)
    locked = _locked(archive)
    chapters = [each for each in _spine(package, posixpath.dirname(name)) if each in archive]
    if chapters and locked.issuperset(each.lower() for each in chapters):
        raise Refused("is encrypted: its publisher allows only certain programs to read it")
    texts = [_chapter(archive.read(each)) for each in chapters if each.lower() not in locked]
    metadata = child(package, "metadata")
    described = () if metadata is None else reversed(metadata)
    details = {local(each): (each.text or "").strip() for each in described}
    text = "\n\n".join(filter(None, texts))
    return Extract(
        text, "application/epub+zip", title=details.get("title", ""), author=details.get("creator") or None
    )


def _chapter(data: bytes) -> str:
    """The text of a chapter, which is in UTF-8 unless it is not valid in it and says otherwise."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return visible(data).text()
    return visible(data, "utf-8").text()


def _spine(package: Any, folder: str) -> list[str]:
    manifest, spine = child(package, "manifest"), child(package, "spine")
    items = {attribute(each, "id"): each for each in (() if manifest is None else manifest)}
    order = [items.get(attribute(each, "idref")) for each in (() if spine is None else spine)]
    found = [each for each in order if each is not None and attribute(each, "media-type") in PAGES]
    links = [unquote(attribute(each, "href").partition("#")[0]) for each in found]
    return list(dict.fromkeys(posixpath.normpath(posixpath.join(folder, link)) for link in links))


def _locked(archive: Archive) -> frozenset[str]:
    """The names of the parts that are encrypted."""
    listed = archive.xml("META-INF/encryption.xml")
    names = (attribute(each, "URI") for each in listed.iter() if local(each) == "CipherReference")
    return frozenset(unquote(name).lower() for name in names)
