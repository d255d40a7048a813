"""Tables of HTML, collected cell by cell while a page is read."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import takewhile
from typing import Generic, TypeVar

from conspectus.sources.files.tables import MAX_SPAN, Cell, flatten_cell, render_cells
from conspectus.sources.files.zip_xml import parse_number

MAX_ROWS = 65_534
"""The largest `rowspan` of the HTML standard."""
MAX_BLOCK_LENGTH = 300
"""A cell of headings or tables that is longer is a part of the page, not a cell."""

Flow = TypeVar("Flow")
CELLS = ("td", "th")
ROW_GROUPS = frozenset({"thead", "tbody", "tfoot"})
_SPANS = ("colspan", "rowspan")


class HtmlTable(Generic[Flow]):
    """A table while it is read. `around` is the text that it stands in, `flow` that of its open cell."""

    def __init__(self, attributes: Mapping[str, str], around: Flow) -> None:
        self.around = around
        self.flow: Flow | None = None
        self.has_blocks = False
        self.is_in_head = False
        self._blocks: list[str] = []
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
        # The cells of `thead` are names of columns, whatever their tag is.
        cell_tag = "th" if self.is_in_head else tag
        self._has_header = self._has_header or cell_tag == "th"
        self._tags[-1].add(cell_tag)
        self._span = _span_of(attributes)
        self.flow = flow
        return flow

    def close_cell(self, text: str) -> None:
        """Add the open cell with its text."""
        columns, rows = self._span
        self._rows[-1].append(Cell(text, columns, rows))
        if self.has_blocks:
            self._blocks.append(text)
        self.flow, self.has_blocks = None, False

    def blocks(self) -> Iterator[str]:
        """Return the table in Markdown, or the cells of a table that only places text on the page.

        That is a table of one cell, or one without header cells that has one column, or that is made of
        headings and tables.
        """
        texts = [cell.text for row in self._rows for cell in row if cell.text]
        has_one_column = max(map(len, self._rows), default=0) <= 1
        is_layout = self._is_layout or has_one_column or self._is_made_of_blocks(len(texts))
        if len(texts) <= 1 or (is_layout and not self._has_header):
            yield from texts
        else:
            rows = ([replace(cell, text=flatten_cell(cell.text)) for cell in row] for row in self._rows)
            yield render_cells(rows, header_rows=self._header_rows())

    def _is_made_of_blocks(self, cells: int) -> bool:
        """Return whether cells with headings or tables are long, half of all cells, or in the only row."""
        has_one_row = sum(any(cell.text for cell in row) for row in self._rows) == 1
        is_long = any(len(text) > MAX_BLOCK_LENGTH for text in self._blocks)
        return bool(self._blocks) and (has_one_row or is_long or 2 * len(self._blocks) >= cells)

    def _header_rows(self) -> int:
        pairs = zip(self._rows, self._tags, strict=True)
        return _count_header_rows([(row, tags) for row, tags in pairs if any(cell.text for cell in row)])


def _count_header_rows(rows: Sequence[tuple[Sequence[Cell], Set[str]]]) -> int:
    """Return how many rows at the top have header cells alone; 1 if there is no other row, or none.

    A header cell that reaches down beside data is the name of these rows, not of a column.
    """
    count = len(list(takewhile(lambda row: row[1] == {"th"}, rows)))
    for position, (cells, _) in enumerate(rows[:count]):
        if any(position + cell.rows > count for cell in cells):
            count = position
            break
    return count if 0 < count < len(rows) else 1


def _span_of(attributes: Mapping[str, str]) -> tuple[int, int]:
    """Return the columns and rows that a cell spans."""
    columns, rows = (attributes.get(name, "").strip() for name in _SPANS)
    height = MAX_ROWS if rows == "0" else parse_number(rows, 1)
    return min(max(1, parse_number(columns, 1)), MAX_SPAN), min(max(1, height), MAX_ROWS)
