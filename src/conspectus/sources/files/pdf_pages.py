"""The pages of a PDF before they are text: spans by direction, without what is repeated on several pages."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence, Set
from itertools import pairwise
from statistics import median
from typing import TypeAlias

import pypdfium2

from conspectus.deferred import dataclass
from conspectus.sources.files.pdf_bands import FAR
from conspectus.sources.files.pdf_glyphs import page_glyphs, page_rules
from conspectus.sources.files.pdf_lattices import find_lattices
from conspectus.sources.files.pdf_layout import Column, Region, read_regions
from conspectus.sources.files.pdf_rows import Line, Row, Strip, find_rows, join_lines
from conspectus.sources.files.pdf_spans import Glyph, Span, Walls, join_glyphs

MIN_REPEATS = 3
EDGE_ROWS = 3
MIN_EDGE_GAP = 0.6
SLANTED = -1
MIN_LETTERS = 3
MAX_DIGITS = 18
MAX_NUMBERINGS = 2
"""Sequences of page numbers in one head, such as those of a preface and of the text."""
_NUMBER = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(
    r"\W*(?:page|p|seite|pagina|página)?\W*(?:#|[ivxlc]+)(?:\W+(?:(?:of|von|de|sur)\W+)?#)?\W*", re.IGNORECASE
)


EdgeRow: TypeAlias = tuple[tuple[str, int], list[Span]]
"""A row at the edge of a page, by its text without its numbers and its height."""


@dataclass(slots=True)
class PageSpans:
    """The spans of a page by direction, that with most letters first, and the walls of the first."""

    by_direction: dict[int, list[Span]]
    walls: Walls

    @property
    def main(self) -> list[Span]:
        """The spans of the direction with most letters."""
        return next(iter(self.by_direction.values()), [])


def page_spans(page: pypdfium2.PdfPage, text_page: pypdfium2.PdfTextPage) -> PageSpans:
    """Return the spans of a page."""
    glyphs: dict[int, list[Glyph]] = defaultdict(list)
    for glyph in page_glyphs(text_page):
        glyphs[glyph.direction].append(glyph)
    directions = sorted(glyphs, key=lambda direction: -len(glyphs[direction]))
    walls = Walls(page_rules(page, directions[0])) if directions else Walls(())
    return PageSpans(
        {
            direction: join_glyphs(glyphs[direction], Walls(()) if index else walls)
            for index, direction in enumerate(directions)
        },
        walls,
    )


def drop_running_heads(pages: Sequence[PageSpans]) -> None:
    """Take heads, feet and numbers off pages where at least three have them at one height.

    The first head that is more than a number stays, since its words may stand nowhere else. Rows in which
    more changes than a page number are those of a table.
    """
    candidates = [_edge_rows(page) for page in pages]
    tables = _find_table_rows(candidates)
    counts = Counter(key for rows in candidates for key in {key for key, _ in rows if key[0] not in tables})
    seen: set[str] = set()
    for page, rows in zip(pages, candidates, strict=True):
        for key, spans in rows:
            text, height = key
            near = sum(counts[text, height + step] for step in (-1, 0, 1))
            if near < MIN_REPEATS:
                continue
            is_number = _PAGE_NUMBER.fullmatch(text) is not None
            rest = [span for span in page.main if not any(span is other for other in spans)]
            if rest and (is_number or text in seen):
                page.main[:] = rest
            seen.add(text)


def _find_table_rows(candidates: Sequence[Sequence[EdgeRow]]) -> Set[str]:
    """Return the texts without numbers of which the numbers do not change with the page alone."""
    numbers: dict[str, list[tuple[int, list[int]]]] = defaultdict(list)
    for page, rows in enumerate(candidates):
        for (text, _), spans in rows:
            if not _PAGE_NUMBER.fullmatch(text):
                digits = _NUMBER.findall(_row_text(spans))
                numbers[text].append((page, [int(number[:MAX_DIGITS]) for number in digits]))
    return {text for text, lines in numbers.items() if not _have_page_numbers_alone(lines)}


def _have_page_numbers_alone(lines: Sequence[tuple[int, Sequence[int]]]) -> bool:
    """Return whether each number of some lines stays the same, or goes with the page."""
    counted = min(len(numbers) for _, numbers in lines)
    for column in range(counted):
        values = {numbers[column] for _, numbers in lines}
        offsets = {numbers[column] - page for page, numbers in lines}
        if min(len(values), len(offsets)) > MAX_NUMBERINGS:
            return False
    return True


def _row_text(spans: Sequence[Span]) -> str:
    return " ".join(line.text for line in join_lines(spans))


def _edge_rows(page: PageSpans) -> list[EdgeRow]:
    """Return the rows above and below the content of a page."""
    rows = find_rows(page.main, Walls(()))
    candidates = []
    for row in [*_rows_apart(rows), *_rows_apart(rows[::-1])]:
        pattern = _NUMBER.sub("#", _row_text(row.spans))
        if sum(map(str.isalpha, pattern)) >= MIN_LETTERS or _PAGE_NUMBER.fullmatch(pattern):
            candidates.append(((pattern, round(row.spans[0].base / 4)), row.spans))
    return candidates


def _rows_apart(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the first rows up to a wide gap; none if the content of the page begins at once."""
    gaps = [max(row.top, other.top) - min(row.bottom, other.bottom) for row, other in pairwise(rows)]
    usual = median(gaps) if len(gaps) > EDGE_ROWS else 0.0
    for index, gap in reversed(list(enumerate(gaps[:EDGE_ROWS]))):
        if gap > max(MIN_EDGE_GAP * rows[index].spans[0].size, FAR * usual):
            return rows[: index + 1]
    return ()


def page_regions(page: PageSpans) -> list[Region]:
    """Return the regions of a page in reading order: the main direction first."""
    regions: list[Region] = []
    for index, (direction, spans) in enumerate(page.by_direction.items()):
        if direction == SLANTED:
            lines = tuple(_drawn_line(span) for span in spans)
            regions.append(Column(lines, Strip(float("-inf"), float("inf"))))
        elif spans:
            walls = Walls(()) if index else page.walls
            regions += read_regions(spans, walls, find_lattices(walls))
    return regions


def _drawn_line(span: Span) -> Line:
    return Line(span.text, span.left, span.right, span.base, span.size, span.is_rtl)
