"""Asking a server for long work."""

from collections.abc import Mapping, Sequence
from typing import Any

from conspectus.client.catalog import given, in_collection
from conspectus.client.encode import metadata_json
from conspectus.client.request import Request, get, post, remove
from conspectus.client.watching import Watching
from conspectus.errors import InvalidInput
from conspectus.model.connections import Connection
from conspectus.model.jobs import Job, Upload
from conspectus.model.records import Receipt


class Work(Watching):
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
        """Take in a web page: fetched by the server, read, split and embedded by a job, which is returned.

        Without a `source`, its domain is the source. The same address again replaces the page, or leaves it
        where nothing changed. `headers` may hold secrets and are deleted when the job ends. `chunk_size` and
        `overlap` are in characters; where they are not given, the server's settings decide.
        """
        if unknown := sizes.keys() - {"chunk_size", "overlap"}:
            raise InvalidInput(min(unknown), "is not known; give chunk_size and overlap")
        body = given(url=url, source=source, method=method, headers=headers, **sizes)
        return await self._made(collection, Job, post(in_collection(collection, "ingest", "url"), body))

    async def ingest_files(
        self, files: Sequence[Upload], *, collection: str = "default", source: str = "uploads"
    ) -> Job:
        """Take in files of this machine, by a job of the server; they are on its disk when this returns."""
        if not files:
            raise InvalidInput("files", "must be at least one")
        path = in_collection(collection, "ingest", "files")
        request = Request("POST", path, given(source=source), uploads=files, writes=True, unhurried=True)
        return await self._made(collection, Job, request)

    async def connect(
        self, name: str, connector: str, options: Mapping[str, Any], *, collection: str = "default"
    ) -> Connection:
        """Connect a collection with a wiki or another store of documents; `sync` then brings it in step.

        Raises Conflict if there is a connection of that name, InvalidInput for options that the connector
        cannot use or that look like secrets, which are not kept yet.
        """
        body = given(name=name, connector=connector, options=metadata_json(options))
        return await self._made(collection, Connection, post(in_collection(collection, "connections"), body))

    async def connections(self, *, collection: str = "default") -> Sequence[Connection]:
        """The connections of a collection, by name, for those who see all of it."""
        return await self._channel.several(Connection, get(in_collection(collection, "connections")))

    async def disconnect(self, name: str, *, collection: str = "default", delete: bool = False) -> Receipt:
        """End a connection; with `delete`, what it brought is deleted too. Raises NotFound."""
        path = in_collection(collection, "connections", ("connection", name))
        return await self._channel.one(Receipt, remove(path, delete=delete))

    async def sync(self, name: str, *, collection: str = "default") -> Job:
        """Bring a collection in step with what it is connected to, by a job; one at a time."""
        path = in_collection(collection, "connections", ("connection", name), "sync")
        return await self._channel.one(Job, post(path))
