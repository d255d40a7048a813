"""Letters of a page, put together to the spans that lines consist of."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from conspectus.deferred import dataclass

MAX_RAISE = 0.45
"""How far a letter may stand above or below its line, in sizes: superscripts stay in their line."""
MAX_GAP = 0.5
"""The widest gap between two letters of a span, in sizes. Wider gaps divide columns and cells."""
MAX_LETTER_GAP = 2.0
"""The widest gap where pdfium sees no space, in sizes: the letters of a word may be set apart."""
MAX_RTL_GAP = 1.0
RULE_DISTANCE = 3.0
ASCENT, DESCENT = 0.75, 0.2
RIGHT_TO_LEFT = frozenset({"R", "AL"})
_RTL_LETTERS = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
_SCRIPT_CHANGE = re.compile(rf"(?<=[A-Za-z])(?=[{_RTL_LETTERS}])|(?<=[{_RTL_LETTERS}])(?=[A-Za-z])")


class Glyph(NamedTuple):
    """A letter: its left and right end and its base, from above, in the frame of its direction."""

    letter: str
    left: float
    right: float
    base: float
    size: float
    direction: int


class Rule(NamedTuple):
    """A horizontal or vertical line that is drawn on a page."""

    left: float
    right: float
    top: float
    bottom: float


@dataclass(slots=True)
class Span:
    """Letters of one line without a wide gap."""

    text: str
    left: float
    right: float
    base: float
    size: float
    is_rtl: bool = False

    @property
    def top(self) -> float:
        """The upper end of capital letters."""
        return self.base - ASCENT * self.size

    @property
    def bottom(self) -> float:
        """The lower end of letters such as g."""
        return self.base + DESCENT * self.size


class Walls:
    """The vertical lines of a page from the left, and the horizontal ones from above."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.upright: list[Rule] = []
        self.level: list[Rule] = []
        for rule in rules:
            (self.upright if rule.bottom - rule.top > rule.right - rule.left else self.level).append(rule)
        self.upright.sort()
        self._lefts = [rule.left for rule in self.upright]
        self.level.sort(key=lambda rule: rule.top)

    def divide(self, left: float, right: float, height: float) -> bool:
        """Return whether a vertical line runs between two ends at a height."""
        index = bisect_right(self._lefts, left)
        while index < len(self.upright) and self._lefts[index] < right:
            if self.upright[index].top <= height <= self.upright[index].bottom:
                return True
            index += 1
        return False

    def heights(self, left: float, right: float) -> list[float]:
        """Return the heights at which horizontal lines run along most of a width."""
        heights: list[float] = []
        covered = 0.0
        begin = float("-inf")
        for rule in self.level:
            if rule.top - begin > RULE_DISTANCE:
                begin, covered = rule.top, 0.0
            length = min(rule.right, right) - max(rule.left, left)
            before = covered
            covered += max(0.0, length)
            if before <= (right - left) / 2 < covered:
                heights.append(begin)
        return heights


def join_glyphs(glyphs: Iterable[Glyph], walls: Walls) -> list[Span]:
    """Return the spans of letters of one direction, in the order of drawing."""
    return [span for line in _drawn_lines(glyphs) for span in _spans_of_line(line, walls)]


def _drawn_lines(glyphs: Iterable[Glyph]) -> Iterator[list[Glyph]]:
    """Yield the letters between the line breaks that pdfium sees."""
    line: list[Glyph] = []
    for glyph in glyphs:
        if glyph.letter in "\r\n":
            yield line
            line = []
        else:
            line.append(glyph)
    yield line


def _spans_of_line(line: Sequence[Glyph], walls: Walls) -> Iterator[Span]:
    if any(unicodedata.bidirectional(glyph.letter) in RIGHT_TO_LEFT for glyph in line):
        # pdfium has put the letters of such a line into the order of reading.
        yield from _rtl_spans(line)
        return
    span: Span | None = None
    space = ""
    last_left = 0.0
    for glyph in line:
        if glyph.letter.isspace():
            space = " "
            continue
        max_gap = MAX_GAP if space else MAX_LETTER_GAP
        if span and _continues(span, glyph, last_left, max_gap) and not _is_walled(span, glyph, walls):
            _extend(span, glyph, space)
        else:
            if span:
                yield span
            span = Span(glyph.letter, glyph.left, glyph.right, glyph.base, glyph.size)
        space, last_left = "", glyph.left
    if span:
        yield span


def _extend(span: Span, glyph: Glyph, space: str) -> None:
    """Add a letter to a span, which stands on the base of its largest letters."""
    span.text += space + glyph.letter
    span.left, span.right = min(span.left, glyph.left), max(span.right, glyph.right)
    if glyph.size > span.size:
        span.size, span.base = glyph.size, glyph.base


def _continues(span: Span, glyph: Glyph, last_left: float, max_gap: float) -> bool:
    """Return whether a letter stands next to the last one of a span."""
    size = max(span.size, glyph.size)
    is_level = abs(glyph.base - span.base) <= MAX_RAISE * size
    return (
        is_level and glyph.left - span.right <= max_gap * size and glyph.right >= last_left - MAX_GAP * size
    )


def _is_walled(span: Span, glyph: Glyph, walls: Walls) -> bool:
    """Return whether a vertical line runs between a span and a letter."""
    height = glyph.base - ASCENT * glyph.size / 2
    return glyph.left > span.right and walls.divide(span.right, glyph.left, height)


def _rtl_spans(line: Sequence[Glyph]) -> Iterator[Span]:
    """Yield the spans of a line from right to left, divided where a wide gap runs between its letters."""
    letters = [glyph for glyph in line if not glyph.letter.isspace()]
    starts: list[float] = []
    end = float("-inf")
    for glyph in sorted(letters, key=lambda glyph: glyph.left):
        if glyph.left - end > MAX_RTL_GAP * glyph.size:
            starts.append(glyph.left)
        end = max(end, glyph.right)
    groups: list[list[Glyph]] = [[] for _ in starts]
    number = 0
    for glyph in line:
        if not glyph.letter.isspace():
            number = bisect_right(starts, glyph.left) - 1
        groups[number].append(glyph)
    yield from map(_rtl_span, groups)


def _rtl_span(glyphs: Sequence[Glyph]) -> Span:
    """Return a span from right to left. pdfium reverses the letters of a ligature, which is undone."""
    letters = [glyph for glyph in glyphs if not glyph.letter.isspace()]
    ligatures = groupby(
        glyphs, key=lambda glyph: (glyph.left, glyph.right, glyph.base, glyph.letter.isspace())
    )
    text = "".join(glyph.letter for _, group in ligatures for glyph in reversed(list(group)))
    bases = sorted(glyph.base for glyph in letters)
    return Span(
        " ".join(_SCRIPT_CHANGE.sub(" ", text).split()),
        min(glyph.left for glyph in letters),
        max(glyph.right for glyph in letters),
        bases[len(bases) // 2],
        sorted(glyph.size for glyph in letters)[len(letters) // 2],
        is_rtl=True,
    )
