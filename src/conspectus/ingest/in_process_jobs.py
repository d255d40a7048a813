"""The `Jobs` port over tasks of the event loop."""

import asyncio
import logging
from typing import Final

from conspectus.model.ids import JobId
from conspectus.ports.jobs import Run

logger = logging.getLogger(__name__)


PAUSE_SECONDS: Final = 1.0
"""Seconds before a job whose run failed from outside, as for a busy store, is run again."""


class InProcessJobs:
    """The `Jobs` port over tasks of the event loop: a few at a time, in the order they came.

    It keeps nothing on disk itself: the job store does, and the service submits unfinished jobs again.
    """

    def __init__(self, *, workers: int, pause: float = PAUSE_SECONDS) -> None:
        self._slots = asyncio.Semaphore(max(1, workers))
        self._pause = pause
        self._run: Run | None = None
        self._tasks: dict[JobId, asyncio.Task[None]] = {}
        self._running: set[JobId] = set()

    async def start(self, run: Run) -> None:
        """Begin to run what is submitted. Called once."""
        self._run = run

    async def submit(self, job: JobId) -> None:
        """Submit a job; one that is queued or running is unchanged."""
        if self._run is not None and job not in self._tasks:
            task = asyncio.create_task(self._execute(self._run, job))
            self._tasks[job] = task
            task.add_done_callback(lambda _: self._tasks.pop(job))

    async def cancel(self, job: JobId) -> None:
        """Cancel a queued or running job, and return when it has stopped."""
        task = self._tasks.get(job)
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def close(self, *, grace: float) -> None:
        """Let running jobs finish for up to `grace` seconds."""
        self._run = None
        for job, task in self._tasks.items():
            if job not in self._running:
                task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=grace)
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def _execute(self, run: Run, job: JobId) -> None:
        async with self._slots:
            self._running.add(job)
            try:
                await self._to_its_end(run, job)
            finally:
                self._running.discard(job)

    async def _to_its_end(self, run: Run, job: JobId) -> None:
        while True:
            [fault] = await asyncio.gather(run(job), return_exceptions=True)
            if fault is None or self._run is None:
                return
            logger.warning(
                "job_retried job=%(job)s error=%(error)s", {"job": job, "error": type(fault).__name__}
            )
            await asyncio.sleep(self._pause)
