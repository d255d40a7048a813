"""Long work of a server once it was asked for: watching it, stopping it, and what it adds up to."""

import time
from collections.abc import Mapping, Sequence
from typing import Final

from conspectus.client.collections import given, in_collection, made
from conspectus.client.operations import derived
from conspectus.client.request import Request, get, path_of, post
from conspectus.client.service import RemoteService
from conspectus.engine.jobs import JobService
from conspectus.errors import InvalidInput
from conspectus.model.jobs import (
    FINISHED,
    EmbeddingRequest,
    IngestReport,
    Job,
    JobPage,
    JobState,
    RequestTotals,
    Upload,
)

LOOK: Final = 20.0
"""Seconds for which one request waits for a job to end."""


@derived
class RemoteJobs(RemoteService, JobService):
    """Jobs of a server. A job that cannot be seen is NotFound."""

    async def ingest_url(
        self,
        /,
        url: str,
        *,
        collection: str = "default",
        source: str | None = None,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        **sizes: int | None,
    ) -> Job:
        if unknown := sizes.keys() - {"chunk_size", "overlap"}:
            raise InvalidInput(min(unknown), "is not known; give chunk_size and overlap")
        body = given(url=url, source=source, method=method, headers=headers, **sizes)
        return await made(
            self._channel, collection, Job, post(in_collection(collection, "ingest", "url"), body)
        )

    async def ingest_files(
        self, files: Sequence[Upload], *, collection: str = "default", source: str = "uploads"
    ) -> Job:
        if not files:
            raise InvalidInput("files", "must be at least one")
        path = in_collection(collection, "ingest", "files")
        request = Request("POST", path, given(source=source), uploads=files, writes=True, unhurried=True)
        return await made(self._channel, collection, Job, request)

    async def get(self, job: str) -> Job:
        return await self._channel.one(Job, get(_path(job)))

    async def list(
        self,
        *,
        collection: str | None = None,
        state: JobState | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> JobPage:
        request = get("/jobs", collection=collection, state=state, after=after, limit=limit)
        return await self._channel.one(JobPage, request)

    async def cancel(self, job: str) -> Job:
        return await self._channel.one(Job, post(_path(job, "cancel")))

    async def retry(self, job: str) -> Job:
        return await self._channel.one(Job, post(_path(job, "retry")))

    async def wait(self, job: str, *, seconds: float | None = None) -> Job:
        give_up = None if seconds is None else time.monotonic() + seconds
        while True:
            left = LOOK if give_up is None else max(0.0, give_up - time.monotonic())
            found = await self._channel.one(Job, get(_path(job), wait=min(left, LOOK)))
            if found.state in FINISHED or (give_up is not None and time.monotonic() >= give_up):
                return found

    async def report(self, *, collection: str | None = None) -> IngestReport:
        return await self._channel.one(IngestReport, get("/ingest/report", collection=collection))

    async def requests(self, *, after: int | None = None, limit: int = 100) -> Sequence[EmbeddingRequest]:
        return await self._channel.several(EmbeddingRequest, get("/requests", after=after, limit=limit))

    async def request_totals(self, *, hours: int = 24) -> Sequence[RequestTotals]:
        return await self._channel.several(RequestTotals, get("/requests/totals", hours=hours))


def _path(job: str, *parts: str) -> str:
    return path_of("jobs", ("job", job), *parts)
