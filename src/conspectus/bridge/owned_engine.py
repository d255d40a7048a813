"""An engine of one owner, on an event loop in a thread of its own."""

import asyncio
import threading
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from conspectus.bridge.engine_thread import EngineThread
from conspectus.bridge.event_loop_thread import EventLoopThread, wait_for
from conspectus.errors import StoreClosed

if TYPE_CHECKING:
    from conspectus.engine.any_engine import AnyEngine

E = TypeVar("E", bound="AnyEngine")
T = TypeVar("T")


class OwnedEngine(Generic[E]):
    """An engine of one owner, opened on first use in a thread. It is closed when its owner is collected."""

    def __init__(self, opening: Callable[[], AbstractAsyncContextManager[E]]) -> None:
        self._lock = threading.Lock()
        self._is_closed = False
        self._thread = EngineThread(opening)
        weakref.finalize(self, _close_unattended, self._thread).atexit = False

    async def run(self, work: "Callable[[AnyEngine], Awaitable[T]]") -> T:
        """Run work from any event loop. On the engine's own loop it runs in place."""
        opening = self._open()
        if self._thread.is_current:
            return await _run_when_open(work, opening)
        return await asyncio.wrap_future(self._thread.loop.submit(_run_when_open(work, opening)))

    def wait(self, work: "Callable[[AnyEngine], Awaitable[T]]") -> T:
        """Run work without an event loop, and wait for it. An interrupt cancels it."""
        opening = self._open()
        return self._thread.loop.run(_run_when_open(work, opening))

    @property
    def loop(self) -> EventLoopThread:
        """The event loop of the engine."""
        return self._thread.loop

    @property
    def is_open(self) -> bool:
        """Whether the engine was opened and not closed."""
        return self._thread.is_open and not self._is_closed

    def open(self) -> E:
        """Return the engine, which is opened on first use. Raises StoreClosed after `close`."""
        return wait_for(self._open())

    def require_not_closed(self) -> None:
        """Raise StoreClosed after `close`."""
        if self._is_closed:
            raise StoreClosed

    def _open(self) -> Future[E]:
        with self._lock:
            self.require_not_closed()
            return self._thread.open()

    def close(self) -> None:
        """Close the engine and wait for it. Closing twice has no effect."""
        with self._lock:
            self._is_closed = True
        self._thread.close()


async def _run_when_open(work: "Callable[[AnyEngine], Awaitable[T]]", opening: Future[E]) -> T:
    engine = opening.result() if opening.done() else await asyncio.shield(asyncio.wrap_future(opening))
    return await work(engine)


def _close_unattended(thread: EngineThread[Any]) -> None:
    """Start closing an engine whose owner is gone. The callback logs an error, which nobody would see."""
    closing = thread.start_closing()
    if closing is not None:
        closing.add_done_callback(Future.result)
