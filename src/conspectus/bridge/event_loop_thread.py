"""An event loop in a thread of its own, for callers without one."""

import asyncio
import inspect
import os
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from concurrent.futures import CancelledError, Future
from contextlib import aclosing
from queue import SimpleQueue
from types import FrameType
from typing import Any, TypeVar

from conspectus.errors import ForkedEngine, StoreClosed

T = TypeVar("T")
CALLING_MODULES = frozenset({__name__.partition(".")[0], "functools"})
"""Modules whose frames stand between a method of this package and its caller."""
COROUTINE_FLAGS = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
THREAD_NAME = "conspectus event loop"


class EventLoopThread:
    """An event loop that runs in a daemon thread until it is stopped."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._is_stopping = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=_run_until_stopped, args=(self._loop,), name=THREAD_NAME, daemon=True
        )
        self._thread.start()

    @property
    def is_forked(self) -> bool:
        """Whether this process was forked from the one that runs the thread, which the child lacks."""
        return os.getpid() != self._process

    @property
    def is_current(self) -> bool:
        """Whether the caller runs on this event loop."""
        return running_loop() is self._loop

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine. Raises ForkedEngine, or StoreClosed after `stop_after`."""
        if self.is_forked or self._is_stopping:
            work.close()
            raise ForkedEngine if self.is_forked else StoreClosed
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and wait for it. An interrupt cancels it. Raises ForkedEngine or StoreClosed."""
        try:
            return wait_for(self.submit(work))
        except CancelledError as fault:
            if self._is_stopping:
                raise StoreClosed from fault
            raise

    def iterate(self, begin: Callable[[], AsyncGenerator[T, None]]) -> Generator[T, None, None]:
        """Yield the items of an asynchronous generator. Closing the iterator closes the generator."""
        if self.is_forked:
            raise ForkedEngine
        received: SimpleQueue[tuple[T] | None] = SimpleQueue()

        async def receive() -> None:
            try:
                async with aclosing(begin()) as events:
                    async for event in events:
                        received.put((event,))
            finally:
                received.put(None)

        receiving = self.submit(receive())
        try:
            while (event := received.get()) is not None:
                yield event[0]
            receiving.result()
        finally:
            receiving.cancel()

    def stop_after(self, last: Coroutine[Any, Any, None]) -> Future[None]:
        """Start a coroutine, and stop the loop when it ends. Whatever else still runs is cancelled then."""

        async def run_and_stop() -> None:
            try:
                await last
            finally:
                self._loop.stop()

        stopping = self.submit(run_and_stop())
        self._is_stopping = True
        return stopping

    def join(self) -> None:
        """Wait until the loop has stopped."""
        self._thread.join()


def wait_for(future: Future[T]) -> T:
    """Return the outcome of another thread. An interrupt cancels the work."""
    try:
        return future.result()
    finally:
        future.cancel()


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the running event loop of this thread, if there is one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def is_called_by_coroutine() -> bool:
    """Return whether the code that called this package is a coroutine, which can await."""
    frame = sys._getframe(1)
    while (
        frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in CALLING_MODULES
    ):
        frame = frame.f_back
    return bool(frame.f_code.co_flags & COROUTINE_FLAGS)


def _top_package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _run_until_stopped(loop: asyncio.AbstractEventLoop) -> None:
    with asyncio.Runner(loop_factory=lambda: loop):
        loop.run_forever()
