"""The columns of a table without lines: a cell over several columns does not hide the gutters below it."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from conspectus.sources.files.pdf_rows import (
    MIN_COMMON_GUTTER,
    MIN_GUTTER,
    Row,
    Strip,
    common_strips,
    divide,
    find_gutters,
)
from conspectus.sources.files.pdf_spans import Span

MIN_DIVIDED_SHARE = 0.34
"""The least share of the lines of a column that have text on both sides of a gutter in it."""
MIN_DIVIDED = 2
MAX_RAGGED = 0.3
"""How far the cells of a column may begin, end or be centered apart, in sizes."""
MIN_IN_LINE = 0.7

_SIDES: tuple[Callable[[Span], float], ...] = (
    lambda span: span.left,
    lambda span: span.right,
    lambda span: (span.left + span.right) / 2,
)


def find_columns(band: Sequence[Row], lines: Sequence[Sequence[Span]]) -> list[Strip]:
    """Return the gutters of a table: those of all rows, and those in a column that most of its lines have."""
    gutters = find_gutters([row for row in band if row.inner])
    divided = [divide(line, gutters) for line in lines]
    columns = [[cells[number] for cells in divided if cells[number]] for number in range(len(gutters) + 1)]
    inner = [gutter for column in columns for gutter in _inner_gutters(column)]
    return sorted([*gutters, *inner])


def _inner_gutters(lines: Sequence[Sequence[Span]]) -> list[Strip]:
    """Return the gutters of a column that its lines with several spans have in common."""
    several = [line for line in lines if len(line) > 1]
    if len(several) < max(MIN_DIVIDED, MIN_DIVIDED_SHARE * len(lines)):
        return []
    free = _free_strips(several[0])
    for line in several[1:]:
        free = common_strips(free, _free_strips(line), MIN_COMMON_GUTTER * line[0].size)
    gutters = [strip for strip in free if _divides(strip, several, len(lines))]
    if not gutters:
        return []
    divided = [divide(line, gutters) for line in lines]
    columns = [[cells[number] for cells in divided if cells[number]] for number in range(len(gutters) + 1)]
    return [*gutters, *(gutter for column in columns for gutter in _inner_gutters(column))]


def _free_strips(line: Sequence[Span]) -> list[Strip]:
    """Return the strips between the spans of a line that are as wide as a gutter, and those beside them."""
    ordered = sorted(line, key=lambda span: span.left)
    strips = [Strip(float("-inf"), ordered[0].left)]
    strips += [
        Strip(span.right, after.left)
        for span, after in pairwise(ordered)
        if after.left - span.right >= MIN_GUTTER * after.size
    ]
    return [*strips, Strip(ordered[-1].right, float("inf"))]


def _divides(strip: Strip, lines: Sequence[Sequence[Span]], count: int) -> bool:
    """Return whether enough lines have cells on both sides of a strip, and those on the right are in line."""
    after = [
        min((span for span in line if span.left >= strip.right - 1), key=lambda span: span.left, default=None)
        for line in lines
        if any(span.right <= strip.left + 1 for span in line)
    ]
    cells = [span for span in after if span]
    return len(cells) >= max(MIN_DIVIDED, MIN_DIVIDED_SHARE * count) and any(
        _are_in_line(cells, side) for side in _SIDES
    )


def _are_in_line(cells: Sequence[Span], side: Callable[[Span], float]) -> bool:
    """Return whether most cells have a side at the same place."""
    places = sorted(map(side, cells))
    middle = places[len(places) // 2]
    near = sum(abs(place - middle) <= MAX_RAGGED * cells[0].size for place in places)
    return near >= MIN_IN_LINE * len(cells)
