"""What services share: the store, the person, and what that person may see and write."""

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from conspectus.access.policy import require_scope
from conspectus.access.reader import AuthorizedReader, SourceRef
from conspectus.engine.components import EngineCore
from conspectus.engine.source_writer import SourceWriter
from conspectus.errors import (
    NotFound,
    ProviderError,
    ProviderUnavailable,
    StorageBusy,
    WriteUnknown,
)
from conspectus.ingest.pipeline import write
from conspectus.ingest.prepare import Preparation
from conspectus.model.access import LOCAL_OWNER, Person
from conspectus.model.ids import LOCAL, CollectionId, UserId
from conspectus.model.records import Collection, Document, NewDocument, Source, Written
from conspectus.model.validation import check_methods
from conspectus.ports import Embedder, Progress

P = ParamSpec("P")
T = TypeVar("T")
STOPPED = "some of the collection could not be embedded; whoever manages it is told why"


class EngineContext:
    """The store as one person may use it."""

    def __init__(self, core: EngineCore, person: Person) -> None:
        self.core = core
        self.parts = core.parts
        self.person = person
        self.sight = AuthorizedReader(person, core.records, core.parts.accounts)
        self.writer = SourceWriter(core, person, self.sight)

    def answering(self, person: Person) -> "EngineContext":
        """The same store, as that person may use it."""
        return EngineContext(self.core, person)

    async def person_of(self, owner: UserId) -> Person:
        """The person behind an account, with the rights of this moment. Raises NotFound."""
        if owner == LOCAL:
            return LOCAL_OWNER
        user = await self.parts.accounts.user(owner)
        if user is None or user.disabled or user.id != owner:
            raise NotFound("user", owner)
        return Person(user.name, user.owner, user.id)

    async def place(self, collection: str, needed: Any, action: str) -> SourceRef:
        """A collection in which the person has a role and may write. Raises NotFound or NotAllowed."""
        place = await self.sight.place(collection)
        require_scope(self.person, "write", "write")
        place.require(needed, action)
        return place

    async def extract_entities(self, collection: str, on: bool = True) -> Collection:
        """Have passages looked through for entities, or no more. Raises NotFound or NotAllowed."""
        place = await self.place(collection, "manager", "keep the names in a collection")
        await self.parts.names.rows.keep(place.collection.id, on)
        if on and self.does_background_work:
            self.core.names.wake(place.collection.id)
        return (await self.sight.place_of(place.collection.id)).shown

    def may_edit(self, place: SourceRef, document: Document, action: str) -> None:
        """Raise NotAllowed for a document that the person may not change."""
        require_scope(self.person, "write", "write")
        place.require("editor", action, source=document.source)

    def purging(self, purge: bool, *collections: CollectionId) -> AbstractAsyncContextManager[None]:
        """A block that deletes, at the end of which no file holds what it deleted, with `purge`."""
        return self.core.purging(*collections) if purge else nullcontext()

    async def write(
        self,
        batch: Sequence[NewDocument],
        source: Source,
        *,
        expected: str | None = None,
        stored: Sequence[Document] | None = None,
        home: Collection | None = None,
    ) -> Sequence[Written]:
        """Write documents; with `home`, their collection, its index follows while the caller goes on."""
        by = self.preparation(source)
        written = await write(self.core.records, batch, by, expected=expected, stored=stored)
        if home is None:
            home = await self.core.shelves.keep_up(source.collection)
        else:
            self.core.shelves.follow(home.id)
        if home is not None and home.names and self.does_background_work:
            self.core.names.wake(home.id)
        return written

    def preparation(self, source: Source) -> Preparation:
        """What documents of a source are prepared with."""
        parts = self.parts
        return Preparation.under(parts.settings, source, count=parts.counter("o200k_base"), now=parts.clock())

    async def embedder(self, collection: Collection) -> Embedder | None:
        """The embedding model of a collection, if it has one that can be had here."""
        space = collection.space
        return None if space is None else self.parts.embedder_for(space)

    @property
    def does_background_work(self) -> bool:
        """Whether this process does what nobody waits for, and does not leave it to others."""
        return self.parts.settings.run_background_jobs != "off"

    def begin_embedding(self, collection: Collection, embedder: Embedder | None) -> None:
        """Have what was written embedded while the caller goes on."""
        if embedder is not None and self.does_background_work:
            self.core.backfill.wake(collection, embedder)

    async def embed_in(self, place: SourceRef, *, wait: bool, progress: Progress | None = None) -> None:
        """Embed what waits there, telling of it only as much as the person may know of all of it."""
        try:
            await self.embed(place.collection, wait=wait, progress=progress if place.whole else None)
        except ProviderError as fault:
            if place.whole:
                raise
            raise ProviderUnavailable(fault.provider, STOPPED) from fault

    async def embed(
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
        if not wait and not self.does_background_work:
            return
        if collection.names:
            await self._find_names(collection, wait=wait, progress=progress)
        embedder = await self.embedder(collection)
        if embedder is None:
            return
        if wait:
            await self.core.backfill.settle(collection, embedder, progress)
        elif self.core.backfill.gave_up_within(collection, rested):
            return
        elif await self.core.records.count_unembedded(collection.id, embedder.space):
            self.core.backfill.wake(collection, embedder)

    async def _find_names(self, collection: Collection, *, wait: bool, progress: Progress | None) -> None:
        self.core.names.wake(collection.id)
        if wait:
            await self.core.names.settle(collection.id, progress)


class Service:
    """A group of operations on one store, as one person may use it.

    Public methods raise InvalidInput for an argument of another type than is annotated.
    """

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        check_methods(cls)

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._core = context.core
        self._parts = context.parts
        self._person = context.person
        self._sight = context.sight
        self._writer = context.writer


def short(service: str, method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """The same method, of the service that the engine holds under that name."""
    name = method.__name__

    @functools.wraps(method)
    def call(engine: Any, *args: P.args, **named: P.kwargs) -> T:
        return cast(T, getattr(getattr(engine, service), name)(*args, **named))

    return cast(Callable[Concatenate[Any, P], T], call)
