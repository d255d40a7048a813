"""The records in one database, behind the port `Records`."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path

from sqlalchemy import ColumnElement, Connection, String, and_, cast, exists, func, or_, select

from conspectus.model.ids import ChunkId, CollectionId, UserId
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Change, EmbeddingSpace
from conspectus.ports import Reader
from conspectus.records import deletion, erasure
from conspectus.records.core import collections as collection_rows
from conspectus.records.core import embeddings, reads
from conspectus.records.core import unindexable as marks
from conspectus.records.core.changes import SHARED, changes_since
from conspectus.records.core.collections import state
from conspectus.records.core.database import DatabaseAccess, bring_up_to_date, database_at, guarded
from conspectus.records.core.transactions import (
    Locks,
    SqlStore,
    Transactions,
    all_of,
    cached,
    cached_rows,
    joining,
    name_in,
    reading,
    row_of,
    writing,
)
from conspectus.records.core.writes import write
from conspectus.records.streams import timeline as timelines
from conspectus.records.tables.core import (
    changes,
    chunks,
    collections,
    counters,
    documents,
    sources,
    users,
    vectors,
)
from conspectus.text.hashing import content_hash

BATCH = 1_000


def counts(connection: Connection, collection: CollectionId) -> dict[str, int]:
    """Count sources, documents, chunks, active vectors, chunks without one, and failed documents."""
    space = state(connection, collection)[1]
    own = documents.c.collection == collection
    in_error = func.count().filter(documents.c.status == "error")
    totals = select(func.count(), func.coalesce(func.sum(documents.c.chunks), 0), in_error).where(own)
    of_documents, of_chunks, errors = connection.execute(totals).one()
    of_sources = select(func.count()).select_from(sources).where(sources.c.collection == collection)
    numbers = {
        "sources": connection.execute(of_sources).scalar_one(),
        "documents": of_documents,
        "chunks": of_chunks,
        "vectors": 0,
        "pending": 0,
        "error": errors,
        "unindexable": marks.count_unindexable(connection, collection),
    }
    if space is not None:
        joined = documents.join(chunks, chunks.c.document == documents.c.number)
        joined = joined.join(vectors, vectors.c.chunk == chunks.c.id)
        answering = select(func.count()).select_from(joined).where(own, vectors.c.space == space.name)
        numbers["vectors"] = connection.execute(answering).scalar_one()
        numbers["pending"] = embeddings.count_unembedded(connection, collection, space=space)
    return numbers


def problems(connection: Connection) -> list[str]:
    """Yield every violated invariant, one line each."""
    broken = (_documents, _gaps, _texts, _history, _counters)
    return [line for each in broken for line in each(connection)]


def _documents(connection: Connection) -> Iterator[str]:
    of_chunks = (
        select(
            chunks.c.document.label("document"),
            func.count().label("number"),
            func.min(chunks.c.start).label("start"),
            func.max(chunks.c.end).label("end"),
            func.max(chunks.c.id).label("last"),
        )
        .group_by(chunks.c.document)
        .subquery()
    )
    joined = documents.outerjoin(of_chunks, of_chunks.c.document == documents.c.number)
    without = and_(of_chunks.c.number.is_(None), documents.c.chunks != 0)
    differing = or_(
        of_chunks.c.number != documents.c.chunks,
        of_chunks.c.start != 0,
        of_chunks.c.end != documents.c.characters,
        of_chunks.c.last != func.coalesce(documents.c.last_chunk, -1),
    )
    for row in connection.execute(select(documents.c.id).select_from(joined).where(or_(without, differing))):
        yield f"document {row.id}: its chunks are not those it was written with"


def _gaps(connection: Connection) -> Iterator[str]:
    before = chunks.alias("before")
    joined = chunks.outerjoin(
        before, and_(before.c.document == chunks.c.document, before.c.position == chunks.c.position - 1)
    )
    broken = or_(before.c.id.is_(None), before.c.id != chunks.c.id - 1, before.c.end < chunks.c.start)
    chosen = select(chunks.c.id).select_from(joined).where(chunks.c.position > 0, broken)
    for row in connection.execute(chosen):
        yield f"chunk {row.id}: does not continue the chunk before it"


def _texts(connection: Connection) -> Iterator[str]:
    chosen = select(chunks.c.id, chunks.c.text, chunks.c.content_hash)
    for row in connection.execute(chosen, execution_options={"yield_per": BATCH}):
        if content_hash(row.text) != row.content_hash:
            yield f"chunk {row.id}: its text does not match its checksum; add its document again"


def _history(connection: Connection) -> Iterator[str]:
    newest = (
        select(func.coalesce(func.max(changes.c.sequence), 0))
        .where(changes.c.collection == collections.c.id)
        .correlate(collections)
        .scalar_subquery()
    )
    for row in connection.execute(select(collections.c.name).where(collections.c.sequence != newest)):
        yield f"collection {row.name}: its sequence is not that of its newest change"
    unfinished = (
        select(documents.c.id)
        .join(collections, collections.c.id == documents.c.collection)
        .where(documents.c.status == "embedded", collections.c.model.is_not(None))
        .where(exists().where(chunks.c.document == documents.c.number).where(~_has_vector()))
    )
    for row in connection.execute(unfinished):
        yield f"document {row.id}: is called embedded and lacks vectors"


def _has_vector() -> ColumnElement[bool]:
    name = collections.c.model + "/" + cast(collections.c.dimensions, String) + "/" + collections.c.version
    return exists().where(vectors.c.chunk == chunks.c.id, vectors.c.space == name)


def _counters(connection: Connection) -> Iterator[str]:
    of = documents.c.collection
    newest = {
        "change": select(changes.c.collection, func.max(changes.c.sequence)).group_by(changes.c.collection),
        "chunk": select(of, func.max(documents.c.last_chunk)).group_by(of),
        "document": select(of, func.max(documents.c.number)).group_by(of),
    }
    given = {(row.name, row.collection): row for row in connection.execute(select(counters))}
    for name, chosen in newest.items():
        ranges = given.get((name, SHARED))
        for collection, last in connection.execute(chosen):
            own = given.get((name, collection))
            if own is None or ranges is None or own.value < (last or 0) or own.end > ranges.value:
                yield f"counter {name} of {collection}: would give out numbers that are in use"


def _locks_of_change(collection: CollectionId, *, name: str | None = None, **_: object) -> Locks:
    return all_of(collection) if name is None else {*all_of(collection), name_in(collections, name)}


async def open_records(
    address: str | Path,
    *,
    busy_seconds: float = 30.0,
    connections: int = 8,
    row_security: bool = False,
) -> "SqlRecords":
    """Open the store at a path or `postgresql://` URL; create or migrate it if needed.

    Several processes may open, read and write the same store; a writer waits up to `busy_seconds` for
    another. This process has at most `connections` connections to a server, about half of them for writing.
    With `row_security`, the server returns only rows that the person of a read may see.

    Raises:
        StorageTooNew: a newer program wrote it.
        StorageBusy: another process locked it for too long, or the server does not answer.
        StorageError: it is not a database, or cannot be read or written.
        MissingExtra: it is a URL, and the driver is not installed.
        InvalidInput: it cannot have `row_security`; the message says what to do.
    """
    access = DatabaseAccess(busy_seconds, connections, row_security)
    return await asyncio.to_thread(_open, str(address), access)


class SqlRecords(SqlStore):
    """The methods of the port, each as one transaction; see the port for their docs."""

    def visible_to(self, person: UserId) -> "SqlRecords":
        """Return the records with the row security of a person."""
        seen = self.transactions.visible_to(person)
        return self if seen is self.transactions else SqlRecords(seen)

    def one_snapshot(self) -> AbstractContextManager[None]:
        """Have the reads of a task in one transaction until it writes."""
        return self.transactions.snapshots.shared()

    create_collection = writing(
        collection_rows.create_collection,
        locks=lambda collection: {name_in(collections, collection.name), row_of(users, collection.owner)},
    )
    collection = cached(collection_rows.find_collection, single=True)
    change_collection = writing(collection_rows.change_collection, locks=_locks_of_change)
    collections = reading(collection_rows.all_collections)
    delete_collection = writing(deletion.delete_collection, locks=all_of, long=True)
    put_source = writing(collection_rows.put_source, locks=lambda source: {source.collection})
    change_source = writing(collection_rows.change_source, rows=sources)
    delete_source = writing(
        deletion.delete_source, rows=sources, locks=lambda source: {row_of(sources, source)}, long=True
    )
    sources = reading(collection_rows.sources_of)
    find_with_sources = cached(collection_rows.find_with_sources, single=True)
    write = joining(
        partial(write, deletion.delete_extracted),
        locks=lambda batch: {each.document.collection for each in batch},
    )
    delete = writing(deletion.delete_documents, rows=documents)
    fail = writing(embeddings.fail, rows=documents)
    documents = cached_rows(reads.documents_by_id)
    list = reading(reads.list_documents)
    list_by_key = reading(reads.list_by_key)
    count = reading(reads.count_documents)
    text = reading(reads.text_of)
    texts = reading(reads.texts_of)
    document_chunks = reading(reads.document_chunks)
    thread = reading(reads.read_thread)
    latest = reading(reads.latest)
    beginnings = reading(reads.beginnings)
    timeline = reading(timelines.timeline)
    names = reading(timelines.names)
    mentions = reading(timelines.mentions)
    stretches = reading(timelines.stretches)
    spots = reading(timelines.spots)
    extent = reading(timelines.extent)
    state = reading(state)
    unembedded = reading(embeddings.unembedded)
    oldest_unembedded = reading(embeddings.oldest_unembedded)
    hydrate = cached_rows(reads.chunks_by_id)
    count_unembedded = reading(embeddings.count_unembedded)
    has_pending = reading(embeddings.has_pending)
    has_failed = reading(embeddings.has_failed)
    retry_failed = writing(embeddings.retry_failed, locks=lambda collection, **_: {collection})
    pending_collections = reading(embeddings.pending_collections)
    unindexable = reading(marks.unindexable)
    mark_unindexable = writing(marks.mark_unindexable, locks=lambda collection, *_: {collection})
    put_vectors = writing(embeddings.put_vectors, locks=lambda collection, *_: {collection})
    switch_space = writing(embeddings.switch_space, locks=lambda collection, space: {collection}, long=True)

    def reader(
        self, collection: CollectionId, space: EmbeddingSpace | None, created: datetime | None = None
    ) -> Reader:
        """Return the restricted interface for an index."""
        return CollectionReader(self.transactions, collection, space, created)

    counts = reading(counts)

    async def check(self) -> Sequence[str]:
        """Return violations of the file's integrity, of references, and of invariants."""
        own = self.transactions.database.problems
        return await self.transactions.read(lambda connection: own(connection) + problems(connection))

    begin_purge = writing(deletion.begin_purge, locks=lambda collection: {collection})
    unfinished_purges = reading(deletion.unfinished_purges)

    async def purge(self, done: Sequence[str] = (), *, waits: bool = True) -> None:
        """Return when no file of the store contains deleted content. Raises StorageBusy."""
        await self.transactions.write(erasure.erase_copies)
        await self.transactions.alone(partial(self.transactions.database.erase, waits=waits))
        await self.transactions.write(partial(deletion.end_purges, done=done), locks={"ended purges"})

    async def close(self) -> None:
        """Wait for running work, then close connections and threads."""
        await self.transactions.close()


