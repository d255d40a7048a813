"""Tables in Markdown texts: where they stand, and the header rows that belong to each of their rows."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence

from conspectus.deferred import dataclass
from conspectus.model.records import Chunk, Syntax
from conspectus.text.late_patterns import re_pattern
from conspectus.text.positions import fence_after
from conspectus.text.sentences import Span, sentences

_MARKS = re_pattern(
    r"^[ \t>]*+(?:"
    r"(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)"
    r"|(?P<delimiter>\|?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+\|?[ \t]*+\r?)$"
    r")",
    re.MULTILINE,
)
_ROWS = re_pattern(r"(?:(?![ \t>]*+(?:#{1,6}[ \t]|`{3}|~{3}))[^\n|]*+\|[^\n]*(?:\n|\Z))*+")
_CELL_BORDER = re_pattern(r"(?<!\\)\|")
_LEAD = re_pattern(r"[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++(?=\|))?")


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of a text: characters [start, body) are its header rows, [body, end) the others."""

    start: int
    body: int
    end: int


class TableHeaders:
    """The tables of a text by position. A header that is not `usable` is not repeated."""

    def __init__(
        self, text: str, tables: Sequence[TextTable], usable: Callable[[str], bool] | None = None
    ) -> None:
        self.tables = tables
        self._text = text
        self._starts = [table.start for table in tables]
        self._usable = usable
        self._headers: dict[int, str] = {}

    def between(self, start: int, end: int) -> "TableHeaders":
        """Return the tables of a part of the text, with positions in the part."""
        first, last = bisect_left(self._starts, start), bisect_left(self._starts, end)
        tables = [
            TextTable(table.start - start, table.body - start, min(table.end, end) - start)
            for table in self.tables[first:last]
        ]
        return TableHeaders(self._text[start:end], tables, self._usable)

    def around(self, position: int) -> TextTable | None:
        """Return the table that begins before a position and ends after it."""
        table = self._begun_until(position)
        return table if table and table.start < position < table.end else None

    def header_at(self, position: int) -> str:
        """Return the header rows of the table whose other rows have this position; empty without any."""
        table = self._begun_until(position)
        if table is None or not table.body <= position < table.end:
            return ""
        if table.start not in self._headers:
            header = self._text[table.start : table.body]
            is_shown = any(map(str.isalnum, header)) and (self._usable is None or self._usable(header))
            self._headers[table.start] = header if is_shown else ""
        return self._headers[table.start]

    def _begun_until(self, position: int) -> TextTable | None:
        index = bisect_right(self._starts, position) - 1
        return self.tables[index] if index >= 0 else None


def find_tables(text: str) -> list[TextTable]:
    """Return the tables of a Markdown text in order, but not those in fenced code. The time is linear.

    A table is a row over a line of dashes with as many cells, and all lines with a pipe below.
    """
    tables: list[TextTable] = []
    fence, end = "", 0
    for match in _MARKS.finditer(text) if "|" in text else ():
        mark = match["fence"]
        if mark:
            fence = fence_after(fence, mark, match["info"])
        elif not fence and match.start() >= end and (table := _table_at(text, match)):
            tables.append(table)
            end = table.end
    return tables


def has_tables(text: str) -> bool:
    """Return whether a text has what looks like a table, even in fenced code."""
    dashes = (match["delimiter"] or "" for match in _MARKS.finditer(text)) if "|" in text else ()
    return any("|" in line for line in dashes)


def tables_in(chunk: Chunk, syntax: Syntax) -> list[TextTable]:
    """Return the tables of a chunk; one that begins in an earlier chunk is first, without header rows."""
    if syntax != "markdown" or "|" not in chunk.text:
        return []
    if chunk.table_header is None:
        return find_tables(chunk.text)
    end = _rows_end(chunk.text, _line_end(chunk.text, 0))
    following = (table for table in find_tables(chunk.text) if table.start >= end)
    return [TextTable(0, 0, end), *following]


def find_table_header(chunk: Chunk, syntax: Syntax, position: int) -> str:
    """Return the header of the table at a position of a chunk, if it stands before that; else nothing."""
    if not position:
        return chunk.table_header or ""
    tables = tables_in(chunk, syntax)
    if tables and not tables[0].body and position < tables[0].end:
        return chunk.table_header or ""
    return TableHeaders(chunk.text, tables).header_at(position)


def sentences_and_rows(text: str, tables: Sequence[TextTable]) -> Iterator[Span]:
    """Yield the spans of sentences, and of each row of a table as one; header rows are one together."""
    start = 0
    for table in tables:
        yield from _shift_spans(sentences(text[start : table.start]), start)
        if table.start < table.body:
            yield table.start, table.start + len(text[table.start : table.body].rstrip())
        for row_start, row_end in find_rows(text, table):
            if row := text[row_start:row_end].rstrip():
                yield row_start, row_start + len(row)
        start = table.end
    yield from _shift_spans(sentences(text[start:]), start)


def find_rows(text: str, table: TextTable) -> Iterator[Span]:
    """Yield the spans of the rows of a table below its header, with their line ends."""
    start = table.body
    while start < table.end:
        end = min(_line_end(text, start), table.end)
        yield start, end
        start = end


def _table_at(text: str, match: re.Match[str]) -> TextTable | None:
    """Return the table whose line of dashes was matched, if the line above has as many cells."""
    dashes = match["delimiter"]
    if not dashes or "|" not in dashes or not match.start():
        return None
    start = text.rfind("\n", 0, match.start() - 1) + 1
    header = text[start : match.start()]
    if "|" not in header or _count_cells(header) != _count_cells(dashes):
        return None
    body = _line_end(text, match.end())
    return TextTable(start, body, _rows_end(text, body))


def _rows_end(text: str, start: int) -> int:
    rows = _ROWS.match(text, start)
    return rows.end() if rows else start


def _line_end(text: str, start: int) -> int:
    return text.find("\n", start) + 1 or len(text)


def _count_cells(line: str) -> int:
    lead = _LEAD.match(line)
    cells = line[lead.end() if lead else 0 :].strip()
    return len(_CELL_BORDER.findall(cells.removeprefix("|").removesuffix("|"))) + 1


def _shift_spans(spans: Iterator[Span], by: int) -> Iterator[Span]:
    return ((start + by, end + by) for start, end in spans)
