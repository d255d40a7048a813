"""The services of background jobs, and of connections that jobs sync."""

import asyncio
import re
import stat
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Unpack
from uuid import uuid4

from conspectus.access.policy import may_change_job, require_own_origin, require_owner, require_scope
from conspectus.access.reader import AuthorizedJobs, CollectionAccess
from conspectus.engine.collections import CollectionService
from conspectus.engine.context import EngineContext, Service
from conspectus.engine.job_handlers import may_follow, note_stored_files
from conspectus.errors import (
    Conflict,
    InvalidInput,
    TooLarge,
    UnreadableFile,
)
from conspectus.ingest.background_workers import Follow, Followers
from conspectus.ingest.files import source_name
from conspectus.ingest.job_execution import Outcome, Runner, Tell
from conspectus.ingest.prepare import named, storable
from conspectus.model.access import Person
from conspectus.model.annotations import Example, Length, Range
from conspectus.model.ids import JobId, SourceId
from conspectus.model.jobs import (
    FINISHED,
    MAX_LISTED_JOBS,
    METHODS,
    ChunkOptions,
    Connection,
    EmbeddingRequest,
    IngestReport,
    Job,
    JobKind,
    JobPage,
    JobState,
    RequestTotals,
    RetryPolicy,
    Upload,
)
from conspectus.model.pages import pages
from conspectus.model.parameters import (
    CollectionName,
    ConnectionName,
    Cursor,
    JobIdentifier,
    Name,
    PageLimit,
    SourceName,
)
from conspectus.model.records import Json, Receipt
from conspectus.model.trust import ORIGINS
from conspectus.ports.jobs import JobPlace, JobScope
from conspectus.ports.web import Watchable
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
            work.job_store,
            self._run_as_owner,
            work.files.drop,
            parts.clock,
            patience,
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
        origin, here = self._person.origin, access.collection.id
        self._context.screened("jobs.arguments", arguments, here)
        return Job(
            id=JobId(str(uuid4())),
            kind=kind,
            owner=self._person.id,
            collection=here,
            source=source,
            title=self._context.screened("jobs.title", title, here),
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

    async def _run_as_owner(self, job: Job, tell: Tell) -> Outcome:
        """Run a job as its owner, with their current rights, and with the origin of the key that made it."""
        person, origin_name = await self._context.person_of(job.owner), job.arguments.get(ORIGIN)
        origin = next((known_origin for known_origin in ORIGINS if known_origin == origin_name), None)
        return await self._perform(replace(person, origin=origin), job, tell)


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
        target_name = source_name(full_url) if source is None else named("source", source)
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
        access, target = await self._job_target(collection, named("source", source))
        listed: list[Json] = list(names)
        title = names[0] if len(names) == 1 else f"{len(names)} files: {names[0]}, …"
        arguments: dict[str, Json] = {"files": listed, "source": source, "repeatable": False}
        job = self._queue.new_job("ingest_files", access, target, title=title, arguments=arguments)
        await self._parts.work.files.store_files(job.id, files)
        return await self._queue.submit(job)

    async def get(self, job: JobIdentifier) -> Job:
        """Return a job. Raises NotFound."""
        return (await self._authorized_jobs.job(job))[0]

    async def list(
        self,
        *,
        collection: Annotated[CollectionName, "Name or id of a collection; none: all."] | None = None,
        state: Annotated[JobState | None, "Only jobs in this state."] = None,
        after: Cursor | None = None,
        limit: Annotated[int, Range(1, MAX_LISTED_JOBS), "Maximum number of results.", Example(10)] = 100,
    ) -> JobPage:
        """List a page of jobs, newest first; `after` is a cursor, `limit` is at most 100."""
        states = None if state is None else (state,)
        return await self._authorized_jobs.jobs(collection, states, after=after, limit=limit)

    async def cancel(self, job: JobIdentifier) -> Job:
        """Cancel a job that is queued or runs; a job that has ended stays as it is. Raises NotFound.

        What it stored stays: a cancelled upload names these files under `stored` in its result.
        """
        stored_job = await self._require_changeable(job, "cancel a job")
        ended = tuple(sorted(FINISHED))
        stored_job = await self._parts.work.job_store.change(
            stored_job.id, unless=ended, state="cancelled", finished=self._parts.clock()
        )
        await self._core.jobs.cancel(stored_job.id)
        await self._parts.work.files.drop(stored_job.id)
        await note_stored_files(self._context, stored_job)
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
        names = [named("files", upload.name) for upload in files]
        if len(set(names)) < len(names):
            raise InvalidInput("files", "have the same name twice")
        for upload in files:
            size = _size(upload)
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


SECRET_NAME = re.compile(r"token|secret|passw|credential|auth|key|cookie|private", re.IGNORECASE)
SECRET_PART = re.compile(r"https?://[^/?#]*@|[^/]*://[^/?#]*:[^/?#]*@|[^/]*://[^#]*\?", re.IGNORECASE)
"""URLs with a password, a placeholder for one, or a query string, which may contain one."""


class ConnectionService(Service):
    """Connections of collections with wikis, repositories and folders."""

    def __init__(
        self,
        context: EngineContext,
        collections: CollectionService,
        jobs: JobService,
        queue: JobQueue,
        as_person: Callable[[Person], "ConnectionService"],
    ) -> None:
        super().__init__(context)
        self._collections = collections
        self._jobs = jobs
        self._queue = queue
        self._as_person = as_person
        self._authorized_jobs = AuthorizedJobs(context.authorized, context.parts.work.job_store)

    async def create(
        self,
        name: ConnectionName,
        connector: Annotated[Name, "Connector: git, mediawiki or folder.", Example("git")],
        options: Annotated[
            Mapping[str, Any] | None,
            "Options of the connector.",
            Example({"url": "https://git.example.org/handbook.git"}),
        ] = None,
        *,
        collection: CollectionName = "default",
    ) -> Connection:
        """Connect a collection with a Git repository, a MediaWiki or a folder; `sync` then copies its pages.

        Raises Conflict if the name is taken, InvalidInput for options that the connector does not know or
        that look like secrets, which cannot be stored yet.
        """
        require_scope(self._person, "write", "write")
        access = await self._authorized.collection((await self._collections.get_or_create(collection)).id)
        access.require("manager", "connect a collection")
        require_own_origin(self._person, "connect a collection")
        if "/" in name:
            raise InvalidInput("name", "has no slash")
        options = options or {}
        _refuse_secrets(options)
        if any(connection.name == name for connection in await self._authorized_jobs.connections(access)):
            raise Conflict("connection", name, "exists already")
        self._context.screened("connections.name", name, access.collection.id)
        self._context.screened("connections.options", options, access.collection.id)
        wiki = Connection(
            id=str(uuid4()),
            collection=access.collection.id,
            owner=self._person.id,
            name=named("name", name),
            connector=connector,
            options=storable(options, self._parts.settings),
        )
        may_follow(self._person, wiki)
        await self._parts.work.connector_for(wiki, self._core.fetcher()).close()
        stored = await self._parts.work.job_store.put_connection(wiki)
        await self._context.note_change("create_connection", stored.id, stored.collection, connector)
        return stored

    async def list(self, *, collection: CollectionName = "default") -> Sequence[Connection]:
        """List the connections of a collection by name, if you may read all of it."""
        return await self._authorized_jobs.connections(await self._authorized.collection(collection))

    async def delete(
        self,
        name: ConnectionName,
        *,
        collection: CollectionName = "default",
        delete: Annotated[bool, "Delete the documents too."] = False,
    ) -> Receipt:
        """Delete a connection; with `delete`, also the documents that it brought. Raises NotFound."""
        access = await self._context.collection_with_role(collection, "manager", "disconnect a collection")
        wiki = await self._authorized_jobs.connection(access, name)
        for job in await self._unfinished_syncs(access, wiki):
            await self._jobs.cancel(job.id)
        await self._parts.work.job_store.delete_connection(wiki.id)
        await self._parts.work.forget_connection(wiki)
        await self._context.note_change("delete_connection", wiki.id, wiki.collection)
        total = Receipt()
        for source in await self._collections.list_sources(collection=access.collection.id) if delete else ():
            if source.metadata.get("wiki") == wiki.id:
                gone = await self._collections.delete_source(source.id, collection=access.collection.id)
                total = Receipt(
                    total.documents + gone.documents, total.chunks + gone.chunks, total.vectors + gone.vectors
                )
        return total

    async def sync(self, name: ConnectionName, *, collection: CollectionName = "default") -> Job:
        """Sync a connection now, as a background job; only one runs at a time."""
        access = await self._authorized.collection(collection)
        wiki = await self._authorized_jobs.connection(access, name)
        require_scope(self._person, "write", "write")
        access.require("editor", "sync a collection")
        may_follow(self._person, wiki)
        for job in await self._unfinished_syncs(access, wiki):
            return job
        arguments = {"connection": wiki.id}
        return await self._queue.submit(
            self._queue.new_job("sync", access, None, title=wiki.name, arguments=arguments)
        )

    async def watch(
        self,
        name: str,
        *,
        collection: CollectionName = "default",
        on_job: Callable[[Job], None] | None = None,
    ) -> None:
        """Sync now and after every change, until this is cancelled.

        `on_job` is called with each job that has ended. Raises NotFound, InvalidInput for a connector that
        cannot watch, and FetchFailed if the address is gone.
        """
        access = await self._authorized.collection(collection)
        wiki = await self._authorized_jobs.connection(access, name)
        connector = self._parts.work.connector_for(wiki, self._core.fetcher())
        try:
            if not isinstance(connector, Watchable):
                raise InvalidInput("connection", f"{wiki.connector} cannot be watched; sync it on a schedule")
            changes = connector.watch()
            while True:
                changed = asyncio.ensure_future(anext(changes))
                try:
                    await self._sync_after_change(wiki, on_job)
                    await changed
                finally:
                    changed.cancel()
        finally:
            await connector.close()

    async def start(self) -> None:
        """Watch every connection with the option `watch` in the background, with the rights of its owner."""
        self._core.ensure_running(Followers, lambda: Followers(self._watched_connections))

    async def _unfinished_syncs(self, access: CollectionAccess, wiki: Connection) -> Sequence[Job]:
        """Return the unfinished sync jobs of this connection."""
        scope = JobScope((JobPlace(access.collection.id),), ("queued", "running"))
        job_pages = pages(self._parts.work.job_store.jobs, scope)
        return [
            job async for page in job_pages for job in page.jobs if job.arguments.get("connection") == wiki.id
        ]

    async def _watched_connections(self) -> Mapping[str, Follow]:
        follows: dict[str, Follow] = {}
        for access in await self._authorized.collections():
            for wiki in await self._parts.work.job_store.connections(access.collection.id):
                if wiki.options.get("watch"):
                    follows[wiki.id] = partial(self._follow_as_owner, wiki)
        return follows

    async def _follow_as_owner(self, wiki: Connection) -> None:
        person = await self._context.person_of(wiki.owner)
        await self._as_person(person).watch(wiki.name, collection=wiki.collection)

    async def _sync_after_change(self, wiki: Connection, on_job: Callable[[Job], None] | None) -> None:
        """Return a sync that starts after this call: a running one may have missed the change."""
        while True:
            job = await self.sync(wiki.name, collection=wiki.collection)
            ended = await self._jobs.wait(job.id)
            if on_job is not None:
                on_job(ended)
            if job.started is None:
                return


def _refuse_secrets(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if SECRET_NAME.search(name):
            raise InvalidInput("options", f"{name!r} looks like a secret; secrets cannot be stored")
        if isinstance(value, str) and SECRET_PART.match(value.strip()):
            raise InvalidInput(
                "options", f"{name!r} may hold a secret in its address; secrets cannot be stored"
            )
