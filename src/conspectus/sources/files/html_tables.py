"""Tables of HTML, collected cell by cell while a page is read."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import takewhile
from typing import Generic, TypeVar

from conspectus.sources.files.tables import MAX_SPAN, Cell, flatten_cell, render_cells
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


def _count_header_rows(tags: Sequence[Set[str]]) -> int:
    """Return how many rows at the top have header cells alone; 1 if there is no other row, or none."""
    count = len(list(takewhile(lambda row_tags: row_tags == {"th"}, tags)))
    return count if 0 < count < len(tags) else 1


def _span_of(attributes: Mapping[str, str]) -> tuple[int, int]:
    """Return the columns and rows that a cell spans."""
    columns, rows = (attributes.get(name, "").strip() for name in _SPANS)
    height = MAX_ROWS if rows == "0" else number(rows, 1)
    return min(max(1, number(columns, 1)), MAX_SPAN), min(max(1, height), MAX_ROWS)