def _open(address: str, access: DatabaseAccess) -> SqlRecords:
    transactions = Transactions(database_at(address, access))
    with ExitStack() as unless_opened:
        unless_opened.callback(transactions.shut)
        bring_up_to_date(transactions.database)
        if access.row_security:
            guarded(transactions.database, transactions.enable_row_security)
        unless_opened.pop_all()
    return SqlRecords(transactions)


class CollectionReader:
    """One collection with the vectors of one embedding model: everything that an index reads."""

    def __init__(
        self,
        transactions: Transactions,
        collection: CollectionId,
        space: EmbeddingSpace | None,
        created: datetime | None = None,
    ) -> None:
        self._transactions = transactions
        self._collection = collection
        self._space = space
        self._created = created

    async def last_sequence(self) -> int:
        """Return the sequence of the newest committed change, 0 if there is none. Raises NotFound."""
        work = partial(state, collection=self._collection, created=self._created)
        return (await self._transactions.read(work))[0]

    async def changes_since(self, sequence: int, *, limit: int) -> Sequence[Change]:
        """Return committed changes after `sequence`, oldest first, with complete transactions."""
        work = partial(
            changes_since,
            collection=self._collection,
            space=self._space.name if self._space else None,
            sequence=sequence,
            limit=max(limit, 1),
        )
        return await self._transactions.read(work)

    async def chunks(self, first: ChunkId, last: ChunkId) -> Sequence[IndexedChunk]:
        """Return the current live chunks with first ≤ id ≤ last, by id."""
        work = partial(
            reads.chunks_between,
            collection=self._collection,
            space=self._space,
            first=int(first),
            last=int(last),
        )
        return await self._transactions.read(work)

    async def scan(self, after: ChunkId | None = None) -> AsyncIterator[Sequence[IndexedChunk]]:
        """Yield all live chunks by id (those after `after`), in batches."""
        last = 0 if after is None else int(after)
        while True:
            work = partial(reads.scan, collection=self._collection, space=self._space, after=last)
            batch = await self._transactions.read(work)
            if not batch:
                return
            yield batch
            last = batch[-1].chunk.id
