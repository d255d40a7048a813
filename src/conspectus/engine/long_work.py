"""Long work: plain functions that run beside the event loop, few at a time, and end with their caller."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from time import perf_counter, sleep
from typing import Final, Literal, TypeAlias, TypeVar
from weakref import WeakSet, WeakValueDictionary

from conspectus.errors import ConspectusError, Overloaded
from conspectus.model.ids import UserId
from conspectus.ports import CountTokens
from conspectus.window.counting import count_in_parts

T = TypeVar("T")
WorkKind: TypeAlias = Literal["window", "explanation", "recording", "other"]
TurnKind: TypeAlias = WorkKind | Literal["explained query"]
SLICE_SECONDS: Final = 0.0005
"""How long work computes before it lets other threads have the interpreter."""
PAUSE_SECONDS: Final = 0.0002
MAX_CREDIT_SECONDS: Final = 0.02
"""How much longer long work may wait for requests than it has computed."""
FEW_CHARACTERS: Final = 10_000
"""Characters whose tokens are counted in a few milliseconds."""


class WorkEnded(ConspectusError):
    """Ends the thread of long work whose caller is gone; no caller gets this error."""

    code = "work_ended"


class Work:
    """The state of a function in a thread, which calls this as its checkpoint and asks it for the time.

    It waits at checkpoints while others have precedence, but in all hardly longer than it computes.
    """

    def __init__(
        self,
        have_others_precedence: Callable[[], bool] = lambda: False,
        *,
        clock: Callable[[], float] = perf_counter,
        pause: Callable[[float], None] = sleep,
    ) -> None:
        self.is_hurried = False
        """Whether it should finish with what it has."""
        self._have_others_precedence = have_others_precedence
        self._clock, self._pause = clock, pause
        self._ended = threading.Event()
        self._start = self._resumed = clock()
        self._credit = MAX_CREDIT_SECONDS

    def begin(self) -> None:
        """Count the seconds from now on."""
        self._start = self._resumed = self._clock()

    def __call__(self) -> None:
        """Let other threads run after a while. Raises WorkEnded when the caller is gone."""
        if self._ended.is_set():
            raise WorkEnded("its caller is gone")
        paused = self._clock()
        if paused - self._resumed <= SLICE_SECONDS:
            return
        self._credit = min(self._credit + paused - self._resumed, MAX_CREDIT_SECONDS)
        # Without a pause, a thread that waits for the interpreter gets it only after 5 ms.
        self._pause(PAUSE_SECONDS)
        while self._have_others_precedence() and self._clock() - paused < self._credit:
            self._pause(PAUSE_SECONDS)
        self._resumed = self._clock()
        self._credit = max(self._credit - (self._resumed - paused), 0.0)

    def end(self) -> None:
        """Let the next checkpoint raise WorkEnded."""
        self._ended.set()

    def is_over(self, seconds: float) -> bool:
        """Return whether it has run for this many seconds, or should finish."""
        return self.is_hurried or self._clock() - self._start > seconds


class LongWork:
    """Runs functions in threads: one of each kind at a time, and of those that wait one of each user.

    When the caller is cancelled, the function ends at its next checkpoint.
    """

    def __init__(self) -> None:
        self._threads: dict[WorkKind, ThreadPoolExecutor] = {}
        self._locks: dict[TurnKind, asyncio.Lock] = {}
        self._user_locks: WeakValueDictionary[tuple[TurnKind, UserId], asyncio.Lock] = WeakValueDictionary()
        self._running: WeakSet[Work] = WeakSet()
        self._is_stopping = False
        self.have_others_precedence: Callable[[], bool] = lambda: False
        """Whether functions should wait a moment at their checkpoints."""

    async def run(self, function: Callable[[Work], T], *, kind: WorkKind = "other", user: UserId) -> T:
        """Run a function when it is its turn. Raises what it raises, or Overloaded if the process stops."""
        async with self.take_turn(kind, user):
            return await self._run(function, kind)

    @asynccontextmanager
    async def take_turn(self, kind: TurnKind, user: UserId) -> AsyncIterator[None]:
        """Wait until no other block has the turn of this kind. Raises Overloaded if the process stops."""
        user_lock = self._user_locks.setdefault((kind, user), asyncio.Lock())
        async with user_lock, self._locks.setdefault(kind, asyncio.Lock()):
            if self._is_stopping:
                raise Overloaded("the server is about to stop")
            yield

    async def _run(self, function: Callable[[Work], T], kind: WorkKind) -> T:
        work = Work(lambda: not self._is_stopping and self.have_others_precedence())
        self._running.add(work)

        def call() -> T:
            work.begin()
            return function(work)

        threads = self._threads.get(kind)
        if threads is None:
            threads = self._threads[kind] = ThreadPoolExecutor(1, thread_name_prefix=f"{kind}-work")
        running = asyncio.get_running_loop().run_in_executor(threads, call)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            work.end()
            running.add_done_callback(_ignore_end)
            await asyncio.wait({running})
            raise
        finally:
            self._running.discard(work)

    async def run_counting(
        self,
        function: Callable[[CountTokens], T],
        count: CountTokens,
        *,
        characters: int,
        user: UserId,
        tokenizer: str = "o200k_base",
    ) -> T:
        """Run a function that counts tokens, at once if the texts have few characters."""
        if characters < FEW_CHARACTERS:
            return function(count)
        return await self.run(lambda work: function(count_in_parts(count, tokenizer, work)), user=user)

    @property
    def running(self) -> int:
        """How many functions are running."""
        return len(self._running)

    def stop(self) -> None:
        """Start no function any more, and let the running ones finish soon."""
        self._is_stopping = True
        for work in self._running:
            work.is_hurried = True

    async def close(self) -> None:
        """End all functions and their threads."""
        self.stop()
        for work in tuple(self._running):
            work.end()
        for threads in self._threads.values():
            await asyncio.to_thread(threads.shutdown, wait=True, cancel_futures=True)


def _ignore_end(running: asyncio.Future[T]) -> None:
    """Retrieve the error of work whose caller is gone, so that asyncio does not log it."""
    if not running.cancelled():
        running.exception()
