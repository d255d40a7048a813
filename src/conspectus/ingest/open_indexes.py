"""The open indexes of an engine, each brought up to the records before it is searched."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Literal

from conspectus.errors import (
    ConspectusError,
    IndexReplaced,
    NotFound,
    StorageBusy,
    StorageError,
    UnindexableText,
)
from conspectus.ingest.open_index import OpenIndex, apply_updates, catch_up
from conspectus.ingest.unindexable_chunks import UnindexableChunks
from conspectus.model.ids import CollectionId
from conspectus.model.index import IndexUpdate
from conspectus.model.records import Collection, EmbeddingSpace
from conspectus.ports import Index, Progress, Reader, Records, TextAnalysis

IndexTiming = Literal["now", "after", "later"]
"""When a write is indexed.

"now": before the write returns. "after": in the background, once the writes before it are indexed, for which
the caller waits. "later": in the background, without waiting.
"""
IndexOpener = Callable[[Collection, EmbeddingSpace | None, Reader], Awaitable[Index]]

MIN_FLUSHED_CHUNKS = 1_000
"""An index with at least so many chunks in memory is flushed when it is closed."""


class OpenIndexes:
    """Opens indexes on first use, and again when a collection moves to another space."""

    def __init__(self, records: Records, open_index: IndexOpener, texts: TextAnalysis) -> None:
        self._records = records
        self._open_index = open_index
        self._unindexable = UnindexableChunks(records, texts)
        self._by_collection: dict[str, OpenIndex] = {}
        self._background_tasks: dict[str, asyncio.Task[None]] = {}
        self._pending_updates: dict[str, list[IndexUpdate]] = {}
        self._unavailable: set[str] = set()
        self._opening = asyncio.Lock()

    async def current(self, collection: Collection, update: IndexUpdate | None = None) -> OpenIndex:
        """Return the collection's index with every change committed before the collection was read.

        `update` is the write that returned the collection. If it and the pending updates have all missing
        changes, the records are not read.
        """
        updates = [*self._pending_updates.pop(collection.id, ()), *([] if update is None else [update])]
        opened = self._by_collection.get(collection.id)
        if opened is None or not opened.is_of(collection):
            opened = await self._open(collection)
        written = (write.collection for write in updates if write.indexed)
        opened.indexed = max([opened.indexed, *(state.sequence for state in written if opened.is_of(state))])
        sequence = max(collection.sequence, opened.required)
        if max(opened.indexed, opened.index.applied_sequence()) < sequence:
            async with opened.lock:
                await self._index(opened, updates, sequence)
        self._unavailable.discard(collection.id)
        return opened

    def language_of(self, collection: CollectionId, default: str | None) -> str | None:
        """Return the language of a collection whose index is open, else the default."""
        opened = self._by_collection.get(collection)
        return default if opened is None else opened.collection.language

    async def rebuild(self, opened: OpenIndex, progress: Progress | None = None) -> None:
        """Rebuild an index from the records. Chunks that cannot be analyzed are marked and left out."""
        await self._unindexable.unmark(opened)
        while True:
            try:
                await opened.index.rebuild(progress)
            except UnindexableText:
                if not await self._unindexable.mark(opened, opened.reader.scan()):
                    raise
            else:
                return

    async def _index(self, opened: OpenIndex, updates: Sequence[IndexUpdate], sequence: int) -> None:
        """Apply all changes up to `sequence`. Chunks that cannot be analyzed are marked and left out."""
        while True:
            try:
                await apply_updates(opened.index, updates)
                await catch_up(opened.index, opened.reader, sequence)
            except UnindexableText:
                if not await self._unindexable.mark(opened, opened.read_missing_chunks()):
                    raise
                updates = ()
            else:
                return

    async def newest(self, collection: CollectionId) -> OpenIndex:
        """Return the collection's index with every change committed before this call. Raises NotFound."""
        return await self.current(await self._get_collection(collection))

    async def catch_up(
        self, collection: CollectionId, update: IndexUpdate | None = None, when: IndexTiming = "now"
    ) -> Collection | None:
        """Index the latest writes, and return the collection with them.

        Otherwise every query would wait for the writes before it. If the index is unavailable, writes stay
        stored, and are indexed when it is available again. Returns None if the records are unavailable.
        """
        state = None
        try:
            state = await self._get_collection(collection) if update is None else update.collection
            task = self._background_tasks.get(collection)
            if when == "later":
                self.index_in_background(collection, update)
            elif collection in self._unavailable:
                if task is None or task.done():
                    self.index_in_background(collection)
            elif when == "after":
                if task is not None:
                    await asyncio.wait([task])
                self.index_in_background(collection, update)
            else:
                await self.current(state, update)
        except (StorageBusy, IndexReplaced):
            self._unavailable.add(collection)
        return state

    def index_in_background(self, collection: CollectionId, update: IndexUpdate | None = None) -> None:
        """Index the latest writes in the background. A query in the meantime indexes them first."""
        if update is not None:
            self._pending_updates.setdefault(collection, []).append(update)
        previous = self._background_tasks.get(collection)
        task = asyncio.create_task(self._index_after(previous, collection, update))
        self._background_tasks[collection] = task

    async def wait_until_idle(self) -> None:
        """Wait until all writes are indexed that are indexed in the background."""
        await asyncio.gather(*self._background_tasks.values())

    async def open_unlisted(self, collection: Collection, space: EmbeddingSpace | None) -> OpenIndex:
        """Open an index in a space that does not answer yet. The caller closes it."""
        reader = self._records.reader(collection.id, space, collection.created)
        return OpenIndex(collection, space, reader, await self._open_index(collection, space, reader))

    async def drop(self, collection: Collection) -> None:
        """Close the collection's index. The next call to `current` opens it again."""
        async with self._opening:
            opened = self._by_collection.pop(collection.id, None)
            if opened is not None:
                await opened.index.close()

    async def close(self) -> None:
        """Close every index. One with many chunks in memory is flushed, so that it opens faster.

        The records have all chunks. So a full disk or a collection that was deleted meanwhile is no error.
        """
        await self.wait_until_idle()
        for opened in self._by_collection.values():
            with suppress(NotFound, StorageError, OSError):
                await opened.index.flush(least=MIN_FLUSHED_CHUNKS, merge=True)
            await opened.index.close()
        self._by_collection.clear()

    async def _index_after(
        self, previous: asyncio.Task[None] | None, collection: CollectionId, update: IndexUpdate | None
    ) -> None:
        if previous is not None:
            await previous
        # The next caller gets the same error.
        with suppress(ConspectusError):
            try:
                await self.current(
                    await self._get_collection(collection) if update is None else update.collection
                )
            except (StorageBusy, IndexReplaced):
                self._unavailable.add(collection)
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
            await self._unindexable.unmark(opened)
            self._by_collection[collection.id] = opened
            if current is not None:
                await current.index.close()
            return opened
