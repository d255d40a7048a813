"""The jobs of one open store: started, stopped, and swept when a process died."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final

from conspectus.errors import (
    StorageError,
)
from conspectus.model.ids import JobId
from conspectus.model.jobs import FINISHED
from conspectus.model.pages import pages
from conspectus.ports import Clock
from conspectus.ports.jobs import JobFiles, Jobs, JobScope, JobStore, Run, Turn

logger = logging.getLogger(__name__)


POLL_SECONDS: Final = 1.0
"""Seconds between two polls of the job store, or more where a poll takes long."""
PAUSE_RATIO: Final = 20.0
"""Seconds of pause for each second that a poll of the job store took."""
SWEEP_SECONDS: Final = 60.0
ORPHAN_AGE: Final = timedelta(minutes=1)
"""Files of a job that was never stored are deleted when they did not change for this long."""

OpenJobs = Callable[[], Awaitable[Jobs]]
"""Makes the executor, which may be slow to import."""


class JobWorker:
    """The jobs of one open store.

    It starts with the first job or with `start`. Of all processes that have a store open, the one that holds
    the lock runs all jobs. It polls the job store, so a stored job is run even if the process that stored it
    has died.
    """

    def __init__(
        self, job_store: JobStore, files: JobFiles, *, turn: Turn, open_jobs: OpenJobs, clock: Clock
    ) -> None:
        self._job_store = job_store
        self._files = files
        self._turn = turn
        self._open_jobs = open_jobs
        self._clock = clock
        self._jobs: Jobs | None = None
        self._serving: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._grace = 0.0
        self._swept = float("-inf")

    async def start(self, run: Run) -> None:
        """Run queued jobs as soon as this process holds the lock. Raises the error that ended the service."""
        if self._serving is None:
            self._serving = asyncio.create_task(self._serve(run))
        if self._serving.done() and not self._closing.is_set():
            self._serving.result()

    async def submit(self, job: JobId) -> None:
        """Run a job that is in the job store, without waiting for the next look into it."""
        if self._jobs is None or self._closing.is_set():
            return
        try:
            await self._jobs.submit(job)
        except StorageError as fault:
            logger.warning("job_wake_failed job=%(job)s code=%(code)s", {"job": job, "code": fault.code})

    async def cancel(self, job: JobId) -> None:
        """Stop a job here; elsewhere it is stopped when its row is looked at."""
        if self._jobs is None:
            return
        try:
            await self._jobs.cancel(job)
        except StorageError as fault:
            logger.warning("job_cancel_failed job=%(job)s code=%(code)s", {"job": job, "code": fault.code})

    async def close(self, *, grace: float) -> None:
        """Let running jobs finish for up to `grace` seconds; the others run again at the next start."""
        self._grace = grace
        self._closing.set()
        if self._serving is not None:
            await asyncio.wait({self._serving})

    async def _serve(self, run: Run) -> None:
        while not self._closing.is_set():
            try:
                await self._lead(run)
            except StorageError as fault:
                logger.warning("job_runner_failed error=%(error)s", {"error": fault})
            await self._pause(POLL_SECONDS)

    async def _lead(self, run: Run) -> None:
        """Run jobs until the end of the service, if this process holds the lock."""
        async with self._turn() as mine:
            if mine:
                await self._execute(run)

    async def _execute(self, run: Run) -> None:
        jobs = await self._open_jobs()
        try:
            await jobs.start(run)
            self._jobs = jobs
            while not self._closing.is_set():
                began = time.monotonic()
                await self._look(jobs)
                await self._pause(max(POLL_SECONDS, PAUSE_RATIO * (time.monotonic() - began)))
        finally:
            self._jobs = None
            await jobs.close(grace=self._grace)

    async def _look(self, jobs: Jobs) -> None:
        """Submit every queued or running job to the executor, the oldest first."""
        try:
            if time.monotonic() - self._swept > SWEEP_SECONDS:
                await self._sweep()
                self._swept = time.monotonic()
            job_pages = pages(self._job_store.jobs, JobScope(states=("queued", "running")))
            for job in [job.id async for page in job_pages for job in page.jobs][::-1]:
                await jobs.submit(job)
        except StorageError as fault:
            logger.warning("job_queue_read_failed code=%(code)s", {"code": fault.code})

    async def _sweep(self) -> None:
        """Delete what was kept for jobs that have ended or never came to be."""
        for job_id, since in (await self._files.holders()).items():
            job = await self._job_store.job(job_id)
            ended = job is not None and job.state in FINISHED
            if ended or (job is None and since < self._clock() - ORPHAN_AGE):
                await self._files.drop(job_id)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)
