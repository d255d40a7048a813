"""Split a text at the best borders of its syntax into pieces of limited size that cover it."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal, Protocol, get_args

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.records import Syntax
from conspectus.text.graphemes import Borders
from conspectus.text.late_patterns import regex_pattern
from conspectus.text.sections import Section, stretches
from conspectus.text.split_boundaries import Boundaries, Level, Span, boundaries
from conspectus.text.tables import TableHeaders, find_tables

_WORD_START = regex_pattern(r"(?<=\s)\S")
_LINE_START = regex_pattern(r"(?<=\n)[^\n]")
_MAX_TOKEN_LENGTH = 16


@dataclass(frozen=True, slots=True)
class SplitOptions:
    """Options of the splitter.

    Attributes:
        size: maximum size of a piece in units, at least 1.
        overlap: maximum overlap of two pieces in units; at most half the size.
        unit: code points, or tokens as counted by the given function.
        syntax: Markdown: headings first; fenced code, tables and their rows are kept whole if they fit. A
            piece that begins below the header of a table leaves room for it, and tables do not overlap.
            Code: blank lines before definitions, the outermost first.
        separators: tried in order; a piece ends after one. The last resort is a grapheme border.

    Raises:
        InvalidInput: a number is out of range, or a name is unknown.
    """

    size: int = 2000
    overlap: int = 200
    unit: Literal["characters", "tokens"] = "characters"
    syntax: Syntax = "plain"
    separators: tuple[str, ...] = ("\n\n", "\n", ". ", " ")

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InvalidInput("size", f"is {self.size}, must be at least 1")
        if not 0 <= self.overlap <= self.size // 2:
            raise InvalidInput(
                "overlap", f"is {self.overlap}, must be from 0 to half the size ({self.size // 2})"
            )
        if self.unit not in ("characters", "tokens"):
            raise InvalidInput("unit", f"{self.unit!r} is neither characters nor tokens")
        if self.syntax not in get_args(Syntax):
            raise InvalidInput("syntax", f"{self.syntax!r} is unknown; use {', '.join(get_args(Syntax))}")


@dataclass(frozen=True, slots=True)
class TextSpan:
    """One piece; `text == source[start:end]`, in code points."""

    position: int
    start: int
    end: int
    text: str


def split(
    text: str,
    options: SplitOptions,
    count: Callable[[str], int] | None = None,
    *,
    sections: Sequence[Section] = (),
    breaks: Sequence[int] = (),
) -> list[TextSpan]:
    """Split a text into pieces no larger than the size, including the overlap.

    The text is split at sections first: short ones are joined up to half the size, and long ones are split
    without overlap with their neighbors. The pieces cover the text, and each begins no later than the one
    before ends. The empty text has no pieces; a text that fits and has no sections is one piece. A grapheme
    cluster is split only if it exceeds the size, less the header of its table. Time and calls of `count` grow
    linearly with the text.

    Args:
        text: any string.
        options: size and rules.
        count: counts tokens; required if the unit is tokens.
        sections: starts of the sections, in order.
        breaks: characters at which a piece always begins, without overlap, in order.

    Raises:
        InvalidInput: `count` is missing, or a single code point has more tokens than the size.
    """
    if not text:
        return []
    if options.unit == "characters" and not (sections or breaks) and len(text) <= options.size:
        return [TextSpan(0, 0, len(text), text)]
    half = replace(options, size=max(options.size // 2, 1), overlap=0)
    ruler, longest = _ruler(text, half, count, TableHeaders(text, ())), _max_length(half)
    headers = repeated_headers(text, options, count)

    def is_short(start: int, end: int) -> bool:
        return end - start <= longest and ruler.fits(start, end)

    parts = pairwise([0, *breaks, len(text)])
    spans = (
        (start + first, start + last)
        for begin, stop in parts
        for start, end in _stretches_between(text, begin, stop, sections, is_short)
        for first, last in _Splitter(text[start:end], options, count, headers.between(start, end)).spans()
    )
    return [TextSpan(position, start, end, text[start:end]) for position, (start, end) in enumerate(spans)]


def _stretches_between(
    text: str, begin: int, stop: int, sections: Sequence[Section], fits: Callable[[int, int], bool]
) -> Iterator[tuple[int, int]]:
    """Yield the stretches of a part of a text."""
    first = bisect_left(sections, begin, key=lambda section: section.start)
    last = bisect_left(sections, stop, key=lambda section: section.start)
    inner = [Section(section.start - begin, section.depth) for section in sections[first:last]]
    part = text[begin:stop]
    for start, end in stretches(part, inner, lambda a, b: fits(begin + a, begin + b)):
        yield begin + start, begin + end


def repeated_headers(
    text: str, options: SplitOptions, count: Callable[[str], int] | None = None
) -> TableHeaders:
    """Return the tables of a text, whose headers are repeated in each piece if they leave half of it free."""
    tables = find_tables(text) if options.syntax == "markdown" else []
    measure = count if options.unit == "tokens" and count else len
    return TableHeaders(text, tables, lambda header: 2 * measure(header) + _MAX_TOKEN_LENGTH <= options.size)


def join_blank_pieces(text: str, pieces: Sequence[TextSpan]) -> list[TextSpan]:
    """Join each piece of white space alone to the piece before it, or else to the piece after it.

    A joined piece may exceed the size by white space. The pieces cover the same text.
    """
    spans: list[Span] = []
    lacks_text = False
    for piece in pieces:
        is_blank = piece.text.isspace()
        if spans and (is_blank or lacks_text):
            spans[-1] = (spans[-1][0], piece.end)
            lacks_text = lacks_text and is_blank
        else:
            spans.append((piece.start, piece.end))
            lacks_text = is_blank
    return [TextSpan(position, start, end, text[start:end]) for position, (start, end) in enumerate(spans)]


class _Ruler(Protocol):
    def reach(self, start: int) -> int:
        """The furthest end found of a piece that starts here and fits."""

    def fits(self, start: int, end: int) -> bool:
        """Whether the text between is within the size."""

    def overlap(self, start: int, end: int) -> int:
        """The earliest start of an overlap that ends here, not before the start of the piece."""


class _Characters:
    def __init__(self, text: str, options: SplitOptions, headers: TableHeaders) -> None:
        self._length = len(text)
        self._size, self._overlap = options.size, options.overlap
        self._headers = headers

    def reach(self, start: int) -> int:
        return min(start + self._size - len(self._headers.header_at(start)), self._length)

    def fits(self, start: int, end: int) -> bool:
        return end - start + len(self._headers.header_at(start)) <= self._size

    def overlap(self, start: int, end: int) -> int:
        return max(end - self._overlap, start)


class _Tokens:
    def __init__(
        self, text: str, options: SplitOptions, count: Callable[[str], int], headers: TableHeaders
    ) -> None:
        self._text, self._count, self._headers = text, count, headers
        self._size, self._overlap = options.size, options.overlap
        self._characters_per_token = 4.0
        self._reached: dict[int, int] = {}

    def reach(self, start: int) -> int:
        if start not in self._reached:
            if len(self._reached) > 8:
                self._reached.clear()
            self._reached[start] = self._search(start)
        return self._reached[start]

    def _search(self, start: int) -> int:
        low = start
        guess = max(1, int(self._size * self._characters_per_token * 1.03))
        high = min(len(self._text), start + guess)
        while self.fits(start, high):
            if high == len(self._text):
                return high
            low, high = high, min(start + 2 * (high - start), len(self._text))
        while high - low > 1 + (low - start) // 32:
            middle = (low + high) // 2
            low, high = (middle, high) if self.fits(start, middle) else (low, middle)
        if low == start:
            raise InvalidInput("size", f"is {self._size} tokens, fewer than a single character has")
        self._characters_per_token = (low - start) / self._size
        return low

    def fits(self, start: int, end: int) -> bool:
        return self._count(self._headers.header_at(start) + self._text[start:end]) <= self._size

    def overlap(self, start: int, end: int) -> int:
        low = max(start, end - int(self._overlap * self._characters_per_token))
        while low < end and self._count(self._text[low:end]) > self._overlap:
            low = end - (end - low) * 3 // 4
        return low


class _Splitter:
    def __init__(
        self,
        text: str,
        options: SplitOptions,
        count: Callable[[str], int] | None,
        headers: TableHeaders,
    ) -> None:
        self._text = text
        self._headers = headers
        self._ruler = _ruler(text, options, count, headers)
        self._overlaps = options.overlap > 0
        self._longest_block = _max_length(options)
        self._borders = Borders(text)
        self._boundaries: Boundaries = boundaries(text, options.syntax, options.separators, headers.tables)
        self._overlap_starts = (_LINE_START, _WORD_START) if options.syntax == "code" else (_WORD_START,)
        self._fitting: dict[tuple[int, int], bool] = {}

    def spans(self) -> Iterator[tuple[int, int]]:
        start, end = 0, 0
        while end < len(self._text):
            start, end = self._next(self._repeat(start, end), end)
            yield start, end

    def _next(self, start: int, done: int) -> tuple[int, int]:
        """The next piece, from `start` or, to keep something whole, without overlap; it ends after `done`."""
        origins = (start, done) if start < done else (done,)
        for cut in (self._at_boundary, self._at_border):
            for origin in origins:
                end = self._furthest(cut, origin, done)
                if end is not None:
                    return origin, end
        return done, self._ruler.reach(done)

    def _furthest(self, cut: Callable[[int, int], int | None], origin: int, done: int) -> int | None:
        reach = self._ruler.reach(origin)
        if reach == len(self._text):
            return reach
        while reach > done:
            end = cut(done, reach)
            if end is None or self._ruler.fits(origin, end):
                return end
            # Fewer characters can be more tokens, so a cut before the reach is counted again.
            reach = end - 1 - (end - done) // 8
        return None

    def _at_boundary(self, done: int, reach: int) -> int | None:
        """The best place that leaves no piece nearly empty; else the best place."""
        for floor in (done + (reach - done) // 4, done):
            for level in self._boundaries.levels:
                end = self._last_usable(level, floor, done, reach)
                if end is not None:
                    return end
        return None

    def _at_border(self, done: int, reach: int) -> int | None:
        end = self._borders.last(done, reach)
        return end if end > done else None

    def _last_usable(self, level: Level, floor: int, done: int, reach: int) -> int | None:
        high = reach
        while (end := level.last(floor, high)) is not None:
            block_start = self._block_start(end)
            if block_start is not None:
                high = block_start
            elif self._borders.is_border(end, done, reach):
                return end
            else:
                high = end - 1
        return None

    def _block_start(self, position: int) -> int | None:
        for blocks in self._boundaries.blocks:
            block = blocks.around(position)
            if block is not None and self._fits_alone(block):
                return block[0]
        return None

    def _fits_alone(self, block: tuple[int, int]) -> bool:
        if block[1] - block[0] > self._longest_block:
            return False
        if block not in self._fitting:
            self._fitting[block] = self._ruler.fits(*block)
        return self._fitting[block]

    def _repeat(self, start: int, end: int) -> int:
        """Where the next piece starts: at a line or word inside the overlap, else at a grapheme border.

        Rows of a table are not repeated: each piece of it begins with the header.
        """
        if not self._overlaps or end == 0:
            return end
        low = max(self._ruler.overlap(start, end), start + 1)
        table = self._headers.around(low)
        low = low if table is None else min(table.end, end)
        for pattern in self._overlap_starts:
            match = pattern.search(self._text, low, end)
            if match and self._borders.is_border(match.start(), start, end):
                return int(match.start())
        if table is not None:
            return end
        usable = (border for border in range(low, end) if self._borders.is_border(border, start, end))
        return next(usable, end)


def _max_length(options: SplitOptions) -> int:
    """More characters than this are not worth counting."""
    return options.size * (_MAX_TOKEN_LENGTH if options.unit == "tokens" else 1)


def _ruler(
    text: str, options: SplitOptions, count: Callable[[str], int] | None, headers: TableHeaders
) -> _Ruler:
    if options.unit == "characters":
        return _Characters(text, options, headers)
    if count is None:
        raise InvalidInput("count", "is required to split by tokens")
    return _Tokens(text, options, count, headers)
