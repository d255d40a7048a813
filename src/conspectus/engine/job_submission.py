"""Asking for long work."""

import asyncio
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from conspectus.access.policy import require_scope
from conspectus.access.reader import SourceRef
from conspectus.engine.job_status import Watching
from conspectus.errors import Conflict, InvalidInput, TooLarge, UnreadableFile
from conspectus.ingest.http_response import source_name
from conspectus.ingest.prepare import DocumentLimits, named, storable
from conspectus.model.connections import Connection
from conspectus.model.ids import SourceId
from conspectus.model.jobs import METHODS, Job, Upload
from conspectus.model.records import Json, Receipt
from conspectus.ports.jobs import JobPlace, JobScope
from conspectus.text.splitter import SplitOptions
from conspectus.text.urls import parse_url

SECRET_NAME = re.compile(r"token|secret|passw|credential|auth|key|cookie|private", re.IGNORECASE)
SECRET_PART = re.compile(r"https?://[^/?#]*@|[^/]*://[^/?#]*:[^/?#]*@|[^/]*://[^#]*\?", re.IGNORECASE)
"""Addresses with a password, with what stands for one, or with a query, which may hold one."""


class JobSubmission(Watching):
    """Everything that outlives a request: pages and files to take in, wikis to keep in step with."""

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
        """Take in a web page: fetched, read, split and embedded by a job, which is returned at once.

        Without a `source`, its domain is the source. The same address again replaces the page, or leaves it
        where nothing changed. `headers` may hold secrets and are deleted when the job ends. `chunk_size` and
        `overlap` are in characters; where they are not given, the settings decide.
        """
        address = parse_url(url)
        if address.credentials:
            raise InvalidInput("url", "must not hold a user name or password; give an Authorization header")
        sent = _headers(headers or {})
        whole = str(address)
        secret: dict[str, Json] = {"headers": sent} if sent else {}
        if address.query:
            secret["url"] = whole
        target_name = source_name(whole) if source is None else named("source", source)
        arguments = {"method": _method(method), "source": target_name, **self._cut(sizes)}
        if secret:
            arguments["repeatable"] = False
        if not address.query:
            arguments["url"] = whole
        place, target = await self._into(collection, target_name)
        job = self._new_job("ingest_url", place, target, title=address.shown, arguments=arguments)
        if secret:
            await self._parts.work.files.keep_secret(job.id, secret)
        return await self._submit(job)

    async def ingest_files(
        self, files: Sequence[Upload], *, collection: str = "default", source: str = "uploads"
    ) -> Job:
        """Take in files that are handed in, by a job; they are kept on disk when this returns."""
        names = await asyncio.to_thread(self._checked_names, files)
        place, target = await self._into(collection, named("source", source))
        listed: list[Json] = list(names)
        title = names[0] if len(names) == 1 else f"{len(names)} files: {names[0]}, …"
        arguments: dict[str, Json] = {"files": listed, "source": source, "repeatable": False}
        job = self._new_job("ingest_files", place, target, title=title, arguments=arguments)
        await self._parts.work.files.keep_files(job.id, files)
        return await self._submit(job)

    async def connect(
        self, name: str, connector: str, options: Mapping[str, Any], *, collection: str = "default"
    ) -> Connection:
        """Connect a collection with a wiki or another store of documents; `sync` then brings it in step.

        Raises Conflict if there is a connection of that name, InvalidInput for options that the connector
        cannot use or that look like secrets, which are not kept yet.
        """
        place = await self._managed(collection, "connect a collection")
        _refuse_secrets(options)
        if any(each.name == name for each in await self._job_sight.connections(place)):
            raise Conflict("connection", name, "exists already")
        settings = self._parts.settings
        limits = DocumentLimits(0, settings.max_metadata_bytes, settings.max_metadata_depth)
        wiki = Connection(
            id=str(uuid4()),
            collection=place.collection.id,
            owner=self._person.id,
            name=_connection_name(name),
            connector=connector,
            options=storable(options, limits),
        )
        self._may_follow(wiki)
        await self._parts.work.connector_for(wiki, self._core.fetcher()).close()
        return await self._parts.work.ledger.put_connection(wiki)

    async def connections(self, *, collection: str = "default") -> Sequence[Connection]:
        """The connections of a collection, by name, for those who see all of it."""
        return await self._job_sight.connections(await self._sight.place(collection))

    async def disconnect(self, name: str, *, collection: str = "default", delete: bool = False) -> Receipt:
        """End a connection; with `delete`, what it brought is deleted too. Raises NotFound."""
        place = await self._place(collection, "manager", "disconnect a collection")
        wiki = await self._job_sight.connection(place, name)
        for job in await self._syncs(place, wiki):
            await self.cancel_job(job.id)
        await self._parts.work.ledger.delete_connection(wiki.id)
        await self._parts.work.forget_connection(wiki)
        total = Receipt()
        for each in await self.sources(collection=place.collection.id) if delete else ():
            if each.metadata.get("wiki") == wiki.id:
                gone = await self.delete_source(each.id, collection=place.collection.id)
                total = Receipt(
                    total.documents + gone.documents, total.chunks + gone.chunks, total.vectors + gone.vectors
                )
        return total

    async def sync(self, name: str, *, collection: str = "default") -> Job:
        """Bring a collection in step with what it is connected to, by a job; one at a time."""
        place = await self._sight.place(collection)
        wiki = await self._job_sight.connection(place, name)
        require_scope(self._person, "write", "write")
        place.require("editor", "bring a collection in step")
        self._may_follow(wiki)
        for job in await self._syncs(place, wiki):
            return job
        arguments = {"connection": wiki.id}
        return await self._submit(self._new_job("sync", place, None, title=wiki.name, arguments=arguments))

    async def _into(self, collection: str, source: str) -> tuple[SourceRef, SourceId | None]:
        """Where a job is to write, and the source if there is one; raises what the job would raise later."""
        require_scope(self._person, "write", "write")
        home = await self.collection(collection)
        place = await self._sight.place_of(home.id)
        found = await self._sight.source(place, source)
        if found is None:
            place.require("manager", "make a source")
            return place, None
        place.require("editor", "add documents", source=found.id)
        return place, found.id

    async def _managed(self, collection: str, action: str) -> SourceRef:
        require_scope(self._person, "write", "write")
        home = await self.collection(collection)
        place = await self._sight.place_of(home.id)
        place.require("manager", action)
        return place

    async def _syncs(self, place: SourceRef, wiki: Connection) -> list[Job]:
        """The jobs that bring this connection in step and have not ended."""
        scope = JobScope((JobPlace(place.collection.id),), ("queued", "running"))
        found: list[Job] = []
        after: str | None = None
        while True:
            page = await self._parts.work.ledger.jobs(scope, after=after)
            found += [job for job in page.jobs if job.arguments.get("connection") == wiki.id]
            after = page.next
            if after is None:
                return found

    def _cut(self, sizes: Mapping[str, int | None]) -> dict[str, Json]:
        """The sizes of chunks, if any was given. Raises InvalidInput."""
        if unknown := sizes.keys() - {"chunk_size", "overlap"}:
            raise InvalidInput(min(unknown), "is not known; give chunk_size and overlap")
        size, overlap = sizes.get("chunk_size"), sizes.get("overlap")
        if size is None and overlap is None:
            return {}
        settings = self._parts.settings
        size = settings.chunk_size if size is None else size
        overlap = min(settings.chunk_overlap, size // 2) if overlap is None else overlap
        SplitOptions(size=size, overlap=overlap)
        return {"chunk_size": size, "overlap": overlap}

    def _checked_names(self, files: Sequence[Upload]) -> list[str]:
        settings = self._parts.settings
        if not 1 <= len(files) <= settings.max_upload_files:
            raise InvalidInput("files", f"must be from 1 to {settings.max_upload_files}")
        names = [named("files", each.name) for each in files]
        if len(set(names)) < len(names):
            raise InvalidInput("files", "have the same name twice")
        for each in files:
            size = _size(each)
            if size > settings.max_file_bytes:
                raise TooLarge("file", size=size, limit=settings.max_file_bytes)
        return names


def _connection_name(name: str) -> str:
    if "/" in name:
        raise InvalidInput("connection", "a name has no slash")
    return named("connection", name)


def _refuse_secrets(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if SECRET_NAME.search(name):
            raise InvalidInput("options", f"{name!r} looks like a secret; none can be kept yet")
        if isinstance(value, str) and SECRET_PART.match(value.strip()):
            raise InvalidInput("options", f"{name!r} may hold a secret in its address; none can be kept yet")


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


def _method(name: str) -> str:
    if name.upper() not in METHODS:
        raise InvalidInput("method", f"must be one of {', '.join(METHODS)}")
    return name.upper()


def _headers(given: Mapping[str, str]) -> dict[str, Json]:
    if not all(isinstance(part, str) for pair in given.items() for part in pair):
        raise InvalidInput("headers", "must be names and values, both text")
    return dict(given)
