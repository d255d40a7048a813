"""What one connection keeps in a collection: a source for each space, a document for each page."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from conspectus.engine.collections import CollectionService
from conspectus.engine.documents import DocumentService
from conspectus.errors import Conflict
from conspectus.model.connections import Connection
from conspectus.model.filter import And, Eq, Filter, In
from conspectus.model.ids import DocumentId
from conspectus.model.records import Document, Metadata, NewDocument, Source, Written
from conspectus.ports.jobs import JobStore
from conspectus.text.hashing import stable_id

PAGE = 1_000
ROOT = frozenset({"", "."})
"""The space of pages that stand in none."""

Make = Callable[[str, Metadata], Awaitable[Source]]
"""Makes a source with metadata in the connection's collection."""
Write = Callable[[Source, Sequence[NewDocument]], Awaitable[Sequence[Written]]]
"""Writes documents into a source in one transaction."""


class ConnectionSources:
    """The `ConnectionStore` of a connection, as one person may use it."""

    def __init__(
        self,
        collections: CollectionService,
        documents: DocumentService,
        connection: Connection,
        ledger: JobStore,
        *,
        make: Make,
        write: Write,
    ) -> None:
        self._collections = collections
        self._documents = documents
        self._connection = connection
        self._ledger = ledger
        self._make = make
        self._write = write

    async def spaces(self) -> Sequence[str]:
        """The spaces that have a source."""
        return [str(each.metadata["space"]) for each in await self._sources()]

    async def source(self, space: str) -> Source:
        """The source of a space, made if it is new. Raises Conflict if its name is another's."""
        wiki = self._connection
        name = wiki.name if space in ROOT else f"{wiki.name}/{space}"
        for each in await self._collections.sources(collection=wiki.collection):
            if each.name == name and each.metadata.get("wiki") != wiki.id:
                raise Conflict("source", name, "is there already and is not kept by this connection")
            if each.metadata.get("wiki") == wiki.id and each.metadata.get("space") == space:
                return each
        return await self._make(name, {"wiki": wiki.id, "space": space})

    async def delete_source(self, space: str) -> int:
        """Delete the source with everything in it, if there is one; how many documents went."""
        gone = 0
        for each in await self._sources():
            if each.metadata["space"] == space:
                receipt = await self._collections.delete_source(
                    each.id, collection=self._connection.collection
                )
                gone += receipt.documents
        return gone

    async def find(self, keys: Sequence[str]) -> Sequence[Document]:
        """The stored pages of these keys, whatever space they stand in."""
        sources = await self._sources()
        ids = [stable_id("document", source.id, key) for source in sources for key in keys]
        found: list[Document] = []
        for start in range(0, len(ids), PAGE):
            where = In("document", tuple(ids[start : start + PAGE]))
            found += [each async for each in self._matching(where)]
        return found

    async def stored(self) -> AsyncIterator[Document]:
        """Every stored page."""
        async for each in self._matching(In("source", tuple(each.id for each in await self._sources()))):
            yield each

    async def write(self, source: Source, documents: Sequence[NewDocument]) -> Sequence[Written]:
        """Write documents into a source, all or none of them."""
        return await self._write(source, documents)

    async def delete(self, documents: Sequence[DocumentId]) -> None:
        """Delete these pages; those below them only lose their parent."""
        gone = set(documents)
        for start in range(0, len(documents), PAGE):
            parents = In("parent", tuple(documents[start : start + PAGE]))
            for child in [each async for each in self._matching(parents)]:
                if child.id not in gone:
                    await self._documents.update(child.id, parent=None)
        await self._documents.delete(documents)

    async def keep_cursor(self, cursor: str) -> None:
        """Store the cursor of the connection."""
        await self.keep(cursor=cursor)

    async def keep(self, **fields: Any) -> None:
        """Change fields of the connection, if there still is one."""
        wiki = self._connection = replace(self._connection, **fields)
        if any(each.id == wiki.id for each in await self._ledger.connections(wiki.collection)):
            await self._ledger.put_connection(wiki)

    async def _sources(self) -> list[Source]:
        found = await self._collections.sources(collection=self._connection.collection)
        return [each for each in found if each.metadata.get("wiki") == self._connection.id]

    async def _matching(self, where: Filter) -> AsyncIterator[Document]:
        mine = And((where, Eq(("wiki",), self._connection.id)))
        after: str | None = None
        while True:
            page = await self._documents.list(
                collection=self._connection.collection, where=mine, after=after, limit=PAGE
            )
            for each in page.documents:
                yield each
            after = page.next
            if after is None:
                return
