"""The sources of a connection: reads and writes its pages with the permissions of one user."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from conspectus.engine.collections import CollectionService
from conspectus.engine.context import EngineContext
from conspectus.engine.documents import DocumentService
from conspectus.errors import (
    Conflict,
)
from conspectus.ingest.sensitive import mask_report
from conspectus.model.connections import Connection, RemoteAccess
from conspectus.model.filter import And, Eq, Filter, In
from conspectus.model.ids import DocumentId
from conspectus.model.quarantine import as_given
from conspectus.model.records import Document, Metadata, NewDocument, Source, Written
from conspectus.text.hashing import stable_id

DOCUMENTS_PER_QUERY = 1_000
ROOT_SPACES = frozenset({"", "."})
"""The names of the space of pages outside any space, whose source has the name of the connection."""

CreateSource = Callable[[str, Metadata], Awaitable[Source]]
"""Creates a source with metadata in the connection's collection."""
WriteDocuments = Callable[[Source, Sequence[NewDocument]], Awaitable[Sequence[Written]]]
"""Writes documents to a source in one transaction."""


class ConnectionSources:
    """The `ConnectionStore` of a connection, with the permissions of one user."""

    def __init__(
        self,
        context: EngineContext,
        collections: CollectionService,
        documents: DocumentService,
        connection: Connection,
        *,
        create_source: CreateSource,
        write: WriteDocuments,
    ) -> None:
        self._context = context
        self._authorized = context.authorized
        self._collections = collections
        self._documents = documents
        self._connection = connection
        self._job_store = context.parts.work.job_store
        self._create_source = create_source
        self._write = write

    async def spaces(self) -> Sequence[str]:
        """Return the spaces that have a source."""
        return [str(source.metadata["space"]) for source in await self._sources()]

    async def source(self, space: str) -> Source:
        """Return the source of a space, created if it is new. Raises Conflict if its name is taken."""
        connection = self._connection
        name = connection.name if space in ROOT_SPACES else f"{connection.name}/{space}"
        for source in await self._collections.list_sources(collection=connection.collection):
            if source.name == name and source.metadata.get("wiki") != connection.id:
                raise Conflict("source", name, "exists already and does not belong to this connection")
            if source.metadata.get("wiki") == connection.id and source.metadata.get("space") == space:
                return source
        return await self._create_source(name, {"wiki": connection.id, "space": space})

    async def delete_source(self, space: str) -> int:
        """Delete the source with its documents, if it exists. Returns the number of documents."""
        deleted = 0
        for source in await self._sources():
            if source.metadata["space"] == space:
                receipt = await self._collections.delete_source(
                    source.id, collection=self._connection.collection
                )
                deleted += receipt.documents
        return deleted

    async def find(self, keys: Sequence[str]) -> Sequence[Document]:
        """Return the stored pages with these keys, in any space."""
        sources = await self._sources()
        ids = [stable_id("document", source.id, key) for source in sources for key in keys]
        documents: list[Document] = []
        for start in range(0, len(ids), DOCUMENTS_PER_QUERY):
            where = In("document", tuple(ids[start : start + DOCUMENTS_PER_QUERY]))
            documents += [as_given(document) async for document in self._iterate_stored_documents(where)]
        return documents

    async def iterate_stored_pages(self) -> AsyncIterator[Document]:
        """Yield every stored page."""
        sources = In("source", tuple(source.id for source in await self._sources()))
        async for document in self._iterate_stored_documents(sources):
            yield document

    async def write(self, source: Source, documents: Sequence[NewDocument]) -> Sequence[Written]:
        """Write documents to a source, all or none."""
        return await self._write(source, [replace(document, origin="import") for document in documents])

    async def delete(self, documents: Sequence[DocumentId]) -> None:
        """Delete pages. Their children stay, without a parent; quarantined ones cannot be changed."""
        deleted = set(documents)
        for start in range(0, len(documents), DOCUMENTS_PER_QUERY):
            parents = In("parent", tuple(documents[start : start + DOCUMENTS_PER_QUERY]))
            for child in [document async for document in self._iterate_stored_documents(parents)]:
                if child.id not in deleted and child.kind != "quarantined":
                    await self._documents.update(child.id, parent=None)
        await self._documents.delete(documents)

    async def show_again(self) -> None:
        """Show the pages that were hidden while the connection had no access."""
        if self._connection.access != "granted":
            await self._set_access("granted", None)

    async def hide(self, access: RemoteAccess) -> None:
        """Record that the remote refused or did not answer, and hide the pages when the settings say so.

        A refusal holds until the remote lists the pages again: silence after it gives nothing back.
        """
        settings = self._context.parts.settings
        connection = self._connection
        if connection.access == "lost":
            access = "lost"
        since = self._context.parts.clock()
        if connection.access == access and connection.access_since is not None:
            since = connection.access_since
        if access == "lost":
            hidden_from = since + timedelta(hours=settings.access_lost_keep_hours)
        elif settings.unreachable_hide_hours:
            hidden_from = since + timedelta(hours=settings.unreachable_hide_hours)
        else:
            hidden_from = None
        await self._set_access(access, hidden_from, since=since)

    async def _set_access(
        self, access: RemoteAccess, hidden_from: datetime | None, *, since: datetime | None = None
    ) -> None:
        sources = await self._authorized.connection_sources(self._connection)
        await self._context.parts.accounts.hide_sources(sources, since=hidden_from)
        await self.update(access=access, access_since=since)

    async def save_cursor(self, cursor: str) -> None:
        """Store the cursor of the connection; pages whose keys are refused are listed again next time."""
        setting, here = self._context.parts.settings.sensitive, self._connection.collection
        await self.update(cursor=mask_report(setting, cursor, here, of_keys=True))

    async def update(self, **fields: Any) -> None:
        """Update fields of the connection, if it still exists."""
        self._connection = replace(self._connection, **fields)
        stored = await self._job_store.connections(self._connection.collection)
        if any(connection.id == self._connection.id for connection in stored):
            await self._job_store.put_connection(self._connection)

    async def _sources(self) -> list[Source]:
        sources = await self._collections.list_sources(collection=self._connection.collection)
        return [source for source in sources if source.metadata.get("wiki") == self._connection.id]

    async def _iterate_stored_documents(self, where: Filter) -> AsyncIterator[Document]:
        access = await self._authorized.collection(self._connection.collection)
        async for page in self._authorized.iterate_matching(
            access, And((where, Eq(("wiki",), self._connection.id)))
        ):
            for document in page:
                yield document
