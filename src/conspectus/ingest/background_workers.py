"""Work behind the writers: a worker for each collection, restartable at any moment.

One kind of worker fills in vectors, another looks through passages for names. What is left to do is read from
the store each time, so a killed worker loses at most one batch of work. Where several processes fill in
vectors, each has portions of the chunks to itself. Watchers have one task for each thing that is followed.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import field

from conspectus.deferred import dataclass
from conspectus.errors import (
    ConspectusError,
    LockLost,
    ProviderError,
    ProviderUnavailable,
    StorageBusy,
    StorageError,
)
from conspectus.model.ids import CollectionId
from conspectus.ports import Progress
from conspectus.ports.jobs import Turn

ATTEMPTS = 5
POLL_SECONDS = 0.2
GATHERING_SECONDS = 0.05
REST_SECONDS = 60.0
"""Seconds before a provider that failed several times is called again."""
AWAY_SECONDS = 2.0
"""Seconds until it is tried again whether a store that did not answer is back."""


@dataclass(slots=True)
class PendingWork:
    """One collection's worker: how far it is, and whether there came more while it ran."""

    task: asyncio.Task[None] | None = None
    again: bool = False
    requested: asyncio.Event = field(default_factory=asyncio.Event)
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    done: int = 0
    has_work: bool | None = None
    """Whether there is anything to do, as the last write of this process saw it."""
    error: ConspectusError | None = None
    ended: float = 0.0

    @property
    def runs(self) -> bool:
        """Whether it is at work."""
        return self.task is not None and not self.task.done()

    def has_failed_within(self, seconds: float) -> bool:
        """Whether an error stopped it no longer ago than that; it may rest since."""
        return self.error is not None and time.monotonic() - self.ended < seconds

    def fail(self, error: ConspectusError) -> None:
        """Note the error for those who wait, and when it came."""
        self.error, self.ended = error, time.monotonic()

    async def pause(self, seconds: float) -> None:
        """Wait before it is tried again, but no longer than until somebody asks for that."""
        self.woken.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.woken.wait(), seconds)

    async def gather(self, maximum: int = 1) -> bool:
        """Wait for more work, unless a caller waits, because each batch costs writers the time of a commit.

        This repeats while more arrives, up to `maximum` times. Returns whether more arrived.
        """
        came = self.again
        for _ in range(maximum):
            self.again = False
            with suppress(TimeoutError):
                await asyncio.wait_for(self.requested.wait(), GATHERING_SECONDS)
            came = came or self.again
            if self.requested.is_set() or not self.again:
                break
        return came


@dataclass(frozen=True, slots=True)
class BackgroundTask:
    """The work of a worker: whether any is pending, and doing it; more is gathered up to `gathers` times."""

    waits: Callable[[], Awaitable[object]]
    do: Callable[[PendingWork], Awaitable[None]]
    gathers: int = 1


class Workers:
    """Starts, watches and stops the workers of one engine. `what` names the work in error messages."""

    def __init__(self, turn: Turn, what: str) -> None:
        self._turn = turn
        self._what = what
        self._works: dict[str, PendingWork] = {}

    def wrote(self, collection: CollectionId, *, has_work: bool | None) -> None:
        """Remember what a write saw of the whole collection, for who asks next."""
        self.of(collection).has_work = has_work

    def knows_of_work(self, collection: CollectionId) -> bool | None:
        """The result of the last write, once: later writes of other processes are not known."""
        work = self.of(collection)
        had_work, work.has_work = work.has_work, None
        return had_work

    def of(self, collection: CollectionId) -> PendingWork:
        """The worker of a collection, which need not have begun."""
        return self._works.setdefault(collection, PendingWork())

    def start(self, collection: CollectionId, chore: BackgroundTask) -> PendingWork:
        """Make sure that a worker is running that will see everything committed before this call."""
        work = self.of(collection)
        work.again, work.error, work.has_work = True, None, None
        work.requested.clear()
        work.woken.set()
        if not work.runs:
            work.task = asyncio.create_task(self._run(work, chore))
        return work

    async def until_done(
        self, work: PendingWork, total: Callable[[], Awaitable[int]], progress: Progress | None
    ) -> int:
        """Wait until a worker that was just woken is done; how much it did. Raises what stopped it."""
        work.requested.set()
        before, maximum = work.done, await total()
        while work.runs and work.error is None and work.task is not None:
            if progress is not None:
                progress(self._what, min(work.done - before, maximum), maximum)
            await asyncio.wait({work.task}, timeout=POLL_SECONDS)
        if work.task is not None and work.task.done() and not work.task.cancelled():
            work.task.result()
        if work.error is not None:
            raise work.error
        if progress is not None and maximum:
            progress(self._what, maximum, maximum)
        return work.done - before

    async def close(self) -> None:
        """Stop all workers; what they did not finish is found again at the next start."""
        tasks = [work.task for work in self._works.values() if work.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, work: PendingWork, chore: BackgroundTask) -> None:
        """Do the work until none is left. A fault of a provider or a busy store is waited for, for ever."""
        failures = 0
        while work.again:
            await work.gather(chore.gathers)
            work.again = False
            try:
                await self._drain(work, chore)
                failures, work.error = 0, None
            except ProviderError as fault:
                failures, work.again = failures + 1, True
                await _pause_after(fault, failures, work)
            except StorageBusy as fault:
                work.error, work.again = fault, True
                await work.pause(AWAY_SECONDS)
            except ConspectusError as fault:
                work.fail(fault)
                return
            except OSError as fault:
                work.fail(StorageError(f"{self._what} stopped: {fault}"))
                return

    async def _drain(self, work: PendingWork, chore: BackgroundTask) -> None:
        """A wake-up follows a write here; the store is read again only while another process has the lock."""
        waits: object = True
        while waits:
            with suppress(LockLost):
                if await self._do_in_turn(work, chore):
                    return
            await asyncio.sleep(POLL_SECONDS)
            waits = await chore.waits()

    async def _do_in_turn(self, work: PendingWork, chore: BackgroundTask) -> bool:
        async with self._turn() as mine:
            if mine:
                await chore.do(work)
            return bool(mine)


async def _pause_after(fault: ProviderError, failures: int, work: PendingWork) -> None:
    """Wait before the provider is called again: briefly at first, then longer and with the error noted."""
    if isinstance(fault, ProviderUnavailable) and failures < ATTEMPTS:
        await asyncio.sleep(fault.retry_after or 2.0**failures)
        return
    work.fail(fault)
    retry_after = fault.retry_after if isinstance(fault, ProviderUnavailable) else None
    await work.pause(max(REST_SECONDS, retry_after or 0.0))
