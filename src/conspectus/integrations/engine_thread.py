"""An engine that opens when it is first needed, in a thread of its own.

So it can be used from any event loop, one after the other too, and by programs that never close it.
"""

import asyncio
import shutil
import tempfile
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Any, TypeVar

from conspectus.engine import Engine
from conspectus.errors import InvalidInput

T = TypeVar("T")
Opening = Callable[[], AbstractAsyncContextManager[Engine]]


class Closed(InvalidInput, RuntimeError):
    """What is used was closed before; create another one."""

    def __init__(self, what: str) -> None:
        super().__init__(what, "is closed; create another one")


class OwnEngine:
    """One engine of one owner; when the owner is gone, it is closed."""

    def __init__(self, opening: Opening, *, folder: Path | None = None) -> None:
        """`folder` is deleted when the engine is closed, and at the latest when the interpreter ends."""
        self._lock = threading.Lock()
        self._worker = _Worker(opening, folder)
        self._closed = False
        self._end = weakref.finalize(self, self._worker.end)
        self._end.atexit = False

    async def run(self, work: Callable[[Engine], Awaitable[T]]) -> T:
        """What comes of some work with the engine, which is opened if it was not yet."""
        return await asyncio.wrap_future(self.start(work))

    def start(self, work: Callable[[Engine], Awaitable[T]]) -> Future[T]:
        """The same without waiting for it: programs without an event loop wait for what this returns."""
        with self._lock:
            if self._closed:
                raise Closed("store")
            opened = self._worker.opened()

        async def done() -> T:
            return await work(await asyncio.shield(asyncio.wrap_future(opened)))

        return self._worker.submit(done())

    async def close(self) -> None:
        """Release everything; twice is harmless."""
        await asyncio.to_thread(self.end)

    def end(self) -> None:
        """Release everything, and wait for it."""
        with self._lock:
            self._closed = True
        self._end()
        self._worker.join()


class _Worker:
    """The thread. It knows nothing of who uses it, so that it can outlive them while it closes."""

    def __init__(self, opening: Opening, folder: Path | None) -> None:
        self._opening = opening
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opened: Future[Engine] | None = None
        self._held: AbstractAsyncContextManager[Engine] | None = None
        self._thread: threading.Thread | None = None
        self._forget = weakref.finalize(self, _delete, folder)

    def opened(self) -> Future[Engine]:
        """The engine; one that could not be opened is tried again."""
        failed = self._opened is not None and self._opened.done() and self._opened.exception() is not None
        if self._opened is None or failed:
            self._opened = self.submit(self._open())
        return self._opened

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Have some work done in the thread, which is started if it was not yet."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._run, args=(self._loop,), name="conspectus video", daemon=True
            )
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def end(self) -> None:
        """Begin to close, without waiting for it."""
        if self._loop is None:
            self._forget()
            return
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)

    def join(self) -> None:
        """Wait until everything is closed."""
        if self._thread is not None:
            self._thread.join()

    async def _open(self) -> Engine:
        held = self._opening()
        engine = await held.__aenter__()
        self._held = held
        return engine

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            loop.run_forever()
            runner.run(self._close())
        self._forget()

    async def _close(self) -> None:
        """Close the engine. While the interpreter ends no thread can help with it; what is stored is safe."""
        if self._held is not None:
            try:
                await self._held.__aexit__(None, None, None)
            except RuntimeError as fault:
                if "shutdown" not in str(fault):
                    raise


def temporary_folder() -> Path:
    """A new folder for a store that is not to stay."""
    return Path(tempfile.mkdtemp(prefix="conspectus-video-"))


def _delete(folder: Path | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
