"""The texts that an OpenDocument file shows, taken from all its parts without their structure."""

import re
from collections.abc import Iterator
from typing import Any

from lxml import etree

from conspectus.sources.files.margins import margin_block
from conspectus.sources.files.missing_words import ShownText
from conspectus.sources.files.office_texts import DESCRIPTIONS, MARGINS, MASTERS, STANDING
from conspectus.sources.files.zip_xml import Archive, attribute_of, find_child, local_name

OBJECT_PART = re.compile(r"[^/]+/content\.xml")
NOT_SHOWN = frozenset({"tracked-changes", "ruby-text", "creator", "date", "note-citation", "annotation-end"})
FIELDS = frozenset({"page-number", "page-count", "sheet-name", "file-name", "date", "time", "title"})
PLACEHOLDERS = frozenset({"date-time", "footer", "header", "page-number"})
BREAKS = frozenset({"p", "h", "tab", "line-break", "table-cell", "s"})


def shown_texts(archive: Archive, hidden: frozenset[str]) -> Iterator[ShownText]:
    """Yield the texts of the body, of objects in it, and of the margins of pages or the master of slides.

    Tables whose style is `hidden` are no part of them.
    """
    body = find_child(archive.xml("content.xml"), "body")
    if body is None:
        return
    yield from _texts_of(body, hidden)
    for name in archive.names():
        if OBJECT_PART.fullmatch(name):
            part = archive.xml(name)
            if local_name(part) != "math":
                lines = (line for _, text in _texts_of(part) for line in text.split("\n"))
                yield from (ShownText("charts", line) for line in lines)
    masters = find_child(archive.xml("styles.xml"), "master-styles")
    is_presentation = any(local_name(node) == "presentation" for node in body)
    for node in () if masters is None else masters.iter():
        if local_name(node) in {"header", "footer"} and not is_presentation:
            text = _text_of(node)
            yield ShownText(MARGINS, text if margin_block("", f"{text} 1") else "")
        elif local_name(node) == "frame" and is_presentation and not attribute_of(node, "class"):
            yield ShownText(MASTERS, _text_of(node))


def _texts_of(element: Any, hidden: frozenset[str] = frozenset()) -> Iterator[ShownText]:
    main: list[str] = []
    walker = etree.iterwalk(element, events=("start", "end"))
    for event, node in walker:
        name = local_name(node)
        if name in BREAKS:
            main.append("\n")
        if event == "end":
            main.append(node.tail or "")
        elif name in {"desc", "title"} and local_name(node.getparent()) == "frame":
            yield ShownText(DESCRIPTIONS, node.text or "")
            walker.skip_subtree()
        elif name == "frame" and attribute_of(node, "class") in PLACEHOLDERS:
            yield ShownText(STANDING, _text_of(node))
            walker.skip_subtree()
        elif name in NOT_SHOWN or (name == "table" and attribute_of(node, "style-name") in hidden):
            walker.skip_subtree()
        else:
            main.append(node.text or "")
    yield ShownText("", "".join(main))


def _text_of(element: Any) -> str:
    parts: list[str] = []
    for node in element.iter():
        if local_name(node) in BREAKS:
            parts.append(" ")
        if local_name(node) not in FIELDS:
            parts.append(node.text or "")
        parts.append(node.tail or "")
    return "".join(parts)
