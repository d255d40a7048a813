"""Access to an engine from any program, whatever its caller passes as the engine."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from conspectus import bootstrap
from conspectus.bridge.event_loop_thread import running_loop, wait_for
from conspectus.bridge.owned_engine import OwnedEngine
from conspectus.engine import Engine
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput

T = TypeVar("T")
Work: TypeAlias = Callable[[AnyEngine], Awaitable[T]]
"""Something to do with an engine, once it is open."""

BLOCKS_ITS_LOOP = (
    "works on this event loop, which a blocking call would stop; use the asynchronous method, or give a path"
)
LOOP_DOES_NOT_RUN = "belongs to an event loop that does not run; give a path instead"


@runtime_checkable
class Blocking(Protocol):
    """A blocking engine, as returned by `with conspectus.open(...)` and `with conspectus.connect(...)`."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the engine's event loop."""

    @property
    def asynchronous(self) -> AnyEngine:
        """The asynchronous engine."""


class EngineAccess(Protocol):
    """Runs work with an engine on the engine's event loop."""

    async def run(self, work: Work[T]) -> T:
        """Run work from any event loop. On the engine's own loop it runs in place."""

    def wait(self, work: Work[T]) -> T:
        """Run work without an event loop, and wait for it. An interrupt cancels it."""

    def close(self) -> None:
        """Close the engine if it was opened here, and wait for it. Closing twice has no effect."""


class Closed(InvalidInput, RuntimeError):
    """The object is closed. Create another one."""

    def __init__(self, what: str) -> None:
        super().__init__(what, "is closed; create another one")


class BorrowedEngine:
    """A blocking engine, with the event loop that it has."""

    def __init__(self, engine: Blocking) -> None:
        self._engine = engine
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, work: Work[T]) -> T:
        """Run work from any event loop. On the engine's own loop it runs in place."""
        if running_loop() is self._loop:
            return await work(self._engine.asynchronous)
        return await asyncio.to_thread(self.wait, work)

    def wait(self, work: Work[T]) -> T:
        """Run work without an event loop, and wait for it. An interrupt cancels it."""
        return self._engine.run(self._run_here(work))

    async def _run_here(self, work: Work[T]) -> T:
        self._loop = asyncio.get_running_loop()
        return await work(self._engine.asynchronous)

    def close(self) -> None:
        """Do nothing: the caller closes the engine."""


class JoinedEngine:
    """An asynchronous engine, on the event loop of the program that opened it."""

    def __init__(self, engine: AnyEngine) -> None:
        self._engine = engine
        self._loop = running_loop()

    async def run(self, work: Work[T]) -> T:
        """Run work from any event loop. On the engine's own loop it runs in place."""
        current = asyncio.get_running_loop()
        self._loop = self._loop or current
        if self._loop is current:
            return await work(self._engine)
        return await asyncio.wrap_future(self._start(work))

    def wait(self, work: Work[T]) -> T:
        """Run work without an event loop, and wait for it. An interrupt cancels it."""
        if self._loop is not None and self._loop is running_loop():
            raise InvalidInput("engine", BLOCKS_ITS_LOOP)
        return wait_for(self._start(work))

    def _start(self, work: Work[T]) -> Future[T]:
        if self._loop is None or not self._loop.is_running():
            raise InvalidInput("engine", LOOP_DOES_NOT_RUN)
        return asyncio.run_coroutine_threadsafe(_run(work, self._engine), self._loop)

    def close(self) -> None:
        """Do nothing: the caller closes the engine."""


async def _run(work: Work[T], engine: AnyEngine) -> T:
    return await work(engine)


AnyEngineOrPath: TypeAlias = AnyEngine | Blocking | OwnedEngine[Engine] | str | Path | None
"""An engine of `conspectus.open` or `conspectus.connect`, or the path of a store (None: that of the
settings), which is opened on first use.
"""


def access_to(engine: AnyEngineOrPath) -> EngineAccess:
    """Return the access to an engine. An asynchronous engine has to be passed while its loop runs."""
    if engine is None or isinstance(engine, str | Path):
        return OwnedEngine(partial(bootstrap.open, engine))
    if isinstance(engine, OwnedEngine):
        return engine
    return BorrowedEngine(engine) if isinstance(engine, Blocking) else JoinedEngine(engine)
