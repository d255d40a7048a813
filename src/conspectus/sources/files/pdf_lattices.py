"""Tables of a PDF page whose cells are drawn with lines: the lines say which cells are merged."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from conspectus.deferred import dataclass
from conspectus.sources.files.pdf_rows import join_lines
from conspectus.sources.files.pdf_spans import RULE_DISTANCE, Span, Walls
from conspectus.sources.files.tables import join_header_rows

MAX_PIECES = 20_000
"""Straight lines of a page, of which a line of a table may be made."""
MAX_LINES = 300
"""Lines of one direction on a page; drawings have more."""
MAX_CELLS = 4_000
MIN_CELLS = 2
"""Rows and columns with text that make a table."""
MAX_CELL_LENGTH = 400
"""Mean length of the texts of cells; longer ones are parts of a page."""
MIN_FILLED_SHARE = 0.4
MIN_AREA_SHARE = 0.5
"""Cells for each row and column; the grid of a diagram is open, so that most of it is merged."""


class Border(NamedTuple):
    """A straight line, with pieces that touch joined: where it is, and where it begins and ends."""

    at: float
    begin: float
    end: float


class RuledTable(NamedTuple):
    """The texts of a table by row; each header row of several is a part of the names of its columns."""

    captions: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Lattice:
    """The columns and rows between lines that touch each other, and these lines."""

    columns: Sequence[float]
    rows: Sequence[float]
    upright: Sequence[Border]
    level: Sequence[Border]

    def contains(self, span: Span) -> bool:
        """Return whether the middle of a span is between the outer lines."""
        x, y = _middle(span)
        return self.columns[0] <= x <= self.columns[-1] and self.rows[0] <= y <= self.rows[-1]

    def read(self, spans: Iterable[Span]) -> RuledTable | None:
        """Return the table of spans between the lines; None if the lines are not those of a table."""
        areas = self._areas()
        if areas is None:
            return None
        cells: dict[int, list[Span]] = {}
        for span in spans:
            x, y = _middle(span)
            area = areas[_index(self.rows, y)][_index(self.columns, x)]
            cells.setdefault(area, []).append(span)
        texts = {area: " ".join(line.text for line in join_lines(cell)) for area, cell in cells.items()}
        rows = [[texts.get(area, "") for area in row] for row in areas]
        is_rtl = 2 * sum(span.is_rtl for cell in cells.values() for span in cell) > sum(
            map(len, cells.values())
        )
        if not _is_table(rows, areas, texts):
            return None
        if is_rtl:
            rows, areas = [row[::-1] for row in rows], [row[::-1] for row in areas]
        header = _count_header_rows(rows, areas)
        captions, names = join_header_rows(rows[:header])
        return RuledTable(captions, [names, *rows[header:]])

    def _areas(self) -> list[list[int]] | None:
        """Return the number of the cell in each row and column; None if cells are no rectangles."""
        width, height = len(self.columns) - 1, len(self.rows) - 1
        areas = [[row * width + column for column in range(width)] for row in range(height)]
        upright = [_borders_at(self.upright, at) for at in self.columns]
        level = [_borders_at(self.level, at) for at in self.rows]
        for row, (top, bottom) in enumerate(pairwise(self.rows)):
            for column, (left, right) in enumerate(pairwise(self.columns)):
                if column and not _is_drawn(upright[column], top, bottom):
                    _unite(areas, areas[row][column - 1], areas[row][column])
                if row and not _is_drawn(level[row], left, right):
                    _unite(areas, areas[row - 1][column], areas[row][column])
        return areas if _are_rectangles(areas) else None


def find_lattices(walls: Walls) -> list[Lattice]:
    """Return the lattices of a page that have two rows and two columns or more, from above."""
    if len(walls.upright) + len(walls.level) > MAX_PIECES:
        return []
    upright = _join_pieces((rule.left, rule.top, rule.bottom) for rule in walls.upright)
    level = _join_pieces((rule.top, rule.left, rule.right) for rule in walls.level)
    if max(len(upright), len(level)) > MAX_LINES:
        return []
    lattices = [_lattice(*group) for group in _group_touching(upright, level)]
    large = (lattice for lattice in lattices if min(len(lattice.columns), len(lattice.rows)) > MIN_CELLS)
    bounded = (lattice for lattice in large if len(lattice.columns) * len(lattice.rows) <= MAX_CELLS)
    return sorted(bounded, key=lambda lattice: lattice.rows[0])


def _join_pieces(pieces: Iterable[tuple[float, float, float]]) -> list[Border]:
    """Return lines of pieces that are about at the same place and touch."""
    borders: list[Border] = []
    group: list[tuple[float, float, float]] = []
    for piece in sorted(pieces):
        if group and piece[0] - group[0][0] > RULE_DISTANCE:
            borders += _merge_touching(group)
            group = []
        group.append(piece)
    return [*borders, *_merge_touching(group)]


def _merge_touching(pieces: Sequence[tuple[float, float, float]]) -> Iterator[Border]:
    current: Border | None = None
    for at, begin, end in sorted(pieces, key=lambda piece: piece[1]):
        if current and begin <= current.end + RULE_DISTANCE:
            current = current._replace(end=max(current.end, end))
        else:
            if current:
                yield current
            current = Border(at, begin, end)
    if current:
        yield current


def _group_touching(
    upright: Sequence[Border], level: Sequence[Border]
) -> Iterator[tuple[list[Border], list[Border]]]:
    """Yield the upright and level lines that touch each other, directly or over others."""
    left = set(range(len(upright)))
    unused = set(range(len(level)))
    while left:
        waiting, columns, rows = [left.pop()], list[Border](), list[Border]()
        while waiting:
            wall = upright[waiting.pop()]
            columns.append(wall)
            crossed = [number for number in unused if _touch(wall, level[number])]
            unused.difference_update(crossed)
            rows += [level[number] for number in crossed]
            near = {
                number for number in left if any(_touch(upright[number], level[other]) for other in crossed)
            }
            left -= near
            waiting += near
        yield columns, rows


def _touch(wall: Border, line: Border) -> bool:
    return (
        wall.begin - RULE_DISTANCE <= line.at <= wall.end + RULE_DISTANCE
        and line.begin - RULE_DISTANCE <= wall.at <= line.end + RULE_DISTANCE
    )


def _lattice(upright: Sequence[Border], level: Sequence[Border]) -> Lattice:
    """Return the lattice of lines. Where the outer lines are not drawn, it ends with the others."""
    columns = [wall.at for wall in upright] + [end for line in level for end in (line.begin, line.end)]
    rows = [line.at for line in level] + [end for wall in upright for end in (wall.begin, wall.end)]
    return Lattice(_line_positions(columns, upright), _line_positions(rows, level), upright, level)


def _line_positions(ends: Sequence[float], borders: Sequence[Border]) -> list[float]:
    """Return the places of lines, each once, and the outer ends of what crosses them."""
    kept: list[float] = []
    for at in sorted([*(border.at for border in borders), *((min(ends), max(ends)) if ends else ())]):
        if not kept or at - kept[-1] > RULE_DISTANCE:
            kept.append(at)
    return kept


def _borders_at(borders: Iterable[Border], at: float) -> list[Border]:
    return [border for border in borders if abs(border.at - at) <= RULE_DISTANCE]


def _is_drawn(borders: Iterable[Border], begin: float, end: float) -> bool:
    """Return whether a line runs through the middle of the side of a cell."""
    return any(border.begin <= (begin + end) / 2 <= border.end for border in borders)


def _unite(areas: list[list[int]], kept: int, other: int) -> None:
    if kept != other:
        for row in areas:
            row[:] = [kept if area == other else area for area in row]


def _are_rectangles(areas: Sequence[Sequence[int]]) -> bool:
    boxes: dict[int, list[tuple[int, int]]] = {}
    for row, numbers in enumerate(areas):
        for column, area in enumerate(numbers):
            boxes.setdefault(area, []).append((row, column))
    return all(
        len(cells)
        == (cells[-1][0] - cells[0][0] + 1) * (max(c for _, c in cells) - min(c for _, c in cells) + 1)
        for cells in boxes.values()
    )


def _index(bounds: Sequence[float], at: float) -> int:
    return next((number for number, end in enumerate(bounds[1:]) if at <= end), len(bounds) - 2)


def _middle(span: Span) -> tuple[float, float]:
    return (span.left + span.right) / 2, (span.top + span.bottom) / 2


def _is_table(rows: Sequence[Sequence[str]], areas: Sequence[Sequence[int]], texts: dict[int, str]) -> bool:
    """Return whether enough cells have text, in several rows and columns, and none holds a part of a page."""
    filled_rows = sum(any(row) for row in rows)
    filled_columns = sum(any(column) for column in zip(*rows, strict=True))
    has_pairs = sum(len({area for area in row if texts.get(area)}) > 1 for row in areas)
    count = len({area for row in areas for area in row})
    mean_length = sum(map(len, texts.values())) / max(1, len(texts))
    return (
        min(filled_rows, filled_columns, has_pairs) >= MIN_CELLS
        and count > MIN_AREA_SHARE * len(rows) * len(rows[0])
        and len(texts) >= MIN_FILLED_SHARE * count
        and mean_length <= MAX_CELL_LENGTH
    )


def _count_header_rows(rows: Sequence[Sequence[str]], areas: Sequence[Sequence[int]]) -> int:
    """Return how many rows name the columns: as far as the cells reach beside one over several columns."""
    count = 1
    while count < len(rows) - 1 and len(set(areas[count - 1])) == 1:
        count += 1
    first = areas[count - 1]
    spans_columns = len(set(first)) < len(first)
    is_partial = not all(rows[count - 1])
    reaches_down = count < len(rows) and bool(set(first) & set(areas[count]))
    is_over_names = spans_columns and (is_partial or reaches_down)
    return count + 1 if is_over_names and count < len(rows) - 1 else count
