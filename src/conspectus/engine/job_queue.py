"""Jobs on their way: written down, handed over, and run as whoever asked for them."""

from collections.abc import Awaitable, Callable, Mapping
from uuid import uuid4

from conspectus.access.reader import SourceRef
from conspectus.engine.context import EngineContext
from conspectus.ingest.job_execution import Outcome, Runner, Tell
from conspectus.model.access import Person
from conspectus.model.ids import JobId, SourceId
from conspectus.model.jobs import Job, JobKind
from conspectus.model.records import Json
from conspectus.model.retry_policy import RetryPolicy

Perform = Callable[[Person, Job, Tell], Awaitable[Outcome]]
"""Does the work of a job as a person may do it."""


class JobQueue:
    """Jobs of one person, which run here or in another process that holds the store."""

    def __init__(self, context: EngineContext, perform: Perform) -> None:
        self._context = context
        self._core = context.core
        self._parts = context.parts
        self._perform = perform

    async def start(self) -> None:
        """Run what waits, here or in another process that holds the store. Twice is as once."""
        parts, settings = self._parts, self._parts.settings
        patience = RetryPolicy(settings.job_max_attempts, first_wait=settings.job_backoff_ms / 1_000)
        work = parts.work
        runner = Runner(
            work.ledger, self._as_its_owner, work.files.drop, parts.clock, patience, alone=work.alone
        )
        await self._core.jobs.start(runner)

    def new_job(
        self,
        kind: JobKind,
        place: SourceRef,
        source: SourceId | None,
        *,
        title: str,
        arguments: Mapping[str, Json],
    ) -> Job:
        """A job that is not written down yet."""
        return Job(
            id=JobId(str(uuid4())),
            kind=kind,
            owner=self._context.person.id,
            collection=place.collection.id,
            source=source,
            title=title,
            created=self._parts.clock(),
            arguments=dict(arguments),
        )

    async def submit(self, job: Job) -> Job:
        """Write a job down, which is what makes it sure to be run, and have it run."""
        stored = await self._parts.work.ledger.add(job)
        await self.hand_over(stored)
        return stored

    async def hand_over(self, job: Job) -> None:
        """Have a job that is written down run."""
        await self.begin()
        await self._core.jobs.submit(job.id)

    async def begin(self) -> None:
        """Run jobs here, unless that is left to other processes."""
        if self._context.does_background_work:
            await self.start()

    async def _as_its_owner(self, job: Job, tell: Tell) -> Outcome:
        """Do a job's work as whoever asked for it, with the rights of this moment."""
        person = await self._context.person_of(job.owner)
        return await self._perform(person, job, tell)
