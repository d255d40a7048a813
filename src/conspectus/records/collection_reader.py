"""The restricted interface to the records for an index."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from functools import partial

from conspectus.model.ids import ChunkId, CollectionId
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Change, EmbeddingSpace
from conspectus.records.core import chunk_reads
from conspectus.records.core.changes import changes_since
from conspectus.records.core.collections import state
from conspectus.records.core.transactions import Transactions


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
            chunk_reads.chunks_between,
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
            work = partial(chunk_reads.scan, collection=self._collection, space=self._space, after=last)
            batch = await self._transactions.read(work)
            if not batch:
                return
            yield batch
            last = batch[-1].chunk.id
