"""Positions at which a text may be split, best first, and blocks to keep."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Protocol

from conspectus.deferred import dataclass
from conspectus.model.records import Syntax
from conspectus.text.late_patterns import re_pattern
from conspectus.text.sections import Section
from conspectus.text.tables import TextTable, find_rows

Span = tuple[int, int]
_MARKDOWN_LINE = re_pattern(
    r"^(?:"
    r"[ \t>]*(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)"
    r"|(?P<heading> {0,3}#{1,6}(?=[ \t\r\n]|\Z))"
    r"|(?P<row>[ \t]*\|[^\n]*(?:\n|\Z))"
    r"|(?P<underlined>(?<![^\n]\n)(?![ \t>#|=-])[^\n]+\n {0,3}(?:=+|-+)[ \t]*\r?$)"
    r")",
    re.MULTILINE,
)
_DEFINITION = (
    r"(?:@|#\[|(?:abstract|async|class|const|def|default|enum|export|extern|final|fn|fun|func|function|impl"
    r"|inline|interface|internal|let|macro_rules!|mod|module|namespace|object|override|package|private|proc"
    r"|protected|pub|public|record|static|struct|sub|template|trait|type|union|unsafe|val|var|virtual)\b)"
)
_TOP_DEFINITION = re_pattern(r"(?<=\n)\r?\n(?=" + _DEFINITION + ")")
_TOP_LINE = re_pattern(r"(?<=\n)\r?\n(?=[^\s)}\]])")
_INNER_DEFINITION = re_pattern(r"(?<=\n)\r?\n(?=[ \t]{1,8}" + _DEFINITION + ")")


class Level(Protocol):
    """One kind of position to split at."""

    def last(self, low: int, high: int) -> int | None:
        """Return the last such position in (low, high]."""


@dataclass(frozen=True, slots=True)
class Separator:
    """Positions after each occurrence of a string."""

    text: str
    separator: str

    def last(self, low: int, high: int) -> int | None:
        start = self.text.rfind(self.separator, max(low + 1 - len(self.separator), 0), high)
        return None if start < 0 else start + len(self.separator)


@dataclass(frozen=True, slots=True)
class Positions:
    """Known positions in ascending order."""

    positions: list[int]

    def last(self, low: int, high: int) -> int | None:
        index = bisect_right(self.positions, high) - 1
        if index >= 0 and self.positions[index] > low:
            return self.positions[index]
        return None


class Blocks:
    """Spans that should not be split, in ascending order and without overlap."""

    def __init__(self, spans: list[Span]) -> None:
        self._spans = spans
        self._starts = [start for start, _ in spans]

    def around(self, position: int) -> Span | None:
        """Return the block that contains the position."""
        index = bisect_right(self._starts, position) - 1
        if index < 0:
            return None
        start, end = self._spans[index]
        return (start, end) if start < position < end else None


@dataclass(frozen=True, slots=True)
class Boundaries:
    """Positions to split at, best first, and blocks to keep.

    A table is one block, one for its header with the first row, and one for each row.
    """

    levels: tuple[Level, ...]
    blocks: tuple[Blocks, ...] = ()


def boundaries(
    text: str, syntax: Syntax, separators: tuple[str, ...], tables: Sequence[TextTable] = ()
) -> Boundaries:
    """Return the boundaries of a text with its tables, found in one pass."""
    plain = tuple(_separator_levels(text, separators))
    if syntax == "code":
        patterns = (_TOP_DEFINITION, _TOP_LINE, _INNER_DEFINITION)
        levels = (Positions([match.end() for match in pattern.finditer(text)]) for pattern in patterns)
        return Boundaries((*levels, *plain))
    if syntax == "markdown":
        return _find_markdown_boundaries(text, plain, tables)
    return Boundaries(plain)


def definitions(text: str) -> list[Section]:
    """Return the starts of top-level statements of code, and of the definitions inside them."""
    outer = (Section(match.end(), 1) for match in _TOP_LINE.finditer(text))
    inner = (Section(match.end(), 2) for match in _INNER_DEFINITION.finditer(text))
    return sorted([*outer, *inner], key=lambda section: section.start)


def _separator_levels(text: str, separators: tuple[str, ...]) -> Iterator[Level]:
    windows_lines = "\r\n" in text
    for separator in filter(None, separators):
        if windows_lines and "\n" in separator and "\r" not in separator:
            yield Separator(text, separator.replace("\n", "\r\n"))
        yield Separator(text, separator)


def _find_markdown_boundaries(text: str, plain: tuple[Level, ...], tables: Sequence[TextTable]) -> Boundaries:
    headings: list[int] = []
    blocks: list[Span] = []
    rows: list[Span] = []
    fence: tuple[int, str] | None = None
    for match in _MARKDOWN_LINE.finditer(text):
        start, end = match.span()
        if fence is not None:
            mark = match["fence"]
            if mark and mark.startswith(fence[1]) and not match["info"].strip():
                line_feed = text.find("\n", end)
                blocks.append((fence[0], len(text) if line_feed < 0 else line_feed + 1))
                fence = None
        elif match["fence"]:
            fence = None if match["fence"][0] == "`" in match["info"] else (start, match["fence"])
        elif match["row"]:
            joins = bool(rows) and blocks[-1][1] == rows[-1][1] == start
            blocks.append((blocks.pop()[0] if joins else start, end))
            rows.append((start, end))
        else:
            headings.append(start)
    if fence is not None:
        blocks.append((fence[0], len(text)))
    whole_tables, heads, table_rows = _table_blocks(text, tables)
    rows = sorted({*rows, *table_rows})
    edges = Positions(sorted({edge for span in (*blocks, *rows) for edge in span}))
    kept = (blocks, whole_tables, heads, rows)
    return Boundaries((Positions(headings), *plain, edges), tuple(map(Blocks, kept)))


def _table_blocks(text: str, tables: Sequence[TextTable]) -> tuple[list[Span], list[Span], list[Span]]:
    """Return the spans of tables, of their headers with the first row, and of the rows below."""
    heads: list[Span] = []
    rows: list[Span] = []
    for table in tables:
        spans = list(find_rows(text, table))
        heads.append((table.start, spans[0][1] if spans else table.end))
        rows += spans
    return [(table.start, table.end) for table in tables], heads, rows
