"""Memories: order, versions, retention and deletion."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    tuple_,
    update,
)

from conspectus.errors import InvalidInput
from conspectus.model.filter import EVERYTHING, Filter, document_row, matches
from conspectus.model.ids import CollectionId, DocumentId, JobId, SourceId, UserId
from conspectus.model.memory import (
    FACT,
    KNOWN_FROM,
    PINNED,
    ChangesSince,
    MemoryReceipt,
    MemoryStats,
    Retention,
)
from conspectus.model.records import Document, Metadata, Source, SourceKind
from conspectus.ports.memories import HomeSpan, StoredRetention
from conspectus.records.core.collections import state
from conspectus.records.core.dialects import as_list, given, kind_of, plain_rows
from conspectus.records.core.filters import Condition, compile_filter
from conspectus.records.core.reads import texts_of, with_texts
from conspectus.records.core.rows import (
    DOCUMENT_COLUMNS,
    IDS,
    SOURCE_COLUMNS,
    from_cursor,
    rows_in,
    run_in,
    to_cursor,
    to_document,
    to_json,
    to_metadata,
    to_moment,
    to_source,
)
from conspectus.records.core.transactions import SqlStore, cached, reading, row_of, writing
from conspectus.records.deletion import delete_documents
from conspectus.records.graph.reads import resting_edges
from conspectus.records.tables.core import (
    QUARANTINED,
    REMEMBERED,
    VERSIONED,
    chunks,
    collections,
    deleted_memories,
    documents,
    grants,
    retentions,
    sources,
    vectors,
)
from conspectus.records.tables.graph import mentions, nodes
from conspectus.records.tables.jobs import jobs
from conspectus.text.times import to_microseconds

IS_PINNED = kind_of(documents.c.metadata, PINNED).is_not_distinct_from("true")
STATES_A_FACT = kind_of(documents.c.metadata, FACT).is_not_distinct_from("object")
"""The properties of a memory itself, separate from the caller's metadata."""

COUNTED: Final = ("memories", "versions", "chunks", "vectors", "edges", "facts")
_LISTED = given("ids")
"""Any number of ids as one parameter, so that everything that depends on them is one query."""

_CHOSEN = select(documents.c.id).where(documents.c.id.in_(_LISTED), or_(REMEMBERED, QUARANTINED))
_ROOTS = select(documents.c.id).where(documents.c.id.in_(_LISTED)).cte("tree", recursive=True)
_TREE = _ROOTS.union(select(documents.c.id).join(_ROOTS, documents.c.parent == _ROOTS.c.id))
_WHOLE = documents.c.id.in_(select(_TREE.c.id))
_SIZES = select(
    func.count().filter(VERSIONED).label("versions"),
    func.count().filter(or_(REMEMBERED, QUARANTINED)).label("memories"),
    func.coalesce(func.sum(documents.c.chunks), 0).label("chunks"),
).where(_WHOLE)
_NAMES = select(documents.c.id).where(_WHOLE)
_VERSION = select(documents.c.number).where(documents.c.collection == bindparam("of"), VERSIONED).limit(1)
_VECTORS = (
    select(func.count())
    .select_from(
        documents.join(chunks, chunks.c.document == documents.c.number).join(
            vectors, vectors.c.chunk == chunks.c.id
        )
    )
    .where(_WHOLE)
)


def forget(
    connection: Connection,
    memories: Sequence[DocumentId],
    *,
    pinned: bool,
    now: datetime,
    dry_run: bool,
    job: JobId | None,
) -> MemoryReceipt:
    """Delete memories with everything that depends on them, or with a dry run only count it."""
    receipt = _weighed(connection, memories, pinned=pinned)
    if dry_run:
        return replace(receipt, dry_run=True)
    delete_documents(connection, [DocumentId(each) for each in receipt.ids], now=now)
    if job is not None:
        _count_in(connection, job, receipt)
    return receipt


def histories(
    connection: Connection, memories: Sequence[DocumentId]
) -> Mapping[DocumentId, Sequence[tuple[Document, str]]]:
    """Return memories with their earlier versions, oldest first, in one snapshot."""
    found: dict[DocumentId, list[Document]] = {}
    now = select(*DOCUMENT_COLUMNS).where(documents.c.id.in_(IDS), REMEMBERED)
    before = select(*DOCUMENT_COLUMNS).where(documents.c.parent.in_(IDS), VERSIONED)
    versions = rows_in(connection, before.order_by(documents.c.number), memories)
    for version in sorted(map(to_document, versions), key=_known):
        found.setdefault(DocumentId(str(version.parent)), []).append(version)
    for memory in map(to_document, rows_in(connection, now, memories)):
        found.setdefault(memory.id, []).append(memory)
    texts = texts_of(connection, [each.id for history in found.values() for each in history])
    return {memory: [(each, texts.get(each.id, "")) for each in history] for memory, history in found.items()}


