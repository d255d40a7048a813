"""Connections of collections with wikis, repositories and folders, which jobs sync."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any
from uuid import uuid4

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.job_reader import AuthorizedJobs
from conspectus.access.policy import (
    includes_role,
    require_own_origin,
    require_owner,
    require_owner_in_person,
    require_scope,
)
from conspectus.engine.collections import CollectionService
from conspectus.engine.context import EngineContext
from conspectus.engine.credentials import ConnectionCredentials
from conspectus.engine.job_handlers import require_readable_origin
from conspectus.engine.job_queue import JobQueue
from conspectus.engine.jobs import JobService
from conspectus.engine.owner_account import ensure_owner_account
from conspectus.engine.remote_checks import require_verifying
from conspectus.engine.service import Service
from conspectus.errors import (
    Conflict,
    InvalidInput,
)
from conspectus.ingest.connection_followers import Follow, Followers
from conspectus.ingest.document_fields import check_name, storable
from conspectus.model.access import Person
from conspectus.model.annotations import Example, Secret
from conspectus.model.connections import Connection
from conspectus.model.connectors import ConnectorKind
from conspectus.model.jobs import Job
from conspectus.model.pages import pages
from conspectus.model.parameters import (
    CollectionName,
    ConnectionName,
    Name,
    UserName,
)
from conspectus.model.records import Receipt
from conspectus.model.viewers import RemoteName, RemotePerson
from conspectus.ports.connectors import Watchable
from conspectus.ports.jobs import JobPlace, JobScope

SECRET_NAME = re.compile(r"token|secret|passw|credential|auth|key|cookie|private", re.IGNORECASE)
SECRET_URL = re.compile(r"https?://[^/?#]*@|[^/]*://[^/?#]*:[^/?#]*@|[^/]*://[^#]*\?", re.IGNORECASE)
"""URLs with a user name or a password, or with a query string, which may contain one."""


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
        self._credentials = ConnectionCredentials(context.parts.work)

    async def create(
        self,
        name: ConnectionName,
        connector: Annotated[Name, "Connector, as `list_connectors` names it.", Example("git")],
        options: Annotated[
            Mapping[str, Any] | None,
            "Options of the connector: path, address, branch and others.",
            Example({"address": "https://git.example.org/handbook.git"}),
        ] = None,
        *,
        credentials: Annotated[
            Mapping[str, str] | None,
            Secret,
            "Secret options of the connector. They are sealed, and never shown again.",
            Example({}),
        ] = None,
        collection: CollectionName = "default",
    ) -> Connection:
        """Connect a collection with a Git repository, a MediaWiki or a folder; `sync` then copies its pages.

        Raises Conflict if the name is taken, InvalidInput for options that the connector does not know or
        that look like secrets, and for credentials if the settings have no key that seals them.
        """
        require_scope(self._person, "write", "write")
        access = await self._authorized.collection((await self._collections.get_or_create(collection)).id)
        access.require("manager", "connect a collection")
        require_own_origin(self._person, "connect a collection")
        if "/" in name:
            raise InvalidInput("name", "must not contain a slash")
        options, credentials = options or {}, credentials or {}
        _refuse_secrets(options)
        if any(existing.name == name for existing in await self._authorized_jobs.connections(access)):
            raise Conflict("connection", name, "exists already")
        self._context.screen_value("connections.name", name, access.collection.id)
        self._context.screen_value("connections.options", options, access.collection.id)
        connection = Connection(
            id=str(uuid4()),
            collection=access.collection.id,
            owner=self._person.id,
            name=check_name("name", name),
            connector=connector,
            options=storable(options, self._parts.settings),
        )
        await self._check_connection(connection, credentials)
        sealed = self._credentials.seal(connection, credentials)
        await self._parts.work.job_store.put_connection(connection, sealed=sealed)
        stored = replace(connection, has_credentials=sealed is not None)
        await self._context.note_change("create_connection", stored.id, stored.collection, connector)
        return stored

    async def set_credentials(
        self,
        name: ConnectionName,
        credentials: Annotated[
            Mapping[str, str],
            Secret,
            "Secret options of the connector, in place of those that are stored.",
            Example({}),
        ],
        *,
        collection: CollectionName = "default",
    ) -> Connection:
        """Replace the credentials of a connection. They are sealed, and never shown again.

        Raises NotFound, Conflict if they are replaced at the same time, and InvalidInput for credentials that
        the connector does not have, or if the settings have no key that seals them.
        """
        access = await self._context.collection_with_role(collection, "manager", "give credentials")
        require_own_origin(self._person, "give credentials")
        connection = await self._authorized_jobs.connection(access, name)
        job_store = self._parts.work.job_store
        replaced = await job_store.credentials(connection.id)
        await self._check_connection(connection, credentials)
        sealed = self._credentials.seal(connection, credentials)
        if not await job_store.put_credentials(connection.id, sealed, replaced=replaced):
            raise Conflict("connection", connection.name, "was given other credentials at the same time")
        await self._context.note_change("set_credentials", connection.id, connection.collection)
        return replace(connection, has_credentials=sealed is not None)

    async def list_people(
        self, name: ConnectionName, *, collection: CollectionName = "default"
    ) -> Sequence[RemotePerson]:
        """List the people at the remote of a connection that mirrors permissions, with their users.

        People without a user read nothing that is mirrored. Only the owner account may do this. Raises
        NotFound.
        """
        require_owner(self._person, "see the people of a connection")
        access = await self._authorized.collection(collection)
        connection = await self._authorized_jobs.connection(access, name)
        return await self._parts.accounts.list_remote_people(connection.id)

    async def map_person(
        self,
        name: ConnectionName,
        person: RemoteName,
        user: Annotated[UserName | None, "Name or id of the user; none: nobody."] = None,
        *,
        collection: CollectionName = "default",
    ) -> RemotePerson:
        """Map a person at the remote of a connection to a user, in place of an earlier user.

        Never map by an e-mail or a name that people can set themselves. Only the owner account may do this.
        Raises NotFound.
        """
        require_owner_in_person(self._person, "map people of a connection")
        await ensure_owner_account(self._context)
        access = await self._authorized.collection(collection)
        connection = await self._authorized_jobs.connection(access, name)
        account = None if user is None else await self._directory.user(user)
        change = self._context.change(
            "map_person",
            connection.id if account is None else account.id,
            "" if account is None else account.name,
            collection=connection.collection,
            detail=f"connection {connection.id}",
        )
        mapped = RemotePerson(person, None if account is None else account.id)
        now = self._parts.clock()
        await self._parts.accounts.map_remote_person(connection.id, mapped, created=now, change=change)
        return mapped

    async def list_connectors(self) -> Sequence[ConnectorKind]:
        """List the connectors that are installed, with the options that each takes."""
        return await asyncio.to_thread(self._parts.work.connectors.list_kinds)

    async def list(self, *, collection: CollectionName = "default") -> Sequence[Connection]:
        """List the connections of a collection by name, if you may read all of it.

        Only managers get the `cursor`, which names pages, also those that nobody may read at the moment; they
        get none where a connection mirrors what they may not read.
        """
        access = await self._authorized.collection(collection)
        connections = await self._authorized_jobs.connections(access)
        if includes_role(access.roles.collection, "manager") and access.sees_all:
            return connections
        return [replace(connection, cursor=None) for connection in connections]

    async def delete(
        self,
        name: ConnectionName,
        *,
        collection: CollectionName = "default",
        delete: Annotated[bool, "Delete the documents too."] = False,
    ) -> Receipt:
        """Delete a connection; with `delete`, also the documents that it brought. Raises NotFound."""
        access = await self._context.collection_with_role(collection, "manager", "disconnect a collection")
        connection = await self._authorized_jobs.connection(access, name)
        for job in await self._list_unfinished_syncs(access, connection):
            await self._jobs.cancel(job.id)
        await self._parts.work.job_store.delete_connection(connection.id)
        await self._parts.accounts.forget_remote(connection.id)
        await self._parts.work.connectors.forget(connection)
        await self._context.note_change("delete_connection", connection.id, connection.collection)
        if not delete:
            return Receipt()
        mirroring = self._as_person(replace(self._person, syncs=connection.id))
        return await mirroring._delete_sources(connection)

    async def _delete_sources(self, connection: Connection) -> Receipt:
        total, collection = Receipt(), connection.collection
        for source in await self._collections.list_sources(collection=collection):
            if source.metadata.get("wiki") == connection.id:
                total += await self._collections.delete_source(source.id, collection=collection)
        return total

    async def sync(self, name: ConnectionName, *, collection: CollectionName = "default") -> Job:
        """Sync a connection now, as a background job; only one runs at a time."""
        access = await self._authorized.collection(collection)
        connection = await self._authorized_jobs.connection(access, name)
        require_scope(self._person, "write", "write")
        access.require("editor", "sync a collection")
        await self._require_readable_origin(connection)
        unfinished = await self._list_unfinished_syncs(access, connection)
        if unfinished:
            return unfinished[0]
        arguments = {"connection": connection.id}
        return await self._queue.submit(
            self._queue.new_job("sync", access, None, title=connection.name, arguments=arguments)
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
        connection = await self._authorized_jobs.connection(access, name)
        credentials = await self._credentials.open(connection)
        connector = self._parts.work.connectors.create(connection, self._core.fetcher(), credentials)
        try:
            if not isinstance(connector, Watchable):
                raise InvalidInput(
                    "connection", f"{connection.connector} cannot be watched; sync it on a schedule"
                )
            changes = connector.watch()
            while True:
                changed = asyncio.ensure_future(anext(changes))
                try:
                    await self._sync_after_change(connection, on_job)
                    await changed
                finally:
                    changed.cancel()
        finally:
            await connector.close()

    async def start(self) -> None:
        """Watch every connection with the option `watch` in the background, with the rights of its owner."""
        self._core.ensure_running(Followers, lambda: Followers(self._list_watched_connections))

    async def _check_connection(self, connection: Connection, credentials: Mapping[str, str]) -> None:
        """Raise InvalidInput for wrong options or credentials, and PermissionDenied for local files."""
        connectors = self._parts.work.connectors
        require_readable_origin(self._person, connectors, connection, credentials)
        connector = connectors.create(connection, self._core.fetcher(), credentials)
        try:
            if connection.options.get("verify"):
                require_verifying(connector, connection)
        finally:
            await connector.close()

    async def _require_readable_origin(self, connection: Connection) -> None:
        if not self._person.owner:
            credentials = await self._credentials.open(connection)
            require_readable_origin(self._person, self._parts.work.connectors, connection, credentials)

    async def _list_unfinished_syncs(self, access: CollectionAccess, connection: Connection) -> Sequence[Job]:
        """Return the unfinished sync jobs of this connection."""
        scope = JobScope((JobPlace(access.collection.id),), ("queued", "running"))
        job_pages = pages(self._parts.work.job_store.jobs, scope)
        return [
            job
            async for page in job_pages
            for job in page.jobs
            if job.arguments.get("connection") == connection.id
        ]

    async def _list_watched_connections(self) -> Mapping[str, Follow]:
        follows: dict[str, Follow] = {}
        for access in await self._authorized.collections():
            for connection in await self._parts.work.job_store.connections(access.collection.id):
                if connection.options.get("watch"):
                    follows[connection.id] = partial(self._follow_as_owner, connection)
        return follows

    async def _follow_as_owner(self, connection: Connection) -> None:
        person = await self._context.person_of(connection.owner)
        await self._as_person(person).watch(connection.name, collection=connection.collection)

    async def _sync_after_change(self, connection: Connection, on_job: Callable[[Job], None] | None) -> None:
        """Sync until one sync has started after this call: a running one may have missed the change."""
        while True:
            job = await self.sync(connection.name, collection=connection.collection)
            ended = await self._jobs.wait(job.id)
            if on_job is not None:
                on_job(ended)
            has_started_since = job.started is None
            if has_started_since:
                return


def _refuse_secrets(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if SECRET_NAME.search(name):
            raise InvalidInput("options", f"{name!r} looks like a secret; give it in `credentials`")
        if isinstance(value, str) and SECRET_URL.match(value.strip()):
            raise InvalidInput(
                "options",
                f"{name!r} may hold a secret in its address; give it in `credentials`",
            )
