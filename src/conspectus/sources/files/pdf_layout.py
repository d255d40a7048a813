"""The reading order of a PDF page: columns, tables and lines, found by the positions of its spans.

A region of a page is read in bands from above. A band is a run of rows that share a free strip from top to
bottom, its gutter. The columns between gutters are regions of their own, read one after the other, if they
hold prose; otherwise they are the columns of a table. ADR 0044 says why this is code of our own.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import TypeAlias

from conspectus.deferred import dataclass
from conspectus.sources.files.pdf_bands import find_bands, join_bands, split_at_headings
from conspectus.sources.files.pdf_lattices import Lattice, RuledTable
from conspectus.sources.files.pdf_rows import Line, Row, Strip, divide, find_gutters, find_rows, join_lines
from conspectus.sources.files.pdf_spans import Span, Walls
from conspectus.sources.files.pdf_tables import (
    TableBand,
    are_aligned,
    is_table,
    read_table,
    ruled_heights,
)

MIN_PROSE_GUTTER = 0.8
"""The narrowest gutter of columns of prose, in sizes of their letters."""
MIN_PROSE_LINES = 3
MIN_PROSE_LENGTH = 15
PROSE = ((0.82, 0.3), (0.65, 0.5))
"""How much of its column the median line of prose fills, and the share of lines that begin in a sentence."""
MAX_DEPTH = 6


@dataclass(frozen=True, slots=True)
class Column:
    """Lines that stand in one column, from above, and the ends of the column."""

    lines: tuple[Line, ...]
    ends: Strip


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells of a table, row by row."""

    rows: tuple[tuple[str, ...], ...]


Region: TypeAlias = Column | Grid


def read_regions(
    spans: Sequence[Span],
    walls: Walls,
    lattices: Sequence[Lattice] = (),
    ends: Strip | None = None,
    depth: int = 0,
) -> Iterator[Region]:
    """Yield the columns and tables of a region in reading order. `ends` are those of its column."""
    if not spans:
        return
    ends = ends or Strip(min(span.left for span in spans), max(span.right for span in spans))
    rows = find_rows(spans, walls)
    begin = 0
    for lattice in lattices:
        inside = _rows_inside(lattice, rows)
        table = lattice.read(_spans_of(rows[inside.start : inside.stop])) if inside.start >= begin else None
        if table:
            yield from _read_rows(rows[begin : inside.start], walls, lattices, ends, depth)
            yield from _ruled_regions(table, ends)
            begin = inside.stop
    yield from _read_rows(rows[begin:], walls, lattices, ends, depth)


def _rows_inside(lattice: Lattice, rows: Sequence[Row]) -> range:
    """Return the rows that a lattice contains; none if it has text beside it."""
    numbers = [number for number, row in enumerate(rows) if any(map(lattice.contains, row.spans))]
    inside = range(numbers[0], numbers[-1] + 1) if numbers else range(-1, -1)
    is_alone = all(lattice.contains(span) for number in inside for span in rows[number].spans)
    return inside if is_alone else range(-1, -1)


def _read_rows(
    rows: Sequence[Row], walls: Walls, lattices: Sequence[Lattice], ends: Strip, depth: int
) -> Iterator[Region]:
    """Yield the regions of rows without a table that is drawn with lines from left to right."""
    single: list[Span] = []
    for band in join_bands(list(find_bands(rows))) if rows else ():
        regions = list(_read_band(band, walls, lattices, ends, depth)) if depth < MAX_DEPTH else []
        if regions:
            if single:
                yield Column(tuple(join_lines(single)), ends)
            single = []
            yield from regions
        else:
            single += _spans_of(band)
    if single:
        yield Column(tuple(join_lines(single)), ends)


def _read_band(
    band: Sequence[Row], walls: Walls, lattices: Sequence[Lattice], ends: Strip, depth: int
) -> Iterator[Region]:
    """Yield the regions of a band; none if its rows are lines of one column."""
    spans = _spans_of(band)
    gutters = find_gutters(band)
    if not gutters:
        return
    if heights := ruled_heights(band, walls):
        yield from _table_regions(read_table(band, heights), ends)
        return
    columns = [list(join_lines(column)) for column in divide(spans, gutters)]
    size = median(span.size for span in spans)
    prose = _prose_gutters(columns, gutters, size)
    parts = [] if prose else list(split_at_headings(band, size))
    if len(parts) > 1:
        for part in parts:
            yield from read_regions(_spans_of(part), walls, lattices, ends, depth + 1)
    elif not prose and is_table(band, columns):
        yield from _table_regions(read_table(band), ends)
    elif prose or not are_aligned(columns):
        for column in _in_order(divide(spans, prose or gutters)):
            yield from read_regions(column, walls, lattices, depth=depth + 1)


def _prose_gutters(columns: Sequence[Sequence[Line]], gutters: Sequence[Strip], size: float) -> list[Strip]:
    """Return the gutters beside columns of prose; none if all columns are those of a table."""
    running = [is_prose(column) for column in columns]
    if sum(running) < 2 and are_aligned(columns):
        return []
    return [
        gutter
        for gutter, around in zip(gutters, pairwise(running), strict=True)
        if any(around) and gutter.right - gutter.left >= MIN_PROSE_GUTTER * size
    ]


def _table_regions(table: TableBand, ends: Strip) -> Iterator[Region]:
    if table.before:
        yield Column(tuple(join_lines(table.before)), ends)
    if table.rows:
        yield Grid(tuple(map(tuple, table.rows)))
    if table.after:
        yield Column(tuple(join_lines(table.after)), ends)


def _ruled_regions(table: RuledTable, ends: Strip) -> Iterator[Region]:
    captions = (
        Line(caption, ends.left, ends.right, float(number), 0.0)
        for number, caption in enumerate(table.captions)
    )
    if table.captions:
        yield Column(tuple(captions), ends)
    yield Grid(tuple(map(tuple, table.rows)))


def _spans_of(rows: Sequence[Row]) -> list[Span]:
    return [span for row in rows for span in row.spans]


def _in_order(columns: Sequence[list[Span]]) -> Sequence[list[Span]]:
    """Return columns in the order in which they are read: from the right if most of their text is."""
    spans = [span for column in columns for span in column]
    return columns[::-1] if 2 * sum(span.is_rtl for span in spans) > len(spans) else columns


def is_prose(lines: Sequence[Line]) -> bool:
    """Return whether the lines of a column fill it and run on, as those of paragraphs do."""
    if len(lines) < MIN_PROSE_LINES:
        return False
    width = max(line.right for line in lines) - min(line.left for line in lines)
    fill = median((line.right - line.left) / width for line in lines) if width else 0
    running = sum(line.text[0].isalpha() and not line.text[0].isupper() for line in lines) / len(lines)
    length = median(len(line.text) for line in lines)
    fills = any(fill >= least and running >= share for least, share in PROSE)
    return fills and length >= MIN_PROSE_LENGTH
