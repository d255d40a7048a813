"""Jobs and connections as one person may see them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.policy import can_see_job, may_change_job, visible_jobs
from conspectus.access.reader import AuthorizedReader
from conspectus.errors import NotFound
from conspectus.model.connections import Connection
from conspectus.model.ids import JobId
from conspectus.model.jobs import IngestReport, Job, JobOutcome, JobPage, JobState
from conspectus.ports.jobs import JobScope, JobStore


class AuthorizedJobs:
    """The jobs that one person may read.

    A job is visible to those who may read all of its collection or its source, and to its owner while they
    may read anything of the collection. A job that is not visible is NotFound.
    """

    def __init__(self, authorized: AuthorizedReader, job_store: JobStore) -> None:
        self._authorized = authorized
        self._job_store = job_store

    async def job(self, job_id: str) -> tuple[Job, CollectionAccess]:
        """Return a job with its collection. Raises NotFound."""
        job = await self._job_store.job(JobId(job_id))
        accesses = {access.collection.id: access for access in await self._authorized.collections()}
        access = None if job is None else accesses.get(job.collection)
        if job is None or access is None or not can_see_job(access.roles, self._authorized.person, job):
            raise NotFound("job", job_id)
        return self._with_actions(job, access), access

    async def jobs(
        self,
        collection: str | None,
        states: Sequence[JobState] | None,
        *,
        outcome: JobOutcome | None = None,
        after: str | None,
        limit: int,
    ) -> JobPage:
        """Return a page of the jobs of one collection or of all, newest first."""
        scope = replace(await self._scope(collection, states), outcome=outcome)
        page = await self._job_store.jobs(scope, after=after, limit=limit)
        accesses = {access.collection.id: access for access in await self._authorized.collections(collection)}
        jobs = (self._with_actions(job, accesses[job.collection]) for job in page.jobs)
        return replace(page, jobs=tuple(jobs))

    def _with_actions(self, job: Job, access: CollectionAccess) -> Job:
        may_change = may_change_job(access.roles, self._authorized.person, job)
        return replace(job, actions=job.possible_actions if may_change else ())

    async def report(self, collection: str | None, *, now: datetime) -> IngestReport:
        """Return statistics of the same jobs."""
        return await self._job_store.report(await self._scope(collection, None), now=now)

    async def connections(self, access: CollectionAccess) -> Sequence[Connection]:
        """Return the connections of a collection to those who may read all of it."""
        if access.roles.collection is None:
            return ()
        return await self._job_store.connections(access.collection.id)

    async def connection(self, access: CollectionAccess, name: str) -> Connection:
        """Return the connection with that name or id. Raises NotFound."""
        for connection in await self.connections(access):
            if name in {connection.name, connection.id}:
                return connection
        raise NotFound("connection", name)

    async def _scope(self, collection: str | None, states: Sequence[JobState] | None) -> JobScope:
        accesses = await self._authorized.collections(collection)
        person = self._authorized.person
        visible = tuple(visible_jobs(access.roles, person, access.collection.id) for access in accesses)
        return JobScope(visible, None if states is None else tuple(states))
