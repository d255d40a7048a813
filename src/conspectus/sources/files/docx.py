"""DOCX: headings, lists with their numbers, tables, notes, text boxes and formulas as Markdown.

This code reads the XML itself, because neither mammoth, markitdown nor kreuzberg keeps charts and the numbers
of headings (measured on docling's documents; see ADR 0006). Deleted and hidden text is skipped.
Page numbers are those of the last rendering in the word processor, else of manual page breaks.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from itertools import takewhile
from pathlib import PurePath
from typing import Any, TypeAlias

from conspectus.deferred import dataclass
from conspectus.sources.files.docx_formulas import latex
from conspectus.sources.files.docx_numbering import BULLET, Numbering, read_numbering
from conspectus.sources.files.exif import photo_line
from conspectus.sources.files.extract import (
    PAGE_BREAK,
    Extract,
    escape_markdown,
    format_heading,
    format_list_item,
    join_blocks,
    one_line,
    split_pages,
)
from conspectus.sources.files.html import read_visible_text
from conspectus.sources.files.margins import margin_block
from conspectus.sources.files.missing_words import missing_words_notice
from conspectus.sources.files.office_texts import texts_of_parts
from conspectus.sources.files.tables import BLANK, MAX_SPAN, Cell, flatten_cell, render_cells
from conspectus.sources.files.zip_xml import (
    Archive,
    Relation,
    attribute_of,
    find_child,
    find_main_part,
    find_related_part,
    local_name,
    parse_number,
    read_chart,
    read_diagram,
    read_relations,
    val_attribute,
)

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
LEFT_OUT = frozenset({
    "del", "moveFrom", "delText", "instrText", "rPr", "pPr", "sectPr", "tblPr", "tblGrid", "trPr", "tcPr",
    "sdtPr", "rt", "proofErr",
})  # fmt: skip
NOTES = {"footnotes": "footnote", "endnotes": "endnote", "comments": "comment"}
MARGINS = {"headerReference": "Header", "footerReference": "Footer"}
OFF = frozenset({"0", "false", "off"})
INSERTED_PAGES = frozenset({".htm", ".html", ".xhtml"})
STYLES_ABOVE = 10

Inline: TypeAlias = Callable[[Any], str]


def read_word(archive: Archive) -> Extract:
    """Return the text of a DOCX. Raises Refused."""
    name = find_main_part(archive)
    document = archive.xml(name)
    reader = _Reader(
        archive=archive,
        styles=_styles(archive.xml(find_related_part(archive, name, "styles"))),
        numbering=read_numbering(archive.xml(find_related_part(archive, name, "numbering"))),
        links=read_relations(archive, name),
        laid_out=any(local_name(node) == "lastRenderedPageBreak" for node in document.iter()),
    )
    body = find_child(document, "body")
    blocks = list(reader.blocks(document if body is None else body))
    notes = [note for kind, one in NOTES.items() for note in reader.notes(name, kind, one)]
    margins = dict.fromkeys(reader.margins(document))
    text, places = split_pages(join_blocks([*blocks, *notes, *margins]))
    notice = missing_words_notice(text, texts_of_parts(archive.unread()))
    return Extract(text, MEDIA_TYPE, title=reader.title, places=places, notice=notice)


@dataclass(frozen=True, slots=True)
class _Style:
    """The heading level and list that a paragraph style defines."""

    name: str = ""
    outline: int | None = None
    listed: tuple[str, int] | None = None


@dataclass(slots=True)
class _Reader:
    archive: Archive
    styles: Mapping[str, _Style]
    numbering: Numbering
    links: Mapping[str, Relation]
    laid_out: bool
    title: str = ""
    boxes: list[str] = field(default_factory=list)

    def blocks(self, element: Any) -> Iterator[str]:
        """Yield the blocks of an element that contains paragraphs and tables."""
        for block in element:
            name = local_name(block)
            if name == "p":
                yield self._paragraph(block)
                boxes, self.boxes = self.boxes, []
                yield from boxes
            elif name == "tbl":
                rows = list(_descendants(block, "tr"))
                alone = list(_descendants(rows[0], "tc")) if len(rows) == 1 else []
                if len(alone) == 1:
                    yield join_blocks(self.blocks(alone[0]))
                else:
                    header_rows = len(list(takewhile(_is_header, rows))) or 1
                    yield render_cells([list(self._cells(row)) for row in rows], header_rows=header_rows)
            elif name == "altChunk":
                yield self._inserted_page(attribute_of(block, "id"))
            elif name not in LEFT_OUT:
                yield from self.blocks(block)

    def notes(self, part: str, kind: str, one: str) -> Iterator[str]:
        """Return the footnotes, endnotes or comments of the document."""
        for note in self.archive.xml(find_related_part(self.archive, part, kind)):
            text = one_line(join_blocks(self.blocks(note))).replace(PAGE_BREAK, "")
            if local_name(note) == one and text:
                yield f"[^{one}-{attribute_of(note, 'id')[:9]}]: {text}"

    def margins(self, document: Any) -> Iterator[str]:
        """Return the headers and footers of all sections, without those that only number pages."""
        references = [node for node in document.iter() if local_name(node) in MARGINS]
        margins = {attribute_of(reference, "id"): MARGINS[local_name(reference)] for reference in references}
        for identifier, margin in margins.items():
            relation = self.links.get(identifier)
            if relation is None or relation.external:
                continue
            reader = replace(self, links=read_relations(self.archive, relation.target), boxes=[])
            blocks = reader.blocks(self.archive.xml(relation.target))
            text = flatten_cell(join_blocks(blocks).replace(PAGE_BREAK, "")).lstrip("# ")
            yield margin_block(margin, text)

    def _paragraph(self, paragraph: Any) -> str:
        text = self._inside(paragraph)
        properties = find_child(paragraph, "pPr")
        style = self.styles.get(
            "" if properties is None else val_attribute(properties, "pStyle") or "", _Style()
        )
        own_outline = None if properties is None else val_attribute(properties, "outlineLvl")
        outline = style.outline if own_outline is None else parse_number(own_outline, 9)
        level = _level_of(style.name) or (outline + 1 if outline is not None and 0 <= outline < 9 else 0)
        listed = style.listed if properties is None else _list_position(properties) or style.listed
        mark = self.numbering.mark(*listed) if listed and text.strip() and 0 <= listed[1] < 9 else ""
        if level:
            self.title = self.title or one_line(text.replace(PAGE_BREAK, " "))
            return format_heading(f"{'' if mark == BULLET else mark} {text}", level)
        if mark and listed:
            simple = mark == BULLET or mark[:-1].isdecimal()
            return format_list_item(
                text if simple else f"{mark} {text}", listed[1], mark if simple else BULLET
            )
        return escape_markdown(text)

    def _cells(self, row: Any) -> Iterator[Cell]:
        yield from [BLANK] * min(parse_number(val_attribute(row, "trPr", "gridBefore")), MAX_SPAN)
        for cell in _descendants(row, "tc"):
            merged = find_child(cell, "tcPr", "vMerge")
            is_continued = merged is not None and attribute_of(merged, "val", "continue") == "continue"
            text = "" if is_continued else flatten_cell(join_blocks(self.blocks(cell)))
            columns = max(1, min(parse_number(val_attribute(cell, "tcPr", "gridSpan"), 1), MAX_SPAN))
            yield Cell(text, columns, is_continued=is_continued)

    def _inside(self, element: Any) -> str:
        return "".join(map(self._inline, element))

    def _inline(self, element: Any) -> str:
        name = local_name(element)
        if name in LEFT_OUT or (name == "r" and _is_hidden(element)):
            return ""
        if name == "t":
            return element.text or ""
        written = _MARKS.get(name)
        if written is not None:
            return written
        special = self._specials().get(name)
        return special(element) if special else self._inside(element)

    def _specials(self) -> Mapping[str, Inline]:
        return {
            "br": self._break,
            "lastRenderedPageBreak": lambda _: PAGE_BREAK,
            "sym": _symbol,
            "hyperlink": self._link,
            "oMath": lambda formula: f"${latex(formula).strip()}$",
            "oMathPara": lambda formula: f"$${latex(formula).strip()}$$",
            "footnoteReference": lambda note: f"[^footnote-{attribute_of(note, 'id')[:9]}]",
            "endnoteReference": lambda note: f"[^endnote-{attribute_of(note, 'id')[:9]}]",
            "commentReference": lambda note: f"[^comment-{attribute_of(note, 'id')[:9]}]",
            "AlternateContent": self._alternative,
            "txbxContent": self._box,
            "chart": lambda drawing: self._related(attribute_of(drawing, "id"), read_chart),
            "relIds": lambda drawing: self._related(attribute_of(drawing, "dm"), read_diagram),
            "sdt": self._control,
            "docPr": self._describe,
            "cNvPr": self._describe,
            "blip": lambda picture: self._photo(attribute_of(picture, "embed")),
            "imagedata": lambda picture: self._photo(attribute_of(picture, "id")),
            "textpath": lambda path: attribute_of(path, "string"),
        }

    def _break(self, element: Any) -> str:
        if attribute_of(element, "type") == "page":
            return "" if self.laid_out else PAGE_BREAK
        return "\n"

    def _link(self, element: Any) -> str:
        text = self._inside(element)
        relation = self.links.get(attribute_of(element, "id"))
        is_useful = relation is not None and relation.external and text.strip() and relation.target != text
        return f"[{text}]({relation.target})" if is_useful and relation is not None else text

    def _alternative(self, element: Any) -> str:
        """Return the first alternative of a drawing that has text."""
        for form in element:
            before = len(self.boxes)
            text = self._inside(form)
            if text.strip() or len(self.boxes) > before:
                return text
        return ""

    def _box(self, element: Any) -> str:
        outer, self.boxes = self.boxes, []
        self.boxes = [*outer, *filter(None, [join_blocks(self.blocks(element))])]
        return ""

    def _describe(self, properties: Any) -> str:
        """Read the alternative text of a picture, which is shown after the paragraph."""
        block = f"[Image: {one_line(attribute_of(properties, 'descr'))}]"
        if attribute_of(properties, "descr").strip() and block not in self.boxes:
            self.boxes.append(block)
        return ""

    def _photo(self, id: str) -> str:
        """Read what the EXIF of a picture says, which is shown after the paragraph."""
        relation = self.links.get(id)
        line = photo_line(self.archive.read(relation.target)) if relation and not relation.external else ""
        if line and line not in self.boxes:
            self.boxes.append(line)
        return ""

    def _inserted_page(self, id: str) -> str:
        """Return the text of a web page or text file that stands in the document."""
        relation = self.links.get(id)
        if relation is None or relation.external:
            return ""
        suffix = PurePath(relation.target).suffix.lower()
        data = self.archive.read(relation.target)
        if suffix in INSERTED_PAGES:
            return read_visible_text(data).text()
        return escape_markdown(data.decode("utf-8-sig", "replace")) if suffix == ".txt" else ""

    def _related(self, id: str, read: Callable[[Any], Iterable[str]]) -> str:
        """Read a chart or a diagram, which is shown after the paragraph."""
        relation = self.links.get(id)
        if relation is not None:
            self.boxes.append(join_blocks(read(self.archive.xml(relation.target))))
        return ""

    def _control(self, element: Any) -> str:
        checked = val_attribute(element, "sdtPr", "checkbox", "checked")
        return self._inside(element) if checked is None else "[x]" if checked in {"1", "true"} else "[ ]"


def _is_header(row: Any) -> bool:
    """Return whether a row is repeated at the top of each page."""
    mark = find_child(row, "trPr", "tblHeader")
    return mark is not None and attribute_of(mark, "val", "true") not in OFF


def _is_hidden(run: Any) -> bool:
    hidden = find_child(run, "rPr", "vanish")
    return hidden is not None and attribute_of(hidden, "val", "true") not in OFF


_MARKS = {"tab": "\t", "cr": "\n", "noBreakHyphen": "-", "softHyphen": ""}


def _descendants(element: Any, name: str) -> Iterator[Any]:
    """Return the rows of a table or the cells of a row, including those inside controls and changes."""
    for node in element:
        if local_name(node) == name:
            yield node
        elif local_name(node) in {"sdt", "sdtContent", "customXml", "ins", "smartTag"}:
            yield from _descendants(node, name)


def _styles(part: Any) -> Mapping[str, _Style]:
    elements = {attribute_of(style, "styleId"): style for style in part if local_name(style) == "style"}
    return {name: _style(style, elements) for name, style in elements.items()}


def _style(element: Any, elements: Mapping[str, Any]) -> _Style:
    """Return a style with the properties that it inherits."""
    names, outline, listed = [], None, None
    current: Any | None = element
    for _ in range(STYLES_ABOVE):
        if current is None:
            break
        names.append((val_attribute(current, "name") or "").lower())
        outline = val_attribute(current, "pPr", "outlineLvl") if outline is None else outline
        properties = find_child(current, "pPr")
        listed = listed or (None if properties is None else _list_position(properties))
        current = elements.get(val_attribute(current, "basedOn") or "")
    named = next((name for name in names if _level_of(name)), "")
    return _Style(named, None if outline is None else parse_number(outline, 9), listed)


def _list_position(properties: Any) -> tuple[str, int] | None:
    name = val_attribute(properties, "numPr", "numId")
    return None if name is None else (name, parse_number(val_attribute(properties, "numPr", "ilvl")))


def _level_of(name: str) -> int:
    if name == "title":
        return 1
    return parse_number(name.removeprefix("heading ")) if name.startswith("heading ") else 0


def _symbol(element: Any) -> str:
    code = attribute_of(element, "char")
    try:
        character = int(code[:6], 16)
    except ValueError:
        return ""
    return "" if 0xD800 <= character < 0xF900 or character > 0x10FFFF or character < 32 else chr(character)
