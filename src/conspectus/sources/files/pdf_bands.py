"""Bands of a page: runs of rows that share a gutter, a strip that is free of text from top to bottom."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from conspectus.sources.files.pdf_rows import (
    EPSILON,
    MIN_COMMON_GUTTER,
    Row,
    Strip,
    common_strips,
    find_gutters,
    has_text_around,
)

HEADING_SIZE = 1.15
FAR = 1.5
"""A row that stands this many times the usual distance below the one above begins something else."""
VERY_FAR = 2.5
MIN_CELLS_IN_COLUMNS = 3
"""A row of so many cells that begin as those above is a part of their table, even if it is far below."""
MIN_LINE_LENGTH = 15
"""Shorter texts are cells rather than lines of a paragraph."""
MIN_BREAKS = 2
MIN_BREAK_SHARE = 0.9
MAX_LEDGE = 1.0
"""How far a line may begin from the edge of its column, in sizes of the column."""


def find_bands(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Yield runs of rows that have a gutter in common, or none has."""
    begin = 0
    free, gutters = [Strip(float("-inf"), float("inf"))], list[Strip]()
    for index, row in enumerate(rows):
        common = common_strips(free, row.free, MIN_COMMON_GUTTER * row.spans[0].size)
        divided = _still_divided(common, gutters, row)
        is_first = bool(divided) and not gutters
        if (divided or not (gutters or row.inner)) and not (is_first and _is_apart(rows[begin:index], row)):
            free, gutters = common, divided
            continue
        end = _end_of_band(rows, begin, index)
        if begin < end:
            yield rows[begin:end]
        begin, free, gutters = end, rows[end].free, rows[end].inner
        for other in rows[end + 1 : index + 1]:
            free = common_strips(free, other.free, MIN_COMMON_GUTTER * other.spans[0].size)
            gutters = _still_divided(free, gutters, other)
    end = _end_of_band(rows, begin, len(rows))
    yield rows[begin:end]
    if end < len(rows):
        yield rows[end:]


def _still_divided(strips: Sequence[Strip], gutters: Sequence[Strip], row: Row) -> list[Strip]:
    """Return the strips that are part of a gutter, or have text of the row on both sides."""
    return [
        strip
        for strip in strips
        if has_text_around(strip, [row])
        or any(gutter.left <= strip.left and strip.right <= gutter.right for gutter in gutters)
    ]


def _is_apart(above: Sequence[Row], row: Row) -> bool:
    """Return whether a row above begins where no span of a row does: a centered title is in no column."""
    return any(
        all(abs(span.left - other.left) > MAX_LEDGE * other.size for other in row.spans)
        for span in (span for row_above in above for span in row_above.spans)
    )


def _end_of_band(rows: Sequence[Row], begin: int, end: int) -> int:
    """Return where a band ends: rows with one column, far below its last row with several, are none of it."""
    last = next((index for index in range(end - 1, begin - 1, -1) if rows[index].inner), None)
    if last is None:
        return end
    distances = [below.top - above.top for above, below in pairwise(rows[begin : last + 1])]
    usual = median(distances) if distances else 0.0
    for index in range(last + 1, end):
        distance = rows[index].top - rows[index - 1].top
        next_distance = rows[end].top - rows[end - 1].top if end < len(rows) else distance
        is_far = usual and distance > FAR * usual and not _continues_column(rows[begin:index], rows[index])
        if is_far or (end < len(rows) and distance > 1.1 * next_distance):
            return index
    return end


def _continues_column(above: Sequence[Row], row: Row) -> bool:
    """Return whether a row is a line of a column of text, of which the paragraphs above are as far apart.

    So the last column of a page may be shorter than the one before it.
    """
    first = row.spans[0]
    lines = [
        span
        for row_above in above
        for span in row_above.spans
        if abs(span.left - first.left) <= MAX_LEDGE * first.size
    ]
    if len(row.spans) > 1 or not lines or median(len(span.text) for span in lines) < MIN_LINE_LENGTH:
        return False
    distance = abs(lines[-1].base - first.base)
    breaks = [abs(line.base - below.base) for line, below in pairwise(lines)]
    return sum(MIN_BREAK_SHARE * distance <= gap for gap in breaks) >= MIN_BREAKS


def join_bands(bands: Sequence[Sequence[Row]]) -> list[Sequence[Row]]:
    """Return bands joined that have a gutter in common, where one line that is too long divides them."""
    joined: list[Sequence[Row]] = []
    index = 0
    while index < len(bands):
        joined.append(bands[index])
        while index + 2 < len(bands) and _is_overrun(joined[-1], bands[index + 1], bands[index + 2]):
            between = bands[index + 1]
            for row in between:
                row.free = joined[-1][-1].free
            joined[-1] = [*joined[-1], *between, *bands[index + 2]]
            index += 2
        index += 1
    return joined


def _is_overrun(above: Sequence[Row], between: Sequence[Row], below: Sequence[Row]) -> bool:
    """Return whether only one row between two bands crosses their gutter, and has text in several columns."""
    if min(len(above), len(below)) < 2:
        return False
    common = common_strips(
        find_gutters(above), find_gutters(below), MIN_COMMON_GUTTER * below[0].spans[0].size
    )
    crossing = [row for row in between if not common_strips(common, row.free, EPSILON)]
    return bool(common) and len(crossing) == 1 and len(crossing[0].spans) > 1


def split_at_headings(band: Sequence[Row], size: float) -> Iterator[Sequence[Row]]:
    """Yield the rows of a band in parts that begin with a heading, or far below the row above."""
    distances = [below.top - above.top for above, below in pairwise(band)]
    usual = median(distances) if distances else 0.0
    begin = 0
    for index, row in enumerate(band):
        is_heading = not row.inner and min(span.size for span in row.spans) >= HEADING_SIZE * size
        distance = row.top - band[index - 1].top if index else 0.0
        is_far = distance > FAR * usual and not (
            distance < VERY_FAR * usual and _is_in_columns(row, band[begin:index])
        )
        if index > begin and (is_heading or is_far):
            yield band[begin:index]
            begin = index
        if is_heading and index + 1 < len(band):
            yield band[begin : index + 1]
            begin = index + 1
    yield band[begin:]


def _is_in_columns(row: Row, above: Sequence[Row]) -> bool:
    """Return whether a row has as many cells as most rows above, each beginning where one there does."""
    lefts = [span.left for other in above for span in other.spans]
    alike = sum(len(other.spans) == len(row.spans) for other in above)
    is_regular = len(row.spans) >= MIN_CELLS_IN_COLUMNS and 2 * alike >= len(above)
    return is_regular and all(
        any(abs(span.left - left) <= EPSILON * span.size for left in lefts) for span in row.spans
    )
