"""The jobs service: submit background jobs, follow their progress, cancel and repeat them."""

import asyncio
import stat
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Unpack
from uuid import uuid4

from conspectus.access.policy import require_owner, require_scope
from conspectus.access.reader import AuthorizedJobs, SourceRef
from conspectus.engine.context import EngineContext, Service
from conspectus.errors import Conflict, InvalidInput, TooLarge, UnreadableFile, require_range
from conspectus.ingest.files import source_name
from conspectus.ingest.job_execution import Outcome, Runner, Tell
from conspectus.ingest.prepare import named
from conspectus.model.access import Person
from conspectus.model.ids import JobId, SourceId
from conspectus.model.jobs import (
    FINISHED,
    METHODS,
    ChunkOptions,
    EmbeddingRequest,
    IngestReport,
    Job,
    JobKind,
    JobPage,
    JobState,
    RequestTotals,
    Upload,
)
from conspectus.model.pages import pages
from conspectus.model.records import Json
from conspectus.model.retry_policy import RetryPolicy
from conspectus.model.trust import ORIGINS
from conspectus.ports.jobs import JobPlace, JobScope
from conspectus.text.splitter import SplitOptions
from conspectus.text.urls import parse_url

Perform = Callable[[Person, Job, Tell], Awaitable[Outcome]]
"""Runs a job with the permissions of a user."""

ORIGIN = "origin"
"""Argument of a job: the origin of the key that made it."""