def spans(connection: Connection, sources: Sequence[SourceId]) -> list[HomeSpan]:
    start = documents.c.occurred_start
    counted = select(documents.c.source, func.count(), func.min(start), func.max(start))
    counted = counted.where(_IN_SCOPE, REMEMBERED).group_by(documents.c.source)
    return [
        HomeSpan(SourceId(source), memories, to_moment(first), to_moment(last))
        for source, memories, first, last in rows_in(connection, counted, sources)
    ]


def names(connection: Connection, sources: Sequence[SourceId]) -> int:
    """Return the number of distinct entities that the memories of these sources mention."""
    joined = documents.join(chunks, chunks.c.document == documents.c.number).join(
        mentions, mentions.c.chunk == chunks.c.id
    )
    chosen = select(mentions.c.key).distinct().select_from(joined).where(_IN_SCOPE, REMEMBERED)
    return len({row.key for row in rows_in(connection, chosen, sources)})


def _known(version: Document) -> tuple[str, datetime]:
    """Return the time from which and, for ties, until which a version was current."""
    return str(version.metadata.get(KNOWN_FROM) or ""), version.recorded


def _weighed(connection: Connection, memories: Sequence[DocumentId], *, pinned: bool) -> MemoryReceipt:
    """Return all memories that a deletion affects, as far as they exist and may be deleted."""
    chosen = _CHOSEN if pinned else _CHOSEN.where(~IS_PINNED)
    there = set(connection.execute(chosen, {"ids": as_list(memories)}).scalars())
    going = tuple(str(each) for each in dict.fromkeys(memories) if each in there)
    asked = {"ids": as_list(going)}
    sizes = connection.execute(_SIZES, asked).one()
    return MemoryReceipt(
        memories=len(going),
        versions=sizes.versions,
        chunks=sizes.chunks,
        vectors=connection.execute(_VECTORS, asked).scalar_one(),
        edges=len(resting_edges(connection, connection.execute(_NAMES, asked).scalars().all())),
        ids=going,
        facts=sizes.memories - len(going),
    )


def _count_in(connection: Connection, job: JobId, receipt: MemoryReceipt) -> None:
    """Add deleted counts to the job's row, so that it is exact whenever the job ends."""
    stored = connection.execute(select(jobs.c.result).where(jobs.c.id == job)).scalar_one_or_none()
    before: Metadata = to_metadata(stored) if stored else {}
    counts: dict[str, Any] = {**before}
    for name in COUNTED:
        counts[name] = int(counts.get(name) or 0) + getattr(receipt, name)
    connection.execute(update(jobs).where(jobs.c.id == job).values(result=to_json(counts)))


PAGE = 500
_IN_SCOPE = documents.c.source.in_(IDS)
_HOMES = (
    select(*SOURCE_COLUMNS)
    .where(
        sources.c.collection == bindparam("of"),
        sources.c.kind == bindparam("kind"),
        sources.c.name >= bindparam("begins"),
        sources.c.name < bindparam("below"),
    )
    .order_by(sources.c.name)
)
_TURN = documents.c.thread.is_not(None)
_NOTE = and_(documents.c.thread.is_(None), documents.c.parent.is_(None))
_ORDER = (documents.c.order_start, documents.c.number)
_MEMORIES = select(*DOCUMENT_COLUMNS, documents.c.order_start).where(_IN_SCOPE, REMEMBERED)

Texts = Sequence[tuple[Document, str]]


def _memory_sources(
    connection: Connection,
    collection: CollectionId,
    *,
    begins: str,
    below: str,
    kind: SourceKind = "memory",
) -> list[Source]:
    asked = {"of": collection, "kind": kind, "begins": begins, "below": below}
    return [to_source(row) for row in connection.execute(_HOMES, asked)]


def _newest(
    connection: Connection, sources: Sequence[SourceId], which: ColumnElement[bool], limit: int
) -> list[tuple[Document, str]]:
    chosen = _MEMORIES.where(which).order_by(documents.c.number.desc()).limit(limit)
    rows = sorted(rows_in(connection, chosen, sources), key=lambda row: -row.number)
    return with_texts(connection, [to_document(row) for row in rows[:limit]])


