"""Tables of HTML: collected cell by cell while a page is read, and filled in the tree of a page."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import takewhile
from typing import Any, Generic, TypeVar

from conspectus.sources.files.tables import (
    MAX_SPAN,
    Cell,
    fill_merged,
    flatten_cell,
    join_header_rows,
    render_cells,
)
from conspectus.sources.files.zip_xml import number

MAX_ROWS = 65_534
"""The largest `rowspan` of the HTML standard."""

Flow = TypeVar("Flow")
CELLS = ("td", "th")
_SPANS = ("colspan", "rowspan")


class HtmlTable(Generic[Flow]):
    """A table while it is read. `around` is the text that it stands in, `flow` that of its open cell."""

    def __init__(self, attributes: Mapping[str, str], around: Flow) -> None:
        self.around = around
        self.flow: Flow | None = None
        self.has_blocks = False
        self._has_header = False
        self._is_layout = attributes.get("role") in {"presentation", "none"}
        self._span = (1, 1)
        self._rows: list[list[Cell]] = []
        self._tags: list[set[str]] = []

    def open_row(self) -> None:
        """Begin a row."""
        self._rows.append([])
        self._tags.append(set())

    def open_cell(self, tag: str, attributes: Mapping[str, str], flow: Flow) -> Flow:
        """Begin a cell, and return the flow of its text."""
        if not self._rows:
            self.open_row()
        self._has_header = self._has_header or tag == "th"
        self._tags[-1].add(tag)
        self._span = _span_of(attributes)
        self.flow = flow
        return flow

    def close_cell(self, text: str) -> None:
        """Add the open cell with its text."""
        columns, rows = self._span
        self._rows[-1].append(Cell(text, columns, rows))
        self.flow = None

    def blocks(self) -> Iterator[str]:
        """Return the table in Markdown, or the cells of a table that only places text on the page.

        That is a table of one cell, or one without header cells that has one column, headings or tables.
        """
        texts = [cell.text for row in self._rows for cell in row if cell.text]
        has_one_column = max(map(len, self._rows), default=0) <= 1
        is_layout = self._is_layout or self.has_blocks or has_one_column
        if len(texts) <= 1 or (is_layout and not self._has_header):
            yield from texts
        else:
            rows = ([replace(cell, text=flatten_cell(cell.text)) for cell in row] for row in self._rows)
            yield render_cells(rows, header_rows=self._header_rows())

    def _header_rows(self) -> int:
        pairs = zip(self._rows, self._tags, strict=True)
        return _count_header_rows([tags for row, tags in pairs if any(cell.text for cell in row)])


def fill_tables(tree: Any) -> None:
    """Fill the merged cells of the tables in the tree of a page, and give each table a header row.

    The library that finds the main part leaves merged cells blank, reads a caption as a row, and writes no
    Markdown table where no cell is a header. A table that contains a table is left alone.
    """
    for table in list(tree.iter("table")):
        if next(table.iterdescendants("table"), None) is not None:
            continue
        for caption in list(table.iterchildren("caption")):
            caption.tag = "p"
            table.addprevious(caption)
        _fill_table(table, list(table.iter("tr")))


def _fill_table(table: Any, tree_rows: Sequence[Any]) -> None:
    children = [element for row in tree_rows for element in row if isinstance(element.tag, str)]
    if any(element.tag not in CELLS for element in children):
        return
    elements: dict[int, Any] = {}
    rows: list[list[Cell]] = []
    for tree_row in tree_rows:
        rows.append([])
        for element in tree_row.iterchildren(*CELLS):
            cell = Cell(" ".join("".join(element.itertext()).split()), *_span_of(element.attrib))
            elements[id(cell)] = element
            rows[-1].append(cell)
    tags = [{element.tag for element in row} for row in tree_rows]
    for tree_row, filled in zip(tree_rows, fill_merged(rows), strict=True):
        tree_row[:] = [_take_element(elements, cell, table) for cell in filled]
    _join_header_rows(table, tree_rows[: _count_header_rows(tags)])
    header = next((row for row in tree_rows if len(row) > 1), ())
    for element in header:
        element.tag = "th"


def _count_header_rows(tags: Sequence[Set[str]]) -> int:
    """Return how many rows at the top have header cells alone; 1 if there is no other row, or none."""
    count = len(list(takewhile(lambda row_tags: row_tags == {"th"}, tags)))
    return count if 0 < count < len(tags) else 1


def _join_header_rows(table: Any, tree_rows: Sequence[Any]) -> None:
    """Make one row of several header rows, and a paragraph above the table of one text over all columns."""
    if len(tree_rows) < 2:
        return
    texts = [[" ".join("".join(cell.itertext()).split()) for cell in row] for row in tree_rows]
    captions, names = join_header_rows(list(filter(None, texts)))
    for text in captions:
        caption = table.makeelement("p")
        caption.text = text
        table.addprevious(caption)
    first, *others = tree_rows
    first[:] = [table.makeelement("th") for _ in names]
    for cell, name in zip(first, names, strict=True):
        cell.text = name
    for row in others:
        row.getparent().remove(row)


def _take_element(elements: dict[int, Any], cell: Cell, table: Any) -> Any:
    """Return the element of a cell the first time, and an element with its text for each copy."""
    element = elements.pop(id(cell), None)
    if element is None:
        element = table.makeelement("td")
        element.text = cell.text
    for name in _SPANS:
        element.attrib.pop(name, None)
    return element


def _span_of(attributes: Mapping[str, str]) -> tuple[int, int]:
    """Return the columns and rows that a cell spans."""
    columns, rows = (attributes.get(name, "").strip() for name in _SPANS)
    height = MAX_ROWS if rows == "0" else number(rows, 1)
    return min(max(1, number(columns, 1)), MAX_SPAN), min(max(1, height), MAX_ROWS)
