"""The pgvector indexes of a store in PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from sqlalchemy import Connection, select

from conspectus.bootstrap.store_address import index_name, space_name
from conspectus.errors import ConspectusError
from conspectus.model.index import IndexUpdate
from conspectus.model.records import Change, Collection, EmbeddingSpace
from conspectus.ports import Index, Reader
from conspectus.records.core.changes import changes_since, known_updates, list_appended_changes
from conspectus.records.core.chunk_reads import chunks_between
from conspectus.records.core.collections import all_collections
from conspectus.records.core.database import run_guarded, transact
from conspectus.records.core.dialects import json_list, json_list_param
from conspectus.records.core.rows import COLLECTION_COLUMNS, to_collection
from conspectus.records.core.statements import fetch_rows
from conspectus.records.core.transactions import Transactions
from conspectus.records.tables.core import chunks, collections, documents, vectors
from conspectus.settings import Settings
from conspectus.text.analyzer import analyzer_for

if TYPE_CHECKING:
    from conspectus.index.pgvector.database import Run
    from conspectus.index.pgvector.options import PgvectorOptions
    from conspectus.index.pgvector.state import PgvectorState
    from conspectus.index.pgvector.store import IndexWrite, TransactionalIndex

Result = TypeVar("Result")
_SPACES = (
    select(documents.c.collection, vectors.c.space)
    .distinct()
    .select_from(documents.join(chunks, chunks.c.document == documents.c.number).join(vectors))
)
_SELECTED_COLLECTIONS = (
    select(*COLLECTION_COLUMNS).where(collections.c.id.in_(json_list_param("ids"))).order_by(collections.c.id)
)


class IndexTransactions:
    """Transactions of indexes on the connections of the records, without the lock of writers."""

    def __init__(self, transactions: Transactions) -> None:
        from conspectus.records.core.postgres import WRITES

        self._transactions = transactions
        self._database = transactions.database
        self._engine = transactions.database.writing.execution_options(**{WRITES: ()})
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="index-write")
        # Each build holds a connection and needs another to read: if builds used all, none could proceed.
        self._lasting = asyncio.Semaphore(max(transactions.database.readers // 2, 1))

    async def read(self, work: Callable[[Connection], Result]) -> Result:
        """Run the function in a snapshot of the data (repeatable read)."""
        return await self._transactions.read(work)

    def renew(self) -> None:
        """Have the next read see newer data than the previous one."""
        self._transactions.snapshots.end_current()

    async def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run the function in a transaction that may write tables of the index."""
        self.renew()
        return await _run(self._thread, partial(transact, self._database, self._engine, work))

    @asynccontextmanager
    async def open_long_transaction(self) -> AsyncIterator["Run"]:
        """A write transaction over several steps, in a thread: other transactions may wait for its locks."""
        self.renew()
        async with self._lasting, self._connect() as (thread, connection):
            run = partial(self._step, thread, connection)
            await run(Connection.begin)
            yield run
            await run(Connection.commit)

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[tuple[ThreadPoolExecutor, Connection]]:
        """Return a connection with a thread for it."""
        thread = ThreadPoolExecutor(1, thread_name_prefix="index-build")
        try:
            connection = await _run(thread, partial(run_guarded, self._database, self._engine.connect))
            try:
                yield thread, connection
            finally:
                # The outcome is known by now: a failing rollback must hide neither a commit nor the original
                # error.
                with suppress(ConspectusError):
                    await asyncio.shield(_run(thread, partial(run_guarded, self._database, connection.close)))
        finally:
            thread.shutdown(wait=False)

    async def close(self) -> None:
        """Wait for running work."""
        await asyncio.to_thread(self._thread.shutdown)

    async def _step(
        self, thread: ThreadPoolExecutor, connection: Connection, work: Callable[[Connection], Any]
    ) -> Any:
        driver: Any = connection.connection.driver_connection
        job = asyncio.ensure_future(
            _run(thread, partial(run_guarded, self._database, partial(work, connection)))
        )
        try:
            return await asyncio.shield(job)
        except asyncio.CancelledError:
            await asyncio.to_thread(driver.cancel_safe)
            await asyncio.gather(job, return_exceptions=True)
            raise


async def _run(thread: ThreadPoolExecutor, job: Callable[[], Result]) -> Result:
    return await asyncio.get_running_loop().run_in_executor(thread, job)


