"""Memories: order, versions, retention and deletion."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from sqlalchemy import (
    Connection,
    bindparam,
    select,
)

from conspectus.model.ids import CollectionId, DocumentId, JobId, SourceId
from conspectus.model.memory import (
    MemoryReceipt,
)
from conspectus.model.records import Source, SourceKind
from conspectus.records.core.lock_names import row_lock
from conspectus.records.core.rows import (
    SOURCE_COLUMNS,
    to_source,
)
from conspectus.records.core.store_methods import SqlStore, cached, reading, writing
from conspectus.records.memories.conditions import IS_NOTE, IS_TURN
from conspectus.records.memories.deletion import forget
from conspectus.records.memories.pages import Texts, count_memories, memory_page, newest_memories
from conspectus.records.memories.retention import (
    delete_empty_sources,
    drop_retention,
    list_retentions,
    oldest_memories,
    put_retention,
    set_last_run,
)
from conspectus.records.memories.statistics import changes_since, memory_totals, names, spans
from conspectus.records.memories.versions import earlier_versions, has_versions, histories
from conspectus.records.tables.core import (
    collections,
    documents,
    retentions,
    sources,
)
from conspectus.records.tables.jobs import jobs

_MEMORY_SOURCES = (
    select(*SOURCE_COLUMNS)
    .where(
        sources.c.collection == bindparam("of"),
        sources.c.kind == bindparam("kind"),
        sources.c.name >= bindparam("begins"),
        sources.c.name < bindparam("below"),
    )
    .order_by(sources.c.name)
)


def _memory_sources(
    connection: Connection,
    collection: CollectionId,
    *,
    begins: str,
    below: str,
    kind: SourceKind = "memory",
) -> list[Source]:
    parameters = {"of": collection, "kind": kind, "begins": begins, "below": below}
    return [to_source(row) for row in connection.execute(_MEMORY_SOURCES, parameters)]


class SqlMemories(SqlStore):
    """The methods of the port `Memories`, each as one transaction; see the port for their docs."""

    memory_sources = cached(_memory_sources, single=True)

    async def newest(self, sources: Sequence[SourceId], *, limit: int) -> Texts:
        return await self.transactions.read(
            partial(newest_memories, sources=sources, which=IS_TURN, limit=limit)
        )

    async def notes(self, sources: Sequence[SourceId], *, limit: int) -> Texts:
        return await self.transactions.read(
            partial(newest_memories, sources=sources, which=IS_NOTE, limit=limit)
        )

    page = reading(memory_page)
    count = reading(count_memories)
    oldest = reading(oldest_memories)
    totals = reading(memory_totals)
    versions = reading(earlier_versions)
    since = reading(changes_since)
    has_versions = cached(has_versions, single=True)

    _forget = writing(
        forget,
        rows=documents,
        locks=lambda *_, job, **__: set() if job is None else {row_lock(jobs, job)},
    )

    async def forget(
        self,
        memories: Sequence[DocumentId],
        *,
        pinned: bool,
        now: datetime,
        dry_run: bool = False,
        job: JobId | None = None,
    ) -> MemoryReceipt:
        if dry_run:
            work = partial(forget, memories=memories, pinned=pinned, now=now, dry_run=True, job=None)
            return await self.transactions.read(work)
        return await self._forget(memories, pinned=pinned, now=now, dry_run=False, job=job)

    delete_empty = writing(delete_empty_sources, rows=sources)
    histories = reading(histories)
    spans = reading(spans)
    names = reading(names)
    put_retention = writing(
        put_retention,
        locks=lambda rule: {row_lock(collections, rule.collection), row_lock(retentions, rule.id)},
    )
    drop_retention = writing(drop_retention, locks=lambda id: {row_lock(retentions, id)})
    retentions = reading(list_retentions)
    ran = writing(set_last_run, locks=lambda id, at: {row_lock(retentions, id)})
