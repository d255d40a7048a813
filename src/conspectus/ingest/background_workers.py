"""Work behind the writers: a worker for each collection, restartable at any moment."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from conspectus.errors import ConspectusError, ProviderUnavailable, StorageBusy, StorageError, TurnLost
from conspectus.model.ids import CollectionId
from conspectus.ports import Progress
from conspectus.ports.locks import Turn

ATTEMPTS = 5
POLL_SECONDS = 0.2
GATHERING_SECONDS = 0.05
AWAY_SECONDS = 2.0
"""Seconds until it is tried again whether a store that did not answer is back."""


@dataclass(slots=True)
class PendingWork:
    """One collection's worker: how far it is, and whether there came more while it ran."""

    task: asyncio.Task[None] | None = None
    again: bool = False
    wanted: asyncio.Event = field(default_factory=asyncio.Event)
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    done: int = 0
    error: ConspectusError | None = None
    ended: float = 0.0

    @property
    def runs(self) -> bool:
        """Whether it is at work."""
        return self.task is not None and not self.task.done()

    def gave_up_within(self, seconds: float) -> bool:
        """Whether an error stopped it no longer ago than that."""
        return self.error is not None and not self.runs and time.monotonic() - self.ended < seconds

    async def rest(self, seconds: float) -> None:
        """Wait before it is tried again, but no longer than until somebody asks for that."""
        self.woken.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.woken.wait(), seconds)

    async def gathering(self, most: int = 1) -> None:
        """Let more come together, unless somebody waits: each batch costs writers the time of a commit.

        While more keeps coming this goes on, up to `most` times. What came meanwhile has to be read after.
        """
        for _ in range(most):
            self.again = False
            with suppress(TimeoutError):
                await asyncio.wait_for(self.wanted.wait(), GATHERING_SECONDS)
            if self.wanted.is_set() or not self.again:
                return


@dataclass(frozen=True, slots=True)
class BackgroundTask:
    """What a worker does: whether anything waits, and all of it; more gathers up to `gathers` times."""

    waits: Callable[[], Awaitable[object]]
    do: Callable[[PendingWork], Awaitable[None]]
    gathers: int = 1


class Workers:
    """Starts, watches and stops the workers of one engine. `what` is said of one that an error stopped."""

    def __init__(self, turn: Turn, what: str) -> None:
        self._turn = turn
        self._what = what
        self._works: dict[str, PendingWork] = {}

    def of(self, collection: CollectionId) -> PendingWork:
        """The worker of a collection, which need not have begun."""
        return self._works.setdefault(collection, PendingWork())

    def wake(self, collection: CollectionId, chore: BackgroundTask) -> PendingWork:
        """Make sure that a worker is running that will see everything committed before this call."""
        work = self.of(collection)
        work.again, work.error = True, None
        work.wanted.clear()
        work.woken.set()
        if not work.runs:
            work.task = asyncio.create_task(self._run(work, chore))
        return work

    async def settle(
        self, work: PendingWork, total: Callable[[], Awaitable[int]], progress: Progress | None
    ) -> int:
        """Wait until a worker that was just woken is done; how much it did. Raises what stopped it."""
        work.wanted.set()
        before, most = work.done, await total()
        while work.runs and work.error is None and work.task is not None:
            if progress is not None:
                progress(self._what, min(work.done - before, most), most)
            await asyncio.wait({work.task}, timeout=POLL_SECONDS)
        if work.task is not None and work.task.done() and not work.task.cancelled():
            work.task.result()
        if work.error is not None:
            raise work.error
        if progress is not None and most:
            progress(self._what, most, most)
        return work.done - before

    async def close(self) -> None:
        """Stop all workers; what they did not finish is found again at the next start."""
        tasks = [work.task for work in self._works.values() if work.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, work: PendingWork, chore: BackgroundTask) -> None:
        try:
            await self._attempts(work, chore)
        finally:
            work.ended = time.monotonic()

    async def _attempts(self, work: PendingWork, chore: BackgroundTask) -> None:
        failures = 0
        while work.again:
            await work.gathering(chore.gathers)
            work.again = False
            try:
                await self._drain(work, chore)
                failures, work.error = 0, None
            except ProviderUnavailable as fault:
                failures += 1
                if failures == ATTEMPTS:
                    work.error = fault
                    return
                work.again = True
                await asyncio.sleep(fault.retry_after or 2.0**failures)
            except StorageBusy as fault:
                work.error, work.again = fault, True
                await work.rest(AWAY_SECONDS)
            except ConspectusError as fault:
                work.error = fault
                return
            except OSError as fault:
                work.error = StorageError(f"{self._what} stopped: {fault}")
                return

    async def _drain(self, work: PendingWork, chore: BackgroundTask) -> None:
        while await chore.waits():
            with suppress(TurnLost):
                if await self._done_in_turn(work, chore):
                    return
            await asyncio.sleep(POLL_SECONDS)

    async def _done_in_turn(self, work: PendingWork, chore: BackgroundTask) -> bool:
        async with self._turn() as mine:
            if mine:
                await chore.do(work)
            return bool(mine)
