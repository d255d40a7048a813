"""How one job is run: its states, its tries, its progress, and what becomes of it.

The row in the ledger is the truth. A job that is started again after its process died goes on from its row;
one that has its end there is left alone. So whoever executes jobs may start one twice, one after the other.
"""

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from conspectus.errors import (
    ConspectusError,
    FetchFailed,
    ForbiddenAddress,
    NotFound,
    Overloaded,
    ProviderUnavailable,
    StorageBusy,
    TurnLost,
    UnsupportedContent,
)
from conspectus.model.ids import JobId
from conspectus.model.jobs import FINISHED, Job, JobState
from conspectus.model.records import Metadata
from conspectus.model.retry_policy import RetryPolicy
from conspectus.ports import Clock
from conspectus.ports.jobs import JobStore, JobTurn

logger = logging.getLogger(__name__)

_ENDED: Final = tuple(sorted(FINISHED))
TURN: Final = 0.5
"""Seconds between two tries to have a job's turn."""
PULSE: Final = 0.3
"""Seconds between two looks at the row of a running job, which is how it hears that it is cancelled."""
MOST_STARTS: Final = 100
"""A job that was started so often without an end takes its process down."""
MESSAGE_LENGTH: Final = 500
PATIENT: Final = frozenset({408, 429})
"""The client's errors that a server takes back after a while."""

Tell: TypeAlias = Callable[[int, int], None]
"""Called with how much is done and how much there is (0: not known)."""
Fate: TypeAlias = Literal["again", "cancelled", "failed"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a job came to: what it reports, and the error that it ends with all the same."""

    result: Metadata = field(default_factory=dict)
    fault: ConspectusError | None = None


Work: TypeAlias = Callable[[Job, Tell], Awaitable[Outcome]]
"""Does what a job asks for. Whatever it was through before may be done again."""


def fate(fault: BaseException) -> Fate:
    """What an error means: try again, no use to try (cancelled), or failed."""
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


@dataclass(slots=True)
class Held:
    """A job as this process last knew it, which may change the row while nobody else has begun an attempt."""

    job: Job


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs jobs to their ends, as the `Run` of the port; `clean_up` is called for each that has ended.

    `alone` opens a block in which no other process runs a job. One that lost its turn, as it stood still, is
    told so by the ledger: the number of attempts there is no longer the one that it began.
    """

    ledger: JobStore
    work: Work
    clean_up: Callable[[JobId], Awaitable[None]]
    clock: Clock
    patience: RetryPolicy
    alone: JobTurn

    async def __call__(self, job_id: JobId) -> None:
        """From where the job stands to its end; interrupted, it goes back to those that wait."""
        while True:
            async with self.alone(job_id) as mine:
                if mine:
                    await self._run(job_id)
                    return
            await asyncio.sleep(TURN)

    async def _run(self, job_id: JobId) -> None:
        job = await self.ledger.job(job_id)
        try:
            if job is not None and job.state not in FINISHED:
                await self._held(Held(job))
        except NotFound as fault:
            if fault.kind != "job":
                raise
        await self.clean_up(job_id)

    async def _held(self, held: Held) -> None:
        try:
            await self._tries(held)
        except asyncio.CancelledError:
            await asyncio.shield(self._interrupted(held.job))
            raise

    async def _tries(self, held: Held) -> None:
        """Try, and wait, and try again, as long as that has a purpose."""
        failures = 0
        while True:
            job = held.job = await self._begin(held.job)
            if job.state in FINISHED:
                return
            ended = await self._ended(job)
            if ended is None:
                return
            failures += 1
            outcome, fault = ended
            if fault is None or fate(fault) != "again" or failures >= self.patience.attempts:
                await self._end(job, outcome, fault)
                return
            await self._change(job, **_told(fault))
            wait = self.patience.wait(failures - 1, getattr(fault, "retry_after", None))
            await self.patience.sleep(min(wait, self.patience.longest_wait))

    async def _begin(self, job: Job) -> Job:
        """One attempt more. Raises TurnLost where another process has begun one."""
        started = job.started or self.clock()
        return await self._change(job, state="running", attempts=job.attempts + 1, started=started)

    async def _ended(self, job: Job) -> tuple[Outcome, BaseException | None] | None:
        """What one try came to; None where the job was cancelled meanwhile."""
        if job.attempts > MOST_STARTS:
            return Outcome(), RuntimeError("started over and over without an end")
        progress = (job.done, job.total)

        def tell(done: int, total: int) -> None:
            nonlocal progress
            progress = (done, total)

        doing = asyncio.ensure_future(self.work(job, tell))
        try:
            told = None
            while told != progress or not doing.done():
                await asyncio.wait({doing}, timeout=PULSE)
                told = progress
                if not await self._goes_on(job, told):
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
        now = await self.ledger.job(job.id)
        if now is None or now.state in FINISHED:
            return False
        if now.attempts != job.attempts:
            raise TurnLost(f"job {job.id}")
        if (now.done, now.total) != progress:
            now = await self._change(job, done=done, total=total)
        return now.state not in FINISHED

    async def _end(self, job: Job, outcome: Outcome, fault: BaseException | None) -> None:
        ended: JobState = "succeeded"
        if fault is not None:
            ended = "cancelled" if fate(fault) == "cancelled" else "failed"
        told = {"code": None, "error": None} if fault is None else _told(fault)
        await self._change(job, state=ended, result=outcome.result, finished=self.clock(), **told)

    async def _interrupted(self, job: Job) -> None:
        """Give a job back, unless another process has it by now."""
        try:
            gone = (await self._change(job, state="queued")).state in FINISHED
        except NotFound:
            gone = True
        except TurnLost:
            gone = False
        if gone:
            await self.clean_up(job.id)

    async def _change(self, job: Job, **fields: Any) -> Job:
        return await self.ledger.change(job.id, unless=_ENDED, attempt=job.attempts, **fields)


def _told(fault: BaseException) -> dict[str, str]:
    """An error as the row tells it; one that is not ours may say anything, so its words stay out."""
    if isinstance(fault, ConspectusError):
        return {"code": fault.code, "error": str(fault)[:MESSAGE_LENGTH]}
    where = "".join(traceback.format_tb(fault.__traceback__))
    logger.error("a job ended with %s\n%s", type(fault).__name__, where)
    if isinstance(fault, OSError):
        return {"code": "system_error", "error": fault.strerror or type(fault).__name__}
    return {"code": "internal_error", "error": f"{type(fault).__name__} in the program; see its log"}
