"""What every executor of jobs must do. Subclass `JobsContract`, give it `jobs`, let pytest collect it.

Jobs here are names that say what happens: `slow` ones go on until they are let go, `stubborn` ones fail from
outside at their first run.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

from conspectus.errors import StorageBusy
from conspectus.model.ids import JobId
from conspectus.ports.jobs import Jobs

OpenJobs = Callable[[], Awaitable[Jobs]]
WORKERS = 2
LONG = 30.0


class Site:
    """Where jobs do their work: it sees which were started, which ended, and how many ran at once."""

    def __init__(self) -> None:
        self.started: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.running: set[str] = set()
        self.maximum = 0
        self.loops: set[asyncio.AbstractEventLoop] = set()
        self.let_go = asyncio.Event()

    async def run(self, job: JobId) -> None:
        """One run of a job."""
        self.loops.add(asyncio.get_running_loop())
        self.started[job] += 1
        self.running.add(job)
        self.maximum = max(self.maximum, len(self.running))
        try:
            if job.startswith("stubborn") and self.started[job] == 1:
                raise StorageBusy("not now")
            if job.startswith("slow"):
                await self.let_go.wait()
            await asyncio.sleep(0.01)
        finally:
            self.running.discard(job)
        self.ended[job] += 1

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait for something to become true; a test that waits for what never comes fails."""
        async with asyncio.timeout(LONG):
            while True:
                if reached():
                    return
                await asyncio.sleep(0.01)


class JobsContract:
    """The behaviour of every executor.

    Fixture to override: `open_jobs`, which makes an executor with two workers on always the same place, and
    closes those that a test leaves open. `durable` says that it remembers over a close what it was given.
    """

    durable = True

    async def test_what_is_submitted_is_run_once(self, open_jobs: OpenJobs) -> None:
        """On the loop that started it, never more at once than there are workers."""
        jobs, site = await open_jobs(), Site()
        await jobs.start(site.run)
        for name in [f"slow{number}" for number in range(12)] * 2:
            await jobs.submit(JobId(name))
        site.let_go.set()
        await site.until(lambda: len(site.ended) == 12)
        assert set(site.started.values()) == {1}
        assert site.maximum <= WORKERS
        assert site.loops == {asyncio.get_running_loop()}
        await jobs.close(grace=LONG)

    async def test_a_job_that_has_ended_can_be_run_again(self, open_jobs: OpenJobs) -> None:
        """Whoever submits looks again if need be: the end of a run may take a moment to be known."""
        jobs, site = await open_jobs(), Site()
        await jobs.start(site.run)
        await jobs.submit(JobId("a"))
        await site.until(lambda: site.ended["a"] == 1)
        async with asyncio.timeout(LONG):
            while site.started["a"] == 1:
                await jobs.submit(JobId("a"))
                await asyncio.sleep(0.05)
        await site.until(lambda: site.ended["a"] == 2)
        await jobs.close(grace=LONG)
        assert site.started["a"] == 2

    async def test_a_run_that_fails_from_outside_is_repeated(self, open_jobs: OpenJobs) -> None:
        """Until it goes well, and no longer."""
        jobs, site = await open_jobs(), Site()
        await jobs.start(site.run)
        await jobs.submit(JobId("stubborn"))
        await site.until(lambda: site.ended["stubborn"] == 1)
        await jobs.close(grace=LONG)
        assert site.started["stubborn"] == 2

    async def test_a_running_job_is_cancelled(self, open_jobs: OpenJobs) -> None:
        """It has stopped when the call returns, and its place is free for others."""
        jobs, site = await open_jobs(), Site()
        await jobs.start(site.run)
        for name in ("slow1", "slow2"):
            await jobs.submit(JobId(name))
        await site.until(lambda: len(site.running) == WORKERS)
        for name in ("slow1", "slow2"):
            await jobs.cancel(JobId(name))
        assert site.running == set()
        await jobs.submit(JobId("next"))
        await site.until(lambda: site.ended["next"] == 1)
        assert site.started["slow1"] == site.started["slow2"] == 1
        await jobs.close(grace=LONG)

    async def test_a_waiting_job_that_is_cancelled_never_runs(self, open_jobs: OpenJobs) -> None:
        """Cancelling what is unknown, or has ended, changes nothing."""
        jobs, site = await open_jobs(), Site()
        await jobs.start(site.run)
        for name in ("slow1", "slow2", "waits", "last"):
            await jobs.submit(JobId(name))
        await site.until(lambda: len(site.running) == WORKERS)
        for name in ("waits", "unknown"):
            await jobs.cancel(JobId(name))
        site.let_go.set()
        await site.until(lambda: site.ended["last"] == 1)
        await jobs.cancel(JobId("last"))
        await jobs.close(grace=LONG)
        assert site.started["waits"] == 0

    async def test_closing_lets_running_jobs_finish(self, open_jobs: OpenJobs) -> None:
        """Those that still wait are not begun any more."""
        jobs, site = await open_jobs(), Site()
        await jobs.start(site.run)
        for name in ("slow1", "slow2", "waits"):
            await jobs.submit(JobId(name))
        await site.until(lambda: len(site.running) == WORKERS)
        asyncio.get_running_loop().call_later(0.1, site.let_go.set)
        await jobs.close(grace=LONG)
        assert site.ended == {"slow1": 1, "slow2": 1}
        assert site.started["waits"] == 0

    async def test_what_is_unfinished_is_stopped_and_run_at_the_next_start(self, open_jobs: OpenJobs) -> None:
        """After the grace; an executor without a memory is told again."""
        jobs, site = await open_jobs(), Site()
        await jobs.start(site.run)
        for name in ("slow1", "slow2", "waits"):
            await jobs.submit(JobId(name))
        await site.until(lambda: len(site.running) == WORKERS)
        await jobs.close(grace=0.0)
        assert (site.running, site.ended) == (set(), Counter())
        again, later = await open_jobs(), Site()
        later.let_go.set()
        await again.start(later.run)
        for name in () if self.durable else ("slow1", "slow2", "waits"):
            await again.submit(JobId(name))
        await later.until(lambda: len(later.ended) == 3)
        await again.close(grace=LONG)
        assert set(later.started.values()) == {1}

    async def test_closing_what_does_nothing_is_no_trouble(self, open_jobs: OpenJobs) -> None:
        """Also where what is submitted comes too late."""
        jobs, site = await open_jobs(), Site()
        await jobs.start(site.run)
        await jobs.close(grace=LONG)
        await jobs.submit(JobId("late"))
        assert not site.started
