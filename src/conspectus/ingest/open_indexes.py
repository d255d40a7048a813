"""The open indexes of an engine, each brought up to the records before it is asked."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Literal

from conspectus.deferred import dataclass
from conspectus.errors import (
    TEXT_FAULTS,
    ConspectusError,
    IndexReplaced,
    NotFound,
    StorageBusy,
    StorageError,
    UnindexableText,
)
from conspectus.model.ids import ChunkId, CollectionId
from conspectus.model.index import IndexedChunk, IndexUpdate
from conspectus.model.records import Collection, EmbeddingSpace
from conspectus.ports import Index, Progress, Reader, Records, TextAnalysis

BATCH_CHANGES = 50_000
MIN_BULK_CHUNKS = 20_000
"""From this many chunks on, a new build is faster than adding them to the index."""


async def catch_up(index: Index, reader: Reader, sequence: int) -> None:
    """Apply every committed change up to at least `sequence`; nothing to do costs one comparison."""
    while index.applied() < sequence:
        changes = await reader.changes_since(index.applied(), limit=BATCH_CHANGES)
        if not changes:
            return
        if sum(change.last - change.first + 1 for change in changes) >= MIN_BULK_CHUNKS:
            before = index.applied()
            await index.flush(least=0)
            if index.applied() > before:
                continue
        await index.apply(changes)


async def _apply(index: Index, updates: Sequence[IndexUpdate]) -> None:
    """Apply what follows on what the index holds, in order, without reading it."""
    for update in updates:
        size = sum(change.last - change.first + 1 for change in update.changes)
        if update.chunks is not None and update.before == index.applied() and size < MIN_BULK_CHUNKS:
            await index.apply(update.changes, update.chunks)


When = Literal["now", "after", "later"]
"""When a write is indexed: now; after those before it, which are waited for; or later in any case."""
IndexOpener = Callable[[Collection, EmbeddingSpace | None, Reader], Awaitable[Index]]

MIN_FLUSHED_CHUNKS = 1_000
PORTION_CHUNKS = 4_000
"""Chunks that are read at once to find those that cannot be analyzed."""
logger = logging.getLogger(__name__)


@dataclass(slots=True)
class OpenIndex:
    """One collection's index in the space that answers now."""

    collection: Collection
    space: EmbeddingSpace | None
    reader: Reader
    index: Index
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    indexed: int = 0
    """The newest change that the transaction which wrote it has put into the index."""
    required: int = 0
    """The change of chunks that can be analyzed again, which an answer has to see."""

    def is_of(self, collection: Collection) -> bool:
        """Whether it is of this collection and not of a deleted one of the same name, and in its space."""
        return (self.collection.created, self.space) == (collection.created, collection.space)


async def _read_changed(opened: OpenIndex) -> AsyncIterator[Sequence[IndexedChunk]]:
    """Yield the chunks that changed since what an index has applied."""
    sequence = opened.index.applied()
    while changes := await opened.reader.changes_since(sequence, limit=BATCH_CHANGES):
        sequence = changes[-1].sequence
        for change in changes:
            for first in range(change.first, change.last + 1, PORTION_CHUNKS):
                last = min(change.last, first + PORTION_CHUNKS - 1)
                yield await opened.reader.chunks(ChunkId(first), ChunkId(last))


