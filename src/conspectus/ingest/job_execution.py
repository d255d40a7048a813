"""How one job is run:

its states, attempts, progress and result. The row in the job store is authoritative. A job that is started
again after its process died continues from its row; one that has ended is not run. So a runner may start a
job twice, one after the other.
"""

import asyncio
import logging
import time
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import field
from datetime import timedelta
from functools import partial
from typing import Any, Final, Literal, TypeAlias, TypeVar

from conspectus.deferred import dataclass
from conspectus.errors import (
    Conflict,
    ConspectusError,
    FetchFailed,
    ForbiddenAddress,
    LockLost,
    NotFound,
    Overloaded,
    ProviderUnavailable,
    StorageBusy,
    StorageError,
    UnsupportedContent,
)
from conspectus.ingest.sensitive import reported
from conspectus.model.ids import JobId
from conspectus.model.jobs import FINISHED, Job, JobState, RetryPolicy
from conspectus.model.pages import pages
from conspectus.model.records import Metadata
from conspectus.ports import Clock
from conspectus.ports.jobs import JobFiles, Jobs, JobScope, JobStore, JobTurn, Run, Turn

logger = logging.getLogger(__name__)

_ENDED: Final = tuple(sorted(FINISHED))
TURN: Final = 0.5
"""Seconds between two attempts to get the lock of a job."""
PULSE: Final = 0.3
"""Seconds between two looks at the row of a running job, which is how it hears that it is cancelled."""
MAX_STARTS: Final = 100
"""A job that was started so often without an end takes its process down."""
MESSAGE_LENGTH: Final = 500
PATIENT: Final = frozenset({408, 429})
"""The client's errors that a server takes back after a while."""

