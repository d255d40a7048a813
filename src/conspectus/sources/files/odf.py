"""OpenDocument: texts, presentations and spreadsheets, with the texts of cells as they are shown."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeAlias

from conspectus.deferred import dataclass
from conspectus.sources.files.exif import photo_line
from conspectus.sources.files.extract import (
    PAGE_BREAK,
    Extract,
    Unsupported,
    escape_markdown,
    format_heading,
    format_list_item,
    join_blocks,
    one_line,
    split_pages,
)
from conspectus.sources.files.file_properties import join_authors, language_metadata, texts_named
from conspectus.sources.files.margins import margin_block
from conspectus.sources.files.missing_words import join_notices, missing_words_notice
from conspectus.sources.files.odf_objects import read_object
from conspectus.sources.files.odf_texts import shown_texts
from conspectus.sources.files.sheet_blocks import hidden_sheets_notice, render_sheet
from conspectus.sources.files.tables import (
    BLANK,
    MAX_SPAN,
    SEPARATOR_LENGTH,
    Cell,
    fill_merged,
    flatten_cell,
    render_cells,
)
from conspectus.sources.files.zip_xml import Archive, attribute_of, find_child, local_name, parse_number

MEDIA_TYPE = "application/vnd.oasis.opendocument."
KINDS = frozenset({"text", "presentation", "spreadsheet"})
_LEFT_OUT = """
tracked-changes forms sequence-decls variable-decls user-field-decls ruby-text settings event-listeners
calculation-settings database-ranges named-expressions content-validations title desc shapes
"""
LEFT_OUT = frozenset(_LEFT_OUT.split())
GROUPS = frozenset({"table-row-group", "table-rows", "table-header-rows"})
CELLS = frozenset({"table-cell", "covered-table-cell"})
CELL_VALUES = ("string-value", "date-value", "time-value", "boolean-value", "value")
MARGINS = {"header": "Header", "header-first": "Header", "header-left": "Header"} | {
    "footer": "Footer", "footer-first": "Footer", "footer-left": "Footer"
}  # fmt: skip
TITLE = "title"
TITLE_STYLE = "Title"
PLACEHOLDERS = frozenset({"date-time", "footer", "header", "page-number"})
FIELDS_BY_SHEET = frozenset({"file-name", "sheet-name"})
UNKNOWN_FIELD = "???"
"""The stored text of a field whose value LibreOffice knows only on the page."""
MAX_SPACES = 100
MAX_REPEATED_LENGTH = 2_000_000
"""Characters of cells and rows that a few bytes can ask to be repeated."""

Inline: TypeAlias = Callable[[Any], str]


def read_open_document(archive: Archive) -> Extract:
    """Return the text of an ODT, ODP or ODS. Raises Refused."""
    content = archive.xml("content.xml")
    body = find_child(content, "body")
    kind = next((node for node in body if local_name(node) in KINDS), None) if body is not None else None
    if kind is None:
        raise Unsupported("unsupported format (OpenDocument). Convert it to DOCX or PPTX.")
    styles = [content, archive.xml("styles.xml")]
    reader = _Reader(archive, _hidden_styles(styles), _title_styles(styles), _numbered_styles(styles))
    name = local_name(kind)
    if name == "spreadsheet":
        return _with_properties(_read_sheets(kind, reader, styles[1]), archive)
    body_blocks = reader.slides(kind) if name == "presentation" else reader.blocks(kind)
    blocks = [*body_blocks, *reader.notes, *(() if name == "presentation" else reader.margins(styles[1]))]
    text, places = split_pages(join_blocks(blocks), first=0 if name == "presentation" else 1)
    places = places[1:] if name == "presentation" else places
    notice = missing_words_notice(text, shown_texts(archive.unread(), reader.hidden))
    extract = Extract(text, MEDIA_TYPE + name, title=reader.title, places=places, notice=notice)
    return _with_properties(extract, archive)


def _with_properties(extract: Extract, archive: Archive) -> Extract:
    """Return what was read of a document with the title, author and language of its properties."""
    properties = find_child(archive.xml("meta.xml"), "meta")
    author = join_authors(texts_named(properties, "initial-creator"))
    return replace(
        extract,
        title=next(iter(texts_named(properties, "title")), extract.title),
        author=author or join_authors(texts_named(properties, "creator")),
        metadata=language_metadata(texts_named(properties, "language")),
    )


def _read_sheets(spreadsheet: Any, reader: "_Reader", styles: Any) -> Extract:
    tables = [node for node in spreadsheet if local_name(node) == "table"]
    hidden = [table for table in tables if attribute_of(table, "style-name") in reader.hidden]
    blocks = [
        block
        for table in tables
        if table not in hidden
        for block in render_sheet(
            attribute_of(table, "name"), reader.sheet_rows(table), reader.beside_cells(table)
        )
    ]
    text = join_blocks([*blocks, *reader.margins(styles)])
    left_out = hidden_sheets_notice([attribute_of(table, "name") for table in hidden])
    missing = missing_words_notice(text, shown_texts(reader.archive.unread(), reader.hidden))
    return Extract(text, MEDIA_TYPE + "spreadsheet", notice=join_notices(left_out, missing))


@dataclass(slots=True)
class _Reader:
    """Reads elements of a document; `hidden`, `titles` and `numbered` are names of styles."""

    archive: Archive
    hidden: frozenset[str]
    titles: frozenset[str]
    numbered: frozenset[str]
    title: str = ""
    repeatable: int = MAX_REPEATED_LENGTH
    notes: list[str] = field(default_factory=list)
    boxes: list[str] = field(default_factory=list)

    def blocks(self, element: Any) -> Iterator[str]:
        """Yield the blocks of an element that contains paragraphs, lists and tables."""
        for node in element:
            name = local_name(node)
            if name in {"p", "h"}:
                yield self._paragraph(node)
                boxes, self.boxes = self.boxes, []
                yield from boxes
            elif name == "list":
                yield from self._list(node, 0, attribute_of(node, "style-name"))
            elif name == "table":
                yield self._table(node)
            elif name == "soft-page-break":
                yield PAGE_BREAK
            elif name == "frame":
                yield from self._frame_blocks(node)
            elif name not in LEFT_OUT and attribute_of(node, "style-name") not in self.hidden:
                yield from self.blocks(node)

    def slides(self, presentation: Any) -> Iterator[str]:
        """Yield the title of each slide, everything else on it, then the speaker notes."""
        for page in presentation:
            if local_name(page) != "page":
                continue
            yield PAGE_BREAK
            shapes = [shape for shape in page if attribute_of(shape, "class") not in PLACEHOLDERS]
            titles = [shape for shape in shapes if attribute_of(shape, "class") == TITLE]
            for shape in titles:
                text = one_line(" ".join(self.blocks(shape)).replace("#", ""))
                self.title = self.title or text
                yield format_heading(text, 1)
            for shape in shapes:
                if shape not in titles and local_name(shape) != "notes":
                    yield from self.blocks([shape])
            for shape in shapes:
                notes = join_blocks(self.blocks(shape)) if local_name(shape) == "notes" else ""
                yield f"Notes: {notes}" if notes else ""

    def sheet_rows(self, table: Any) -> list[list[str]]:
        """Return the texts of a sheet; rows without text are empty."""
        rows = [row for row, _ in self._rows(table)]
        return [[cell.text for cell in row] for row in fill_merged(rows)]

    def beside_cells(self, table: Any) -> Iterator[str]:
        """Yield the drawings of a sheet that stand in no cell."""
        for shapes in table:
            if local_name(shapes) == "shapes":
                yield from self.blocks(shapes)

    def margins(self, styles: Any) -> Iterator[str]:
        """Yield the headers and footers of all pages, each once."""
        masters = find_child(styles, "master-styles")
        blocks = []
        for node in () if masters is None else masters.iter():
            margin = MARGINS.get(local_name(node))
            if margin is not None:
                text = flatten_cell(join_blocks(self.blocks(node)).replace(PAGE_BREAK, "")).lstrip("# ")
                blocks.append(margin_block(margin, text))
        yield from dict.fromkeys(blocks)

    def _table(self, table: Any) -> str:
        rows = list(self._rows(table))
        if len(rows) == 1 and len(rows[0][0]) == 1:
            return rows[0][0][0].text
        return render_cells([row for row, _ in rows], header_rows=sum(is_header for _, is_header in rows))

    def _rows(self, element: Any, *, is_header: bool = False) -> Iterator[tuple[Sequence[Cell], bool]]:
        """Yield the cells of each row, and whether it is a header row."""
        for node in element:
            name = local_name(node)
            if name in GROUPS:
                yield from self._rows(node, is_header=is_header or name == "table-header-rows")
            elif name == "table-row":
                cells = list(self._cells(node))
                while cells and not cells[-1].text and cells[-1].rows == 1:
                    cells.pop()
                length = sum(len(cell.text) + SEPARATOR_LENGTH for cell in cells)
                for _ in range(self._count_copies(node, "number-rows-repeated", length)):
                    yield cells, is_header

    def _cells(self, row: Any) -> Iterator[Cell]:
        """Yield the cells of a row, without those that a merged cell covers."""
        for node in row:
            if local_name(node) != "table-cell":
                continue
            text = flatten_cell(_without_mark(join_blocks(self.blocks(node)))) or _value_of(node)
            columns = parse_number(attribute_of(node, "number-columns-spanned"), 1)
            rows = parse_number(attribute_of(node, "number-rows-spanned"), 1)
            cell = Cell(text, max(1, min(columns, MAX_SPAN)), max(1, rows))
            copies = self._count_copies(node, "number-columns-repeated", len(text) + SEPARATOR_LENGTH)
            yield from [cell if text or rows > 1 else BLANK] * copies

    def _count_copies(self, element: Any, name: str, length: int) -> int:
        """Return how often an element stands there, within what may be repeated; blank rows are one."""
        copies = min(parse_number(attribute_of(element, name), 1), MAX_SPAN)
        if copies < 2 or not length or copies * length > self.repeatable:
            return 1
        self.repeatable -= copies * length
        return copies

    def _paragraph(self, paragraph: Any) -> str:
        if attribute_of(paragraph, "style-name") in self.hidden:
            return ""
        text = self._inside(paragraph)
        is_title = attribute_of(paragraph, "style-name") in self.titles
        if local_name(paragraph) == "p" and not is_title:
            return escape_markdown(text)
        self.title = self.title or one_line(text.replace(PAGE_BREAK, " "))
        return format_heading(text, parse_number(attribute_of(paragraph, "outline-level"), 1))

    def _list(self, element: Any, level: int, style: str) -> Iterator[str]:
        """Yield the items of a list, each of which may have further lists."""
        count = 0
        for entry in element:
            if local_name(entry) not in {"list-item", "list-header"}:
                continue
            count += 1
            for node in entry:
                if local_name(node) == "list":
                    yield from self._list(node, level + 1, attribute_of(node, "style-name") or style)
                elif local_name(node) == "h":
                    yield self._paragraph(node)
                else:
                    text = join_blocks(self.blocks([node]))
                    yield format_list_item(text, level, f"{count}." if style in self.numbered else "-")

    def _inside(self, element: Any) -> str:
        parts = [element.text or ""]
        for node in element:
            parts += [self._inline(node), node.tail or ""]
        return "".join(parts)

    def _inline(self, element: Any) -> str:
        name = local_name(element)
        has_hidden_style = attribute_of(element, "style-name") in self.hidden
        is_hidden = has_hidden_style or attribute_of(element, "is-hidden") == "true"
        is_unknown = name in FIELDS_BY_SHEET and element.text == UNKNOWN_FIELD
        if not name or name in LEFT_OUT or is_hidden or is_unknown:
            return ""
        special = self._specials().get(name)
        return special(element) if special else self._inside(element)

    def _specials(self) -> Mapping[str, Inline]:
        return {
            "s": lambda spaces: " " * max(1, min(parse_number(attribute_of(spaces, "c"), 1), MAX_SPACES)),
            "tab": lambda _: "\t",
            "line-break": lambda _: "\n",
            "soft-page-break": lambda _: PAGE_BREAK,
            "note": self._note,
            "annotation": self._note,
            "frame": self._frame,
            "a": self._link,
        }

    def _note(self, element: Any) -> str:
        """Return the mark of a footnote, endnote or comment, whose text follows at the end."""
        kind = attribute_of(element, "note-class") or "comment"
        note = find_child(element, "note-body")
        blocks = self.blocks(element if note is None else note)
        text = one_line(join_blocks(blocks)).replace(PAGE_BREAK, "")
        if not text:
            return ""
        mark = f"[^{kind}-{len(self.notes) + 1}]"
        self.notes.append(f"{mark}: {text}")
        return mark

    def _frame(self, element: Any) -> str:
        """Keep the text of a frame for after the paragraph."""
        outer, self.boxes = self.boxes, []
        self.boxes = [*outer, *filter(None, [join_blocks(self._frame_blocks(element))])]
        return ""

    def _frame_blocks(self, element: Any) -> Iterator[str]:
        yield from self.blocks(element)
        for node in element:
            if local_name(node) == "object":
                yield from read_object(self.archive, node)
            elif local_name(node) == "image":
                yield photo_line(self.archive.read(attribute_of(node, "href")))
        descriptions = (node.text for node in element if local_name(node) == "desc" and node.text)
        yield from (f"[Image: {one_line(text)}]" for text in descriptions)

    def _link(self, element: Any) -> str:
        text, target = self._inside(element), attribute_of(element, "href")
        is_useful = "://" in target and text.strip() and target != text
        return f"[{text}]({target})" if is_useful else text


def _without_mark(text: str) -> str:
    """Return a text without the mark of a list of one item, which cells of slides are."""
    return text if "\n" in text else text.removeprefix("- ")


def _value_of(cell: Any) -> str:
    """Return the stored value of a cell that does not say how it is shown."""
    return next((text for name in CELL_VALUES if (text := attribute_of(cell, name))), "")


def _hidden_styles(parts: Sequence[Any]) -> frozenset[str]:
    """Return the names of styles of hidden tables and texts."""
    return frozenset(
        attribute_of(style, "name")
        for part in parts
        for style in part.iter()
        if local_name(style) == "style"
        for properties in style
        if (local_name(properties), attribute_of(properties, "display"))
        in {("table-properties", "false"), ("text-properties", "none")}
    )


def _title_styles(parts: Sequence[Any]) -> frozenset[str]:
    """Return the names of styles of the title of a text."""
    styles = [style for part in parts for style in part.iter() if local_name(style) == "style"]
    named = ((attribute_of(style, "name"), attribute_of(style, "parent-style-name")) for style in styles)
    return frozenset(name for name, parent in named if TITLE_STYLE in {name, parent})


def _numbered_styles(parts: Sequence[Any]) -> frozenset[str]:
    """Return the names of lists whose first level is numbered."""
    return frozenset(
        attribute_of(style, "name")
        for part in parts
        for style in part.iter()
        if local_name(style) == "list-style"
        and len(style)
        and local_name(style[0]) == "list-level-style-number"
    )
