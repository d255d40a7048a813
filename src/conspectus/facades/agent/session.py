"""The store of an agent's memory: one engine for all parts, and files of memories and graphs."""

import json
import os
from asyncio import to_thread
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, Final, Self, TypeAlias, TypeVar

from conspectus import bootstrap
from conspectus.engine.any_engine import AnyEngine
from conspectus.engine.memory import MemoryService
from conspectus.errors import InvalidInput, NotFound
from conspectus.integrations.event_loop import Blocking, Calls, calls_to, temporary_calls
from conspectus.model.memory import MEMORY
from conspectus.private import written

T = TypeVar("T")
Work: TypeAlias = Callable[[AnyEngine], Awaitable[T]]
_NO_STORE = (
    "must be a path, an engine of conspectus.open or conspectus.connect, another part of an agent's context,"
    " or None; any other store could not keep whose a memory is"
)


class AgentStorage:
    """An engine and a collection in it, usable from any event loop and without one."""

    def __init__(self, calls: Any, collection: str, *, origin: object = None) -> None:
        """Create a storage; `origin` is its path or engine, None for a temporary store."""
        self._calls: Calls = calls
        self._origin = origin
        self.used = False
        self.written = self.embedded = 0
        """Number of writes, and how many of them are embedded."""

        self.collection = collection
        self.inside = _Inside(self)
        """The session for work that already runs on the engine's loop."""

    async def run(self, work: Work[T]) -> T:
        """Return the result of work with the engine, run on the engine's own loop."""

        async def done(engine: Any) -> T:
            await self.prepare(engine)
            return await work(engine)

        return await self._calls.run(done)

    def wait(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Block until work with the engine is done and return its result."""

        async def done(engine: Any) -> T:
            await self.prepare(engine)
            self.inside.engine = engine
            return await work()

        return self._calls.wait(done)

    @property
    def storage(self) -> "AgentStorage":
        """This storage."""
        return self

    @property
    def temporary(self) -> bool:
        """Whether closing deletes the store."""
        return self._origin is None

    def is_same(self, other: "AgentStorage") -> bool:
        """Return whether both use the same store and collection."""
        there = other._origin is not None and self._origin == other._origin
        return self is other or (there and self.collection == other.collection)

    async def prepare(self, engine: AnyEngine) -> None:
        """Create the collection, if it is missing, with entity extraction."""
        if self.used:
            return
        try:
            await engine.collections.get(self.collection)
        except NotFound:
            await engine.collections.get_or_create(self.collection)
            await engine.graph.set_entity_extraction(collection=self.collection)
        self.used = True

    def close(self) -> None:
        """Release what was opened here; a given engine stays open. This is idempotent."""
        self._calls.end()


class _Inside:
    def __init__(self, storage: AgentStorage) -> None:
        self.storage = storage
        self.engine: AnyEngine | None = None

    @property
    def collection(self) -> str:
        return self.storage.collection

    async def run(self, work: Work[T]) -> T:
        if self.engine is None:
            raise InvalidInput("vector_store", "is not open; use it inside `async with`")
        return await work(self.engine)


AgentSession: TypeAlias = AgentStorage | _Inside
"""What runs work with an engine."""


class AsyncPart:
    """A part of an agent's context, which may share its storage; the part that `owns` it closes it."""

    session: AgentSession
    owns = False

    async def __aenter__(self) -> Self:
        """Return this part; the store is opened on first use."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    async def close(self) -> None:
        """Release what was opened here; a given engine stays open. This is idempotent."""
        if self.owns:
            await to_thread(self.session.storage.close)


class BlockingPart:
    """A part of an agent's context for programs without an event loop."""

    session: AgentStorage
    owns = False
    _inner: Any

    @classmethod
    def _around(cls, inner: Any, place: AgentStorage) -> Self:
        made = cls.__new__(cls)
        made.session, made._inner = place, inner
        return made

    def __enter__(self) -> Self:
        """Return this part; the store is opened on first use."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Release what was opened here; a given engine stays open. This is idempotent."""
        if self.owns:
            self.session.close()


def is_new(store: object) -> bool:
    """Return whether a part made of this store has a storage of its own."""
    return not isinstance(store, AsyncPart | BlockingPart | AgentStorage | _Inside)


def session_of(store: object, collection: str = MEMORY) -> AgentSession:
    """Return the session of another part, or a new one for a path, an engine, or a temporary store.

    Raises InvalidInput for anything else.
    """
    if isinstance(store, AsyncPart | BlockingPart):
        return store.session
    return store if isinstance(store, AgentStorage | _Inside) else storage_of(store, collection)


def storage_of(store: object, collection: str = MEMORY) -> AgentStorage:
    """Return a new storage. Raises InvalidInput."""
    if store is None:
        return AgentStorage(temporary_calls(), collection)
    given: Any = store
    if isinstance(store, str | Path):
        return AgentStorage(calls_to(given), collection, origin=bootstrap.absolute(store))
    if isinstance(store, Blocking):
        return AgentStorage(calls_to(given), collection, origin=store.asynchronous)
    if isinstance(getattr(store, "memory", None), MemoryService):
        return AgentStorage(calls_to(given), collection, origin=store)
    raise InvalidInput("vector_store", _NO_STORE)


_PICKLED: Final = (b"\x80", b"(d", b"(l", b"c__")
_NO_PICKLE: Final = "is a pickle, which can run programs and is never read; only JSON lines are"


def read_json(path: Path) -> object:
    """Read a JSON file. Raises InvalidInput, also for a pickle."""
    data = _bytes(path)
    try:
        return json.loads(data)
    except ValueError as fault:
        raise InvalidInput("path", f"{path.name} is not JSON: {fault}") from fault


async def write_lines(path: Path, lines: AsyncIterator[str]) -> int:
    """Write lines to a file atomically and return their number."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    count = 0
    try:
        with written(beside, new=False) as file:
            async for line in lines:
                file.write(f"{line}\n".encode())
                count += 1
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return count


def read_lines(path: Path) -> list[str]:
    """Read the lines of a JSON Lines file. Raises InvalidInput, also for a pickle."""
    data = _bytes(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise InvalidInput("path", f"{path.name} is not UTF-8") from fault
    return [line for line in text.split("\n") if line.strip()]


def _bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as fault:
        raise InvalidInput("path", f"{path} cannot be read: {fault.strerror}") from fault
    if data.startswith(_PICKLED) or path.suffix in {".pkl", ".pickle"}:
        raise InvalidInput("path", f"{path.name} {_NO_PICKLE}")
    return data
