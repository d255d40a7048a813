"""Pages of memories in the order of time."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select, tuple_

from conspectus.errors import InvalidInput
from conspectus.model.filter import EVERYTHING, Filter, document_row, matches
from conspectus.model.ids import SourceId
from conspectus.model.records import Document
from conspectus.records.core.filters import Condition, compile_filter
from conspectus.records.core.pages import from_cursor, to_cursor
from conspectus.records.core.reads import with_texts
from conspectus.records.core.rows import DOCUMENT_COLUMNS, to_document
from conspectus.records.core.statements import fetch_in_blocks
from conspectus.records.memories.conditions import BY_TIME, IN_SCOPE
from conspectus.records.tables.core import REMEMBERED, documents

PAGE_ROWS = 500


_MEMORIES = select(*DOCUMENT_COLUMNS, documents.c.order_start).where(IN_SCOPE, REMEMBERED)

Texts = Sequence[tuple[Document, str]]


def newest_memories(
    connection: Connection, sources: Sequence[SourceId], which: ColumnElement[bool], limit: int
) -> list[tuple[Document, str]]:
    query = _MEMORIES.where(which).order_by(documents.c.number.desc()).limit(limit)
    rows = sorted(fetch_in_blocks(connection, query, sources), key=lambda row: -row.number)
    return with_texts(connection, [to_document(row) for row in rows[:limit]])


def memory_page(
    connection: Connection,
    sources: Sequence[SourceId],
    *,
    where: Filter = EVERYTHING,
    after: str | None,
    limit: int,
    newest_first: bool = False,
) -> tuple[list[tuple[Document, str]], str | None]:
    """Read in batches until enough memories match, so that a filter never empties a page."""
    if limit < 1:
        raise InvalidInput("limit", "must be at least 1")
    condition = compile_filter(where)
    position = None if after is None else tuple(from_cursor(after, (int, int)))
    matching_rows: list[Any] = []
    while len(matching_rows) <= limit:
        rows = _rows(connection, sources, condition, position=position, newest_first=newest_first)
        matching_rows += [row for row in rows if _holds(condition, where, row)]
        if len(rows) < PAGE_ROWS:
            break
        position = (rows[-1].order_start, rows[-1].number)
    page = matching_rows[:limit]
    cursor = to_cursor(page[-1].order_start, page[-1].number) if len(matching_rows) > limit else None
    return with_texts(connection, [to_document(row) for row in page]), cursor


def _rows(
    connection: Connection,
    sources: Sequence[SourceId],
    condition: Condition,
    *,
    position: tuple[Any, ...] | None,
    newest_first: bool,
) -> list[Any]:
    """Return the next rows of all these sources, in order."""
    order = [column.desc() for column in BY_TIME] if newest_first else list(BY_TIME)
    query = _MEMORIES.where(condition.sql).order_by(*order).limit(PAGE_ROWS)
    if position is not None:
        here = tuple_(*BY_TIME)
        query = query.where(here < position if newest_first else here > position)
    rows = fetch_in_blocks(connection, query, sources)
    return sorted(rows, key=lambda row: (row.order_start, row.number), reverse=newest_first)[:PAGE_ROWS]


def _holds(condition: Condition, where: Filter, row: Any) -> bool:
    return condition.exact or matches(where, document_row(to_document(row)))


def count_memories(connection: Connection, sources: Sequence[SourceId], where: Filter) -> int:
    condition = compile_filter(where)
    if condition.exact:
        counted = select(func.count()).select_from(documents).where(IN_SCOPE, REMEMBERED, condition.sql)
        return sum(row[0] for row in fetch_in_blocks(connection, counted, sources))
    rows = fetch_in_blocks(connection, _MEMORIES.where(condition.sql), sources)
    return sum(_holds(condition, where, row) for row in rows)
