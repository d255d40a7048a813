"""The service of background jobs."""

import asyncio
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Unpack

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.job_reader import AuthorizedJobs
from conspectus.access.policy import may_change_job, require_owner, require_scope
from conspectus.engine.context import EngineContext
from conspectus.engine.job_cancellation import cancel_job
from conspectus.engine.job_queue import JobQueue
from conspectus.engine.service import Service
from conspectus.errors import (
    Conflict,
    InvalidInput,
    TooLarge,
    UnreadableFile,
)
from conspectus.ingest.document_fields import check_name
from conspectus.ingest.file_preview import preview_uploads
from conspectus.ingest.files import source_name
from conspectus.model.annotations import Example, Length, Range
from conspectus.model.captions import is_recording
from conspectus.model.ids import SourceId
from conspectus.model.jobs import (
    FINISHED,
    METHODS,
    ChunkOptions,
    EmbeddingRequest,
    IngestReport,
    Job,
    JobOutcome,
    JobPage,
    JobState,
    RequestTotals,
    Upload,
)
from conspectus.model.parameters import (
    CollectionName,
    Cursor,
    JobIdentifier,
    PageLimit,
    SourceName,
)
from conspectus.model.records import Json, Source
from conspectus.model.reports import FilesPreview
from conspectus.text.counts import format_count
from conspectus.text.splitter import SplitOptions
from conspectus.text.urls import parse_url