class JobQueue(Service, checked=False):
    """The jobs of one user, run in this process or in another one."""

    def __init__(self, context: EngineContext, perform: Perform) -> None:
        super().__init__(context)
        self._perform = perform

    async def start(self) -> None:
        """Run queued jobs, here or in another process that has the store open; idempotent."""
        parts, settings = self._parts, self._parts.settings
        patience = RetryPolicy(settings.job_max_attempts, first_wait=settings.job_backoff_ms / 1_000)
        work = parts.work
        runner = Runner(
            work.job_store, self._as_its_owner, work.files.drop, parts.clock, patience, alone=work.alone
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
        """Return a job that is not stored yet."""
        origin = self._person.origin
        return Job(
            id=JobId(str(uuid4())),
            kind=kind,
            owner=self._person.id,
            collection=place.collection.id,
            source=source,
            title=title,
            created=self._parts.clock(),
            arguments={**arguments, **({} if origin is None else {ORIGIN: origin})},
        )

    async def submit(self, job: Job) -> Job:
        """Store a job durably, and queue it."""
        stored = await self._parts.work.job_store.add(job)
        await self.hand_over(stored)
        return stored

    async def submit_once(
        self, kind: JobKind, place: SourceRef, *, title: str, arguments: Mapping[str, Json]
    ) -> Job:
        """Return the user's queued or running job of a kind with these arguments, or a new one."""
        new = self.new_job(kind, place, None, title=title, arguments=arguments)
        scope = JobScope((JobPlace(place.collection.id),), ("queued", "running"))
        async for page in pages(self._parts.work.job_store.jobs, scope):
            for job in page.jobs:
                same = job.kind == kind and job.owner == self._person.id
                if same and job.arguments == new.arguments:
                    return job
        return await self.submit(new)

    async def hand_over(self, job: Job) -> None:
        """Queue a stored job."""
        await self.begin()
        await self._core.jobs.submit(job.id)

    async def begin(self) -> None:
        """Start running jobs here, unless that is left to other processes."""
        if self._context.does_background_work:
            await self.start()

    async def _as_its_owner(self, job: Job, tell: Tell) -> Outcome:
        """Run a job as its owner, with their current rights, and with the origin of the key that made it."""
        person, made = await self._context.person_of(job.owner), job.arguments.get(ORIGIN)
        origin = next((each for each in ORIGINS if each == made), None)
        return await self._perform(replace(person, origin=origin), job, tell)


MIN_POLL_SECONDS = 0.05
MAX_POLL_SECONDS = 0.5
"""Seconds between polls of a job that is waited for, at first and later."""
LIMIT = 1_000
HOURS = 366 * 24


class JobService(Service):
    """Jobs: add pages and files in the background, and list, cancel and retry jobs.

    A job that you may not read is NotFound.
    """

    def __init__(self, context: EngineContext, queue: JobQueue) -> None:
        super().__init__(context)
        self._queue = queue
        self._authorized_jobs = AuthorizedJobs(context.authorized, context.parts.work.job_store)

    async def ingest_url(
        self,
        url: str,
        *,
        collection: str = "default",
        source: str | None = None,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        **options: Unpack[ChunkOptions],
    ) -> Job:
        """Add a web page in the background: fetch, parse, split and embed it. Returns the job at once.

        Without a `source`, its domain is the source. The same address again replaces the page if it has
        changed. `headers` may hold secrets and are deleted when the job ends. `chunk_size` and `overlap` are
        in characters; the settings decide them if they are not given.
        """
        address = parse_url(url)
        if address.credentials:
            raise InvalidInput(
                "url", "must not contain a user name or password; give an Authorization header"
            )
        sent: dict[str, Json] = dict(headers or {})
        if not all(isinstance(part, str) for pair in sent.items() for part in pair):
            raise InvalidInput("headers", "must be names and values, both text")
        if method.upper() not in METHODS:
            raise InvalidInput("method", f"must be one of {', '.join(METHODS)}")
        whole = str(address)
        secret: dict[str, Json] = {"headers": sent} if sent else {}
        if address.query:
            secret["url"] = whole
        target_name = source_name(whole) if source is None else named("source", source)
        arguments = {"method": method.upper(), "source": target_name, **self._cut(**options)}
        if secret:
            arguments["repeatable"] = False
        if not address.query:
            arguments["url"] = whole
        place, target = await self._into(collection, target_name)
        job = self._queue.new_job("ingest_url", place, target, title=address.redacted, arguments=arguments)
        if secret:
            await self._parts.work.files.store_secret(job.id, secret)
        return await self._queue.submit(job)

    async def ingest_files(
        self, files: Sequence[Upload], *, collection: str = "default", source: str = "uploads"
    ) -> Job:
        """Add uploaded files in the background; they are stored on disk when this returns the job."""
        names = await asyncio.to_thread(self._checked_names, files)
        place, target = await self._into(collection, named("source", source))
        listed: list[Json] = list(names)
        title = names[0] if len(names) == 1 else f"{len(names)} files: {names[0]}, …"
        arguments: dict[str, Json] = {"files": listed, "source": source, "repeatable": False}
        job = self._queue.new_job("ingest_files", place, target, title=title, arguments=arguments)
        await self._parts.work.files.store_files(job.id, files)
        return await self._queue.submit(job)

    async def get(self, job: str) -> Job:
        """Return a job. Raises NotFound."""
        return (await self._authorized_jobs.job(job))[0]

    async def list(
        self,
        *,
        collection: str | None = None,
        state: JobState | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> JobPage:
        """List a page of jobs, newest first; `after` is a cursor, `limit` is at most 100."""
        states = None if state is None else (state,)
        return await self._authorized_jobs.jobs(collection, states, after=after, limit=limit)

    async def cancel(self, job: str) -> Job:
        """Cancel a job that is queued or runs; a job that has ended stays as it is. Raises NotFound."""
        found = await self._stoppable(job, "cancel a job")
        ended = tuple(sorted(FINISHED))
        found = await self._parts.work.job_store.change(
            found.id, unless=ended, state="cancelled", finished=self._parts.clock()
        )
        await self._core.jobs.cancel(found.id)
        await self._parts.work.files.drop(found.id)
        return await self.get(found.id)

    async def retry(self, job: str) -> Job:
        """Run a job again that failed or was cancelled.

        Raises Conflict for other jobs, and for one whose input was deleted when it ended: files, and
        addresses or headers that may hold secrets.
        """
        found = await self._stoppable(job, "run a job again")
        if found.state not in {"failed", "cancelled"}:
            raise Conflict("job", job, f"is {found.state}; only failed and cancelled jobs can be retried")
        if not found.arguments.get("repeatable", True):
            raise Conflict("job", job, "needs data that were deleted when it ended; start a new job")
        cleared = dict.fromkeys(("code", "error", "result", "started", "finished"))
        unless: tuple[JobState, ...] = ("queued", "running", "succeeded")
        again = await self._parts.work.job_store.change(
            found.id, unless=unless, state="queued", done=0, total=0, **cleared
        )
        await self._queue.hand_over(again)
        return again

    async def wait(self, job: str, *, timeout: float | None = None) -> Job:
        """Wait until a job has ended, at most `timeout` seconds, and return it. Raises NotFound."""
        give_up = None if timeout is None else time.monotonic() + timeout
        found = await self.get(job)
        if found.state not in FINISHED:
            await self._queue.begin()
        pause = MIN_POLL_SECONDS
        while found.state not in FINISHED and (give_up is None or time.monotonic() < give_up):
            await asyncio.sleep(pause)
            pause = min(1.2 * pause, MAX_POLL_SECONDS)
            found = await self.get(job)
        return found

    async def report(self, *, collection: str | None = None) -> IngestReport:
        """Count jobs by state, with failure and retry rates by period and by source."""
        return await self._authorized_jobs.report(collection, now=self._parts.clock())

    async def list_requests(
        self, *, after: int | None = None, limit: int = 100
    ) -> Sequence[EmbeddingRequest]:
        """List requests to model providers, newest first. Only the owner account may."""
        require_owner(self._person, "see calls to model providers")
        require_range("limit", limit, 1, LIMIT)
        return await self._parts.request_log.page(after=after, limit=limit)

    async def request_totals(self, *, hours: int = 24) -> Sequence[RequestTotals]:
        """Sum requests to model providers over the last hours. Only the owner account may."""
        require_owner(self._person, "see calls to model providers")
        require_range("hours", hours, 1, HOURS)
        return await self._parts.request_log.totals(self._parts.clock() - timedelta(hours=hours))

    async def _stoppable(self, job: str, action: str) -> Job:
        """Return a job that the user may cancel or retry: an own one, or with the role for it."""
        found, place = await self._authorized_jobs.job(job)
        require_scope(self._person, "write", action)
        if found.owner != self._person.id:
            place.require("editor", action, source=found.source)
        return found

    async def start(self) -> None:
        """Run queued jobs in this process, or in another one that holds the store."""
        await self._queue.start()

    async def _into(self, collection: str, source: str) -> tuple[SourceRef, SourceId | None]:
        """Return the target of a job, and the source if it exists. Raises what the job would raise later."""
        require_scope(self._person, "write", "write")
        target = await self._writer.collection(collection)
        place = await self._authorized.place_of(target.id)
        found = await self._authorized.source(place, source)
        if found is None:
            place.require("manager", "make a source")
            return place, None
        place.require("editor", "add documents", source=found.id)
        return place, found.id

    def _cut(self, chunk_size: int | None = None, overlap: int | None = None) -> dict[str, Json]:
        """Return the chunk sizes, if any is given. Raises InvalidInput."""
        if chunk_size is None and overlap is None:
            return {}
        settings = self._parts.settings
        size = settings.chunk_size if chunk_size is None else chunk_size
        overlap = min(settings.chunk_overlap, size // 2) if overlap is None else overlap
        SplitOptions(size=size, overlap=overlap)
        return {"chunk_size": size, "overlap": overlap}

    def _checked_names(self, files: Sequence[Upload]) -> Sequence[str]:
        settings = self._parts.settings
        require_range("files", len(files), 1, settings.max_upload_files)
        names = [named("files", each.name) for each in files]
        if len(set(names)) < len(names):
            raise InvalidInput("files", "have the same name twice")
        for each in files:
            size = _size(each)
            if size > settings.max_file_bytes:
                raise TooLarge("file", size=size, limit=settings.max_file_bytes)
        return names


def _size(upload: Upload) -> int:
    if not isinstance(upload.data, Path):
        return len(upload.data)
    try:
        state = upload.data.stat()
    except OSError as fault:
        raise UnreadableFile(upload.name, fault.strerror or str(fault)) from fault
    if not stat.S_ISREG(state.st_mode):
        raise UnreadableFile(upload.name, "is not a file")
    return state.st_size
