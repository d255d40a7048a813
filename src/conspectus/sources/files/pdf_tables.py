"""Tables of a PDF page: bands whose columns hold cells, and the rows of these cells."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import NamedTuple, TypeAlias

from conspectus.sources.files.header_rows import count_name_rows, is_figure
from conspectus.sources.files.pdf_columns import find_columns
from conspectus.sources.files.pdf_rows import Line, Row, Strip, divide, find_gutters, join_lines
from conspectus.sources.files.pdf_spans import MAX_RAISE, Span, Walls
from conspectus.sources.files.tables import join_header_rows

MAX_COVER = 0.88
"""Rows whose text covers more of their width are those of justified prose."""
MAX_SLANT = 0.2
MIN_SHORT_TABLE_GUTTER = 1.2
MIN_ROWS = 3
MAX_RUNNING_CELLS = 0.4
MIN_ALIGNED_SHARE = 0.7
MAX_HALF_ROW = 0.95
"""How far a cell over two rows may be from the text of each, in sizes."""
LIST_MARK = re.compile(
    r"(?:[•◦▪‣●·∙■□\u2013*-]|[(\[]?(?:\d{1,3}|[A-Za-z]|[ivx]{1,4})[.)\]]|\.\d{1,2}|\d{1,2}(?:\.\d{1,2})*\.?)"
)


Cells: TypeAlias = list[list[Span]]
"""The spans of a line of a table, by column."""


def ruled_heights(band: Sequence[Row], walls: Walls) -> Sequence[float]:
    """Return the heights of the lines between the rows of a table with borders; none if it has none."""
    full = [row for row in band if row.inner]
    walled = [
        row for row in full if any(walls.divide(*strip, (row.top + row.bottom) / 2) for strip in row.inner)
    ]
    if 2 * len(walled) <= len(full):
        return ()
    spans = [span for row in band for span in row.spans]
    heights = walls.heights(min(span.left for span in spans), max(span.right for span in spans))
    rows = {bisect_right(heights, span.base) for span in spans}
    return heights if len(rows) >= max(2, len(full) / 2) else ()


def are_aligned(columns: Sequence[Sequence[Line]]) -> bool:
    """Return whether the lines of most columns stand beside lines of other columns, as in a table."""
    bases = sorted((line.base, number) for number, column in enumerate(columns) for line in column)
    fullest = max(range(len(columns)), key=lambda number: len(columns[number]))
    aligned = 0
    for number, column in enumerate(columns):
        beside = sum(_has_neighbor(bases, line, number) for line in column)
        aligned += number != fullest and beside >= MIN_ALIGNED_SHARE * len(column)
    return 2 * aligned >= len(columns) - 1


def _has_neighbor(bases: Sequence[tuple[float, int]], line: Line, number: int) -> bool:
    """Return whether a line of another column has the same base."""
    low, high = (line.base + sign * MAX_SLANT * line.size for sign in (-1, 1))
    near = bases[bisect_left(bases, (low, 0)) : bisect_right(bases, (high, number))]
    return any(other != number for _, other in near)


def is_table(band: Sequence[Row], columns: Sequence[Sequence[Line]]) -> bool:
    """Return whether the columns of a band are those of a table.

    They are not if they stand in one row, if the first has only marks of a list or a single label, and if the
    rows are filled by words as those of justified prose are.
    """
    first = [line.text for line in columns[0]]
    if sum(len(column) > 1 for column in columns) < 2 or not are_aligned(columns):
        return False
    is_list = len(columns) == 2 and all(LIST_MARK.fullmatch(text) for text in first)
    is_remark = len(first) == 1 and first[0].endswith(":")
    left = min(span.left for row in band for span in row.spans)
    width = max(span.right for row in band for span in row.spans) - left
    covers = [_covered_width(row) for row in band]
    is_filled = median(covers) > MAX_COVER * width
    return not (is_list or is_remark or is_filled or _is_stretched(band, columns))


def _covered_width(row: Row) -> float:
    """Return the width of a row from its first to its last span without its gutters."""
    width = row.free[-1].left - row.free[0].right
    return width - sum(strip.right - strip.left for strip in row.inner)


def _is_stretched(band: Sequence[Row], columns: Sequence[Sequence[Line]]) -> bool:
    """Return whether the gutters of a band are but gaps between words of justified prose."""
    size = median(span.size for row in band for span in row.spans)
    widest = max(gutter.right - gutter.left for gutter in find_gutters(band))
    cells = [line.text for column in columns for line in column]
    running = sum(text[0].islower() for text in cells)
    is_short = sum(bool(row.inner) for row in band) < MIN_ROWS
    return widest < MIN_SHORT_TABLE_GUTTER * size and (is_short or running >= MAX_RUNNING_CELLS * len(cells))


class TableBand(NamedTuple):
    """A band with a table: its rows of cells, and spans above and below that are none of it."""

    before: Sequence[Span]
    rows: Sequence[Sequence[str]]
    after: Sequence[Span]


def read_table(band: Sequence[Row], heights: Sequence[float] = ()) -> TableBand:
    """Return the table of a band: from the first to the last row with several cells.

    A row of one cell may be wider than its column, so that its text is no obstacle to a gutter.
    """
    spans = [span for row in band for span in row.spans]
    text_rows = list(_text_rows(spans, heights))
    gutters = find_columns(band, text_rows)
    lines = [divide(row, gutters) for row in text_rows]
    full = [index for index, cells in enumerate(lines) if sum(map(bool, cells)) > 1]
    if not full:
        return TableBand(spans, (), ())
    begin, end = full[0], full[-1] + 1
    while end < len(lines) and not lines[end][0] and not heights:
        end += 1
    table = lines[begin:end] if heights else list(_join_rows(_spread_tall(lines[begin:end])))
    is_rtl = 2 * sum(span.is_rtl for span in spans) > len(spans)
    if not any(is_figure(_cell_text(cell)) for cell in table[0]):
        table[0] = _spread_names(table[0], gutters)
    rows = [[_cell_text(cell) for cell in (cells[::-1] if is_rtl else cells)] for cells in table]
    height = count_name_rows(rows)
    named = [join_header_rows(rows[:height])[1], *rows[height:]]
    return TableBand(_spans_of(lines[:begin]), named, _spans_of(lines[end:]))


def _spread_names(names: Cells, gutters: Sequence[Strip]) -> Cells:
    """Return the first row of a table with a name that stands over several columns in each of them."""
    spread = list(names)
    for column, cell in enumerate(names):
        end = max((span.right for span in cell), default=float("-inf"))
        for other in range(column + 1, len(names)):
            if spread[other] or end < gutters[other - 1].right:
                break
            spread[other] = cell
    return spread


def _spans_of(lines: Sequence[Cells]) -> list[Span]:
    return [span for cells in lines for cell in cells for span in cell]


def _text_rows(spans: Iterable[Span], heights: Sequence[float]) -> Iterator[list[Span]]:
    """Yield spans by their base, or those between two of the given heights."""
    row: list[Span] = []
    for span in sorted(spans, key=lambda span: span.base):
        if row and heights:
            is_next = bisect_right(heights, span.base) > bisect_right(heights, row[0].base)
        else:
            is_next = bool(row) and span.base - row[0].base > MAX_RAISE * max(span.size, row[0].size)
        if is_next:
            yield row
            row = []
        row.append(span)
    if row:
        yield row


def _spread_tall(lines: Sequence[Cells]) -> list[Cells]:
    """Return lines without those that stand half-way between two: a cell over two rows belongs to both."""
    rows: list[Cells] = []
    skipped: Cells | None = None
    for index, cells in enumerate(lines):
        if skipped is not None:
            rows[-1] = [above or cell for above, cell in zip(rows[-1], skipped, strict=True)]
            cells, skipped = [cell or above for cell, above in zip(cells, skipped, strict=True)], None
        elif 0 < index < len(lines) - 1 and _is_between(lines, index):
            skipped = cells
            continue
        rows.append(cells)
    return rows


def _is_between(lines: Sequence[Cells], index: int) -> bool:
    """Return whether a line stands between two that are too close for it, in cells that they leave empty.

    Lines that go on alternating are rows of two tables that stand side by side, half a row apart.
    """
    above, cells, below = lines[index - 1 : index + 2]
    is_free = not any(cell and (above[column] or below[column]) for column, cell in enumerate(cells))
    first = next(span for cell in cells for span in cell)
    distances = [abs(_base(line) - first.base) for line in (above, below)]
    alternate = [lines[other] for other in (index - 2, index + 2) if 0 <= other < len(lines)]
    goes_on = any(
        list(map(bool, line)) == list(map(bool, cells))
        and abs(_base(line) - first.base) < 2 * MAX_HALF_ROW * first.size
        for line in alternate
    )
    return is_free and max(distances) < MAX_HALF_ROW * first.size and not goes_on


def _base(cells: Cells) -> float:
    return min(span.base for cell in cells for span in cell)


def _join_rows(lines: Sequence[Cells]) -> Iterator[Cells]:
    """Yield rows of cells: a line close below the one above that has no first cell belongs to its row."""
    bases = [_base(cells) for cells in lines]
    distances = [
        below - above for above, below, cells in zip(bases, bases[1:], lines[1:], strict=False) if cells[0]
    ]
    close = 0.8 * median(distances) if distances else 0.0
    row: Cells = []
    last = 0.0
    for base, cells in zip(bases, lines, strict=True):
        if row and not cells[0] and base - last < close:
            row = [[*above, *below] for above, below in zip(row, cells, strict=True)]
        else:
            if row:
                yield row
            row = cells
        last = base
    yield row


def _cell_text(spans: Sequence[Span]) -> str:
    return " ".join(line.text for line in join_lines(spans))