Tell: TypeAlias = Callable[[int, int], None]
"""Called with how much is done and how much there is (0: not known)."""
TraceStatus: TypeAlias = Literal["again", "cancelled", "failed"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a job: its report, and the error with which it ends all the same."""

    result: Metadata = field(default_factory=dict)
    fault: ConspectusError | None = None


Reported = TypeVar("Reported")
Work: TypeAlias = Callable[[Job, Tell], Awaitable[Outcome]]
"""Does the work of a job. Parts that an earlier attempt did may be done again."""


def fate(fault: BaseException) -> TraceStatus:
    """The meaning of an error: retry, give up (cancelled), or failed."""
    match fault:
        case ForbiddenAddress():
            return "failed"
        case UnsupportedContent():
            return "cancelled"
        case FetchFailed(status=int(status)) if 400 <= status < 500 and status not in PATIENT:
            return "cancelled"
        case FetchFailed(passing=True) | ProviderUnavailable() | StorageBusy() | Overloaded():
            return "again"
        case _:
            return "failed"


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs jobs to their ends, as the `Run` of the port; `clean_up` is called for each that has ended.

    `alone` opens a block in which no other process runs a job. A process that lost its lock, as after a
    pause, notices it in the job store: the number of attempts there is no longer its own.
    """

    job_store: JobStore
    work: Work
    clean_up: Callable[[JobId], Awaitable[None]]
    clock: Clock
    patience: RetryPolicy
    alone: JobTurn
    sensitive: str = ""
    """The rules for secrets: names of files and pages that were refused are in no result or error."""

    async def __call__(self, job_id: JobId) -> None:
        """Run a job from its stored state to its end; if interrupted, it is queued again."""
        while True:
            async with self.alone(job_id) as mine:
                if mine:
                    await self._run(job_id)
                    return
            await asyncio.sleep(TURN)

    async def _run(self, job_id: JobId) -> None:
        job = await self.job_store.job(job_id)
        try:
            if job is not None and job.state not in FINISHED:
                await self._tries(job)
        except NotFound as fault:
            if fault.kind != "job":
                raise
        await self.clean_up(job_id)

    async def _tries(self, job: Job) -> None:
        """Try, and wait, and try again, as long as that has a purpose."""
        failures = 0
        try:
            while (job := await self._begin(job)).state not in FINISHED:
                ended = await self._ended(job)
                if ended is None:
                    return
                failures += 1
                outcome, fault = ended
                if fault is None or fate(fault) != "again" or failures >= self.patience.attempts:
                    await self._end(job, outcome, fault)
                    return
                await self._change(job, **_error_fields(fault, self._mask(job)))
                wait = self.patience.wait(failures - 1, getattr(fault, "retry_after", None))
                await self.patience.sleep(min(wait, self.patience.max_wait))
        except asyncio.CancelledError:
            await asyncio.shield(self._interrupted(job))
            raise

    async def _begin(self, job: Job) -> Job:
        """One attempt more. Raises LockLost where another process has begun one."""
        started = job.started or self.clock()
        return await self._change(job, state="running", attempts=job.attempts + 1, started=started)

    async def _ended(self, job: Job) -> tuple[Outcome, BaseException | None] | None:
        """The result of one attempt; None if the job was cancelled meanwhile."""
        if job.attempts > MAX_STARTS:
            reason = f"was started {MAX_STARTS} times and never ended; start a new job"
            return Outcome(), Conflict("job", job.id, reason)
        progress = (job.done, job.total)

        def tell(done: int, total: int) -> None:
            nonlocal progress
            progress = (done, total)

        doing = asyncio.ensure_future(self.work(job, tell))
        try:
            reported = None
            while reported != progress or not doing.done():
                await asyncio.wait({doing}, timeout=PULSE)
                reported = progress
                if not await self._goes_on(job, reported):
                    return None
        finally:
            doing.cancel()
            await asyncio.wait({doing})
        if doing.cancelled():
            return None
        fault = doing.exception()
        return (Outcome(), fault) if fault is not None else (doing.result(), doing.result().fault)

    async def _goes_on(self, job: Job, progress: tuple[int, int]) -> bool:
        """Write progress down, and hear whether the job is still wanted."""
        done, total = progress
        now = await self.job_store.job(job.id)
        if now is None or now.state in FINISHED:
            return False
        if now.attempts != job.attempts:
            raise LockLost(f"job {job.id}")
        if (now.done, now.total) != progress:
            now = await self._change(job, done=done, total=total)
        return now.state not in FINISHED

    async def _end(self, job: Job, outcome: Outcome, fault: BaseException | None) -> None:
        ended: JobState = "succeeded"
        if fault is not None:
            ended = "cancelled" if fate(fault) == "cancelled" else "failed"
        mask = self._mask(job)
        error = {"code": None, "error": None} if fault is None else _error_fields(fault, mask)
        await self._change(job, state=ended, result=mask(outcome.result), finished=self.clock(), **error)

    def _mask(self, job: Job) -> Callable[[Reported], Reported]:
        """Return what masks secrets in the report of a job."""
        return partial(reported, self.sensitive, collection=job.collection)

    async def _interrupted(self, job: Job) -> None:
        """Return a job to the queue, unless another process has it by now."""
        try:
            gone = (await self._change(job, state="queued")).state in FINISHED
        except NotFound:
            gone = True
        except LockLost:
            gone = False
        if gone:
            await self.clean_up(job.id)

    async def _change(self, job: Job, **fields: Any) -> Job:
        return await self.job_store.change(job.id, unless=_ENDED, attempt=job.attempts, **fields)


def _error_fields(fault: BaseException, mask: Callable[[str], str]) -> dict[str, str]:
    """An error as the row tells it; one that is not ours may say anything, so its words stay out."""
    if isinstance(fault, ConspectusError):
        return {"code": fault.code, "error": mask(str(fault))[:MESSAGE_LENGTH]}
    where = "".join(traceback.format_tb(fault.__traceback__))
    logger.error(
        "job_failed error=%(error)s\n%(traceback)s", {"error": type(fault).__name__, "traceback": where}
    )
    if isinstance(fault, OSError):
        return {"code": "system_error", "error": fault.strerror or type(fault).__name__}
    return {"code": "internal_error", "error": f"{type(fault).__name__} in the program; see its log"}


PAUSE: Final = 1.0
"""Seconds before a job whose run failed from outside, as for a busy store, is run again."""


class InProcessJobs:
    """The `Jobs` port over tasks of the event loop: a few at a time, in the order they came.

    It keeps nothing on disk itself: the job store does, and the service submits unfinished jobs again.
    """

    def __init__(self, *, workers: int, pause: float = PAUSE) -> None:
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


POLL: Final = 1.0
"""Seconds between two looks into the job store, or more where a look takes long."""
PATIENCE: Final = 20.0
"""How many times longer than a look the pause after it is."""
SWEEP: Final = 60.0
ORPHANED: Final = timedelta(minutes=1)
"""Files of a job that was never stored are deleted after so long without a change."""

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
            await self._pause(POLL)

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
                await self._pause(max(POLL, PATIENCE * (time.monotonic() - began)))
        finally:
            self._jobs = None
            await jobs.close(grace=self._grace)

    async def _look(self, jobs: Jobs) -> None:
        """Submit every queued or running job to the executor, the oldest first."""
        try:
            if time.monotonic() - self._swept > SWEEP:
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
            if ended or (job is None and since < self._clock() - ORPHANED):
                await self._files.drop(job_id)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)
