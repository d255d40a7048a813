"""The system of record on one database, behind the port `Records`."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path

from conspectus.model.filter import Filter
from conspectus.model.ids import ChunkId, CollectionId, DocumentId, SourceId, UserId
from conspectus.model.index import IndexedChunk
from conspectus.model.records import (
    Collection,
    Document,
    EmbeddingSpace,
    Kind,
    Metadata,
    PreparedDocument,
    Receipt,
    Source,
    StoredChunk,
    StoredThread,
    Written,
)
from conspectus.ports import Reader
from conspectus.ports.timelines import EntityOccurrence, Extent, Span, Spot, TimelinePage
from conspectus.records import deletion, purging
from conspectus.records.core import collections, consistency, embeddings, reads, threads, writes
from conspectus.records.core.collection_reader import CollectionReader
from conspectus.records.core.connect import DatabaseAccess, bring_up_to_date, database_at
from conspectus.records.core.database import guarded
from conspectus.records.core.transactions import FEW, Transactions
from conspectus.records.streams import entities, timeline


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


class SqlRecords:
    """Every method of the port as one transaction; what each means is said there."""

    def __init__(self, transactions: Transactions) -> None:
        self.transactions = self._transactions = transactions
        self._read = transactions.read
        self._write = transactions.write

    def seen_by(self, person: UserId) -> "SqlRecords":
        """The same records, as a database with row security shows them to a person."""
        seen = self._transactions.seen_by(person)
        return self if seen is self._transactions else SqlRecords(seen)

    async def create_collection(self, collection: Collection) -> Collection:
        """Store it, or return the stored one of that name."""
        return await self._write(partial(collections.create_collection, collection=collection))

    async def collection(self, name: str) -> Collection | None:
        """The collection of that name, else of that id."""
        return await self._read(partial(collections.find_collection, name=name))

    async def change_collection(
        self, collection: CollectionId, *, name: str | None = None, description: str | None = None
    ) -> Collection:
        """Change what is given. Raises NotFound or Conflict."""
        work = partial(
            collections.change_collection, collection=collection, name=name, description=description
        )
        return await self._write(work)

    async def collections(self) -> Sequence[Collection]:
        """All collections by name."""
        return await self._read(collections.all_collections)

    async def delete_collection(self, collection: CollectionId) -> Receipt:
        """Delete it with everything in it. Raises NotFound."""
        return await self._write(partial(deletion.delete_collection, collection=collection), long=True)

    async def put_source(self, source: Source) -> Source:
        """Store it, or replace the metadata of the stored one of that name. Raises NotFound."""
        return await self._write(partial(collections.put_source, source=source))

    async def change_source(
        self, source: SourceId, *, name: str | None = None, metadata: Metadata | None = None
    ) -> Source:
        """Change what is given. Raises NotFound or Conflict."""
        return await self._write(
            partial(collections.change_source, source=source, name=name, metadata=metadata)
        )

    async def delete_source(self, source: SourceId) -> Receipt:
        """Delete it with everything in it. Raises NotFound."""
        return await self._write(partial(deletion.delete_source, source=source), long=True)

    async def sources(
        self, collection: CollectionId, *, called: Sequence[str] | None = None
    ) -> Sequence[Source]:
        """All sources of a collection by name, or those of some ids or names. Raises NotFound."""
        return await self._read(partial(collections.sources_of, collection=collection, called=called))

    async def write(self, documents: Sequence[PreparedDocument]) -> Sequence[Written]:
        """Add or replace documents, all or none. Raises NotFound, Conflict or InvalidInput."""
        return await self._write(partial(writes.write, batch=documents), long=len(documents) > FEW)

    async def documents(self, ids: Sequence[DocumentId]) -> Sequence[Document]:
        """Those documents that exist, in the order asked."""
        return await self._read(partial(reads.documents_by_id, ids=ids))

    async def list(
        self, collection: CollectionId, where: Filter, *, after: str | None = None, limit: int = 100
    ) -> tuple[Sequence[Document], str | None]:
        """A page of matching documents, and the cursor of the next. Raises NotFound or InvalidInput."""
        work = partial(reads.list_documents, collection=collection, where=where, after=after, limit=limit)
        return await self._read(work)

    async def count(self, collection: CollectionId, where: Filter) -> int:
        """How many documents match. Raises NotFound."""
        return await self._read(partial(reads.count_documents, collection=collection, where=where))

    async def text(self, document: DocumentId) -> str:
        """The full text, put together from the chunks. Raises NotFound."""
        return await self._read(partial(reads.text_of, document=document))

    async def texts(self, documents: Sequence[DocumentId]) -> Mapping[DocumentId, str]:
        """The full texts of those that exist, as they are at one time."""
        return await self._read(partial(reads.texts_of, ids=documents))

    async def document_chunks(self, document: DocumentId) -> Sequence[StoredChunk]:
        """A document's chunks by position. Raises NotFound."""
        return await self._read(partial(reads.document_chunks, document=document))

    async def delete(self, ids: Sequence[DocumentId], *, now: datetime | None = None) -> Receipt:
        """Delete documents with children, chunks and vectors; unknown ids count 0."""
        return await self._write(partial(deletion.delete_documents, ids=ids, now=now), long=len(ids) > FEW)

    async def hydrate(self, ids: Sequence[ChunkId]) -> Sequence[StoredChunk]:
        """Those chunks that exist, in the order asked, with their neighbours."""
        return await self._read(partial(reads.hydrate, ids=ids))

    async def thread(
        self, source: SourceId, thread: str, *, limit: int, around: Sequence[DocumentId] = ()
    ) -> StoredThread:
        """A thread, or of a long one both ends and what stands around some of its documents."""
        work = partial(threads.read_thread, source=source, thread=thread, limit=limit, around=around)
        return await self._read(work)

    async def latest(
        self, source: SourceId, *, limit: int, until: datetime | None = None
    ) -> Sequence[StoredChunk]:
        """The first chunk of each of the newest documents of a source by event time, newest first."""
        return await self._read(partial(threads.latest, source=source, limit=limit, until=until))

    async def beginnings(self, documents: Sequence[DocumentId]) -> Sequence[StoredChunk]:
        """The first chunk of each of those documents that exist and have text, in the order asked."""
        return await self._read(partial(threads.beginnings, ids=documents))

    async def timeline(
        self, source: SourceId, span: Span, *, kind: Kind = "caption", after: str | None = None, limit: int
    ) -> TimelinePage:
        """Captions or events of a source with their texts, in the order of time. Raises InvalidInput."""
        work = partial(timeline.timeline, source=source, span=span, kind=kind, after=after, limit=limit)
        return await self._read(work)

    async def names(self, source: SourceId, span: Span) -> Mapping[str, int]:
        """In how many captions and events of a source each name is given."""
        return await self._read(partial(entities.names, source=source, span=span))

    async def mentions(
        self, source: SourceId, span: Span, *, called: Sequence[str]
    ) -> Sequence[EntityOccurrence]:
        """Where any of these names is given."""
        return await self._read(partial(entities.mentions, source=source, span=span, called=called))

    async def stretches(
        self, source: SourceId, spans: Sequence[Span], *, limit: int, last: bool = False
    ) -> Sequence[tuple[Document, str]]:
        """What lies in any of the spans, the first or the last of it, in the order of time."""
        work = partial(timeline.stretches, source=source, spans=spans, limit=limit, last=last)
        return await self._read(work)

    async def spots(self, source: SourceId, spans: Sequence[Span]) -> Sequence[Spot]:
        """Where those are that lie in any of the spans."""
        return await self._read(partial(timeline.spots, source=source, spans=spans))

    async def extent(self, source: SourceId, *, counted: bool = True) -> Extent:
        """How many captions a source has, and from when to when they go."""
        return await self._read(partial(timeline.extent, source=source, counted=counted))

    async def state(self, collection: CollectionId) -> tuple[int, EmbeddingSpace | None]:
        """The newest change's sequence and the space that answers. Raises NotFound."""
        return await self._read(partial(collections.state, collection=collection))

    async def unembedded(
        self, collection: CollectionId, space: EmbeddingSpace, *, limit: int, among: range | None = None
    ) -> Sequence[IndexedChunk]:
        """Chunks without a vector in the space, oldest first. Raises NotFound."""
        work = partial(embeddings.unembedded, collection=collection, space=space, limit=limit, among=among)
        return await self._read(work)

    async def oldest_unembedded(
        self, collection: CollectionId, space: EmbeddingSpace, *, start: int
    ) -> ChunkId | None:
        """The last chunk of the oldest document that lacks a vector, none before `start`. Raises NotFound."""
        work = partial(embeddings.oldest_unembedded, collection=collection, space=space, start=start)
        return await self._read(work)

    async def count_unembedded(self, collection: CollectionId, space: EmbeddingSpace) -> int:
        """How many chunks have no vector in the space. Raises NotFound."""
        return await self._read(partial(embeddings.count_unembedded, collection=collection, space=space))

    async def put_vectors(self, space: EmbeddingSpace, vectors: Sequence[tuple[ChunkId, bytes]]) -> int:
        """Store float16 vectors and say how many. Raises InvalidInput for one of another size."""
        work = partial(embeddings.put_vectors, space=space, pairs=vectors)
        return await self._write(work, long=len(vectors) > FEW)

    async def fail(self, document: DocumentId, error: str) -> None:
        """Mark a document as impossible to embed; one that is gone meanwhile is left alone."""
        await self._write(partial(embeddings.fail, document=document, error=error))

    async def switch_space(self, collection: CollectionId, space: EmbeddingSpace) -> int:
        """Let the space answer and delete the vectors of all others. Raises NotFound."""
        work = partial(embeddings.switch_space, collection=collection, space=space)
        return await self._write(work, long=True)

    def reader(self, collection: CollectionId, space: EmbeddingSpace | None) -> Reader:
        """The narrow view an index gets."""
        return CollectionReader(self._transactions, collection, space)

    async def counts(self, collection: CollectionId) -> dict[str, int]:
        """Numbers for status; `pending` counts chunks, `error` documents. Raises NotFound."""
        return await self._read(partial(consistency.counts, collection=collection))

    async def check(self) -> Sequence[str]:
        """What is wrong with the file, its references, or what should always hold."""
        own = self._transactions.database.problems
        return await self._read(lambda connection: own(connection) + consistency.problems(connection))

    async def begin_purge(self, collection: CollectionId) -> None:
        """Note that what is about to be deleted from the collection must be erased."""
        await self._write(partial(purging.begin, collection=collection))

    async def unfinished_purges(self) -> Mapping[str, CollectionId]:
        """The collections of purges that were begun and did not end, by the ids of the purges."""
        return await self._read(purging.unfinished)

    async def purge(self, done: Sequence[str] = ()) -> None:
        """Return only when no file of the store holds deleted content any more. Raises StorageBusy."""
        await self._write(purging.delete_copies)
        await self._transactions.alone(self._transactions.database.erase)
        await self._write(partial(purging.end, done=done))

    async def close(self) -> None:
        """Let running work finish, then release connections and threads."""
        await self._transactions.close()


def _open(address: str, access: DatabaseAccess) -> SqlRecords:
    transactions = Transactions(database_at(address, access))
    with ExitStack() as unless_opened:
        unless_opened.callback(transactions.shut)
        bring_up_to_date(transactions.database)
        if access.row_security:
            guarded(transactions.database, transactions.wall_in)
        unless_opened.pop_all()
    return SqlRecords(transactions)
