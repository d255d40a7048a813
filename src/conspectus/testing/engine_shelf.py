"""What a run over a wiki needs of the store, on an engine: the least that whoever wires it has to do."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

from conspectus.engine import Engine
from conspectus.model.filter import And, Eq, In
from conspectus.model.ids import DocumentId
from conspectus.model.records import Document, NewDocument, Source, Written
from conspectus.model.wiki import Connection
from conspectus.text.hashing import stable_id

PAGE = 500


@dataclass(slots=True)
class EngineShelf:
    """The `WikiShelf` of a connection; which sources are its own stands in their metadata."""

    engine: Engine
    connection: Connection
    collection: str = "default"

    async def spaces(self) -> Sequence[str]:
        """The spaces that have a source."""
        return sorted(await self._sources())

    async def source(self, space: str) -> Source:
        """The source of a space, made if it is new."""
        found = (await self._sources()).get(space)
        name, own = f"{self.connection.name}/{space}", {"wiki": self.connection.id, "space": space}
        return found or await self.engine.source(name, collection=self.collection, metadata=own, kind="wiki")

    async def delete_source(self, space: str) -> int:
        """Delete the source with everything in it, if there is one; how many documents went."""
        found = (await self._sources()).get(space)
        return (await self.engine.delete_source(found.id)).documents if found else 0

    async def find(self, keys: Sequence[str]) -> Sequence[Document]:
        """The stored pages of these keys, whatever space they stand in."""
        sources = (await self._sources()).values()
        ids = [stable_id("document", source.id, key) for source in sources for key in keys]
        found: list[Document] = []
        for start in range(0, len(ids), PAGE):
            where = In("document", tuple(ids[start : start + PAGE]))
            found += (await self.engine.list(collection=self.collection, where=where, limit=PAGE)).documents
        return found

    async def stored(self) -> AsyncIterator[Document]:
        """Every stored page."""
        cursor: str | None = None
        while True:
            own = Eq(("wiki",), self.connection.id)
            page = await self.engine.list(collection=self.collection, where=own, after=cursor, limit=PAGE)
            for document in page.documents:
                yield document
            cursor = page.next
            if cursor is None:
                return

    async def write(self, source: Source, documents: Sequence[NewDocument]) -> Sequence[Written]:
        """Write documents into a source, all or none of them."""
        return await self.engine.add(documents, source=source.name, collection=self.collection)

    async def delete(self, documents: Sequence[DocumentId]) -> None:
        """Delete these pages. The pages below them stay: those only lose their parent."""
        below = And((Eq(("wiki",), self.connection.id), In("parent", tuple(documents))))
        while found := (await self.engine.list(collection=self.collection, where=below)).documents:
            for document in found:
                await self.engine.update(document.id, parent=None)
        await self.engine.delete(documents)

    async def keep_cursor(self, cursor: str) -> None:
        """Store the cursor of the connection."""
        self.connection = replace(self.connection, cursor=cursor)

    async def _sources(self) -> dict[str, Source]:
        found = await self.engine.sources(collection=self.collection)
        return {
            str(each.metadata["space"]): each
            for each in found
            if each.metadata.get("wiki") == self.connection.id
        }
