"""Counts of memories."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, case, func, select

from conspectus.model.ids import SourceId
from conspectus.model.memory import ChangesSince, MemoryStats
from conspectus.ports.memories import HomeSpan
from conspectus.records.core.rows import to_moment
from conspectus.records.core.statements import IDS, fetch_in_blocks
from conspectus.records.memories.conditions import IN_SCOPE, IS_NOTE, IS_PINNED, STATES_A_FACT
from conspectus.records.tables.core import REMEMBERED, VERSIONED, chunks, deleted_memories, documents
from conspectus.records.tables.graph import mentions
from conspectus.text.times import to_microseconds


def spans(connection: Connection, sources: Sequence[SourceId]) -> list[HomeSpan]:
    start = documents.c.occurred_start
    counted = select(documents.c.source, func.count(), func.min(start), func.max(start))
    counted = counted.where(IN_SCOPE, REMEMBERED).group_by(documents.c.source)
    return [
        HomeSpan(SourceId(source), memories, to_moment(first), to_moment(last))
        for source, memories, first, last in fetch_in_blocks(connection, counted, sources)
    ]


def names(connection: Connection, sources: Sequence[SourceId]) -> int:
    """Return the number of distinct entities that the memories of these sources mention."""
    joined = documents.join(chunks, chunks.c.document == documents.c.number).join(
        mentions, mentions.c.chunk == chunks.c.id
    )
    query = select(mentions.c.key).distinct().select_from(joined).where(IN_SCOPE, REMEMBERED)
    return len({row.key for row in fetch_in_blocks(connection, query, sources)})


def memory_totals(connection: Connection, sources: Sequence[SourceId]) -> MemoryStats:
    columns = (
        func.count(),
        func.sum(case((IS_NOTE, 1), else_=0)),
        func.sum(case((IS_PINNED, 1), else_=0)),
        func.sum(case((STATES_A_FACT, 1), else_=0)),
        func.sum(case((documents.c.status == "pending", 1), else_=0)),
        func.min(documents.c.occurred_start),
        func.max(documents.c.occurred_start),
    )
    rows = list(fetch_in_blocks(connection, select(*columns).where(IN_SCOPE, REMEMBERED), sources))
    memories, notes, pins, facts, pending = (sum(row[column] or 0 for row in rows) for column in range(5))
    versions = select(func.count()).select_from(documents).where(IN_SCOPE, VERSIONED)
    old = sum(row[0] for row in fetch_in_blocks(connection, versions, sources))
    joined = documents.join(chunks, chunks.c.document == documents.c.number)
    counted = select(func.sum(chunks.c.tokens)).select_from(joined).where(IN_SCOPE, REMEMBERED)
    tokens = sum(row[0] or 0 for row in fetch_in_blocks(connection, counted, sources))
    first = to_moment(min((row[5] for row in rows if row[5] is not None), default=None))
    last = to_moment(max((row[6] for row in rows if row[6] is not None), default=None))
    return MemoryStats(memories, notes, pins, facts, old, 0, 0, tokens, pending, first, last)


def changes_since(connection: Connection, sources: Sequence[SourceId], instant: datetime) -> ChangesSince:
    now = documents.alias("now")
    at = to_microseconds(instant)
    count = select(func.count())
    fresh = count.select_from(documents).where(IN_SCOPE, REMEMBERED, documents.c.recorded > at)
    other = documents.join(now, documents.c.parent == now.c.id)
    remade = select(func.count(documents.c.parent.distinct())).select_from(other)
    remade = remade.where(
        IN_SCOPE, documents.c.kind == "version", documents.c.recorded > at, now.c.recorded <= at
    )
    gone = count.select_from(deleted_memories).where(
        deleted_memories.c.source.in_(IDS), deleted_memories.c.recorded <= at, deleted_memories.c.deleted > at
    )
    return ChangesSince(
        *(
            sum(row[0] for row in fetch_in_blocks(connection, count_query, sources))
            for count_query in (fresh, remade, gone)
        )
    )
