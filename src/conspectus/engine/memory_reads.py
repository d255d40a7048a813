"""Reading the memories of one scope."""

from collections.abc import Callable, Sequence

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.memory_reader import AuthorizedMemories, MemorySources
from conspectus.engine.context import EngineContext
from conspectus.engine.service import Service
from conspectus.engine.windows import window_budget
from conspectus.errors import InvalidInput, NotFound
from conspectus.memory.documents import memory_of, read_closing_memory, without_unknown_references
from conspectus.memory.recent_turns import recent as latest
from conspectus.memory.scopes import GRAPHS, check_scope, common_prefix, end_of_prefix, readable, scope_of
from conspectus.model.ids import SourceId
from conspectus.model.memory import MEMORY, Memory, RecentMemory, Scope
from conspectus.model.records import Document, Source
from conspectus.text.clean import clean
from conspectus.text.hashing import stable_id

MAX_RECENT_TURNS = 1_000
"""Maximum number of turns that are read, whatever the limit."""


class MemoryReader(Service, checked=False):
    """Reads memories with the permissions of one user."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context)
        self.stored = AuthorizedMemories(context.authorized, context.parts.memories)

    async def memory_sources(self, scope: Scope, collection: str) -> MemorySources:
        """Return the sources that are read for a scope. Raises NotFound for the collection."""
        begins = common_prefix(check_scope(scope))
        return await self.stored.memory_sources(
            await self._authorized.collection(collection),
            begins=begins,
            below=end_of_prefix(begins),
            holds=_is_source_of(scope),
        )

    async def recent(
        self,
        *,
        scope: Scope,
        collection: str = MEMORY,
        limit: int | None = None,
        max_tokens: int | None = None,
        tokenizer: str = "o200k_base",
    ) -> list[RecentMemory]:
        """Return the newest turns, oldest first, within a number of turns and of tokens."""
        settings = self._parts.settings
        maximum = settings.recent_memory_turns if limit is None else limit
        token_limit = settings.recent_memory_tokens if max_tokens is None else max_tokens
        for name, number in (("limit", maximum), ("max_tokens", token_limit)):
            if number < 0:
                raise InvalidInput(name, "must not be negative")
        window_budget(token_limit, settings)
        count = self._parts.counter(tokenizer)
        memory_sources = await self.memory_sources(scope, collection)
        rows = await memory_sources.newest(limit=min(maximum, MAX_RECENT_TURNS)) if maximum else ()
        newest = await self.present(
            memory_sources, [memory_in(memory_sources, document, text) for document, text in rows]
        )
        return await self._core.long_work.run_counting(
            lambda count: latest(newest, turns=maximum, tokens=token_limit, count=count),
            count,
            characters=min(sum(len(memory.text) for memory in newest), 8 * token_limit),
            user=self._person.id,
            tokenizer=tokenizer,
        )

    async def memory(self, memory_sources: MemorySources, memory: str) -> Memory:
        """Return a memory by id. Raises NotFound."""
        stored = await self.stored.documents(memory_sources, [memory])
        memories = await self.memories(memory_sources, stored)
        if not memories:
            raise NotFound("memory", memory)
        return memories[0]

    async def memories(self, memory_sources: MemorySources, documents: Sequence[Document]) -> list[Memory]:
        """Return the memories of documents, without deleted ones."""
        texts = await self._authorized.texts(documents)
        memories = [
            memory_in(memory_sources, document, texts[document.id])
            for document in documents
            if document.id in texts
        ]
        return await self.present(memory_sources, memories)

    async def present(self, memory_sources: MemorySources, memories: Sequence[Memory]) -> list[Memory]:
        """Return memories without references to deleted or unreadable ones."""
        referenced_ids = {
            id for memory in memories for id in (*memory.near, *memory.closes, memory.closed_by) if id
        }
        if not referenced_ids:
            return list(memories)
        documents = await self.stored.documents(memory_sources, sorted(referenced_ids))
        endings = {str(document.id): read_closing_memory(document) for document in documents}
        return [without_unknown_references(endings, memory) for memory in memories]

    async def read_by_keys(
        self, memory_sources: MemorySources, source: Source, keys: Sequence[str]
    ) -> list[Memory]:
        """Return the memories of these keys in one source."""
        documents = await self.read_documents_by_keys(memory_sources, source, keys)
        return await self.memories(memory_sources, documents)

    async def read_documents_by_keys(
        self, memory_sources: MemorySources, source: Source, keys: Sequence[str], *, quarantined: bool = False
    ) -> list[Document]:
        """Return the documents of memories of these keys in one source, or quarantined ones too."""
        ids = [stable_id("document", source.id, clean(key)) for key in keys]
        return await self.stored.documents(memory_sources, ids, quarantined=quarantined)

    async def graphs_of(self, scope: Scope, access: CollectionAccess) -> tuple[SourceId, ...]:
        """Return the graphs of all scopes that are read for a scope."""
        begins = common_prefix(scope, GRAPHS)
        return await self.stored.graphs(
            access, begins=begins, below=end_of_prefix(begins), holds=_is_source_of(scope)
        )


def _is_source_of(scope: Scope) -> Callable[[Source], bool]:
    """Return the predicate of the sources that are read for a scope."""
    is_readable_name = readable(scope)
    return lambda source: is_readable_name(source.name)


def memory_in(memory_sources: MemorySources, document: Document, text: str) -> Memory:
    """Return the memory of a document, in the scope of its source."""
    return memory_of(document, text, scope_of(memory_sources.by_id[document.source].name))
