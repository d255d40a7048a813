"""An agent's context: memory and graph behind one API."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final, Unpack, overload

from conspectus.errors import InvalidInput
from conspectus.facades.agent.arguments import (
    AgentScope,
    RecordList,
    StoredWith,
    require_known,
    scope_of,
    split_arguments,
)
from conspectus.facades.agent.context_graph import AsyncContextGraph
from conspectus.facades.agent.entity_edges import (
    add_entities,
    add_relationships,
    find_mentions,
    remove_unused_entities,
)
from conspectus.facades.agent.graph import Graph, GraphTraversal
from conspectus.facades.agent.linker import AsyncEntityLinker
from conspectus.facades.agent.memory import MEMORY_DEFAULTS, AsyncAgentMemory, MemoryOptions
from conspectus.facades.agent.memory_items import Document, MemoryItem, parse_item
from conspectus.facades.agent.named_options import with_named_options
from conspectus.facades.agent.parts import has_own_storage, storage_of
from conspectus.facades.agent.queries import AgentQuery
from conspectus.facades.agent.retriever import EXPANSION_DEFAULTS, AsyncContextRetriever, Expansion
from conspectus.facades.agent.storage import AgentStorage
from conspectus.graph.node_mentions import NodeMention
from conspectus.memory.scopes import graph_name, includes_scope
from conspectus.model.filter import And, Exists, Filter, In, in_documents
from conspectus.model.memory import MEMORY, MemoryReceipt, MemorySelection, MemoryWritten, Scope
from conspectus.model.stream_events import ENTITIES
from conspectus.text.name_keys import key_of

MAX_IDS_PER_FILTER: Final = 500


class ContextOptions(MemoryOptions, Expansion, total=False):
    """Options of an agent's context: those of its memory and of its use of the graph.

    `graph_expansion` is an alias of `use_graph_expansion`.
    """

    graph_expansion: bool


CONTEXT_DEFAULTS: Final[Mapping[str, Any]] = {
    **MEMORY_DEFAULTS,
    **EXPANSION_DEFAULTS,
    "graph_expansion": True,
}


class AsyncAgentContext(AsyncAgentMemory):
    """Stores, retrieves and deletes memories of a user, an agent and a conversation.

    `vector_store` is a path, an engine of conspectus.open, connect or sync, or None for a temporary store.
    All users of the context share a given `knowledge_graph`; by default each user, agent and conversation has
    its own graph.
    """

    @with_named_options(ContextOptions, CONTEXT_DEFAULTS, MemoryOptions, Expansion)
    def __init__(
        self,
        vector_store: Any = None,
        knowledge_graph: Graph | None = None,
        **options: Unpack[ContextOptions],
    ) -> None:
        require_known(options, frozenset(ContextOptions.__annotations__))
        storage = storage_for(vector_store, knowledge_graph, options.get("collection", MEMORY))
        if knowledge_graph is not None and knowledge_graph.storage is not storage:
            knowledge_graph.move(storage)
        all_options: dict[str, Any] = dict(options)
        super().__init__(storage, **_subset(MemoryOptions, all_options))
        self.owns = has_own_storage(vector_store)
        self.graph = knowledge_graph or AsyncContextGraph(storage, name=graph_name(self.scope))
        all_options.setdefault("use_graph_expansion", all_options.get("graph_expansion", True))
        self.retriever = AsyncContextRetriever(self, self.graph, **_subset(Expansion, all_options))
        self.linker = AsyncEntityLinker(self.graph)

    @overload
    async def store(
        self, content: str | Mapping[str, Any] | MemoryItem, **options: Unpack[StoredWith]
    ) -> str: ...

    @overload
    async def store(
        self, content: list[Any] | tuple[Any, ...], **options: Unpack[StoredWith]
    ) -> dict[str, Any]: ...

    async def store(self, content: Document | Iterable[Document], **options: Unpack[StoredWith]) -> Any:
        """Store one text and return its id, or a list and return its count and the ids in order.

        Items of a list are texts, or dictionaries with `content` and other arguments of a memory.
        """
        if isinstance(content, str | Mapping | MemoryItem):
            return (await self._store([parse_item(content, options)]))[0].id
        if not isinstance(content, Iterable):
            raise InvalidInput("content", "is neither a text nor a list of documents")
        done = await self._store([parse_item(document, options) for document in content])
        return {
            "stored": sum(memory.outcome != "unchanged" for memory in done),
            "ids": [memory.id for memory in done],
        }

    async def retrieve(self, query: str, max_results: int = 5, **arguments: Unpack[AgentQuery]) -> RecordList:
        """Return results for a query from short-term memory, long-term memory and graph, best first.

        Each result has `content`, `score`, `source` and `parts`, and `through`, the path in the graph, if
        there is one.
        """
        return await self.retriever.retrieve(query, max_results, **arguments)

    async def query_with_context(self, query: str, **arguments: Unpack[AgentQuery]) -> dict[str, Any]:
        """Return the context for a query as one text of at most `max_tokens` (default: the token limit)."""
        window = await self.retriever.window(query, **arguments)
        return {
            "context": window.text,
            "tokens": window.tokens,
            "allowed": window.window.max_tokens,
            "notes": [note.id for note in window.notes],
            "recent": [recent.memory.id for recent in window.recent],
            "sources": [citation.document for citation in window.window.citations],
            "trace": [asdict(entry) for entry in window.window.trace],
        }

    async def get_neighbors(
        self, node_id: str, hops: int = 1, **options: Unpack[GraphTraversal]
    ) -> list[dict[str, Any]]:
        """Return the neighbors of a node in the graph. Raises NotFound."""
        return await self.graph.get_neighbors(node_id, hops, **options)

    async def link(self, text: str) -> list[dict[str, Any]]:
        """Return the entity mentions of a text with the nodes that they refer to."""
        return await self.linker.link(text)

    async def build_graph(
        self,
        entities: Iterable[Mapping[str, Any]] | None = None,
        relationships: Iterable[Mapping[str, Any]] = (),
        **scope: Unpack[AgentScope],
    ) -> dict[str, int]:
        """Add nodes and edges to the graph.

        Without arguments, extract entities from all memories of the scope.
        """
        if entities is not None:
            nodes = await self.graph.add_nodes(entities)
            return {"nodes": nodes, "edges": await self.graph.add_edges(relationships)}
        nodes = edges = 0
        async for memory in self._walk(scope_of(self.scope, scope), And()):
            graph = self.graph_for(memory.scope)
            mentions = await find_mentions(graph, memory.text)
            new = await add_entities(graph, mentions, memory, with_edges=True)
            nodes, edges = nodes + new[0], edges + new[1]
        return {"nodes": nodes, "edges": edges}

    def graph_for(self, scope: Scope) -> Graph:
        """Return the graph for the entities of a scope: the shared one, or the scope's own."""
        if includes_scope(self.scope, scope):
            return self.graph
        return AsyncContextGraph(self.storage, name=graph_name(scope))

    async def _store(self, items: list[tuple[str, dict[str, Any]]]) -> list[MemoryWritten]:
        extracted = [await self._with_entities(content, options) for content, options in items]
        done = await super()._store(
            [(content, _drop_relationships(options)) for content, options, _ in extracted]
        )
        for stored, (_, options, mentions) in zip(done, extracted, strict=True):
            scope_options, beside = split_arguments(options)
            scope, relationships = scope_of(self.scope, scope_options), beside.get("relationships")
            is_new = stored.outcome != "unchanged"
            memory = await self._find(stored.id, scope) if is_new and (mentions or relationships) else None
            if memory is None:
                continue
            graph = self.graph_for(scope)
            if mentions:
                edges = beside.get("extract_relationships", True)
                await add_entities(graph, mentions, memory, with_edges=edges)
            if relationships:
                await add_relationships(graph, relationships, memory, entities=beside.get("entities") or ())
        return done

    async def _with_entities(
        self, content: str, options: dict[str, Any]
    ) -> tuple[str, dict[str, Any], list[NodeMention]]:
        """Return a memory with its entities, extracted if that is requested."""
        scope, beside = split_arguments(options)
        if not beside.get("extract_entities", False):
            return content, options, []
        mentions = await find_mentions(self.graph_for(scope_of(self.scope, scope)), content)
        options = {
            **options,
            "entities": [*(beside.get("entities") or ()), *(mention.name for mention in mentions)],
        }
        return content, options, mentions

    async def _forget(self, what: MemorySelection, scope: Scope, *, preview: bool = False) -> MemoryReceipt:
        """Delete memories, and from the graph the entities that only they mention."""
        if preview:
            return await super()._forget(what, scope, preview=True)
        named = await self._names_in(what, scope)
        receipt = await super()._forget(what, scope)
        for owner, keys in named.items():
            wide = Scope(owner.user, owner.agent)
            gone = [key for key in keys if not await self._count_where(wide, In((ENTITIES,), (key,)))]
            graph = self.graph_for(owner)
            if gone and await graph.exists():
                await remove_unused_entities(graph, gone)
        return receipt

    async def _names_in(self, what: MemorySelection, scope: Scope) -> dict[Scope, set[str]]:
        """Return the entity names of the memories to be deleted, by scope."""
        named: dict[Scope, set[str]] = {}
        parts: list[Filter] = [And()]
        if not what.everything:
            ids = what.ids or (await super()._forget(what, scope, preview=True)).ids
            parts = [
                in_documents(ids[start : start + MAX_IDS_PER_FILTER])
                for start in range(0, len(ids), MAX_IDS_PER_FILTER)
            ]
        for part in parts:
            async for memory in self._walk(scope, And((part, Exists((ENTITIES,))))):
                named.setdefault(memory.scope, set()).update(map(key_of, memory.entities))
        return named


def _drop_relationships(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: option for name, option in options.items() if name != "relationships"}


def _subset(words: type, options: Mapping[str, Any]) -> Any:
    """Return the items of a mapping whose keys belong to a TypedDict."""
    return {name: options[name] for name in words.__annotations__ if name in options}


def storage_for(store: Any, graph: Graph | None, collection: str) -> AgentStorage:
    """Return the storage of the store or, if there is none, of the graph."""
    if store is None and graph is not None:
        return graph.storage
    return storage_of(store, collection)
