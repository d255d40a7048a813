"""Rows and lines of spans on a page, and the strips between their columns that are free of text."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from conspectus.deferred import dataclass
from conspectus.sources.files.pdf_spans import MAX_RAISE, Span, Walls

MIN_GUTTER = 0.5
"""The narrowest gutter of a table, in sizes of its letters."""
MIN_COMMON_GUTTER = 0.15
"""The narrowest strip that the rows of a band have in common, in sizes of its letters."""
EPSILON = 0.01


class Strip(NamedTuple):
    """Left and right end of a part of a row."""

    left: float
    right: float


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a column."""

    text: str
    left: float
    right: float
    base: float
    size: float
    is_rtl: bool = False


@dataclass(slots=True)
class Row:
    """Spans that overlap in height, and the strips that they leave free from left to right."""

    spans: list[Span]
    top: float
    bottom: float
    free: list[Strip]

    @property
    def inner(self) -> list[Strip]:
        """The strips with text of the row on both sides."""
        return self.free[1:-1]


def find_rows(spans: Iterable[Span], walls: Walls) -> list[Row]:
    """Return the rows of spans, from above: between two rows no span crosses."""
    rows: list[Row] = []
    for span in sorted(spans, key=lambda span: span.top):
        if rows and span.top < rows[-1].bottom - 0.1 * span.size:
            rows[-1].spans.append(span)
            rows[-1].bottom = max(rows[-1].bottom, span.bottom)
        else:
            rows.append(Row([span], span.top, span.bottom, []))
    for row in rows:
        row.free = _free_strips(row, walls)
    return rows


def join_lines(spans: Iterable[Span]) -> Iterator[Line]:
    """Yield the lines of a column from above, each with its spans from the left."""
    line: list[Span] = []
    for span in sorted(spans, key=lambda span: span.base):
        if line and span.base - line[0].base > MAX_RAISE * max(span.size, line[0].size):
            yield _join_line(line)
            line = []
        line.append(span)
    if line:
        yield _join_line(line)


def _join_line(spans: Sequence[Span]) -> Line:
    is_rtl = any(span.is_rtl for span in spans)
    ordered = sorted(spans, key=lambda span: -span.right if is_rtl else span.left)
    largest = max(spans, key=lambda span: len(span.text))
    return Line(
        " ".join(span.text for span in ordered),
        min(span.left for span in spans),
        max(span.right for span in spans),
        largest.base,
        largest.size,
        is_rtl,
    )


def _free_strips(row: Row, walls: Walls) -> list[Strip]:
    """Return the strips of a row without text that are wide enough for a gutter, or have a wall in them."""
    strips: list[Strip] = []
    end = float("-inf")
    height = (row.top + row.bottom) / 2
    for span in sorted(row.spans, key=lambda span: span.left):
        is_wide = span.left - end >= MIN_GUTTER * span.size
        if is_wide or (span.left > end and walls.divide(end, span.left, height)):
            strips.append(Strip(end, span.left))
        end = max(end, span.right)
    strips.append(Strip(end, float("inf")))
    return strips


def common_strips(strips: Sequence[Strip], others: Sequence[Strip], width: float) -> list[Strip]:
    """Return the strips that are free in both and at least this wide."""
    common: list[Strip] = []
    first = second = 0
    while first < len(strips) and second < len(others):
        left = max(strips[first].left, others[second].left)
        right = min(strips[first].right, others[second].right)
        if right - left >= width:
            common.append(Strip(left, right))
        if strips[first].right < others[second].right:
            first += 1
        else:
            second += 1
    return common


def find_gutters(band: Sequence[Row]) -> list[Strip]:
    """Return the strips that are free in all rows and have text on both sides."""
    free = band[0].free
    for row in band[1:]:
        free = common_strips(free, row.free, MIN_COMMON_GUTTER * row.spans[0].size)
    return [strip for strip in free if has_text_around(strip, band)]


def has_text_around(strip: Strip, rows: Sequence[Row]) -> bool:
    """Return whether a row has text left and right of a strip."""
    return any(
        any(span.right <= strip.left + EPSILON for span in row.spans)
        and any(span.left >= strip.right - EPSILON for span in row.spans)
        for row in rows
    )


def divide(spans: Iterable[Span], gutters: Sequence[Strip]) -> list[list[Span]]:
    columns: list[list[Span]] = [[] for _ in range(len(gutters) + 1)]
    rights = [gutter.right for gutter in gutters]
    for span in spans:
        columns[bisect_right(rights, span.left + EPSILON)].append(span)
    return columns
