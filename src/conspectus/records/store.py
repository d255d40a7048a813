"""The records in one database, behind the port `Records`."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, func, select

from conspectus.model.filter import Filter
from conspectus.model.ids import CollectionId, UserId
from conspectus.model.records import Document, DocumentSort, EmbeddingSpace, Status
from conspectus.ports import Reader
from conspectus.records import deletion, erasure
from conspectus.records.collection_reader import CollectionReader
from conspectus.records.column_texts import column_texts
from conspectus.records.core import chunk_reads, embeddings, reads, relations, thread_reads
from conspectus.records.core import collections as collection_rows
from conspectus.records.core import unindexable as marks
from conspectus.records.core.collections import state
from conspectus.records.core.database import (
    Database,
    DatabaseAccess,
    database_at,
    migrate_if_needed,
    run_guarded,
    transact,
)
from conspectus.records.core.lock_names import Locks, collection_locks, name_lock, row_lock
from conspectus.records.core.store_methods import SqlStore, cached, cached_rows, joining, reading, writing
from conspectus.records.core.transactions import Transactions
from conspectus.records.core.writes import write
from conspectus.records.graph.relation_keys import fill_missing_keys, has_missing_keys
from conspectus.records.invariants import problems
from conspectus.records.streams import timeline as timelines
from conspectus.records.tables.core import (
    chunks,
    collections,
    documents,
    sources,
    users,
    vectors,
)


def counts(connection: Connection, collection: CollectionId) -> dict[str, int]:
    """Count sources, documents, chunks, active vectors, chunks without one, and failed documents."""
    space = state(connection, collection)[1]
    in_collection = documents.c.collection == collection
    in_error = func.count().filter(documents.c.status == "error")
    totals = select(func.count(), func.coalesce(func.sum(documents.c.chunks), 0), in_error).where(
        in_collection
    )
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
        answering = (
            select(func.count()).select_from(joined).where(in_collection, vectors.c.space == space.name)
        )
        numbers["vectors"] = connection.execute(answering).scalar_one()
        numbers["pending"] = embeddings.count_unembedded(connection, collection, space=space)
    return numbers


def _locks_of_change(collection: CollectionId, *, name: str | None = None, **_: object) -> Locks:
    return (
        collection_locks(collection)
        if name is None
        else {*collection_locks(collection), name_lock(collections, name)}
    )


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
        return self.transactions.snapshots.share()

    create_collection = writing(
        collection_rows.create_collection,
        locks=lambda collection: {name_lock(collections, collection.name), row_lock(users, collection.owner)},
    )
    collection = cached(collection_rows.find_collection, single=True)
    change_collection = writing(collection_rows.change_collection, locks=_locks_of_change)
    collections = reading(collection_rows.all_collections)
    delete_collection = writing(deletion.delete_collection, locks=collection_locks, long=True)
    put_source = writing(collection_rows.put_source, locks=lambda source: {source.collection})
    change_source = writing(collection_rows.change_source, rows=sources)
    delete_source = writing(
        deletion.delete_source, rows=sources, locks=lambda source: {row_lock(sources, source)}, long=True
    )
    sources = reading(collection_rows.sources_of)
    find_with_sources = cached(collection_rows.find_with_sources, single=True)
    write = joining(
        partial(write, deletion.delete_extracted),
        locks=lambda batch: {prepared.document.collection for prepared in batch},
    )
    delete = writing(deletion.delete_documents, rows=documents)
    set_relation = writing(relations.set_relation, rows=documents)
    delete_relation = writing(relations.delete_relation, rows=documents)
    fail = writing(embeddings.fail, rows=documents)
    documents = cached_rows(reads.documents_by_id)

    async def list(
        self,
        collection: CollectionId,
        where: Filter,
        *,
        after: str | None = None,
        limit: int = 100,
        status: Status | None = None,
        sort: DocumentSort = "added",
    ) -> tuple[Sequence[Document], str | None]:
        """Return a page of documents that match, in order, and the cursor of the next page."""
        listing = reads.DocumentListing(collection, where, status, sort)
        return await self.transactions.read(
            lambda connection: reads.list_documents(connection, listing, after=after, limit=limit)
        )

    list_by_key = reading(reads.list_by_key)
    has_statements = cached(relations.has_statements, single=True)
    read_relations = reading(relations.read_relations)
    count = reading(reads.count_documents)
    text = reading(reads.text_of)
    texts = reading(reads.texts_of)
    document_chunks = reading(chunk_reads.document_chunks)
    thread = reading(thread_reads.read_thread)
    latest = reading(thread_reads.latest)
    beginnings = reading(thread_reads.beginnings)
    column_texts = reading(column_texts)
    timeline = reading(timelines.timeline)
    names = reading(timelines.names)
    mentions = reading(timelines.mentions)
    stretches = reading(timelines.stretches)
    list_positions = reading(timelines.list_positions)
    extent = reading(timelines.extent)
    state = reading(state)
    list_unembedded = reading(embeddings.list_unembedded)
    oldest_unembedded = reading(embeddings.oldest_unembedded)
    hydrate = cached_rows(chunk_reads.chunks_by_id)
    count_unembedded = reading(embeddings.count_unembedded)
    has_pending = reading(embeddings.has_pending)
    has_failed = reading(embeddings.has_failed)
    retry_failed = writing(embeddings.retry_failed, locks=lambda collection, **_: {collection})
    list_pending_collections = reading(embeddings.list_pending_collections)
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
        find_problems = self.transactions.database.problems
        return await self.transactions.read(
            lambda connection: find_problems(connection) + problems(connection)
        )

    begin_purge = writing(deletion.begin_purge, locks=lambda collection: {collection})
    list_unfinished_purges = reading(deletion.list_unfinished_purges)

    async def purge(self, done: Sequence[str] = (), *, waits: bool = True) -> None:
        """Return when no file of the store contains deleted content. Raises StorageBusy."""
        await self.transactions.write(erasure.erase_copies)
        await self.transactions.run_exclusively(partial(self.transactions.database.erase, waits=waits))
        await self.transactions.write(partial(deletion.end_purges, done=done), locks={"ended purges"})

    async def close(self) -> None:
        """Wait for running work, then close connections and threads."""
        await self.transactions.close()


def _open(address: str, access: DatabaseAccess) -> SqlRecords:
    transactions = Transactions(database_at(address, access))
    with ExitStack() as unless_opened:
        unless_opened.callback(transactions.shut)
        migrate_if_needed(transactions.database)
        _fill_relation_keys(transactions.database)
        if access.row_security:
            run_guarded(transactions.database, transactions.enable_row_security)
        unless_opened.pop_all()
    return SqlRecords(transactions)


def _fill_relation_keys(database: Database) -> None:
    """Give edges that an older program wrote beside a newer one the key of their relation."""
    if transact(database, database.reading, has_missing_keys):
        transact(database, database.writing, fill_missing_keys)
