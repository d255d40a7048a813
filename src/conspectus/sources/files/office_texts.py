"""The texts that a DOCX, PPTX or XLSX shows, taken from all parts of the file without their structure.

The readers are held to them: what a reader leaves out is counted, and said.
"""

import re
from collections.abc import Iterable, Iterator
from html import unescape
from typing import Any

from lxml import etree

from conspectus.sources.files.missing_words import ShownText
from conspectus.sources.files.zip_xml import Archive, attribute_of, find_child, local_name, val_attribute

MARGINS = "headers and footers"
COMMENTS = "comments"
HIDDEN = "hidden text"
DESCRIPTIONS = "alternative texts"
CHARTS = "charts"
MASTERS = "texts of slide masters"
STANDING = "dates, footers and slide numbers"
PART_KINDS = (
    (re.compile(r"word/document\d*\.xml|ppt/slides/[^/]+\.xml"), ""),
    (re.compile(r"word/(header|footer)[^/]*\.xml"), MARGINS),
    (re.compile(r"word/(footnotes|endnotes)\.xml|ppt/notesslides/[^/]+\.xml"), "notes"),
    (re.compile(r"(word|xl|ppt/comments)/(comments[^/]*|modern[^/]*)\.xml"), COMMENTS),
    (re.compile(r"xl/(threadedcomments|comments)/[^/]+\.xml"), COMMENTS),
    (re.compile(r"(word|ppt|xl)/(charts/chart|chartex)[^/]*\.xml"), CHARTS),
    (re.compile(r"(word|ppt|xl)/diagrams/data[^/]*\.xml"), "diagrams"),
    (re.compile(r"xl/drawings/[^/]+\.xml"), "text boxes"),
    (re.compile(r"ppt/(slidemasters|slidelayouts)/[^/]+\.xml"), MASTERS),
)
"""What the texts of a part belong to, by its name; other parts show none."""
DESCRIBED = frozenset({"docPr", "cNvPr"})
SWITCHED_ON = frozenset({"", "1", "true", "on"})
NOT_SHOWN = frozenset({"moveFrom", "oMath", "rt", "rPh", "instrText"})
"""Elements whose text is not shown, or is written in another way, as a formula is."""
STANDING_PLACEHOLDERS = frozenset({"dt", "ftr", "sldNum", "hdr", "sldImg"})
BREAKS = frozenset({"p", "br", "cr", "tab", "tc", "si", "comment", "v"})
_SHARED = re.compile(rb"""<(?:\w+:)?c [^>]*t=["']s["'][^>]*><(?:\w+:)?v>(\d{1,9})<""")
_INLINE = re.compile(rb"<(?:\w+:)?t(?: [^>]*)?>([^<]*)<|</(?:\w+:)?is>")
MARGIN_ELEMENTS = frozenset({
    "oddHeader", "evenHeader", "firstHeader", "oddFooter", "evenFooter", "firstFooter"
})  # fmt: skip
_THREADED_COPY = "[Threaded comment]"
_HEADER_CODES = re.compile(r'&(?:"[^"]*"|&|\d+|K[0-9A-F]{6}|[A-Z])')


def texts_of_parts(archive: Archive) -> Iterator[ShownText]:
    """Yield the texts of all parts but the cells of a workbook."""
    for name in archive.names():
        kind = next((kind for pattern, kind in PART_KINDS if pattern.fullmatch(name)), None)
        if kind is not None:
            yield from _texts_of_part(archive.xml(name), kind)


def texts_of_cells(archive: Archive, sheets: Iterable[str]) -> Iterator[ShownText]:
    """Yield the texts in the cells of sheets, each shared text once, and the margins of their pages.

    `sheets` are the names of their parts.
    """
    positions: set[int] = set()
    for name in sheets:
        data = archive.read(name)
        positions.update(map(int, _SHARED.findall(data)))
        texts = (
            "\n" if match[1] is None else match[1].decode("utf-8", "replace")
            for match in _INLINE.finditer(data)
        )
        yield ShownText("", unescape("".join(texts)))
        if has_margins(data):
            yield from _margins_of(archive.xml(name))
    shared = [element for element in archive.xml("xl/sharedStrings.xml") if local_name(element) == "si"]
    used = (shared[position] for position in positions if position < len(shared))
    yield ShownText("", "\n".join(map(_shown_text, used)))


def header_text(code: str) -> str:
    """Return the text of the header or footer of a sheet, without the codes of fonts, pages and dates."""
    return " ".join(_HEADER_CODES.sub(lambda match: "&" if match[0] == "&&" else " ", code).split())


def has_margins(sheet: bytes) -> bool:
    """Return whether the printed pages of a sheet have headers or footers."""
    return any(name.encode() in sheet for name in MARGIN_ELEMENTS)


def is_threaded_copy(comment: Any) -> bool:
    """Return whether a comment only tells older programs that there is a thread of comments."""
    return _THREADED_COPY in "".join(comment.itertext())


def _margins_of(sheet: Any) -> Iterator[ShownText]:
    for element in sheet.iter():
        if local_name(element) in MARGIN_ELEMENTS and element.text:
            yield ShownText(MARGINS, header_text(element.text))


def _texts_of_part(part: Any, kind: str) -> Iterator[ShownText]:
    """Yield the text of a part, and what in it belongs to another kind."""
    main: list[str] = []
    walker = etree.iterwalk(part, events=("start", "end"))
    for event, element in walker:
        name = local_name(element)
        if name in BREAKS:
            main.append("\n")
        if event == "end":
            continue
        if name in DESCRIBED:
            yield ShownText(DESCRIPTIONS, attribute_of(element, "descr"))
        other_kind = _other_kind(element, kind)
        if other_kind is not None:
            yield ShownText(other_kind, _shown_text(element) if other_kind else "")
            walker.skip_subtree()
        elif name in {"t", "text"} or (name == "v" and kind == CHARTS):
            main.append(element.text or "")
    if kind == CHARTS:
        # A chart has its categories once more for each series.
        yield from (ShownText(kind, line) for line in "".join(main).split("\n"))
    else:
        yield ShownText(kind, "".join(main))


def _other_kind(element: Any, kind: str) -> str | None:
    """Return what an element in a part of this kind belongs to; empty if it is not shown, else None."""
    name = local_name(element)
    if name in NOT_SHOWN or _is_repeated(element):
        return ""
    if name == "sp" and _placeholder(element):
        is_standing = _placeholder(element) in STANDING_PLACEHOLDERS
        if kind == MASTERS:
            return ""
        return STANDING if is_standing else None
    if name == "r" and val_attribute(element, "rPr", "vanish") in SWITCHED_ON:
        return HIDDEN
    return None


def _shown_text(element: Any) -> str:
    parts: list[str] = []
    for node in element.iter():
        name = local_name(node)
        if name in BREAKS:
            parts.append("\n")
        elif name == "t" and local_name(node.getparent()) != "rPh":
            parts.append(node.text or "")
    return "".join(parts)


def _placeholder(shape: Any) -> str:
    """Return the role of a shape in its layout; empty if it has none."""
    placeholder = find_child(shape, "nvSpPr", "nvPr", "ph")
    return "" if placeholder is None else attribute_of(placeholder, "type", "body")


def _is_repeated(element: Any) -> bool:
    """Return whether an element is a drawing or a comment once more, for older programs."""
    if local_name(element) == "comment":
        return is_threaded_copy(element)
    previous = element.getprevious() if local_name(element) == "Fallback" else None
    return previous is not None and any(local_name(node) == "t" for node in previous.iter())
