"""Long work of a server once it was asked for: watching it, stopping it, and what it adds up to."""

import time
from collections.abc import Sequence
from typing import Final

from conspectus.client.people import People
from conspectus.client.request import get, path_of, post
from conspectus.model.jobs import (
    FINISHED,
    EmbeddingRequest,
    IngestReport,
    Job,
    JobPage,
    JobState,
    RequestTotals,
)

LOOK: Final = 20.0
"""Seconds for which one request waits for a job to end."""


class Watching(People):
    """Jobs as they stand. A job that cannot be seen is NotFound."""

    async def job(self, job: str) -> Job:
        """A job as it is now. Raises NotFound."""
        return await self._channel.one(Job, get(_path(job)))

    async def jobs(
        self,
        *,
        collection: str | None = None,
        state: JobState | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> JobPage:
        """A page of jobs, newest first; `after` is the page before's `next`, `limit` at most 100."""
        request = get("/jobs", collection=collection, state=state, after=after, limit=limit)
        return await self._channel.one(JobPage, request)

    async def cancel_job(self, job: str) -> Job:
        """Stop a job that waits or runs; one that has ended stays as it is. Raises NotFound."""
        return await self._channel.one(Job, post(_path(job, "cancel")))

    async def retry_job(self, job: str) -> Job:
        """Run a job once more that failed or was cancelled.

        Raises Conflict for another one, and for one that needs what was deleted when it ended: files, and
        addresses or headers that may hold secrets.
        """
        return await self._channel.one(Job, post(_path(job, "retry")))

    async def wait_job(self, job: str, *, seconds: float | None = None) -> Job:
        """The job when it has ended, or as it is after so many seconds. Raises NotFound."""
        give_up = None if seconds is None else time.monotonic() + seconds
        while True:
            left = LOOK if give_up is None else max(0.0, give_up - time.monotonic())
            found = await self._channel.one(Job, get(_path(job), wait=min(left, LOOK)))
            if found.state in FINISHED or (give_up is not None and time.monotonic() >= give_up):
                return found

    async def ingest_report(self, *, collection: str | None = None) -> IngestReport:
        """Jobs by state, and failure and retry rates by span and by source."""
        return await self._channel.one(IngestReport, get("/ingest/report", collection=collection))

    async def embedding_requests(
        self, *, after: int | None = None, limit: int = 100
    ) -> Sequence[EmbeddingRequest]:
        """The calls to model providers, newest first. Only the owner account may see them."""
        return await self._channel.several(EmbeddingRequest, get("/requests", after=after, limit=limit))

    async def request_totals(self, *, hours: int = 24) -> Sequence[RequestTotals]:
        """What they added up to in the last hours. Only the owner account may see it."""
        return await self._channel.several(RequestTotals, get("/requests/totals", hours=hours))


def _path(job: str, *parts: str) -> str:
    return path_of("jobs", ("job", job), *parts)
