"""What every group of operations works with: the store, the person, and what that person sees."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Self

from conspectus.access.reader import AuthorizedReader
from conspectus.engine.components import EngineCore
from conspectus.errors import StorageBusy, WriteUnknown
from conspectus.ingest.pipeline import write
from conspectus.ingest.prepare import Preparation
from conspectus.model.access import Person
from conspectus.model.ids import CollectionId
from conspectus.model.records import Collection, Document, NewDocument, Source, Written
from conspectus.model.validation import ChecksArguments
from conspectus.ports import Embedder, Progress


class EngineContext(ChecksArguments):
    """The store as one person may use it."""

    def __init__(self, core: EngineCore, person: Person) -> None:
        self._core = core
        self._parts = core.parts
        self._person = person
        self._sight = AuthorizedReader(person, core.records, core.parts.accounts)

    def _as(self, person: Person) -> Self:
        """The same store, as that person may use it."""
        view = object.__new__(type(self))
        EngineContext.__init__(view, self._core, person)
        return view

    def _purging(self, purge: bool, *collections: CollectionId) -> AbstractAsyncContextManager[None]:
        """A block that deletes, at the end of which no file holds what it deleted, with `purge`."""
        return self._core.purging(*collections) if purge else nullcontext()

    async def _write(
        self,
        batch: Sequence[NewDocument],
        source: Source,
        *,
        expected: str | None = None,
        stored: Sequence[Document] | None = None,
        home: Collection | None = None,
    ) -> Sequence[Written]:
        """Write documents; with `home`, their collection, its index follows while the caller goes on."""
        by = self._preparation(source)
        written = await write(self._core.records, batch, by, expected=expected, stored=stored)
        if home is None:
            home = await self._core.shelves.keep_up(source.collection)
        else:
            self._core.shelves.follow(home.id)
        if home is not None and home.names and self._does_background_work:
            self._core.names.wake(home.id)
        return written

    def _preparation(self, source: Source) -> Preparation:
        parts = self._parts
        return Preparation.under(parts.settings, source, count=parts.counter("o200k_base"), now=parts.clock())

    async def _embedder(self, collection: Collection) -> Embedder | None:
        space = collection.space
        return None if space is None else self._parts.embedder_for(space)

    @property
    def _does_background_work(self) -> bool:
        """Whether this process does what nobody waits for, and does not leave it to others."""
        return self._parts.settings.run_background_jobs != "off"

    def _begin_embedding(self, collection: Collection, embedder: Embedder | None) -> None:
        """Have what was written embedded while the caller goes on."""
        if embedder is not None and self._does_background_work:
            self._core.backfill.wake(collection, embedder)

    async def _embed(
        self,
        collection: Collection,
        *,
        wait: bool,
        progress: Progress | None = None,
        rested: float = 0.0,
    ) -> None:
        """Have it embedded, and names found; not where an error ended that less than `rested` seconds ago.

        What it is called for is stored by then, so a store that is busy is told only to who waits: as
        WriteUnknown, for not all may be embedded.
        """
        try:
            await self._embed_stored(collection, wait=wait, progress=progress, rested=rested)
        except StorageBusy as fault:
            if wait:
                raise WriteUnknown(f"stored, but not all of it is embedded yet: {fault}") from fault

    async def _embed_stored(
        self, collection: Collection, *, wait: bool, progress: Progress | None, rested: float
    ) -> None:
        if not wait and not self._does_background_work:
            return
        if collection.names:
            await self._find_names(collection, wait=wait, progress=progress)
        embedder = await self._embedder(collection)
        if embedder is None:
            return
        if wait:
            await self._core.backfill.settle(collection, embedder, progress)
        elif self._core.backfill.gave_up_within(collection, rested):
            return
        elif await self._core.records.count_unembedded(collection.id, embedder.space):
            self._core.backfill.wake(collection, embedder)

    async def _find_names(self, collection: Collection, *, wait: bool, progress: Progress | None) -> None:
        self._core.names.wake(collection.id)
        if wait:
            await self._core.names.settle(collection.id, progress)
