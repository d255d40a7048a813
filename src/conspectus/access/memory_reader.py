"""Memories as one person may see them, and as far as the scope that was asked for reaches."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from conspectus.access.policy import among
from conspectus.access.reader import AuthorizedReader, SourceRef
from conspectus.model.filter import Filter
from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.memory import ChangesSince
from conspectus.model.records import Document, Source
from conspectus.ports.memories import HomeSpan, Memories, Totals


class AuthorizedMemories:
    """Every memory that one person may see."""

    def __init__(self, authorized: AuthorizedReader, memories: Memories) -> None:
        self._authorized = authorized
        self._memories = memories

    async def homes(
        self, place: SourceRef, *, begins: str, below: str, holds: Callable[[Source], bool]
    ) -> "MemorySources":
        """The sources of memories with begins ≤ name < below which hold what was asked for."""
        found = await self._memories.homes(place.collection.id, begins=begins, below=below)
        seen = [each for each in place.visible(found) if holds(each)]
        return MemorySources(place, tuple(seen), self._memories)

    async def graphs(
        self, place: SourceRef, *, begins: str, below: str, holds: Callable[[Source], bool]
    ) -> tuple[SourceId, ...]:
        """The graphs of memories with begins ≤ name < below which hold what was asked for."""
        home = place.collection.id
        found = await self._memories.homes(home, begins=begins, below=below, kind="graph")
        return tuple(each.id for each in place.visible(found) if holds(each))

    async def documents(self, homes: "MemorySources", ids: Sequence[str]) -> list[Document]:
        """Those memories that exist and are in these sources, in the order asked."""
        found = await self._authorized.inside(homes.place, ids)
        return [each for each in found if each.kind == "memory" and each.source in homes.by_id]

    async def has_versions(self, place: SourceRef) -> bool:
        """Whether the collection has earlier versions of anything, which searches leave out."""
        return await self._memories.has_versions(place.collection.id)


class MemorySources:
    """Sources of memories that may be seen: all reading of memories goes through them."""

    def __init__(self, place: SourceRef, sources: tuple[Source, ...], memories: Memories) -> None:
        self.place = place
        self.sources = sources
        self.by_id = {each.id: each for each in sources}
        self._memories = memories

    @property
    def ids(self) -> tuple[SourceId, ...]:
        """Their ids, by name."""
        return tuple(self.by_id)

    @property
    def filter(self) -> Filter:
        """What is in them."""
        return among(self.ids)

    async def newest(self, *, limit: int) -> Sequence[tuple[Document, str]]:
        """The turns that were stored last, newest first."""
        return await self._memories.newest(self.ids, limit=limit)

    async def page(
        self, where: Filter, *, after: str | None, limit: int, newest_first: bool = False
    ) -> tuple[Sequence[tuple[Document, str]], str | None]:
        """Memories by the time they were said."""
        return await self._memories.page(
            self.ids, where=where, after=after, limit=limit, newest_first=newest_first
        )

    async def count(self, where: Filter) -> int:
        """How many memories match."""
        return await self._memories.count(self.ids, where)

    async def notes(self, sources: Collection[SourceId], *, limit: int) -> Sequence[tuple[Document, str]]:
        """The notes of some of them, newest first."""
        chosen = [each for each in self.ids if each in sources]
        return await self._memories.notes(chosen, limit=limit)

    async def oldest(
        self, source: SourceId, *, before: datetime | None, beyond: int | None, pinned: bool, limit: int
    ) -> Sequence[DocumentId]:
        """Memories of one of them that are old, or more than are to stay."""
        return await self._memories.oldest(source, before=before, beyond=beyond, pinned=pinned, limit=limit)

    async def totals(self, sources: Sequence[SourceId] | None = None) -> Totals:
        """Numbers over all of them, or over some."""
        chosen = self.ids if sources is None else [each for each in sources if each in self.by_id]
        return await self._memories.totals(chosen)

    async def versions(self, memory: Document) -> Sequence[tuple[Document, str]]:
        """The earlier versions of a memory that is in one of them."""
        return await self._memories.versions(memory.id) if memory.source in self.by_id else ()

    async def histories(self, memories: Sequence[Document]) -> list[list[tuple[Document, str]]]:
        """Memories that are in them, each behind its earlier versions; what is gone by now is left out."""
        wanted = [each.id for each in memories if each.source in self.by_id]
        found = await self._memories.histories(wanted)
        return [list(found[each]) for each in wanted if each in found and found[each][-1][0].id == each]

    async def spans(self) -> Sequence[HomeSpan]:
        """Those of them that have memories, in numbers."""
        return await self._memories.spans(self.ids)

    async def names(self) -> int:
        """How many different names are mentioned in them."""
        return await self._memories.names(self.ids)

    async def since(self, instant: datetime) -> ChangesSince:
        """How much was recorded, changed and deleted in them after an instant."""
        return await self._memories.since(self.ids, instant)
