"""CSV and TSV: a Markdown table."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Literal, NamedTuple

from conspectus.sources.files.extract import escape_markdown, join_blocks, one_line
from conspectus.sources.files.header_rows import begins_with_names, count_captions
from conspectus.sources.files.tables import escape_pipes
from conspectus.text.counts import format_count

DELIMITERS = ",;\t|"
MAX_SAMPLED_ROWS = 100
MIN_EQUAL_SHARE = 0.6
MIN_RAGGED_ROWS = 3
MAX_NAME_LENGTH = 40
MAX_COLUMN_LENGTH = 100
HEADER_LINES = 2
MAX_CELL_LINES = 100
"""A cell with more lines comes from a quotation mark that is none."""

_BLANKS = re.compile(r"[^\S ]|(?<=[^|])  ")

Rows = Iterator[list[str]]


class DelimitedTable(NamedTuple):
    """A Markdown table; `notice` says how many rows have other cells than there are names of columns."""

    markdown: str
    notice: str | None = None


def read_delimited_table(text: str, delimiters: str = DELIMITERS) -> DelimitedTable | None:
    """Return the Markdown table of a text in columns; None if it has none. The time is linear.

    Rows are read one by one, and short ones stay short, so that a large file takes little memory.
    """
    text, delimiters = _without_hint(text, delimiters)
    try:
        return _table_of(text, delimiters)
    except csv.Error:
        if csv.field_size_limit() >= len(text):
            return None
    # The limit of a cell holds for the whole process, so it is raised only where a cell is longer.
    csv.field_size_limit(len(text))
    return read_delimited_table(text, delimiters)


def _table_of(text: str, delimiters: str) -> DelimitedTable | None:
    delimiter = _delimiter_of(text, delimiters) or _ragged_delimiter_of(text, delimiters)
    if delimiter is None and not _is_column(text, delimiters):
        return None
    delimiter = delimiter or delimiters[0]
    has_quotes = not _has_stray_quote(text, delimiter)
    width = max(map(_width_of, _rows_of(text, delimiter, has_quotes=has_quotes)), default=0)
    rows = (row[:width] for row in _rows_of(text, delimiter, has_quotes=has_quotes))
    sample = list(islice(rows, MAX_SAMPLED_ROWS))
    captions = count_captions(sample)
    table = sample[captions:]
    if not width or not table:
        return None
    names = table.pop(0) if begins_with_names(table) else []
    lines = [_line_of([*names, *[""] * (width - len(names))]), f"|{' --- |' * width}"]
    columns, ragged = _width_of(names), 0
    for row in chain(table, rows):
        lines.append(_line_of(row))
        ragged += len(row) < columns or _width_of(row) > columns
    row_count = len(lines) - HEADER_LINES
    notice = f"{ragged} of {format_count(row_count, 'row')} have more or fewer cells than the header"
    captioned = [*(escape_markdown(one_line(" ".join(row))) for row in sample[:captions]), "\n".join(lines)]
    return DelimitedTable(join_blocks(captioned), notice if names and ragged else None)


def _without_hint(text: str, delimiters: str) -> tuple[str, str]:
    """Return a text without the line `sep=;` that spreadsheets write, and the delimiters that it can have."""
    line, _, rest = text.partition("\n")
    hint = line.strip("\ufeff\r")
    if hint.startswith("sep=") and len(hint) == len("sep=") + 1:
        return rest, hint[-1]
    return text.removeprefix("\ufeff"), delimiters


def _delimiter_of(text: str, delimiters: str) -> str | None:
    """Return the delimiter that gives most rows the same number of cells, and the most cells."""
    best, best_score = None, (0.0, 0)
    for delimiter in delimiters:
        widths = Counter(map(_width_of, islice(_rows_of(text, delimiter), MAX_SAMPLED_ROWS)))
        width, rows = max(widths.items(), key=lambda entry: (entry[0] > 1, entry[1]), default=(0, 0))
        share = rows / max(widths.total(), 1)
        if width > 1 and share >= MIN_EQUAL_SHARE and (share, width) > best_score:
            best, best_score = delimiter, (share, width)
    return best


def _ragged_delimiter_of(text: str, delimiters: str) -> str | None:
    """Return the delimiter that divides a header of short names and most rows unequally."""
    for delimiter in delimiters:
        rows = list(islice(_rows_of(text, delimiter), MAX_SAMPLED_ROWS))
        widths = [_width_of(row) for row in rows]
        divided = sum(width > 1 for width in widths)
        is_header = bool(rows) and widths[0] > 1 and max(map(len, rows[0])) <= MAX_NAME_LENGTH
        if is_header and len(rows) >= MIN_RAGGED_ROWS and divided >= MIN_EQUAL_SHARE * len(rows):
            return delimiter
    return None


def _is_column(text: str, delimiters: str) -> bool:
    """Return whether a text has one column: some short lines without any delimiter."""
    lines = [line for line in text.splitlines() if line.strip()]
    has_delimiter = any(delimiter in text for delimiter in delimiters)
    return len(lines) > 1 and not has_delimiter and max(map(len, lines)) <= MAX_COLUMN_LENGTH


def _has_stray_quote(text: str, delimiter: str) -> bool:
    rows = _rows_of(text, delimiter) if '"' in text else iter(())
    return any(cell.count("\n") > MAX_CELL_LINES for row in rows for cell in row)


def _rows_of(text: str, delimiter: str, *, has_quotes: bool = True) -> Rows:
    """Yield the rows that have text, each cell without white space around it."""
    lines = text.splitlines(keepends=True) if "\r" in text else (f"{line}\n" for line in text.split("\n"))
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if has_quotes else csv.QUOTE_NONE
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, skipinitialspace=True)
    for row in reader:
        cells = [cell.strip() for cell in row]
        if any(cells):
            yield cells


def _width_of(row: Sequence[str]) -> int:
    return max((number for number, cell in enumerate(row, 1) if cell), default=0)


def _line_of(row: Sequence[str]) -> str:
    line = f"| {' | '.join(row)} |"
    if line.count("|") == len(row) + 1 and not _BLANKS.search(line):
        return line
    return f"| {' | '.join(one_line(escape_pipes(cell)) for cell in row)} |"
