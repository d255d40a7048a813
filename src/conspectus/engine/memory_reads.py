"""Memories as they are read: by id, in their order, the last ones."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Unpack

from conspectus.access.memory_reader import AuthorizedMemories, MemorySources
from conspectus.access.reader import SourceRef
from conspectus.engine.entity_linking import Linking
from conspectus.errors import InvalidInput, NotFound
from conspectus.memory.documents import closed_by, memory_of, naming_only, remembered
from conspectus.memory.recent import recent
from conspectus.memory.scopes import GRAPHS, beginning, beyond, checked, readable, scope_of
from conspectus.model.filter import EVERYTHING, And, Filter
from conspectus.model.ids import SourceId
from conspectus.model.memory import MEMORY, Memory, MemoryClass, MemoryPage, Paging, RecentMemory, Scope
from conspectus.model.records import Document, Source
from conspectus.text.clean import clean
from conspectus.text.hashing import stable_id

LIMIT = 1_000


class Reminding(Linking):
    """What agents were told."""

    async def memory(self, memory: str, *, scope: Scope, collection: str = MEMORY) -> Memory:
        """A memory of a scope. Raises NotFound, for one of another scope too."""
        homes = await self._homes(scope, collection)
        return await self._memory_in(homes, memory)

    async def memory_versions(self, memory: str, *, scope: Scope, collection: str = MEMORY) -> list[Memory]:
        """All that a memory ever said, oldest first, as it is now last. Raises NotFound."""
        homes = await self._homes(scope, collection)
        now = await self._memory_in(homes, memory)
        before = [in_homes(homes, each, text) for each, text in await homes.versions(now.document)]
        return [*await self._present(homes, before), now]

    async def memories(
        self,
        *,
        scope: Scope,
        collection: str = MEMORY,
        kind: MemoryClass | None = None,
        entity: str | None = None,
        **paging: Unpack[Paging],
    ) -> MemoryPage:
        """A page of the memories of a scope that match, in the order in which they were said."""
        limit, newest_first = paging.get("limit", 100), paging.get("newest_first", False)
        after, where = paging.get("after"), paging.get("where", EVERYTHING)
        if not 1 <= limit <= LIMIT:
            raise InvalidInput("limit", f"must be from 1 to {LIMIT}")
        homes = await self._homes(scope, collection)
        wanted = And((remembered(kind, entity), where))
        rows, cursor = await homes.page(wanted, after=after, limit=limit, newest_first=newest_first)
        found = await self._present(homes, [in_homes(homes, each, text) for each, text in rows])
        return MemoryPage(tuple(found), cursor)

    async def count_memories(
        self, *, scope: Scope, collection: str = MEMORY, where: Filter = EVERYTHING
    ) -> int:
        """How many memories of a scope match."""
        return await (await self._homes(scope, collection)).count(where)

    async def recent_memories(
        self,
        *,
        scope: Scope,
        collection: str = MEMORY,
        turns: int | None = None,
        tokens: int | None = None,
        tokenizer: str = "o200k_base",
    ) -> list[RecentMemory]:
        """The turns that were stored last, oldest first: so many at most, of so many tokens at most.

        What is not given is as the settings say. One larger than all of the tokens is cut, with a mark.
        """
        settings = self._parts.settings
        most = settings.recent_memory_turns if turns is None else turns
        room = settings.recent_memory_tokens if tokens is None else tokens
        for name, number in (("turns", most), ("tokens", room)):
            if number < 0:
                raise InvalidInput(name, "must not be negative")
        count = self._parts.counter(tokenizer)
        homes = await self._homes(scope, collection)
        rows = await homes.newest(limit=min(most, LIMIT)) if most else ()
        newest = await self._present(homes, [in_homes(homes, each, text) for each, text in rows])
        return recent(newest, turns=most, tokens=room, count=count)

    @cached_property
    def _memory_sight(self) -> AuthorizedMemories:
        return AuthorizedMemories(self._sight, self._parts.memories)

    async def _homes(self, scope: Scope, collection: str) -> MemorySources:
        """The sources that reading in a scope may look into. Raises NotFound for the collection."""
        begins = beginning(checked(scope))
        return await self._memory_sight.homes(
            await self._sight.place(collection),
            begins=begins,
            below=beyond(begins),
            holds=_holding(scope),
        )

    async def _memory_in(self, homes: MemorySources, memory: str) -> Memory:
        stored = await self._memory_sight.documents(homes, [memory])
        found = await self._memories_in(homes, stored)
        if not found:
            raise NotFound("memory", memory)
        return found[0]

    async def _memories_in(self, homes: MemorySources, documents: Sequence[Document]) -> list[Memory]:
        """The memories that documents are; what is gone by now is left out."""
        texts = await self._sight.texts(documents)
        found = [in_homes(homes, each, texts[each.id]) for each in documents if each.id in texts]
        return await self._present(homes, found)

    async def _present(self, homes: MemorySources, memories: Sequence[Memory]) -> list[Memory]:
        """Memories that name no other one that is gone, out of these sources, or not theirs to name."""
        named = {name for each in memories for name in (*each.near, *each.closes, each.closed_by) if name}
        if not named:
            return list(memories)
        found = await self._memory_sight.documents(homes, sorted(named))
        ended = {str(each.id): closed_by(each) for each in found}
        return [naming_only(ended, each) for each in memories]

    async def _keyed(self, homes: MemorySources, home: Source, keys: Sequence[str]) -> list[Memory]:
        """The memories of these keys that stand in one source."""
        ids = [stable_id("document", home.id, clean(key)) for key in keys]
        return await self._memories_in(homes, await self._memory_sight.documents(homes, ids))

    def _scope_of(self, home: Source) -> Scope:
        """Whose memories a source holds."""
        return scope_of(home.name)

    async def _graphs_of(self, scope: Scope, place: SourceRef) -> tuple[SourceId, ...]:
        """The graphs of all scopes that reading in a scope may look into."""
        begins = beginning(scope, GRAPHS)
        return await self._memory_sight.graphs(
            place, begins=begins, below=beyond(begins), holds=_holding(scope)
        )


def _holding(scope: Scope) -> Callable[[Source], bool]:
    is_held = readable(scope)
    return lambda source: is_held(source.name)


def in_homes(homes: MemorySources, document: Document, text: str) -> Memory:
    """The memory that a document is, in the scope of its source."""
    return memory_of(document, text, scope_of(homes.by_id[document.source].name))
