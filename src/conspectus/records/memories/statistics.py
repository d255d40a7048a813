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
        func.count().label("memories"),
        func.sum(case((IS_NOTE, 1), else_=0)).label("notes"),
        func.sum(case((IS_PINNED, 1), else_=0)).label("pins"),
        func.sum(case((STATES_A_FACT, 1), else_=0)).label("facts"),
        func.sum(case((documents.c.status == "pending", 1), else_=0)).label("pending"),
        func.min(documents.c.occurred_start).label("first"),
        func.max(documents.c.occurred_start).label("last"),
    )
    rows = list(fetch_in_blocks(connection, select(*columns).where(IN_SCOPE, REMEMBERED), sources))
    versions = select(func.count()).select_from(documents).where(IN_SCOPE, VERSIONED)
    old = sum(count for (count,) in fetch_in_blocks(connection, versions, sources))
    joined = documents.join(chunks, chunks.c.document == documents.c.number)
    counted = select(func.sum(chunks.c.tokens)).select_from(joined).where(IN_SCOPE, REMEMBERED)
    tokens = sum(count or 0 for (count,) in fetch_in_blocks(connection, counted, sources))
    return MemoryStats(
        memories=sum(row.memories for row in rows),
        notes=sum(row.notes or 0 for row in rows),
        pinned=sum(row.pins or 0 for row in rows),
        facts=sum(row.facts or 0 for row in rows),
        versions=old,
        conversations=0,
        entities=0,
        tokens=tokens,
        pending=sum(row.pending or 0 for row in rows),
        first=to_moment(min((row.first for row in rows if row.first is not None), default=None)),
        last=to_moment(max((row.last for row in rows if row.last is not None), default=None)),
    )


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
            sum(count for (count,) in fetch_in_blocks(connection, count_query, sources))
            for count_query in (fresh, remade, gone)
        )
    )
