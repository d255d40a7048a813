"""What an index reads of the records."""

from collections.abc import AsyncIterator, Sequence
from functools import partial

from conspectus.model.ids import ChunkId, CollectionId
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Change, EmbeddingSpace
from conspectus.records.core import changes, collections, reads
from conspectus.records.core.transactions import Transactions


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
        return (await self._transactions.read(partial(collections.state, collection=self._collection)))[0]

    async def changes_since(self, sequence: int, *, limit: int) -> Sequence[Change]:
        """Committed changes after `sequence`, oldest first; never ends inside a transaction's changes."""
        work = partial(
            changes.changes_since,
            collection=self._collection,
            space=self._space.name if self._space else None,
            sequence=sequence,
            limit=max(limit, 1),
        )
        return await self._transactions.read(work)

    async def chunks(self, first: ChunkId, last: ChunkId) -> Sequence[IndexedChunk]:
        """The live chunks with first ≤ id ≤ last, by id, as they are now."""
        work = partial(
            reads.chunks_between,
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
            work = partial(reads.scan, collection=self._collection, space=self._space, after=last)
            batch = await self._transactions.read(work)
            if not batch:
                return
            yield batch
            last = batch[-1].chunk.id
