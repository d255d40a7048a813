"""Long work once it was asked for: watching it, stopping it, and what it adds up to."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from uuid import uuid4

from conspectus.access.policy import require_owner, require_scope
from conspectus.access.reader import SourceRef
from conspectus.engine.job_handlers import JobHandlers
from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.ingest.job_execution import Outcome, Runner, Tell
from conspectus.model.access import LOCAL_OWNER, Person
from conspectus.model.ids import LOCAL, JobId, SourceId, UserId
from conspectus.model.jobs import (
    FINISHED,
    EmbeddingRequest,
    IngestReport,
    Job,
    JobKind,
    JobPage,
    JobState,
    RequestTotals,
)
from conspectus.model.records import Json
from conspectus.model.retry_policy import RetryPolicy

FIRST_LOOK = 0.05
LONGEST_LOOK = 0.5
"""Seconds between two looks at a job that is waited for, at first and after a while."""
LIMIT = 1_000
HOURS = 366 * 24


class Watching(JobHandlers):
    """Jobs as they stand. A job that cannot be seen is NotFound."""

    async def job(self, job: str) -> Job:
        """A job as it is now. Raises NotFound."""
        return (await self._job_sight.job(job))[0]

    async def jobs(
        self,
        *,
        collection: str | None = None,
        state: JobState | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> JobPage:
        """A page of jobs, newest first; `after` is the page before's `next`, `limit` at most 100."""
        states = None if state is None else (state,)
        return await self._job_sight.jobs(collection, states, after=after, limit=limit)

    async def cancel_job(self, job: str) -> Job:
        """Stop a job that waits or runs; one that has ended stays as it is. Raises NotFound."""
        found = await self._stoppable(job, "cancel a job")
        ended = tuple(sorted(FINISHED))
        found = await self._parts.work.ledger.change(
            found.id, unless=ended, state="cancelled", finished=self._parts.clock()
        )
        await self._core.jobs.cancel(found.id)
        await self._parts.work.files.drop(found.id)
        return await self.job(found.id)

    async def retry_job(self, job: str) -> Job:
        """Run a job once more that failed or was cancelled.

        Raises Conflict for another one, and for one that needs what was deleted when it ended: files, and
        addresses or headers that may hold secrets.
        """
        found = await self._stoppable(job, "run a job again")
        if found.state not in {"failed", "cancelled"}:
            raise Conflict(
                "job", job, f"is {found.state}; only what failed or was cancelled can be run again"
            )
        if not found.arguments.get("repeatable", True):
            raise Conflict("job", job, "needs what was deleted when it ended; ask for it anew")
        cleared = dict.fromkeys(("code", "error", "result", "started", "finished"))
        unless: tuple[JobState, ...] = ("queued", "running", "succeeded")
        again = await self._parts.work.ledger.change(
            found.id, unless=unless, state="queued", done=0, total=0, **cleared
        )
        await self._hand_over(again)
        return again

    async def wait_job(self, job: str, *, seconds: float | None = None) -> Job:
        """The job when it has ended, or as it is after so many seconds. Raises NotFound."""
        give_up = None if seconds is None else time.monotonic() + seconds
        found = await self.job(job)
        if found.state not in FINISHED:
            await self._begin_jobs()
        pause = FIRST_LOOK
        while found.state not in FINISHED and (give_up is None or time.monotonic() < give_up):
            await asyncio.sleep(pause)
            pause = min(1.2 * pause, LONGEST_LOOK)
            found = await self.job(job)
        return found

    async def ingest_report(self, *, collection: str | None = None) -> IngestReport:
        """Jobs by state, and failure and retry rates by span and by source."""
        return await self._job_sight.report(collection, now=self._parts.clock())

    async def embedding_requests(
        self, *, after: int | None = None, limit: int = 100
    ) -> Sequence[EmbeddingRequest]:
        """The calls to model providers, newest first. Only the owner account may see them."""
        require_owner(self._person, "see calls to model providers")
        if not 1 <= limit <= LIMIT:
            raise InvalidInput("limit", f"must be from 1 to {LIMIT}")
        return await self._parts.request_log.page(after=after, limit=limit)

    async def request_totals(self, *, hours: int = 24) -> Sequence[RequestTotals]:
        """What they added up to in the last hours. Only the owner account may see it."""
        require_owner(self._person, "see calls to model providers")
        if not 1 <= hours <= HOURS:
            raise InvalidInput("hours", f"must be from 1 to {HOURS}")
        return await self._parts.request_log.totals(self._parts.clock() - timedelta(hours=hours))

    async def start_jobs(self) -> None:
        """Run what waits, here or in another process that holds the store. Twice is as once."""
        parts, settings = self._parts, self._parts.settings
        patience = RetryPolicy(settings.job_max_attempts, first_wait=settings.job_backoff_ms / 1_000)
        work = parts.work
        runner = Runner(
            work.ledger, self._as_its_owner, work.files.drop, parts.clock, patience, alone=work.alone
        )
        await self._core.jobs.start(runner)

    def _new_job(
        self,
        kind: JobKind,
        place: SourceRef,
        source: SourceId | None,
        *,
        title: str,
        arguments: Mapping[str, Json],
    ) -> Job:
        return Job(
            id=JobId(str(uuid4())),
            kind=kind,
            owner=self._person.id,
            collection=place.collection.id,
            source=source,
            title=title,
            created=self._parts.clock(),
            arguments=dict(arguments),
        )

    async def _submit(self, job: Job) -> Job:
        """Write a job down, which is what makes it sure to be run, and have it run."""
        stored = await self._parts.work.ledger.add(job)
        await self._hand_over(stored)
        return stored

    async def _hand_over(self, job: Job) -> None:
        await self._begin_jobs()
        await self._core.jobs.submit(job.id)

    async def _begin_jobs(self) -> None:
        """Run jobs here, unless that is left to other processes."""
        if self._does_background_work:
            await self.start_jobs()

    async def _stoppable(self, job: str, action: str) -> Job:
        """A job that the person may stop or run again: an own one, or with the role for it."""
        found, place = await self._job_sight.job(job)
        require_scope(self._person, "write", action)
        if found.owner != self._person.id:
            place.require("editor", action, source=found.source)
        return found

    async def _as_its_owner(self, job: Job, tell: Tell) -> Outcome:
        """Do a job's work as whoever asked for it, with the rights of this moment."""
        person = await self._person_of(job.owner)
        return await self._as(person)._perform(job, tell)

    async def _person_of(self, owner: UserId) -> Person:
        """The person behind an account, with the rights of this moment. Raises NotFound."""
        if owner == LOCAL:
            return LOCAL_OWNER
        user = await self._parts.accounts.user(owner)
        if user is None or user.disabled or user.id != owner:
            raise NotFound("user", owner)
        return Person(user.name, user.owner, user.id)