def _page(
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
    place = None if after is None else tuple(from_cursor(after, (int, int)))
    found: list[Any] = []
    while len(found) <= limit:
        rows = _rows(connection, sources, condition, place=place, newest_first=newest_first)
        found += [row for row in rows if _holds(condition, where, row)]
        if len(rows) < PAGE:
            break
        place = (rows[-1].order_start, rows[-1].number)
    page = found[:limit]
    cursor = to_cursor(page[-1].order_start, page[-1].number) if len(found) > limit else None
    return with_texts(connection, [to_document(row) for row in page]), cursor


def _rows(
    connection: Connection,
    sources: Sequence[SourceId],
    condition: Condition,
    *,
    place: tuple[Any, ...] | None,
    newest_first: bool,
) -> list[Any]:
    """Return the next rows of all these sources, in order."""
    order = [column.desc() for column in _ORDER] if newest_first else list(_ORDER)
    chosen = _MEMORIES.where(condition.sql).order_by(*order).limit(PAGE)
    if place is not None:
        here = tuple_(*_ORDER)
        chosen = chosen.where(here < place if newest_first else here > place)
    rows = rows_in(connection, chosen, sources)
    return sorted(rows, key=lambda row: (row.order_start, row.number), reverse=newest_first)[:PAGE]


def _holds(condition: Condition, where: Filter, row: Any) -> bool:
    return condition.exact or matches(where, document_row(to_document(row)))


def _count(connection: Connection, sources: Sequence[SourceId], where: Filter) -> int:
    condition = compile_filter(where)
    if condition.exact:
        counted = select(func.count()).select_from(documents).where(_IN_SCOPE, REMEMBERED, condition.sql)
        return sum(row[0] for row in rows_in(connection, counted, sources))
    rows = rows_in(connection, _MEMORIES.where(condition.sql), sources)
    return sum(_holds(condition, where, row) for row in rows)


def _oldest(
    connection: Connection,
    source: SourceId,
    *,
    before: datetime | None,
    beyond: int | None,
    pinned: bool,
    limit: int,
) -> list[DocumentId]:
    free = [] if pinned else [_TURN, ~IS_PINNED]
    chosen = select(documents.c.id, documents.c.order_start, documents.c.number).where(
        documents.c.source == source, REMEMBERED, *free
    )
    newest = chosen.order_by(*(column.desc() for column in _ORDER))
    found: dict[tuple[int, int], str] = {}
    if beyond is not None:
        rest = connection.execute(newest.offset(beyond)).all()
        found |= {(row.order_start, row.number): row.id for row in rest}
    if before is not None:
        old = chosen.where(documents.c.order_start < to_microseconds(before))
        found |= {(row.order_start, row.number): row.id for row in connection.execute(old)}
    return [DocumentId(found[each]) for each in sorted(found)[:limit]]


def _totals(connection: Connection, sources: Sequence[SourceId]) -> MemoryStats:
    own = (
        func.count(),
        func.sum(case((_NOTE, 1), else_=0)),
        func.sum(case((IS_PINNED, 1), else_=0)),
        func.sum(case((STATES_A_FACT, 1), else_=0)),
        func.sum(case((documents.c.status == "pending", 1), else_=0)),
        func.min(documents.c.occurred_start),
        func.max(documents.c.occurred_start),
    )
    rows = list(rows_in(connection, select(*own).where(_IN_SCOPE, REMEMBERED), sources))
    memories, notes, pins, facts, pending = (sum(row[place] or 0 for row in rows) for place in range(5))
    versions = select(func.count()).select_from(documents).where(_IN_SCOPE, VERSIONED)
    old = sum(row[0] for row in rows_in(connection, versions, sources))
    joined = documents.join(chunks, chunks.c.document == documents.c.number)
    counted = select(func.sum(chunks.c.tokens)).select_from(joined).where(_IN_SCOPE, REMEMBERED)
    tokens = sum(row[0] or 0 for row in rows_in(connection, counted, sources))
    first = to_moment(min((row[5] for row in rows if row[5] is not None), default=None))
    last = to_moment(max((row[6] for row in rows if row[6] is not None), default=None))
    return MemoryStats(memories, notes, pins, facts, old, 0, 0, tokens, pending, first, last)


def _versions(connection: Connection, memory: DocumentId) -> list[tuple[Document, str]]:
    return list(histories(connection, [memory]).get(memory, ()))[:-1]


def _since(connection: Connection, sources: Sequence[SourceId], instant: datetime) -> ChangesSince:
    now = documents.alias("now")
    at = to_microseconds(instant)
    count = select(func.count())
    fresh = count.select_from(documents).where(_IN_SCOPE, REMEMBERED, documents.c.recorded > at)
    other = documents.join(now, documents.c.parent == now.c.id)
    remade = select(func.count(documents.c.parent.distinct())).select_from(other)
    remade = remade.where(
        _IN_SCOPE, documents.c.kind == "version", documents.c.recorded > at, now.c.recorded <= at
    )
    gone = count.select_from(deleted_memories).where(
        deleted_memories.c.source.in_(IDS), deleted_memories.c.recorded <= at, deleted_memories.c.deleted > at
    )
    return ChangesSince(
        *(sum(row[0] for row in rows_in(connection, each, sources)) for each in (fresh, remade, gone))
    )


def _has_versions(connection: Connection, collection: CollectionId) -> bool:
    return bool(plain_rows(connection, _VERSION, {"of": collection}))


def _put_retention(connection: Connection, rule: StoredRetention) -> None:
    values = {
        "collection": rule.collection,
        "begins": rule.begins,
        "days": rule.retention.days,
        "max_count": rule.retention.max_count,
        "owner": rule.owner,
    }
    same = update(retentions).where(retentions.c.id == rule.id)
    if connection.execute(same.values(values)).rowcount == 0:
        state(connection, rule.collection)
        connection.execute(insert(retentions), {"id": rule.id, **values})


def _drop_retention(connection: Connection, id: str) -> bool:
    return bool(connection.execute(delete(retentions).where(retentions.c.id == id)).rowcount)


def _retentions(connection: Connection, collection: CollectionId | None = None) -> list[StoredRetention]:
    chosen = select(retentions)
    if collection is not None:
        chosen = chosen.where(retentions.c.collection == collection)
    rows = connection.execute(chosen.order_by(retentions.c.begins, retentions.c.id))
    return [
        StoredRetention(
            row.id,
            CollectionId(row.collection),
            row.begins,
            Retention(row.days, row.max_count),
            UserId(row.owner),
            to_moment(row.ran),
        )
        for row in rows
    ]


def _ran(connection: Connection, id: str, at: datetime) -> None:
    connection.execute(update(retentions).where(retentions.c.id == id).values(ran=to_microseconds(at)))


_GIVEN_AWAY = exists().where(grants.c.source == sources.c.id)
_IS_FILLED = exists().where(documents.c.source == sources.c.id)
_HAS_NODES = exists().where(nodes.c.graph == sources.c.id)
_EMPTY = select(sources.c.id).where(sources.c.id.in_(IDS), ~_IS_FILLED, ~_HAS_NODES, ~_GIVEN_AWAY)
_DELETE_SOURCES = delete(sources).where(sources.c.id.in_(IDS))


def _delete_empty(connection: Connection, emptied: Sequence[SourceId]) -> list[SourceId]:
    empty = [SourceId(row.id) for row in rows_in(connection, _EMPTY, emptied)]
    run_in(connection, _DELETE_SOURCES, empty)
    return empty


class SqlMemories(SqlStore):
    """The methods of the port `Memories`, each as one transaction; see the port for their docs."""

    memory_sources = cached(_memory_sources, single=True)

    async def newest(self, sources: Sequence[SourceId], *, limit: int) -> Texts:
        return await self.transactions.read(partial(_newest, sources=sources, which=_TURN, limit=limit))

    async def notes(self, sources: Sequence[SourceId], *, limit: int) -> Texts:
        return await self.transactions.read(partial(_newest, sources=sources, which=_NOTE, limit=limit))

    page = reading(_page)
    count = reading(_count)
    oldest = reading(_oldest)
    totals = reading(_totals)
    versions = reading(_versions)
    since = reading(_since)
    has_versions = cached(_has_versions, single=True)

    _forget = writing(
        forget,
        rows=documents,
        locks=lambda *_, job, **__: set() if job is None else {row_of(jobs, job)},
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

    delete_empty = writing(_delete_empty, rows=sources)
    histories = reading(histories)
    spans = reading(spans)
    names = reading(names)
    put_retention = writing(
        _put_retention,
        locks=lambda rule: {row_of(collections, rule.collection), row_of(retentions, rule.id)},
    )
    drop_retention = writing(_drop_retention, locks=lambda id: {row_of(retentions, id)})
    retentions = reading(_retentions)
    ran = writing(_ran, locks=lambda id, at: {row_of(retentions, id)})
