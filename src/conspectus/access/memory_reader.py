"""Memories as one person may read them, within a memory scope."""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from datetime import datetime

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.policy import among
from conspectus.access.reader import AuthorizedReader
from conspectus.model.filter import And, Eq, Filter, require_document_fields
from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.memory import ChangesSince, MemoryStats
from conspectus.model.quarantine import as_given
from conspectus.model.records import Document, Source
from conspectus.ports.memories import HomeSpan, Memories


class AuthorizedMemories:
    """The memories that one person may read."""

    def __init__(self, authorized: AuthorizedReader, memories: Memories) -> None:
        self._authorized = authorized
        self._memories = memories

    async def memory_sources(
        self, access: CollectionAccess, *, begins: str, below: str, holds: Callable[[Source], bool]
    ) -> "MemorySources":
        """Return the sources of memories with begins ≤ name < below that `holds` accepts."""
        sources = await self._memories.memory_sources(access.collection.id, begins=begins, below=below)
        accepted = [source for source in access.visible(sources) if holds(source)]
        return MemorySources(access, tuple(accepted), self._memories)

    async def graphs(
        self, access: CollectionAccess, *, begins: str, below: str, holds: Callable[[Source], bool]
    ) -> tuple[SourceId, ...]:
        """Return the graphs of memories with begins ≤ name < below that `holds` accepts."""
        collection_id = access.collection.id
        graphs = await self._memories.memory_sources(collection_id, begins=begins, below=below, kind="graph")
        return tuple(graph.id for graph in access.visible(graphs) if holds(graph))

    async def documents(
        self, memory_sources: "MemorySources", ids: Sequence[str], *, quarantined: bool = False
    ) -> list[Document]:
        """Return the existing memories of these sources in the order of `ids`."""
        documents = await self._authorized.inside(memory_sources.access, ids, quarantined=quarantined)
        return [
            document
            for document in documents
            if document.source in memory_sources.by_id and as_given(document).kind == "memory"
        ]

    def read_quarantined(
        self, memory_sources: "MemorySources", where: Filter
    ) -> AsyncIterator[Sequence[Document]]:
        """Yield pages of the quarantined memories of these sources of which what was given matches."""
        of_memories = And((memory_sources.filter, Eq("kind", "memory"), where))
        return self._authorized.read_quarantined(memory_sources.access, of_memories)

    async def has_versions(self, access: CollectionAccess) -> bool:
        """Return whether the collection has earlier versions, which searches exclude."""
        return await self._memories.has_versions(access.collection.id)


class MemorySources:
    """Readable sources of memories. All reads of memories on behalf of a person use this class."""

    def __init__(self, access: CollectionAccess, sources: tuple[Source, ...], memories: Memories) -> None:
        self.access = access
        self.sources = sources
        self.by_id = {source.id: source for source in sources}
        self._memories = memories

    @property
    def ids(self) -> tuple[SourceId, ...]:
        """The ids, by name."""
        return tuple(self.by_id)

    @property
    def filter(self) -> Filter:
        """The filter for their memories."""
        return among(self.ids)

    async def newest(self, *, limit: int) -> Sequence[tuple[Document, str]]:
        """Return the turns that were stored last, newest first."""
        return await self._memories.newest(self.ids, limit=limit)

    async def page(
        self, where: Filter, *, after: str | None, limit: int, newest_first: bool = False
    ) -> tuple[Sequence[tuple[Document, str]], str | None]:
        """Return a page of memories by the time of their content."""
        require_document_fields(where)
        return await self._memories.page(
            self.ids, where=where, after=after, limit=limit, newest_first=newest_first
        )

    async def pages(self, where: Filter, *, size: int) -> AsyncIterator[Sequence[tuple[Document, str]]]:
        """Yield all memories that match in pages."""
        after: str | None = None
        while True:
            rows, after = await self.page(where, after=after, limit=size)
            yield rows
            if after is None:
                return

    async def count(self, where: Filter) -> int:
        """Return the number of memories that match."""
        require_document_fields(where)
        return await self._memories.count(self.ids, where)

    async def notes(self, sources: Collection[SourceId], *, limit: int) -> Sequence[tuple[Document, str]]:
        """Return the notes of some sources, newest first."""
        ids = [source for source in self.ids if source in sources]
        return await self._memories.notes(ids, limit=limit)

    async def oldest(
        self, source: SourceId, *, before: datetime | None, beyond: int | None, pinned: bool, limit: int
    ) -> Sequence[DocumentId]:
        """Return memories of a source that are older than `before`, or beyond the newest `beyond`."""
        return await self._memories.oldest(source, before=before, beyond=beyond, pinned=pinned, limit=limit)

    async def totals(self, sources: Sequence[SourceId] | None = None) -> MemoryStats:
        """Return totals of all sources or of some."""
        ids = self.ids if sources is None else [source for source in sources if source in self.by_id]
        return await self._memories.totals(ids)

    async def versions(self, memory: Document) -> Sequence[tuple[Document, str]]:
        """Return the earlier versions of a memory."""
        return await self._memories.versions(memory.id) if memory.source in self.by_id else ()

    async def histories(self, memories: Sequence[Document]) -> list[list[tuple[Document, str]]]:
        """Return the existing memories, each after its earlier versions."""
        ids = [memory.id for memory in memories if memory.source in self.by_id]
        histories = await self._memories.histories(ids)
        return [
            list(histories[memory])
            for memory in ids
            if memory in histories and histories[memory][-1][0].id == memory
        ]

    async def spans(self) -> Sequence[HomeSpan]:
        """Return numbers of memories and times by source, without empty sources."""
        return await self._memories.spans(self.ids)

    async def names(self) -> int:
        """Return the number of distinct entities in them."""
        return await self._memories.names(self.ids)

    async def since(self, instant: datetime) -> ChangesSince:
        """Return how many memories were recorded, changed and deleted after an instant."""
        return await self._memories.since(self.ids, instant)