class OpenIndexes:
    """Opens indexes on first use, and again when a collection moves to another space."""

    def __init__(self, records: Records, open_index: IndexOpener, texts: TextAnalysis) -> None:
        self._records = records
        self._open_index = open_index
        self._texts = texts
        self._by_collection: dict[str, OpenIndex] = {}
        self._behind: dict[str, asyncio.Task[None]] = {}
        self._at_hand: dict[str, list[IndexUpdate]] = {}
        self._away: set[str] = set()
        self._opening = asyncio.Lock()

    async def current(self, collection: Collection, update: IndexUpdate | None = None) -> OpenIndex:
        """The collection's open index, holding every change committed before the collection was read.

        Nothing is read where the `update` that made the collection what it is, and those that it was told to
        follow, hold all that is missing.
        """
        at_hand = [*self._at_hand.pop(collection.id, ()), *([] if update is None else [update])]
        opened = self._by_collection.get(collection.id)
        if opened is None or not opened.is_of(collection):
            opened = await self._open(collection)
        written = (write.collection for write in at_hand if write.indexed)
        opened.indexed = max([opened.indexed, *(state.sequence for state in written if opened.is_of(state))])
        sequence = max(collection.sequence, opened.required)
        if max(opened.indexed, opened.index.applied()) < sequence:
            async with opened.lock:
                await self._index(opened, at_hand, sequence)
        self._away.discard(collection.id)
        return opened

    def language(self, collection: CollectionId, usual: str | None) -> str | None:
        """The language of a collection whose index is open, else the usual one."""
        opened = self._by_collection.get(collection)
        return usual if opened is None else opened.collection.language

    async def rebuild(self, opened: OpenIndex, progress: Progress | None = None) -> None:
        """Rebuild an index from the records. Chunks that cannot be analyzed are marked and left out."""
        await self._unmark(opened)
        while True:
            try:
                await opened.index.rebuild(progress)
            except UnindexableText:
                if not await self._mark(opened, opened.reader.scan()):
                    raise
            else:
                return

    async def _index(self, opened: OpenIndex, updates: Sequence[IndexUpdate], sequence: int) -> None:
        """Bring an index up to the records, past chunks that cannot be analyzed in a fresh process either."""
        while True:
            try:
                await _apply(opened.index, updates)
                await catch_up(opened.index, opened.reader, sequence)
            except UnindexableText:
                if not await self._mark(opened, _read_changed(opened)):
                    raise
                updates = ()
            else:
                return

    async def _mark(self, opened: OpenIndex, batches: AsyncIterator[Sequence[IndexedChunk]]) -> bool:
        """Mark the chunks that cannot be analyzed; return whether there are any that were not marked."""
        language = opened.collection.language
        suspects: list[IndexedChunk] = []
        async for batch in batches:
            suspects += await asyncio.to_thread(self._find_suspects, batch, language)
        faults = await self._texts.find_faults(language, [chunk.analyzed_text for chunk in suspects])
        reasons = {chunk.chunk.id: fault for chunk, fault in zip(suspects, faults, strict=True) if fault}
        if reasons:
            await self._records.mark_unindexable(opened.collection.id, reasons)
            logger.warning(
                "chunks_unindexable collection=%(collection)s chunks=%(chunks)s",
                {"collection": opened.collection.id, "chunks": reasons},
            )
        return bool(reasons)

    def _find_suspects(self, batch: Sequence[IndexedChunk], language: str | None) -> list[IndexedChunk]:
        """Return the chunks that are not marked and cannot be analyzed in this process."""
        analyse = self._texts.analyzer(language)
        suspects = []
        for chunk in batch:
            try:
                analyse(chunk.term_text)
            except TEXT_FAULTS:
                suspects.append(chunk)
        return suspects

    async def _unmark(self, opened: OpenIndex) -> None:
        """Remove the marks of chunks that can be analyzed by now, as after an upgrade."""
        marked = await self._records.unindexable(opened.collection.id, limit=BATCH_CHANGES)
        if not marked:
            return
        language = opened.collection.language
        faults = await self._texts.find_faults(language, [chunk.analyzed_text for chunk in marked])
        mended = {chunk.chunk.id: None for chunk, fault in zip(marked, faults, strict=True) if fault is None}
        if mended:
            await self._records.mark_unindexable(opened.collection.id, mended)
            opened.required = await opened.reader.last_sequence()

    async def newest(self, collection: CollectionId) -> OpenIndex:
        """The collection's open index, holding every change committed before this call. Raises NotFound."""
        return await self.current(await self._get_collection(collection))

    async def catch_up(
        self, collection: CollectionId, update: IndexUpdate | None = None, when: When = "now"
    ) -> Collection | None:
        """Index the latest writes:

        otherwise every query would wait behind a fast writer. Writes stay stored if the index is unavailable:
        it is updated when it is available again. The collection is None if the records are unavailable.
        """
        state = None
        try:
            state = await self._get_collection(collection) if update is None else update.collection
            behind = self._behind.get(collection)
            if when == "later":
                self.follow(collection, update)
            elif collection in self._away:
                if behind is None or behind.done():
                    self.follow(collection)
            elif when == "after":
                if behind is not None:
                    await asyncio.wait([behind])
                self.follow(collection, update)
            else:
                await self.current(state, update)
        except (StorageBusy, IndexReplaced):
            self._away.add(collection)
        return state

    def follow(self, collection: CollectionId, update: IndexUpdate | None = None) -> None:
        """Index the latest writes in the background; a query meanwhile does it first."""
        if update is not None:
            self._at_hand.setdefault(collection, []).append(update)
        before = self._behind.get(collection)
        self._behind[collection] = asyncio.create_task(self._follow(collection, before, update))

    async def wait_until_idle(self) -> None:
        """Wait until no index follows any more."""
        await asyncio.gather(*self._behind.values())

    async def open_unlisted(self, collection: Collection, space: EmbeddingSpace | None) -> OpenIndex:
        """An open index in a space that does not answer yet; the caller closes its index."""
        reader = self._records.reader(collection.id, space, collection.created)
        return OpenIndex(collection, space, reader, await self._open_index(collection, space, reader))

    async def drop(self, collection: Collection) -> None:
        """Close the collection's index; the next call to `current` opens it again."""
        async with self._opening:
            opened = self._by_collection.pop(collection.id, None)
            if opened is not None:
                await opened.index.close()

    async def close(self) -> None:
        """Close every index; one with much in memory writes it down, or the next opening would pay for it.

        The records have it all: it is no fault if the disk is full, or if the collection is deleted by now.
        """
        await self.wait_until_idle()
        for opened in self._by_collection.values():
            with suppress(NotFound, StorageError, OSError):
                await opened.index.flush(least=MIN_FLUSHED_CHUNKS, merge=True)
            await opened.index.close()
        self._by_collection.clear()

    async def _follow(
        self, collection: CollectionId, before: asyncio.Task[None] | None, update: IndexUpdate | None
    ) -> None:
        if before is not None:
            await before
        # The next caller gets the same error.
        with suppress(ConspectusError):
            try:
                await self.current(
                    await self._get_collection(collection) if update is None else update.collection
                )
            except (StorageBusy, IndexReplaced):
                self._away.add(collection)
                raise

    async def _get_collection(self, collection: CollectionId) -> Collection:
        state = await self._records.collection(collection)
        if state is None:
            raise NotFound("collection", collection)
        return state

    async def _open(self, collection: Collection) -> OpenIndex:
        async with self._opening:
            current = self._by_collection.get(collection.id)
            if current is not None and current.is_of(collection):
                return current
            opened = await self.open_unlisted(collection, collection.space)
            await self._unmark(opened)
            self._by_collection[collection.id] = opened
            if current is not None:
                await current.index.close()
            return opened