class PgvectorIndexes:
    """Indexes in the database of the records."""

    def __init__(self, transactions: Transactions, settings: Settings) -> None:
        self._database = IndexTransactions(transactions)
        self._settings = settings
        self._at_once: dict[str, TransactionalIndex] = {}
        self.apply_before_commit = PgvectorSync(self._transactional_index)
        """Updates an index within the transaction that writes the records."""

    async def open(self, collection: Collection, space: EmbeddingSpace | None, reader: Reader) -> Index:
        """Return the index of a collection for an embedding model. Raises StorageBusy or StorageError."""
        from conspectus.index.pgvector.store import PgvectorIndex

        analyse = analyzer_for(collection.language).terms
        return await PgvectorIndex.open(self._options(collection, space), reader, analyse)

    async def prepare(self) -> None:
        """Create the extension, if new collections have vectors. Raises ExtensionMissing."""
        from conspectus.index.pgvector.building import create_shared_objects

        has_vectors = self._settings.embedder != "none"
        await self._database.write(partial(create_shared_objects, has_vectors=has_vectors))

    async def forget(self, collection: Collection, space: EmbeddingSpace | None) -> None:
        """Delete an index."""
        from conspectus.index.pgvector.building import forget

        await self._database.write(partial(forget, name=_name(collection, space_name(space))))

    async def stray(self) -> Sequence[str]:
        """Return the indexes of deleted collections, and of embedding models that a collection left."""
        return await self._database.read(_stray)

    async def sweep(self) -> None:
        """Delete stray indexes, except those being built."""
        from conspectus.index.pgvector.building import forget_unless_built

        for name in await self.stray():
            await self._database.write(partial(forget_unless_built, name=name))

    async def stop_builds(self) -> None:
        """Stop builds of graphs in all processes."""
        from conspectus.index.pgvector.building import stop_linking

        await self._database.write(stop_linking)

    async def close(self) -> None:
        """Wait for running work. The connections belong to the records."""
        await self._database.close()

    def _transactional_index(self, collection: Collection) -> "TransactionalIndex":
        from conspectus.index.pgvector.store import TransactionalIndex

        options = self._options(collection, collection.space)
        if options.name not in self._at_once:
            self._at_once[options.name] = TransactionalIndex(options, analyzer_for(collection.language).terms)
        return self._at_once[options.name]

    def _options(self, collection: Collection, space: EmbeddingSpace | None) -> "PgvectorOptions":
        from conspectus.index.pgvector.options import PgvectorOptions

        name = _name(collection, space_name(space))
        return PgvectorOptions(self._database, name, space.dimensions if space else 0)


def _stray(connection: Connection) -> Sequence[str]:
    from conspectus.index.pgvector.database import rows_of
    from conspectus.index.pgvector.state import names_of_indexes

    listed = all_collections(connection)
    strays = set(names_of_indexes(rows_of(connection), beside=collections.name))
    strays -= {_name(collection, space_name(collection.space)) for collection in listed}
    if strays:
        # A collection that changes its embedding model has vectors of the new one before it drops the old
        # one.
        spaces = connection.execute(_SPACES).all()
        strays -= {
            _name(collection, space)
            for collection in listed
            for owner, space in spaces
            if owner == collection.id
        }
    return sorted(strays)


_name = partial(index_name, "index")
"""Returns the prefix of an index's tables."""

Open: TypeAlias = "Callable[[Collection], TransactionalIndex]"

MAX_CHUNKS = 200
"""Maximum number of chunks indexed within a write, while other writers wait."""


class PgvectorSync:
    """Updates the index within the transaction of a write, if the index has all earlier changes."""

    def __init__(self, open_index: Open) -> None:
        self._open = open_index

    def __call__(self, connection: Connection) -> None:
        """Update the indexes just before the transaction is committed."""
        changed_ids = list_appended_changes(connection)
        if not changed_ids:
            return
        updates_by_collection = known_updates(connection)
        changed_collections = [
            to_collection(row)
            for row in fetch_rows(connection, _SELECTED_COLLECTIONS, {"ids": json_list(changed_ids)})
        ]
        indexes = [self._open(collection) for collection in changed_collections]
        driver: Any = connection.connection.driver_connection
        with driver.pipeline():
            ask_states = [index.ask(connection) for index in indexes]
        updates: list[IndexUpdate | None] = []
        prepared: list[IndexWrite] = []
        for collection, index, ask_state in zip(changed_collections, indexes, ask_states, strict=True):
            state, update = ask_state(), updates_by_collection.get(collection.id)
            if state is None:
                continue
            draft = None if update is None else _prepare_write(update, collection, index, state)
            known_draft = draft is not None
            draft = draft or self._read(
                connection, collection, index, state, begun=changed_ids[collection.id]
            )
            if draft is not None:
                prepared.append(draft)
                updates.append(update if known_draft else None)
        self._take(connection, updates, prepared)

    @staticmethod
    def _take(
        connection: Connection, updates: Sequence[IndexUpdate | None], prepared: "Sequence[IndexWrite]"
    ) -> None:
        if not prepared:
            return
        from conspectus.index.pgvector.store import apply_writes

        for update, done in zip(updates, apply_writes(connection, prepared), strict=True):
            if update is not None:
                update.indexed = done

    @staticmethod
    def _read(
        connection: Connection,
        collection: Collection,
        index: "TransactionalIndex",
        state: "PgvectorState",
        *,
        begun: int,
    ) -> "IndexWrite | None":
        space = collection.space
        changes = changes_since(
            connection,
            collection.id,
            space=space.name if space else None,
            sequence=state.applied,
            limit=MAX_CHUNKS,
        )
        if not changes or changes[0].sequence < begun or _count(changes) > MAX_CHUNKS:
            return None
        chunks = [
            chunk
            for first, last in index.chunks_to_read(changes)
            for chunk in chunks_between(connection, collection.id, space=space, first=first, last=last)
        ]
        return index.prepare_write(state, changes, chunks)


def _prepare_write(
    update: IndexUpdate, collection: Collection, index: "TransactionalIndex", state: "PgvectorState"
) -> "IndexWrite | None":
    """Return the draft of an update that continues the state, from the chunks at hand."""
    # A work that was rolled back leaves its update, which does not match the records.
    left = update.collection
    is_current = (left, left.sequence, left.space) == (collection, collection.sequence, collection.space)
    continues = update.before == state.applied and is_current
    if not continues or update.chunks is None or _count(update.changes) > MAX_CHUNKS:
        return None
    return index.prepare_write(state, update.changes, update.chunks(), fresh=True)


def _count(changes: Sequence[Change]) -> int:
    return sum(change.last - change.first + 1 for change in changes)