MIN_POLL_SECONDS = 0.05
MAX_POLL_SECONDS = 0.5
"""Seconds between polls of a job that is waited for, at first and later."""


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
        url: Annotated[
            str, Length(1, 8_192), "Address of the page.", Example("https://example.org/handbook/backup")
        ],
        *,
        collection: CollectionName = "default",
        source: Annotated[SourceName, "Name of the source; by default one for each domain."] | None = None,
        method: Annotated[str, Length(1, 20), "Method of the request."] = "GET",
        headers: Annotated[
            Mapping[str, Annotated[str, Length(0, 8_192)]],
            Length(0, 100),
            "Sent with the request, and stored nowhere.",
        ]
        | None = None,
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
        full_url = str(address)
        secret: dict[str, Json] = {"headers": sent} if sent else {}
        if address.query:
            secret["url"] = full_url
        target_name = source_name(full_url) if source is None else check_name("source", source)
        arguments = {"method": method.upper(), "source": target_name, **self._chunk_arguments(**options)}
        if secret:
            arguments["repeatable"] = False
        if not address.query:
            arguments["url"] = full_url
        access, target = await self._job_target(collection, target_name)
        job = self._queue.new_job("ingest_url", access, target, title=address.redacted, arguments=arguments)
        if secret:
            await self._parts.work.files.store_secret(job.id, secret)
        return await self._queue.submit(job)

    async def ingest_files(
        self, files: Sequence[Upload], *, collection: CollectionName = "default", source: str = "uploads"
    ) -> Job:
        """Add uploaded files in the background; they are stored on disk when this returns the job."""
        names = await asyncio.to_thread(self._require_names, files)
        access, target = await self._job_target(collection, check_name("source", source))
        listed: list[Json] = list(names)
        title = names[0] if len(names) == 1 else f"{format_count(len(names), 'file')}: {names[0]}, …"
        arguments: dict[str, Json] = {"files": listed, "source": source, "repeatable": False}
        job = self._queue.new_job("ingest_files", access, target, title=title, arguments=arguments)
        await self._parts.work.files.store_files(job.id, files)
        return await self._queue.submit(job)

    async def preview_files(
        self,
        files: Sequence[Upload],
        *,
        collection: CollectionName = "default",
        source: str = "uploads",
        limit: Annotated[int, Range(1, 1_000), "Maximum number of chunks."] = 100,
    ) -> FilesPreview:
        """Read and split files as ingesting them would, and store nothing.

        The chunks of all files together are limited; each document has the number of all its chunks.
        """
        await asyncio.to_thread(self._require_names, files)
        require_scope(self._person, "write", "preview files")
        access = await self._authorized.collection(collection)
        target = Source(SourceId(""), access.collection.id, check_name("source", source))
        preparation = self._context.preparation(target)
        return await asyncio.to_thread(
            preview_uploads, self._parts.make_files(), files, preparation, max_chunks=limit
        )

    async def get(self, job: JobIdentifier) -> Job:
        """Return a job. Raises NotFound."""
        return (await self._authorized_jobs.job(job))[0]

    async def list(
        self,
        *,
        collection: Annotated[CollectionName, "Name or id of a collection; none: all."] | None = None,
        state: Annotated[JobState | None, "Only jobs in this state."] = None,
        outcome: Annotated[JobOutcome | None, "Only jobs that ended like this."] = None,
        after: Cursor | None = None,
        limit: Annotated[int, Range(1, 100), "Maximum number of results.", Example(10)] = 100,
    ) -> JobPage:
        """List a page of jobs, newest first; `after` is a cursor, `limit` is at most 100."""
        states = None if state is None else (state,)
        return await self._authorized_jobs.jobs(collection, states, outcome=outcome, after=after, limit=limit)

    async def cancel(self, job: JobIdentifier) -> Job:
        """Cancel a job that is queued or runs; a job that has ended stays as it is. Raises NotFound.

        What it stored stays: a cancelled upload names these files under `stored` in its result.
        """
        stored_job = await self._require_changeable(job, "cancel a job")
        await cancel_job(self._context, stored_job)
        return await self.get(stored_job.id)

    async def retry(self, job: JobIdentifier) -> Job:
        """Run a job again that failed or was cancelled.

        Raises Conflict for other jobs, and for one whose input was deleted when it ended: files, and
        addresses or headers that may hold secrets.
        """
        stored_job = await self._require_changeable(job, "run a job again")
        if stored_job.state not in {"failed", "cancelled"}:
            raise Conflict(
                "job", job, f"is {stored_job.state}; only failed and cancelled jobs can be retried"
            )
        if "retry" not in stored_job.possible_actions:
            raise Conflict("job", job, "needs data that were deleted when it ended; start a new job")
        cleared = dict.fromkeys(("code", "error", "result", "started", "finished"))
        unless: tuple[JobState, ...] = ("queued", "running", "succeeded")
        again = await self._parts.work.job_store.change(
            stored_job.id, unless=unless, state="queued", done=0, total=0, **cleared
        )
        await self._queue.hand_over(again)
        return replace(again, actions=again.possible_actions)

    async def wait(self, job: JobIdentifier, *, timeout: float | None = None) -> Job:
        """Wait until a job has ended, at most `timeout` seconds, and return it. Raises NotFound."""
        give_up = None if timeout is None else time.monotonic() + timeout
        current = await self.get(job)
        if current.state not in FINISHED:
            await self._queue.begin()
        pause = MIN_POLL_SECONDS
        while current.state not in FINISHED and (give_up is None or time.monotonic() < give_up):
            await asyncio.sleep(pause)
            pause = min(1.2 * pause, MAX_POLL_SECONDS)
            current = await self.get(job)
        return current

    async def report(
        self, *, collection: Annotated[CollectionName, "Name or id of a collection; none: all."] | None = None
    ) -> IngestReport:
        """Count jobs by state, with failure and retry rates by period and by source."""
        return await self._authorized_jobs.report(collection, now=self._parts.clock())

    async def list_requests(
        self,
        *,
        after: Annotated[int | None, Range(0), "Id of the last request of the page before."] = None,
        limit: PageLimit = 100,
    ) -> Sequence[EmbeddingRequest]:
        """List requests to model providers, newest first. Only the owner account may."""
        require_owner(self._person, "see calls to model providers")
        return await self._parts.request_log.page(after=after, limit=limit)

    async def request_totals(
        self, *, hours: Annotated[int, Range(1, 366 * 24), "How many hours to look back."] = 24
    ) -> Sequence[RequestTotals]:
        """Sum requests to model providers over the last hours. Only the owner account may."""
        require_owner(self._person, "see calls to model providers")
        return await self._parts.request_log.totals(self._parts.clock() - timedelta(hours=hours))

    async def _require_changeable(self, job: str, action: str) -> Job:
        """Return a job that the user may cancel or retry: an own one, or with the role for it."""
        stored_job, access = await self._authorized_jobs.job(job)
        require_scope(self._person, "write", action)
        if not may_change_job(access.roles, self._person, stored_job):
            access.require("editor", action, source=stored_job.source)
        return stored_job

    async def start(self) -> None:
        """Run queued jobs in this process, or in another one that holds the store."""
        await self._queue.start()

    async def _job_target(self, collection: str, source: str) -> tuple[CollectionAccess, SourceId | None]:
        """Return the target of a job, and the source if it exists. Raises what the job would raise later."""
        require_scope(self._person, "write", "write")
        target = await self._writer.collection(collection)
        access = await self._authorized.collection(target.id)
        stored_source = await self._authorized.source(access, source)
        if stored_source is None:
            access.require("manager", "make a source")
            return access, None
        access.require("editor", "add documents", source=stored_source.id)
        return access, stored_source.id

    def _chunk_arguments(self, chunk_size: int | None = None, overlap: int | None = None) -> dict[str, Json]:
        """Return the chunk sizes, if any is given. Raises InvalidInput."""
        if chunk_size is None and overlap is None:
            return {}
        settings = self._parts.settings
        size = settings.chunk_size if chunk_size is None else chunk_size
        overlap = min(settings.chunk_overlap, size // 2) if overlap is None else overlap
        SplitOptions(size=size, overlap=overlap)
        return {"chunk_size": size, "overlap": overlap}

    def _require_names(self, files: Sequence[Upload]) -> Sequence[str]:
        settings = self._parts.settings
        if not 1 <= len(files) <= settings.max_upload_files:
            raise InvalidInput("files", f"must be from 1 to {settings.max_upload_files}")
        names = [check_name("files", upload.name) for upload in files]
        if len(set(names)) < len(names):
            raise InvalidInput("files", "have the same name twice")
        for upload in files:
            size = _size(upload)
            limit = settings.max_recording_bytes if is_recording(upload.name) else settings.max_file_bytes
            if size > limit:
                raise TooLarge("file", size=size, limit=limit)
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
