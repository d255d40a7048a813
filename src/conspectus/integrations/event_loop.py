"""One way to an engine for programs with and without an event loop, however the engine was given."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from conspectus import bootstrap
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput
from conspectus.integrations.engine_thread import OwnEngine

T = TypeVar("T")
Work: TypeAlias = Callable[[AnyEngine], Coroutine[Any, Any, T]]


@runtime_checkable
class Blocking(Protocol):
    """What `with conspectus.open(...)` and `with conspectus.connect(...)` give."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What comes of a coroutine on the engine's own loop."""
        ...

    @property
    def asynchronous(self) -> AnyEngine:
        """The engine itself."""
        ...


STANDSTILL = (
    "works on this event loop, which a blocking call would stop; use the asynchronous method, or give a path"
)
Given: TypeAlias = AnyEngine | Blocking | str | Path | None
"""An engine of `conspectus.open` or `conspectus.connect`, or the path of a store (None: that of the
settings), which is then opened when it is first needed."""


class Calls(Protocol):
    """How work with an engine is done."""

    async def run(self, work: Work[T]) -> T:
        """What comes of it, from any event loop."""
        ...

    def wait(self, work: Work[T]) -> T:
        """The same without an event loop."""
        ...

    def close(self) -> None:
        """Release what was opened for this."""
        ...


def calls_to(engine: Given) -> Calls:
    """The calls to what was given; an engine with an event loop is to be given while that loop runs."""
    if engine is None or isinstance(engine, str | Path):
        return _Opened(engine)
    return _Lent(engine) if isinstance(engine, Blocking) else _OfLoop(engine)


class _Opened:
    """A store of one's own, in a thread of its own."""

    def __init__(self, path: str | Path | None) -> None:
        self._own = OwnEngine(partial(bootstrap.open, path))

    async def run(self, work: Work[T]) -> T:
        return await self._own.run(work)

    def wait(self, work: Work[T]) -> T:
        return _outcome(self._own.start(work))

    def close(self) -> None:
        self._own.end()


class _Lent:
    """A blocking engine, which has a loop of its own."""

    def __init__(self, engine: Blocking) -> None:
        self._engine = engine

    async def run(self, work: Work[T]) -> T:
        return await asyncio.to_thread(self.wait, work)

    def wait(self, work: Work[T]) -> T:
        return self._engine.run(work(self._engine.asynchronous))

    def close(self) -> None:
        """It belongs to whoever opened it."""


class _OfLoop:
    """An engine that works on an event loop of its owner's."""

    def __init__(self, engine: AnyEngine) -> None:
        self._engine = engine
        self._loop = _running()

    async def run(self, work: Work[T]) -> T:
        here = asyncio.get_running_loop()
        self._loop = self._loop or here
        if self._loop is here:
            return await work(self._engine)
        return await asyncio.wrap_future(self._start(work))

    def wait(self, work: Work[T]) -> T:
        if self._loop is not None and self._loop is _running():
            raise InvalidInput("engine", STANDSTILL)
        return _outcome(self._start(work))

    def _start(self, work: Work[T]) -> Future[T]:
        if self._loop is None or not self._loop.is_running():
            raise InvalidInput("engine", "belongs to an event loop that does not run; give a path instead")
        return asyncio.run_coroutine_threadsafe(work(self._engine), self._loop)

    def close(self) -> None:
        """It belongs to whoever opened it."""


def refuse(unknown: Iterable[str]) -> None:
    """Raise InvalidInput for the first of the names of arguments that are not taken."""
    for name in sorted(unknown):
        raise InvalidInput(name, "is not an argument of this call; leave it out")


def _outcome(future: Future[T]) -> T:
    """What comes of work in another thread, which an interrupt cancels."""
    try:
        return future.result()
    finally:
        future.cancel()


def _running() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs in this thread."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
