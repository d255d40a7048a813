"""One open index, and how it catches up with the records."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import field

from conspectus.deferred import dataclass
from conspectus.model.ids import ChunkId
from conspectus.model.index import IndexedChunk, IndexUpdate
from conspectus.model.records import Collection, EmbeddingSpace
from conspectus.ports import Index, Reader

MAX_CHANGES = 50_000
"""Most changes that are read from the records at once."""
MIN_BULK_CHUNKS = 20_000
"""From this many chunks on, a new build is faster than adding them to the index."""
MAX_READ_CHUNKS = 4_000
"""Most chunks that are read from the records at once."""


@dataclass(slots=True)
class OpenIndex:
    """The index of a collection, in the embedding space that answers now.

    `indexed` is the newest change that its own transaction has put into the index. `required` is the change
    of chunks that can be analyzed again: an answer has to contain it.
    """

    collection: Collection
    space: EmbeddingSpace | None
    reader: Reader
    index: Index
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    indexed: int = 0
    required: int = 0

    def is_of(self, collection: Collection) -> bool:
        """Whether it is of this collection and not of a deleted one of the same name, and in its space."""
        return (self.collection.created, self.space) == (collection.created, collection.space)

    async def read_missing_chunks(self) -> AsyncIterator[Sequence[IndexedChunk]]:
        """Yield the chunks of all changes that the index has not applied."""
        sequence = self.index.applied_sequence()
        while changes := await self.reader.changes_since(sequence, limit=MAX_CHANGES):
            sequence = changes[-1].sequence
            for change in changes:
                for first in range(change.first, change.last + 1, MAX_READ_CHUNKS):
                    last = min(change.last, first + MAX_READ_CHUNKS - 1)
                    yield await self.reader.chunks(ChunkId(first), ChunkId(last))


async def catch_up(index: Index, reader: Reader, sequence: int) -> None:
    """Apply every committed change up to at least `sequence`; nothing to do costs one comparison."""
    while index.applied_sequence() < sequence:
        changes = await reader.changes_since(index.applied_sequence(), limit=MAX_CHANGES)
        if not changes:
            return
        if sum(change.last - change.first + 1 for change in changes) >= MIN_BULK_CHUNKS:
            before = index.applied_sequence()
            await index.flush(least=0)
            if index.applied_sequence() > before:
                continue
        await index.apply(changes)


async def apply_updates(index: Index, updates: Sequence[IndexUpdate]) -> None:
    """Apply the updates that directly follow what the index holds, without reading the records."""
    for update in updates:
        size = sum(change.last - change.first + 1 for change in update.changes)
        if update.chunks is not None and update.before == index.applied_sequence() and size < MIN_BULK_CHUNKS:
            await index.apply(update.changes, update.chunks)
