"""The system of record on one database, behind the port `Records`."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from conspectus.model.ids import ChunkId, CollectionId, UserId
from conspectus.model.index import IndexedChunk
from conspectus.model.records import (
    Change,
    EmbeddingSpace,
)
from conspectus.ports import Reader
from conspectus.records.core.changes import changes_since
from conspectus.records.core.collections import (
    all_collections,
    change_collection,
    change_source,
    create_collection,
    find_collection,
    put_source,
    sources_of,
    state,
)
from conspectus.records.core.connect import DatabaseAccess, bring_up_to_date, database_at
from conspectus.records.core.consistency import counts, problems
from conspectus.records.core.database import guarded
from conspectus.records.core.embeddings import (
    count_unembedded,
    fail,
    oldest_unembedded,
    put_vectors,
    switch_space,
    unembedded,
)
from conspectus.records.core.reads import (
    beginnings,
    chunks_between,
    count_documents,
    document_chunks,
    documents_by_id,
    hydrate,
    latest,
    list_documents,
    read_thread,
    scan,
    text_of,
    texts_of,
)
from conspectus.records.core.transactions import SqlStore, Transactions, reading, writing
from conspectus.records.core.writes import write
from conspectus.records.deletion import (
    begin_purge,
    delete_collection,
    delete_copies,
    delete_documents,
    delete_source,
    end_purges,
    unfinished_purges,
)
from conspectus.records.streams.timeline import extent, mentions, names, spots, stretches, timeline


async def open_records(
    address: str | Path,
    *,
    busy_seconds: float = 30.0,
    connections: int = 8,
    row_security: bool = False,
) -> "SqlRecords":
    """Open the store at a path or at a `postgresql://` URL, made or brought to the newest version if needed.

    Several processes may open, read and write the same store at once; a writer waits up to `busy_seconds`
    for another. To a server this process has at most `connections` connections, one of them for writing;
    with `row_security` it shows what is read for a person only where that person may see it.

    Raises:
        StorageTooNew: a newer program wrote it.
        StorageBusy: another process held it for too long, or the server does not answer.
        StorageError: it is not a database, or cannot be read or written.
        MissingExtra: it is a URL, and the driver is not installed.
        InvalidInput: it cannot have `row_security`; the message says what would have to be done.
    """
    access = DatabaseAccess(busy_seconds, connections, row_security)
    return await asyncio.to_thread(_open, str(address), access)


class SqlRecords(SqlStore):
    """Every method of the port as one transaction; what each means is said there."""

    def seen_by(self, person: UserId) -> "SqlRecords":
        """The same records, as a database with row security shows them to a person."""
        seen = self.transactions.seen_by(person)
        return self if seen is self.transactions else SqlRecords(seen)

    create_collection = writing(create_collection)
    collection = reading(find_collection)
    change_collection = writing(change_collection)
    collections = reading(all_collections)
    delete_collection = writing(delete_collection, long=True)
    put_source = writing(put_source)
    change_source = writing(change_source)
    delete_source = writing(delete_source, long=True)
    sources = reading(sources_of)
    write = writing(write)
    documents = reading(documents_by_id)
    list = reading(list_documents)
    count = reading(count_documents)
    text = reading(text_of)
    texts = reading(texts_of)
    document_chunks = reading(document_chunks)
    delete = writing(delete_documents)
    hydrate = reading(hydrate)
    thread = reading(read_thread)
    latest = reading(latest)
    beginnings = reading(beginnings)
    timeline = reading(timeline)
    names = reading(names)
    mentions = reading(mentions)
    stretches = reading(stretches)
    spots = reading(spots)
    extent = reading(extent)
    state = reading(state)
    unembedded = reading(unembedded)
    oldest_unembedded = reading(oldest_unembedded)
    count_unembedded = reading(count_unembedded)
    put_vectors = writing(put_vectors)
    fail = writing(fail)
    switch_space = writing(switch_space, long=True)

    def reader(self, collection: CollectionId, space: EmbeddingSpace | None) -> Reader:
        """The narrow view an index gets."""
        return CollectionReader(self.transactions, collection, space)

    counts = reading(counts)

    async def check(self) -> Sequence[str]:
        """What is wrong with the file, its references, or what should always hold."""
        own = self.transactions.database.problems
        return await self.transactions.read(lambda connection: own(connection) + problems(connection))

    begin_purge = writing(begin_purge)
    unfinished_purges = reading(unfinished_purges)

    async def purge(self, done: Sequence[str] = ()) -> None:
        """Return only when no file of the store holds deleted content any more. Raises StorageBusy."""
        await self.transactions.write(delete_copies)
        await self.transactions.alone(self.transactions.database.erase)
        await self.transactions.write(partial(end_purges, done=done))

    async def close(self) -> None:
        """Let running work finish, then release connections and threads."""
        await self.transactions.close()


def _open(address: str, access: DatabaseAccess) -> SqlRecords:
    transactions = Transactions(database_at(address, access))
    with ExitStack() as unless_opened:
        unless_opened.callback(transactions.shut)
        bring_up_to_date(transactions.database)
        if access.row_security:
            guarded(transactions.database, transactions.wall_in)
        unless_opened.pop_all()
    return SqlRecords(transactions)


class CollectionReader:
    """One collection with the vectors of one space: all that an index sees."""

    def __init__(
        self, transactions: Transactions, collection: CollectionId, space: EmbeddingSpace | None
    ) -> None:
        self._transactions = transactions
        self._collection = collection
        self._space = space

    async def last_sequence(self) -> int:
        """The sequence of the newest committed change, 0 if there is none."""
        return (await self._transactions.read(partial(state, collection=self._collection)))[0]

    async def changes_since(self, sequence: int, *, limit: int) -> Sequence[Change]:
        """Committed changes after `sequence`, oldest first; never ends inside a transaction's changes."""
        work = partial(
            changes_since,
            collection=self._collection,
            space=self._space.name if self._space else None,
            sequence=sequence,
            limit=max(limit, 1),
        )
        return await self._transactions.read(work)

    async def chunks(self, first: ChunkId, last: ChunkId) -> Sequence[IndexedChunk]:
        """The live chunks with first ≤ id ≤ last, by id, as they are now."""
        work = partial(
            chunks_between,
            collection=self._collection,
            space=self._space,
            first=int(first),
            last=int(last),
        )
        return await self._transactions.read(work)

    async def scan(self, after: ChunkId | None = None) -> AsyncIterator[Sequence[IndexedChunk]]:
        """All live chunks by id (those after `after`), in batches."""
        last = 0 if after is None else int(after)
        while True:
            work = partial(scan, collection=self._collection, space=self._space, after=last)
            batch = await self._transactions.read(work)
            if not batch:
                return
            yield batch
            last = batch[-1].chunk.id
