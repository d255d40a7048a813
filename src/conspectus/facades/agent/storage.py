"""The store of an agent's context: one engine and one collection in it, which all parts share."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final, TypeVar

from conspectus import bootstrap
from conspectus.bridge.engine_access import Blocking, EngineAccess, Work, access_to
from conspectus.bridge.temporary_engine import temporary_engine
from conspectus.engine.any_engine import AnyEngine
from conspectus.engine.memory import MemoryService
from conspectus.errors import InvalidInput, NotFound
from conspectus.model.memory import MEMORY

T = TypeVar("T")
NOT_A_STORE: Final = (
    "must be a path, an engine of conspectus.open or conspectus.connect, another part of an agent's context,"
    " or None; any other store could not keep whose a memory is"
)


class AgentStorage:
    """An engine and a collection in it, usable from any event loop and without one."""

    def __init__(self, access: EngineAccess, collection: str, *, origin: object = None) -> None:
        """Create a storage; `origin` is its path or engine, None for a temporary store."""
        self._access = access
        self._origin = origin
        self.collection = collection
        self.is_prepared = False
        self.writes = 0
        self.embedded_writes = 0

    @property
    def is_temporary(self) -> bool:
        """Whether closing deletes the store."""
        return self._origin is None

    def is_same(self, other: "AgentStorage") -> bool:
        """Return whether both use the same store and collection."""
        if self is other:
            return True
        has_same_origin = self._origin is not None and self._origin == other._origin
        return has_same_origin and self.collection == other.collection

    async def run(self, work: Work[T]) -> T:
        """Run work with the engine, on the engine's own event loop."""

        async def prepare_and_work(engine: AnyEngine) -> T:
            await self._prepare(engine)
            return await work(engine)

        return await self._access.run(prepare_and_work)

    def wait(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Call a method of a part on the engine's own event loop, and wait for it."""
        return self._access.wait(lambda _engine: call())

    def close(self) -> None:
        """Release what was opened here; an engine that was passed in stays open. This is idempotent."""
        self._access.close()

    async def _prepare(self, engine: AnyEngine) -> None:
        """Create the collection, if it is missing, with entity extraction."""
        if self.is_prepared:
            return
        try:
            await engine.collections.get(self.collection)
        except NotFound:
            await engine.collections.get_or_create(self.collection)
            await engine.graph.set_entity_extraction(collection=self.collection)
        self.is_prepared = True


def new_storage(store: Any, collection: str = MEMORY) -> AgentStorage:
    """Return a storage for a path, an engine, or None, which is a temporary store. Raises InvalidInput."""
    if store is None:
        return AgentStorage(temporary_engine(), collection)
    if isinstance(store, str | Path):
        return AgentStorage(access_to(store), collection, origin=bootstrap.absolute(store))
    if isinstance(store, Blocking):
        return AgentStorage(access_to(store), collection, origin=store.asynchronous)
    if isinstance(getattr(store, "memory", None), MemoryService):
        return AgentStorage(access_to(store), collection, origin=store)
    raise InvalidInput("vector_store", NOT_A_STORE)
