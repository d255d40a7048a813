"""Where an agent's memory is kept: one engine for all parts, and files of memories and graphs."""

import json
import os
from asyncio import to_thread
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, Self, TypeAlias, TypeVar

from conspectus import bootstrap
from conspectus.engine.any_engine import AnyEngine
from conspectus.engine.memory import MemoryService
from conspectus.errors import InvalidInput, NotFound
from conspectus.integrations.event_loop import Blocking, Calls, OwnEngine, calls_to, temporary_folder
from conspectus.model.memory import MEMORY

T = TypeVar("T")
Work: TypeAlias = Callable[[AnyEngine], Awaitable[T]]
_NO_STORE = (
    "must be a path, an engine of conspectus.open or conspectus.connect, another part of an agent's context,"
    " or None; any other store could not keep whose a memory is"
)


class AgentSession(Protocol):
    """Where work with an engine is done."""

    @property
    def home(self) -> "AgentStorage":
        """The place that it is at."""
        ...

    @property
    def collection(self) -> str:
        """The collection that everything is in."""
        ...

    async def run(self, work: Work[T]) -> T:
        """What comes of it."""
        ...


class AgentStorage:
    """An engine and a collection in it, with a way to them from any event loop and from none."""

    def __init__(self, calls: Any, collection: str, *, origin: object = None) -> None:
        """`origin` is the path or the engine that it was made of; without one it is there for a while."""
        self._calls: Calls = calls
        self._origin = origin
        self.used = False
        self.written = self.embedded = 0
        """How many writes there were, and how many of them are embedded."""

        self._inside = _Inside(self)
        self.collection = collection

    async def run(self, work: Work[T]) -> T:
        """What comes of work with the engine, on the engine's own loop."""

        async def done(engine: Any) -> T:
            await self.prepare(engine)
            return await work(engine)

        return await self._calls.run(done)

    def wait(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What comes of work that was made at the `inside` of this place."""

        async def done(engine: Any) -> T:
            await self.prepare(engine)
            self._inside.engine = engine
            return await work()

        return self._calls.wait(done)

    @property
    def inside(self) -> AgentSession:
        """The desk of work that runs on the engine's own loop already."""
        return self._inside

    @property
    def home(self) -> "AgentStorage":
        """The place itself."""
        return self

    @property
    def temporary(self) -> bool:
        """Whether it is gone when it is closed."""
        return self._origin is None

    def is_same(self, other: "AgentStorage") -> bool:
        """Whether both lead to the same store and collection."""
        there = other._origin is not None and self._origin == other._origin
        return self is other or (there and self.collection == other.collection)

    async def prepare(self, engine: AnyEngine) -> None:
        """Make the collection, if it is new, one whose passages are looked through for names."""
        if self.used:
            return
        try:
            await engine.collections.get(self.collection)
        except NotFound:
            await engine.collections.get_or_create(self.collection)
            await engine.graph.set_entity_extraction(collection=self.collection)
        self.used = True

    def close(self) -> None:
        """Release what was opened for it; an engine that was given stays open. Twice is harmless."""
        self._calls.close()


class _Inside:
    def __init__(self, home: AgentStorage) -> None:
        self.home = home
        self.engine: AnyEngine | None = None

    @property
    def collection(self) -> str:
        return self.home.collection

    async def run(self, work: Work[T]) -> T:
        if self.engine is None:
            raise InvalidInput("vector_store", "is not open; use it inside `async with`")
        return await work(self.engine)


class AsyncPart:
    """A part of an agent's context, which may share its place with others; who `owns` a place closes it.

    What was opened for it is released at the end of the block.
    """

    desk: AgentSession
    owns = False

    async def __aenter__(self) -> Self:
        """Itself; nothing is opened yet."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    async def close(self) -> None:
        """Release what was opened for this; what was given stays open. Twice is harmless."""
        if self.owns:
            await to_thread(self.desk.home.close)


class BlockingPart:
    """The same for programs without an event loop: a part that is waited for on the loop of its engine."""

    desk: AgentStorage
    owns = False
    _inner: Any

    @classmethod
    def _around(cls, inner: Any, place: AgentStorage) -> Self:
        made = cls.__new__(cls)
        made.desk, made._inner = place, inner
        return made

    @property
    def place(self) -> AgentStorage:
        """The engine that this works with, and all that were made of it."""
        return self.desk

    def __enter__(self) -> Self:
        """Itself; nothing is opened yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Release what was opened for this; what was given stays open. Twice is harmless."""
        if self.owns:
            self.desk.close()


def is_new(store: object) -> bool:
    """Whether what is made of this has a place of its own."""
    return not isinstance(store, AsyncPart | BlockingPart | AgentStorage | _Inside)


def desk_of(store: object, collection: str = MEMORY) -> AgentSession:
    """The desk that is meant: that of another part, or one of a path, an engine, or a store of a while.

    Raises InvalidInput for anything else.
    """
    if isinstance(store, AsyncPart | BlockingPart):
        return store.desk
    return store if isinstance(store, AgentStorage | _Inside) else place_of(store, collection)


def place_of(store: object, collection: str = MEMORY) -> AgentStorage:
    """A place of its own. Raises InvalidInput."""
    if store is None:
        return AgentStorage(_Temporary(), collection)
    given: Any = store
    if isinstance(store, str | Path):
        return AgentStorage(calls_to(given), collection, origin=bootstrap.absolute(store))
    if isinstance(store, Blocking):
        return AgentStorage(calls_to(given), collection, origin=store.asynchronous)
    if isinstance(getattr(store, "memory", None), MemoryService):
        return AgentStorage(calls_to(given), collection, origin=store)
    raise InvalidInput("vector_store", _NO_STORE)


class _Temporary:
    """A store that is gone when it is closed, or nobody holds it any more, or the program ends."""

    def __init__(self) -> None:
        folder = temporary_folder()
        self._own = OwnEngine(partial(bootstrap.open, folder), folder=folder)

    async def run(self, work: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        return await self._own.run(work)

    def wait(self, work: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        return self._own.start(work).result()

    def close(self) -> None:
        self._own.end()


_PICKLED: Final = (b"\x80", b"(d", b"(l", b"c__")
_NO_PICKLE: Final = "is a pickle, which can run programs and is never read; only JSON lines are"


def read_json(path: Path) -> object:
    """What a file of JSON holds. Raises InvalidInput, for a pickle too."""
    data = _bytes(path)
    try:
        return json.loads(data)
    except ValueError as fault:
        raise InvalidInput("path", f"{path.name} is not JSON: {fault}") from fault


def write_whole(path: Path, text: str) -> None:
    """Write a file that is there as a whole or not at all."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


async def write_lines(path: Path, lines: AsyncIterator[str]) -> int:
    """Write a file that is there as a whole or not at all, and say how many lines it has."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    count = 0
    try:
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            async for line in lines:
                file.write(line + "\n")
                count += 1
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return count


def read_lines(path: Path) -> list[str]:
    """The lines of a file of JSON lines. Raises InvalidInput, for a pickle too."""
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
