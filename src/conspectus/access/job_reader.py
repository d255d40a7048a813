"""Jobs and connections as one person may see them.

A job is seen by those who see all of its collection, by those who see its source, and by whoever asked for
it as long as anything of the collection is seen. What is not seen is NotFound.
"""

from collections.abc import Sequence
from datetime import datetime

from conspectus.access.policy import jobs_seen, shows_job
from conspectus.access.reader import AuthorizedReader, SourceRef
from conspectus.errors import NotFound
from conspectus.model.connections import Connection
from conspectus.model.ids import JobId
from conspectus.model.jobs import IngestReport, Job, JobPage, JobState
from conspectus.ports.jobs import JobScope, JobStore


class AuthorizedJobs:
    """Every job that one person may see."""

    def __init__(self, sight: AuthorizedReader, ledger: JobStore) -> None:
        self._sight = sight
        self._ledger = ledger

    async def job(self, job_id: str) -> tuple[Job, SourceRef]:
        """A job with its collection. Raises NotFound."""
        found = await self._ledger.job(JobId(job_id))
        places = {place.collection.id: place for place in await self._sight.places()}
        place = None if found is None else places.get(found.collection)
        if found is None or place is None or not shows_job(place.access, self._sight.person, found):
            raise NotFound("job", job_id)
        return found, place

    async def jobs(
        self, collection: str | None, states: Sequence[JobState] | None, *, after: str | None, limit: int
    ) -> JobPage:
        """A page of the jobs of one collection or of all, newest first."""
        scope = await self._scope(collection, states)
        return await self._ledger.jobs(scope, after=after, limit=limit)

    async def report(self, collection: str | None, *, now: datetime) -> IngestReport:
        """Numbers over the same jobs."""
        return await self._ledger.report(await self._scope(collection, None), now=now)

    async def connections(self, place: SourceRef) -> Sequence[Connection]:
        """The connections of a collection, for those who see all of it."""
        if place.access.collection is None:
            return ()
        return await self._ledger.connections(place.collection.id)

    async def connection(self, place: SourceRef, name: str) -> Connection:
        """The connection of that name or id. Raises NotFound."""
        for each in await self.connections(place):
            if name in {each.name, each.id}:
                return each
        raise NotFound("connection", name)

    async def _scope(self, collection: str | None, states: Sequence[JobState] | None) -> JobScope:
        places = [await self._sight.place(collection)] if collection else await self._sight.places()
        person = self._sight.person
        seen = tuple(jobs_seen(each.access, person, each.collection.id) for each in places)
        return JobScope(seen, None if states is None else tuple(states))
