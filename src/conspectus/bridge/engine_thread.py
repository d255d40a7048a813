"""An engine that is opened, used and closed on an event loop in a thread of its own."""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

from conspectus.bridge.event_loop_thread import EventLoopThread, wait_for

E = TypeVar("E")


class EngineThread(Generic[E]):
    """Opens an engine in a thread, which starts with the first use.

    It has no reference to its user, so that it can close the engine after the user is gone.
    """

    def __init__(self, opening: Callable[[], AbstractAsyncContextManager[E]]) -> None:
        self._opening = opening
        self._loop: EventLoopThread | None = None
        self._engine: Future[E] | None = None
        self._opened: AbstractAsyncContextManager[E] | None = None
        self._closing: Future[None] | None = None

    @property
    def is_current(self) -> bool:
        """Whether the caller runs on the event loop of the engine."""
        return self._loop is not None and self._loop.is_current

    @property
    def loop(self) -> EventLoopThread:
        """The event loop of the engine."""
        if self._loop is None:
            self._loop = EventLoopThread()
        return self._loop

    def open(self) -> Future[E]:
        """Start opening the engine, unless it is open. Opening is retried after a failure."""
        if self._engine is None or (self._engine.done() and not self.is_open):
            self._engine = self.loop.submit(self._open())
        return self._engine

    @property
    def is_open(self) -> bool:
        """Whether the engine was opened successfully."""
        opening = self._engine
        if opening is None or not opening.done() or opening.cancelled():
            return False
        return opening.exception() is None

    def start_closing(self) -> Future[None] | None:
        """Close the engine and stop the thread, without waiting; None if neither runs in this process."""
        if self._loop is None or self._loop.is_forked:
            return None
        if self._closing is None:
            self._closing = self._loop.stop_after(self._close())
        return self._closing

    def close(self) -> None:
        """Close the engine and wait until the thread has ended. An interrupt shortens the wait."""
        closing = self.start_closing()
        if self._loop is None or closing is None:
            return
        try:
            wait_for(closing)
        finally:
            self._loop.join()

    async def _open(self) -> E:
        opening = self._opening()
        engine = await opening.__aenter__()
        self._opened = opening
        return engine

    async def _close(self) -> None:
        """Close the engine. At interpreter exit no thread is available for it; stored data is safe."""
        if self._opened is None:
            return
        try:
            await self._opened.__aexit__(None, None, None)
        except RuntimeError as fault:
            if "shutdown" not in str(fault):
                raise
