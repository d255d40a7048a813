"""The sources of a connection: reads and writes its pages with the permissions of one user."""

from collections.abc import AsyncIterator, Awaitable, Callable, Container, Mapping, Sequence
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
from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.quarantine import as_given
from conspectus.model.records import Document, Metadata, NewDocument, Source, Written
from conspectus.text.hashing import stable_id

DOCUMENTS_PER_QUERY = 1_000
MAX_SOURCES_BY_ID = 50
"""With more sources, pages are found by key: the ids of a key in each source would be too many."""
VIEWERS_DIGITS = 16
"""Digits of the hash of viewers at the end of the name of a mirrored source."""
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
        self._accounts = context.parts.accounts
        self._mirrored: dict[tuple[str, frozenset[str]], Source] | None = None
        self._create_source = create_source
        self._write = write

    async def spaces(self) -> Sequence[str]:
        """Return the spaces that have a source."""
        return list(dict.fromkeys(str(source.metadata["space"]) for source in await self._sources()))

    async def source(self, space: str, viewers: frozenset[str] | None) -> Source:
        """Return the source of a space with these viewers, created if it is new.

        A mirrored source is closed to all others before anything is written to it. Raises Conflict if its
        name is taken.
        """
        if viewers is None:
            return await self._source(space, "")
        if self._mirrored is None:
            stored = await self._accounts.list_mirrored_sources(self._connection.id)
            sources = {source.id: source for source in await self._sources()}
            self._mirrored = {
                (str(sources[source].metadata["space"]), names): sources[source]
                for source, names in stored.items()
                if source in sources
            }
        source = self._mirrored.get((space, viewers))
        if source is None:
            digest = stable_id("viewers", *sorted(viewers)).replace("-", "")[:VIEWERS_DIGITS]
            source = await self._source(space, f"@{digest}")
            await self._accounts.mirror_source(source.id, self._connection.id, sorted(viewers))
            await self._accounts.hide_sources([source.id], since=self._mirrored_until())
            self._mirrored[space, viewers] = source
        return source

    async def has_unmirrored(self) -> bool:
        """Return whether there are sources that were made before the connector mirrored permissions."""
        return bool(await self._list_unmirrored())

    async def hide_unmirrored(self) -> None:
        """Let nobody read the sources that were made before the connector mirrored permissions."""
        for source in await self._list_unmirrored():
            await self._accounts.mirror_source(source.id, self._connection.id, [])

    async def _list_unmirrored(self) -> list[Source]:
        mirrored = await self._accounts.list_mirrored_sources(self._connection.id)
        return [source for source in await self._sources() if source.id not in mirrored]

    async def put_members(
        self, members: Mapping[str, Sequence[str]], *, groups: Container[str] | None
    ) -> None:
        """Replace all members of groups at the remote; with `groups`, those not among them have none."""
        await self._accounts.put_remote_members(self._connection.id, members, groups=groups)

    async def read(self, document: Document) -> NewDocument | None:
        """Return a page as it is stored; None if it has pages, of which the beginnings are not stored."""
        if any(row.chunk.page is not None for row in await self._authorized.chunks(document)):
            return None
        return NewDocument(
            text=await self._authorized.text(document),
            title=document.title,
            kind=document.kind,
            metadata=document.metadata,
            author=document.author,
            role=document.role,
            occurred=document.occurred,
            sequence=document.sequence,
            parent=document.parent,
            thread=document.thread,
            syntax=document.syntax,
            read_by=document.read_by,
        )

    async def _source(self, space: str, suffix: str) -> Source:
        connection = self._connection
        name = (connection.name if space in ROOT_SPACES else f"{connection.name}/{space}") + suffix
        for source in await self._collections.list_sources(collection=connection.collection):
            if source.name == name and source.metadata.get("wiki") != connection.id:
                raise Conflict("source", name, "exists already and does not belong to this connection")
            is_own = source.metadata.get("wiki") == connection.id and source.metadata.get("space") == space
            if is_own and (not suffix or source.name == name):
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
        if len(sources) > MAX_SOURCES_BY_ID:
            return await self._find_by_key(keys)
        ids = [stable_id("document", source.id, key) for source in sources for key in keys]
        documents: list[Document] = []
        for start in range(0, len(ids), DOCUMENTS_PER_QUERY):
            where = In("document", tuple(ids[start : start + DOCUMENTS_PER_QUERY]))
            documents += [as_given(document) async for document in self._iterate_stored_documents(where)]
        return documents

    async def _find_by_key(self, keys: Sequence[str]) -> Sequence[Document]:
        """Return the stored pages with these keys by one pass over all pages, for any number of sources."""
        documents: list[Document] = []
        for start in range(0, len(keys), DOCUMENTS_PER_QUERY):
            wanted_keys = set(keys[start : start + DOCUMENTS_PER_QUERY])
            where = In("key", tuple(sorted(wanted_keys)))
            stored = [as_given(document) async for document in self._iterate_stored_documents(where)]
            documents += [document for document in stored if document.key in wanted_keys]
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
        await self._extend_mirrored()
        if self._connection.access != "granted":
            await self._set_access("granted", None)

    async def _extend_mirrored(self) -> None:
        """Let viewers read what is mirrored until the next sync has failed for too long."""
        mirrored = await self._accounts.list_mirrored_sources(self._connection.id)
        if mirrored:
            await self._accounts.hide_sources(list(mirrored), since=self._mirrored_until())

    def _mirrored_until(self) -> datetime | None:
        hours = self._context.parts.settings.mirrored_hide_hours
        return self._context.parts.clock() + timedelta(hours=hours) if hours else None

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
        mirrored = await self._accounts.list_mirrored_sources(self._connection.id)
        unmirrored = [source for source in sources if source not in mirrored]
        await self._accounts.hide_sources(unmirrored, since=hidden_from)
        if mirrored and hidden_from is not None:
            await self._hide_mirrored(list(mirrored), hidden_from)
        await self.update(access=access, access_since=since)

    async def _hide_mirrored(self, mirrored: Sequence[SourceId], hidden_from: datetime) -> None:
        """Hide mirrored sources from an instant on, but never later than without it."""
        hidden = await self._accounts.list_hidden_sources(self._connection.collection)
        shown_longer = [source for source in mirrored if hidden.get(source, hidden_from) >= hidden_from]
        await self._accounts.hide_sources(shown_longer, since=hidden_from)

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
