"""The queue of jobs: creates jobs of one user, and runs queued ones in this process or in another one."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from uuid import uuid4

from conspectus.access.collection_access import CollectionAccess
from conspectus.engine.context import EngineContext
from conspectus.engine.service import Service
from conspectus.ingest.job_execution import Outcome, Runner, Tell
from conspectus.model.access import Person
from conspectus.model.ids import JobId, SourceId
from conspectus.model.jobs import Job, JobKind
from conspectus.model.pages import pages
from conspectus.model.records import Json
from conspectus.model.retries import RetryPolicy
from conspectus.model.trust import ORIGINS
from conspectus.ports.jobs import JobPlace, JobScope

Perform = Callable[[Person, Job, Tell], Awaitable[Outcome]]
"""Runs a job with the permissions of a user."""

ORIGIN = "origin"
"""Argument of a job: the origin of the key that made it."""


class JobQueue(Service, checked=False):
    """Creates and queues jobs of one user, and runs queued jobs in this process if it may."""

    def __init__(self, context: EngineContext, perform: Perform) -> None:
        super().__init__(context)
        self._perform = perform

    async def start(self) -> None:
        """Run queued jobs, here or in another process that has the store open; idempotent."""
        parts, settings = self._parts, self._parts.settings
        retries = RetryPolicy(settings.job_max_attempts, first_wait=settings.job_backoff_ms / 1_000)
        work = parts.work
        runner = Runner(
            work.job_store,
            self._run_as_owner,
            work.files.drop,
            parts.clock,
            retries,
            alone=work.alone,
            sensitive=settings.sensitive,
        )
        await self._core.jobs.start(runner)

    def new_job(
        self,
        kind: JobKind,
        access: CollectionAccess,
        source: SourceId | None,
        *,
        title: str,
        arguments: Mapping[str, Json],
    ) -> Job:
        """Return a job that is not stored yet."""
        origin, collection_id = self._person.origin, access.collection.id
        self._context.screen_value("jobs.arguments", arguments, collection_id)
        return Job(
            id=JobId(str(uuid4())),
            kind=kind,
            owner=self._person.id,
            collection=collection_id,
            source=source,
            title=self._context.screen_value("jobs.title", title, collection_id),
            created=self._parts.clock(),
            arguments={**arguments, **({} if origin is None else {ORIGIN: origin})},
        )

    async def submit(self, job: Job) -> Job:
        """Store a job durably, and queue it."""
        stored = await self._parts.work.job_store.add(job)
        await self.hand_over(stored)
        return replace(stored, actions=stored.possible_actions)

    async def submit_once(
        self, kind: JobKind, access: CollectionAccess, *, title: str, arguments: Mapping[str, Json]
    ) -> Job:
        """Return the user's queued or running job of a kind with these arguments, or a new one."""
        new = self.new_job(kind, access, None, title=title, arguments=arguments)
        scope = JobScope((JobPlace(access.collection.id),), ("queued", "running"))
        async for page in pages(self._parts.work.job_store.jobs, scope):
            for job in page.jobs:
                is_own = job.kind == kind and job.owner == self._person.id
                if is_own and job.arguments == new.arguments:
                    return job
        return await self.submit(new)

    async def hand_over(self, job: Job) -> None:
        """Queue a stored job, and run queued jobs here if that is not left to other processes."""
        await self.begin()
        await self._core.jobs.submit(job.id)

    async def begin(self) -> None:
        """Start running jobs here, unless that is left to other processes."""
        if self._context.does_background_work:
            await self.start()

    async def _run_as_owner(self, job: Job, tell: Tell) -> Outcome:
        """Run a job as its owner, with their current rights, and with the origin of the key that made it."""
        person, origin_name = await self._context.person_of(job.owner), job.arguments.get(ORIGIN)
        origin = next((known_origin for known_origin in ORIGINS if known_origin == origin_name), None)
        return await self._perform(replace(person, origin=origin), job, tell)
