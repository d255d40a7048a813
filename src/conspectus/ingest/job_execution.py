"""How one job is run:

its states, attempts, progress and result. The row in the job store is authoritative. A job that is started
again after its process died continues from its row; one that has ended is not run. So a runner may start a
job twice, one after the other.
"""

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import field
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
    UnsupportedContent,
)
from conspectus.ingest.sensitive import mask_report
from conspectus.model.ids import JobId
from conspectus.model.jobs import FINISHED, Job, JobState
from conspectus.model.records import Metadata
from conspectus.model.retries import RetryPolicy
from conspectus.ports import Clock
from conspectus.ports.jobs import JobStore, JobTurn

logger = logging.getLogger(__name__)

_ENDED: Final = tuple(sorted(FINISHED))
LOCK_POLL_SECONDS: Final = 0.5
"""Seconds between two attempts to get the lock of a job."""
CANCEL_POLL_SECONDS: Final = 0.3
"""Seconds between two looks at the row of a running job, which is how it hears that it is cancelled."""
MAX_STARTS: Final = 100
"""A job that was started so often without an end takes its process down."""
MAX_MESSAGE_CHARACTERS: Final = 500
RETRIED_STATUSES: Final = frozenset({408, 429})
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
        case FetchFailed(status=int(status)) if 400 <= status < 500 and status not in RETRIED_STATUSES:
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
    retry_policy: RetryPolicy
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
            await asyncio.sleep(LOCK_POLL_SECONDS)

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
                ended = await self._run_attempt(job)
                if ended is None:
                    return
                failures += 1
                outcome, fault = ended
                if fault is None or fate(fault) != "again" or failures >= self.retry_policy.attempts:
                    await self._end(job, outcome, fault)
                    return
                await self._change(job, **_error_fields(fault, self._mask(job)))
                wait = self.retry_policy.wait(failures - 1, getattr(fault, "retry_after", None))
                await self.retry_policy.sleep(min(wait, self.retry_policy.max_wait))
        except asyncio.CancelledError:
            await asyncio.shield(self._return_to_queue(job))
            raise

    async def _begin(self, job: Job) -> Job:
        """One attempt more. Raises LockLost where another process has begun one."""
        started = job.started or self.clock()
        return await self._change(job, state="running", attempts=job.attempts + 1, started=started)

    async def _run_attempt(self, job: Job) -> tuple[Outcome, BaseException | None] | None:
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
                await asyncio.wait({doing}, timeout=CANCEL_POLL_SECONDS)
                reported = progress
                if not await self._goes_on(job, reported):
                    return None
        finally:
            doing.cancel()
            await asyncio.wait({doing})
        if doing.cancelled():
            return None
        fault = doing.exception()
        if fault is not None:
            return (Outcome(), fault)
        return (doing.result(), doing.result().fault)

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
        return partial(mask_report, self.sensitive, collection=job.collection)

    async def _return_to_queue(self, job: Job) -> None:
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
        return {"code": fault.code, "error": mask(str(fault))[:MAX_MESSAGE_CHARACTERS]}
    where = "".join(traceback.format_tb(fault.__traceback__))
    logger.error(
        "job_failed error=%(error)s\n%(traceback)s", {"error": type(fault).__name__, "traceback": where}
    )
    if isinstance(fault, OSError):
        return {"code": "system_error", "error": fault.strerror or type(fault).__name__}
    return {"code": "internal_error", "error": f"{type(fault).__name__} in the program; see its log"}
