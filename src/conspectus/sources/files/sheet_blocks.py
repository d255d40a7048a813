"""The tables of a sheet: blocks of cells that blank rows and columns divide."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from conspectus.sources.files.extract import escape_markdown, format_heading, one_line
from conspectus.sources.files.header_rows import begins_with_names, count_captions, count_name_rows
from conspectus.sources.files.tables import join_header_rows, render_table

MAX_DIVIDED_COLUMNS = 200
MAX_NAMED_SHEETS = 5

Rows: TypeAlias = Sequence[Sequence[str]]


class Drawing(NamedTuple):
    """A chart, picture or text box on a sheet: the row that it begins at, from 0, and its Markdown."""

    row: int
    blocks: Sequence[str]


class Block(NamedTuple):
    """The cells of one table, and the row that it begins at, from 0."""

    top: int
    rows: Rows


def render_sheet(
    name: str, rows: Rows, others: Iterable[str] = (), drawings: Iterable[Drawing] = ()
) -> Iterator[str]:
    """Yield the name of a sheet, its tables with their captions, and its other blocks, if it has any text.

    A drawing stands before the first table that begins below it.
    """
    blocks: list[str] = []
    waiting = deque(sorted(drawings, key=lambda drawing: drawing.row))
    for block in split_blocks(rows):
        while waiting and waiting[0].row < block.top:
            blocks += filter(None, waiting.popleft().blocks)
        blocks += filter(None, _render_block(block.rows))
    for drawing in waiting:
        blocks += filter(None, drawing.blocks)
    blocks += filter(None, others)
    if blocks:
        yield format_heading(name, 2)
        yield from blocks


def hidden_sheets_notice(hidden: Sequence[str]) -> str | None:
    """Return a notice that names the sheets that were left out, if there are any."""
    if not hidden:
        return None
    more = f" and {len(hidden) - MAX_NAMED_SHEETS} more" if len(hidden) > MAX_NAMED_SHEETS else ""
    return f"hidden sheets were left out: {', '.join(hidden[:MAX_NAMED_SHEETS])}{more}"


def _render_block(block: Rows) -> Iterator[str]:
    columns = sorted({column for row in block for column, text in enumerate(row) if text})
    filled = [[row[column] for column in columns if column < len(row)] for row in block if any(row)]
    captions = len(filled) if len(filled) == len(columns) == 1 else count_captions(filled)
    for row in filled[:captions]:
        yield escape_markdown(one_line(next(text for text in row if text)))
    table = filled[captions:]
    has_names = begins_with_names(table)
    name_rows = count_name_rows(table) if has_names else 1
    if name_rows > 1:
        _, names = join_header_rows(table[:name_rows])
        table = [names, *table[name_rows:]]
    yield render_table(table, has_names=has_names)


def split_blocks(rows: Rows) -> Iterator[Block]:
    """Yield the tables of a sheet one by one, those side by side from left to right.

    A blank row or column alone divides nothing, because people leave them inside of tables too: what follows
    must begin with a row of names.
    """
    block: list[Sequence[str]] = []
    top = 0
    is_after_blank = False
    for number, row in enumerate(rows):
        if not any(row):
            is_after_blank = True
            continue
        following = rows[number + 1] if number + 1 < len(rows) else ()
        if block and is_after_blank and _begins_table(row, following, block[-1]):
            yield from (Block(top, part) for part in _split_columns(block))
            block = []
        top = top if block else number
        block.append(row)
        is_after_blank = False
    yield from (Block(top, part) for part in _split_columns(block))


def _begins_table(row: Sequence[str], following: Sequence[str], above: Sequence[str]) -> bool:
    """Return whether a row has names: over figures, or over other columns than those of the table above."""
    if not _has_names(row) or not any(following):
        return False
    is_over_figures = any(text and _is_figure(below) for text, below in zip(row, following, strict=False))
    return is_over_figures or _filled_columns(row) != _filled_columns(above)


def _split_columns(block: Rows) -> Iterator[Rows]:
    """Yield the tables that stand side by side in a block. Those of equal height are one with a gap."""
    width = max(map(len, block), default=0)
    start = 0
    if width <= MAX_DIVIDED_COLUMNS:
        filled = {column for row in block for column, text in enumerate(row) if text}
        for column in sorted(column for column in filled if column > 0 and column - 1 not in filled):
            left, right = [row[start:column] for row in block], [row[column:] for row in block]
            have_names = _has_names(_first_row(left)) and _has_names(_first_row(right))
            if have_names and _extent(left) != _extent(right):
                yield left
                start = column
    yield [row[start:] for row in block]


def _first_row(rows: Rows) -> Sequence[str]:
    return next((row for row in rows if any(row)), ())


def _extent(rows: Rows) -> tuple[int, int]:
    """Return the numbers of the first and the last row with text."""
    numbers = [number for number, row in enumerate(rows) if any(row)]
    return (numbers[0], numbers[-1]) if numbers else (0, 0)


def _filled_columns(row: Sequence[str]) -> frozenset[int]:
    return frozenset(column for column, text in enumerate(row) if text)


def _has_names(row: Sequence[str]) -> bool:
    names = [text for text in row if text]
    return len(names) > 1 and not any(map(_is_figure, names))


def _is_figure(text: str) -> bool:
    return text.lstrip("+-")[:1].isdecimal()
