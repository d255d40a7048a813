"""An event loop in a thread of its own, for callers without one."""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from concurrent.futures import Future
from contextlib import aclosing
from queue import SimpleQueue
from typing import Any, TypeVar

from conspectus.errors import ForkedEngine

T = TypeVar("T")
THREAD_NAME = "conspectus event loop"


class EventLoopThread:
    """An event loop that runs in a daemon thread until it is stopped."""

    def __init__(self) -> None:
        self._process = os.getpid()
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
        """Start a coroutine. Raises ForkedEngine."""
        if self.is_forked:
            work.close()
            raise ForkedEngine
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and wait for it. An interrupt cancels it. Raises ForkedEngine."""
        return wait_for(self.submit(work))

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

        return self.submit(run_and_stop())

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


def _run_until_stopped(loop: asyncio.AbstractEventLoop) -> None:
    with asyncio.Runner(loop_factory=lambda: loop):
        loop.run_forever()
