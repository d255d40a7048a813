"""Access to an engine for programs with and without an event loop, however the engine was given."""

import asyncio
import inspect
import shutil
import tempfile
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, runtime_checkable

from conspectus import bootstrap
from conspectus.engine import Engine
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput

P = ParamSpec("P")
T = TypeVar("T")
Work: TypeAlias = Callable[[AnyEngine], Coroutine[Any, Any, T]]


@runtime_checkable
class Blocking(Protocol):
    """A blocking engine, as returned by `with conspectus.open(...)` and `with conspectus.connect(...)`."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the engine's event loop."""

    @property
    def asynchronous(self) -> AnyEngine:
        """The asynchronous engine."""


STANDSTILL = (
    "works on this event loop, which a blocking call would stop; use the asynchronous method, or give a path"
)
Given: TypeAlias = AnyEngine | Blocking | str | Path | None
"""An engine of `conspectus.open` or `conspectus.connect`, or the path of a store (None: that of the
settings), which is opened on first use.
"""


class Calls(Protocol):
    """Runs work with an engine."""

    async def run(self, work: Work[T]) -> T:
        """Run work from any event loop."""

    def wait(self, work: Work[T]) -> T:
        """Run work without an event loop, and wait for it."""

    def end(self) -> None:
        """Close what was opened here."""


class Closing:
    """An object that uses an engine, and can be closed."""

    _calls: Calls

    def close(self) -> None:
        """Close the store that was opened at a path. An engine that was passed in stays open."""
        self._calls.end()


def calls_to(engine: Given) -> Calls:
    """Return the access to an engine. An asynchronous engine has to be passed while its loop runs."""
    if engine is None or isinstance(engine, str | Path):
        return OwnEngine(partial(bootstrap.open, engine))
    return _Lent(engine) if isinstance(engine, Blocking) else _OfLoop(engine)


def both(
    work: Callable[Concatenate[Any, AnyEngine, P], Coroutine[Any, Any, T]],
) -> tuple[Callable[Concatenate[Any, P], T], Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]]:
    """Return a blocking and an asynchronous method from one coroutine function."""

    @wraps(work)
    def waited(self: Any, /, *args: P.args, **named: P.kwargs) -> T:
        calls: Calls = self._calls
        return calls.wait(lambda engine: work(self, engine, *args, **named))

    @wraps(work)
    async def awaited(self: Any, /, *args: P.args, **named: P.kwargs) -> T:
        calls: Calls = self._calls
        return await calls.run(lambda engine: work(self, engine, *args, **named))

    signature = inspect.signature(work)
    own, _engine, *others = signature.parameters.values()
    for each in (waited, awaited):
        vars(each)["__signature__"] = signature.replace(parameters=[own, *others])
    return waited, awaited


def temporary_calls() -> Calls:
    """Return the access to a temporary store.

    It is deleted when it is closed, is no longer referenced, or the program ends.
    """
    folder = temporary_folder()
    return OwnEngine(partial(bootstrap.open, folder), folder=folder)


class _Lent:
    """A blocking engine, which has its own event loop."""

    def __init__(self, engine: Blocking) -> None:
        self._engine = engine

    async def run(self, work: Work[T]) -> T:
        return await asyncio.to_thread(self.wait, work)

    def wait(self, work: Work[T]) -> T:
        return self._engine.run(work(self._engine.asynchronous))

    def end(self) -> None:
        """Do nothing: the owner closes the engine."""


class _OfLoop:
    """An asynchronous engine on the event loop of its owner."""

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

    def end(self) -> None:
        """Do nothing: the owner closes the engine."""


def refuse(unknown: Iterable[str]) -> None:
    """Raise InvalidInput for the first unsupported argument."""
    for name in sorted(unknown):
        raise InvalidInput(name, "is not an argument of this call; leave it out")


def _outcome(future: Future[T]) -> T:
    """Wait for the result of another thread. An interrupt cancels the work."""
    try:
        return future.result()
    finally:
        future.cancel()


def _running() -> asyncio.AbstractEventLoop | None:
    """Return the running event loop of this thread, if there is one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


Opening = Callable[[], AbstractAsyncContextManager[Engine]]


class Closed(InvalidInput, RuntimeError):
    """The object is closed. Create another one."""

    def __init__(self, what: str) -> None:
        super().__init__(what, "is closed; create another one")


class OwnEngine:
    """One engine of one owner. It is closed when the owner is garbage collected."""

    def __init__(self, opening: Opening, *, folder: Path | None = None) -> None:
        """`folder` is deleted when the engine is closed, at the latest at the exit of the interpreter."""
        self._lock = threading.Lock()
        self._worker = _Worker(opening, folder)
        self._closed = False
        self._end = weakref.finalize(self, self._worker.end)
        self._end.atexit = False

    async def run(self, work: Callable[[Engine], Awaitable[T]]) -> T:
        """Run work with the engine, which is opened on first use."""
        return await asyncio.wrap_future(self.start(work))

    def wait(self, work: Callable[[Engine], Awaitable[T]]) -> T:
        """Run work without an event loop, and wait for it."""
        return _outcome(self.start(work))

    def start(self, work: Callable[[Engine], Awaitable[T]]) -> Future[T]:
        """Start work without waiting. Programs without an event loop wait for the returned future."""
        with self._lock:
            if self._closed:
                raise Closed("store")
            opened = self._worker.opened()

        async def done() -> T:
            return await work(await asyncio.shield(asyncio.wrap_future(opened)))

        return self._worker.submit(done())

    async def close(self) -> None:
        """Close everything. Closing twice has no effect."""
        await asyncio.to_thread(self.end)

    def end(self) -> None:
        """Close everything and wait for it."""
        with self._lock:
            self._closed = True
        self._end()
        self._worker.join()


class _Worker:
    """The thread. It has no reference to its owner, so that it can outlive it while it closes."""

    def __init__(self, opening: Opening, folder: Path | None) -> None:
        self._opening = opening
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opened: Future[Engine] | None = None
        self._held: AbstractAsyncContextManager[Engine] | None = None
        self._thread: threading.Thread | None = None
        self._forget = weakref.finalize(self, _delete, folder)

    def opened(self) -> Future[Engine]:
        """Return the engine. Opening is retried after a failure."""
        failed = self._opened is not None and self._opened.done() and self._opened.exception() is not None
        if self._opened is None or failed:
            self._opened = self.submit(self._open())
        return self._opened

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run work in the thread, which is started on first use."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._run, args=(self._loop,), name="conspectus video", daemon=True
            )
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def end(self) -> None:
        """Start closing, without waiting."""
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
        """Close the engine. At interpreter exit no thread is available for it; stored data is safe."""
        if self._held is not None:
            try:
                await self._held.__aexit__(None, None, None)
            except RuntimeError as fault:
                if "shutdown" not in str(fault):
                    raise


def temporary_folder() -> Path:
    """Create a folder for a temporary store."""
    return Path(tempfile.mkdtemp(prefix="conspectus-video-"))


def _delete(folder: Path | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
