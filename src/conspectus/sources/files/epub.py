"""EPUB books."""

import posixpath
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from conspectus.sources.files.exif import photo_line
from conspectus.sources.files.extract import Extract, Refused
from conspectus.sources.files.file_properties import join_authors, language_metadata, texts_named
from conspectus.sources.files.html import read_visible_text
from conspectus.sources.files.missing_words import ShownText, join_notices, missing_words_notice
from conspectus.sources.files.page_texts import page_text
from conspectus.sources.files.zip_xml import Archive, attribute_of, find_child, local_name

PAGES = frozenset({"application/xhtml+xml", "text/html", "text/x-oeb1-document", "application/x-dtbook+xml"})


def read_book(archive: Archive) -> Extract:
    """Return the text of an EPUB. Raises Refused."""
    container = archive.xml("META-INF/container.xml")
    files = (
        attribute_of(element, "full-path")
        for element in container.iter()
        if local_name(element) == "rootfile"
    )
    name = next(files, "")
    if name not in archive:
        raise Refused("a damaged book: its package is missing")
    package = archive.xml(name)
    listed = archive.xml("META-INF/encryption.xml")
    names = (
        attribute_of(element, "URI") for element in listed.iter() if local_name(element) == "CipherReference"
    )
    locked = frozenset(unquote(name).lower() for name in names)
    chapters = [chapter for chapter in _spine(package, posixpath.dirname(name)) if chapter in archive]
    if chapters and locked.issuperset(chapter.lower() for chapter in chapters):
        raise Refused("is encrypted: its publisher allows only certain programs to read it")
    texts = [_chapter(archive, chapter) for chapter in chapters if chapter.lower() not in locked]
    text = "\n\n".join(filter(None, texts))
    skipped = sum(chapter.lower() in locked for chapter in chapters)
    encrypted = f"{skipped} of {len(chapters)} chapters are encrypted" if skipped else None
    missing = missing_words_notice(
        text, _shown_texts(archive.unread(), package, posixpath.dirname(name), locked)
    )
    metadata = find_child(package, "metadata")
    return Extract(
        text,
        "application/epub+zip",
        title=next(iter(texts_named(metadata, "title")), ""),
        notice=join_notices(encrypted, missing),
        author=join_authors(texts_named(metadata, "creator")),
        metadata=language_metadata(texts_named(metadata, "language")),
    )


def _shown_texts(archive: Archive, package: Any, folder: str, locked: frozenset[str]) -> Iterator[ShownText]:
    """Yield the texts of all pages of a book that can be read, but for its table of contents."""
    spine = frozenset(_spine(package, folder))
    for entry in package.iter():
        is_page = local_name(entry) == "item" and attribute_of(entry, "media-type") in PAGES
        if not is_page or "nav" in attribute_of(entry, "properties").split():
            continue
        name = _part_name(entry, folder)
        if name in archive and name.lower() not in locked:
            kind = "" if name in spine else "pages outside of the reading order"
            data = archive.read(name)
            yield page_text(data, kind, encoding=_encoding(data))


def _chapter(archive: Archive, name: str) -> str:
    """Return the text of a chapter, decoded as UTF-8 unless it is invalid and declares another encoding."""
    data = archive.read(name)

    def describe_picture(link: str) -> str:
        return photo_line(archive.read(_linked_part(link, posixpath.dirname(name))))

    return read_visible_text(data, _encoding(data), describe_picture=describe_picture).text()


def _encoding(data: bytes) -> str | None:
    """Return UTF-8, or None if a chapter is in another encoding, which it declares."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return "utf-8"


def _spine(package: Any, folder: str) -> list[str]:
    manifest, spine = find_child(package, "manifest"), find_child(package, "spine")
    items = {attribute_of(element, "id"): element for element in (() if manifest is None else manifest)}
    order = [items.get(attribute_of(reference, "idref")) for reference in (() if spine is None else spine)]
    pages = [
        element for element in order if element is not None and attribute_of(element, "media-type") in PAGES
    ]
    return list(dict.fromkeys(_part_name(page, folder) for page in pages))


def _part_name(entry: Any, folder: str) -> str:
    """Return the name of the part that an entry of the manifest refers to."""
    return _linked_part(attribute_of(entry, "href"), folder)


def _linked_part(link: str, folder: str) -> str:
    """Return the name of the part that a link in a folder leads to."""
    return posixpath.normpath(posixpath.join(folder, unquote(link.partition("#")[0])))
