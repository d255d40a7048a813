"""The parts of an agent's context, such as its memory and its graph, which share one storage."""

from asyncio import to_thread
from collections.abc import Callable, Coroutine
from typing import Any, Self, TypeVar

from conspectus.facades.agent.storage import AgentStorage, new_storage
from conspectus.model.memory import MEMORY

T = TypeVar("T")


class AsyncPart:
    """A part of an agent's context, which may share its storage; the part that `owns` it closes it."""

    storage: AgentStorage
    owns = False

    async def __aenter__(self) -> Self:
        """Return this part; the store is opened on first use."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    async def close(self) -> None:
        """Release what was opened here; an engine that was passed in stays open. This is idempotent."""
        if self.owns:
            await to_thread(self.storage.close)


class BlockingPart:
    """A part of an agent's context for programs without an event loop."""

    storage: AgentStorage
    owns = False
    _inner: Any

    @classmethod
    def _around(cls, inner: Any, storage: AgentStorage) -> Self:
        part = cls.__new__(cls)
        part.storage, part._inner = storage, inner
        return part

    def _wait(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return self.storage.wait(call)

    def __enter__(self) -> Self:
        """Return this part; the store is opened on first use."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Release what was opened here; an engine that was passed in stays open. This is idempotent."""
        if self.owns:
            self.storage.close()


def has_own_storage(store: object) -> bool:
    """Return whether a part that is created with this store gets a storage of its own."""
    return not isinstance(store, AsyncPart | BlockingPart | AgentStorage)


def storage_of(store: object, collection: str = MEMORY) -> AgentStorage:
    """Return the storage of another part, or a new one for a path, an engine, or a temporary store.

    Raises InvalidInput for anything else.
    """
    if isinstance(store, AsyncPart | BlockingPart):
        return store.storage
    if isinstance(store, AgentStorage):
        return store
    return new_storage(store, collection)
