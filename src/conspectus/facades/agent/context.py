"""An agent's context: its memory and its graph behind one door."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Unpack, overload

from conspectus.errors import InvalidInput
from conspectus.facades.agent.extraction import Mention, connect, disconnect, mentions
from conspectus.facades.agent.graph import AsyncContextGraph, Graph, GraphTraversal
from conspectus.facades.agent.linker import AsyncEntityLinker
from conspectus.facades.agent.mapping import (
    AgentQuery,
    AgentScope,
    Beside,
    Document,
    MemoryItem,
    Told,
    divided,
    known,
    scope_of,
    worded,
)
from conspectus.facades.agent.memory import AsyncAgentMemory, MemoryOptions
from conspectus.facades.agent.retriever import AsyncContextRetriever, Expansion
from conspectus.facades.agent.session import AgentSession, desk_of, is_new
from conspectus.graph.name_keys import key_of
from conspectus.memory.scopes import graph_name, holds
from conspectus.model.filter import And, Exists, Filter, In
from conspectus.model.memory import MEMORY, MemoryReceipt, MemorySelection, MemoryWritten, Scope
from conspectus.model.streams import ENTITIES

BATCH: Final = 500


class ContextOptions(MemoryOptions, Expansion, total=False):
    """How an agent's context is made: its memory, and how far the graph has a say.

    `graph_expansion` is another name of `use_graph_expansion`.
    """

    graph_expansion: bool


class AsyncAgentContext(AsyncAgentMemory):
    """What an agent knows: it stores, retrieves, and forgets, for a user, an agent and a conversation.

    `vector_store` is a path, an engine of conspectus.open, connect or sync, or None for a store that is gone
    when it is closed. A `knowledge_graph` that is given is shared by all who use this context; without
    one there is a graph of this very user, agent and conversation.
    """

    def __init__(
        self,
        vector_store: Any = None,
        knowledge_graph: Graph | None = None,
        **options: Unpack[ContextOptions],
    ) -> None:
        known(options, frozenset(ContextOptions.__annotations__))
        desk = desk_beside(vector_store, knowledge_graph, options.get("collection", MEMORY))
        if knowledge_graph is not None and knowledge_graph.desk.home is not desk.home:
            knowledge_graph.move(desk)
        given: dict[str, Any] = dict(options)
        super().__init__(desk, **_those(MemoryOptions, given))
        self.owns = is_new(vector_store)
        self.graph = knowledge_graph or AsyncContextGraph(desk, name=graph_name(self.scope))
        given.setdefault("use_graph_expansion", given.get("graph_expansion", True))
        self.retriever = AsyncContextRetriever(self, self.graph, **_those(Expansion, given))
        self.linker = AsyncEntityLinker(self.graph)

    @overload
    async def store(self, content: str | Mapping[str, Any] | MemoryItem, **given: Unpack[Beside]) -> str: ...

    @overload
    async def store(
        self, content: list[Any] | tuple[Any, ...], **given: Unpack[Beside]
    ) -> dict[str, Any]: ...

    async def store(self, content: Document | Iterable[Document], **given: Unpack[Beside]) -> Any:
        """Remember one text, and return its id; or many, and say how many, with their ids in order.

        Items of a list are texts, or dictionaries with a `content` and what else a memory is stored with.
        """
        if isinstance(content, str | Mapping | MemoryItem):
            return (await self._store([worded(content, given)]))[0].id
        if not isinstance(content, Iterable):
            raise InvalidInput("content", "is neither a text nor a list of documents")
        done = await self._store([worded(each, given) for each in content])
        return {
            "stored": sum(each.outcome != "unchanged" for each in done),
            "ids": [each.id for each in done],
        }

    async def retrieve(self, query: str, max_results: int = 5, **asking: Unpack[AgentQuery]) -> Told:
        """What answers a question, best first: short term, long term and graph under one score.

        Each has its `content`, `score`, `source` and `parts`, and where the graph led to it, `through` what.
        """
        return await self.retriever.retrieve(query, max_results, **asking)

    async def query_with_context(self, query: str, **asking: Unpack[AgentQuery]) -> dict[str, Any]:
        """The context for a model's next answer as one text, of at most `max_tokens` (or the token limit)."""
        found = await self.retriever.window(query, **asking)
        return {
            "context": found.text,
            "tokens": found.tokens,
            "allowed": found.window.max_tokens,
            "notes": [each.id for each in found.notes],
            "recent": [each.memory.id for each in found.recent],
            "sources": [each.document for each in found.window.citations],
            "trace": found.window.trace,
        }

    async def get_neighbors(
        self, node_id: str, hops: int = 1, **walking: Unpack[GraphTraversal]
    ) -> list[dict[str, Any]]:
        """What is reached in the graph from a node. Raises NotFound."""
        return await self.graph.get_neighbors(node_id, hops, **walking)

    async def link(self, text: str) -> list[dict[str, Any]]:
        """The names in a text, with the nodes that they mean."""
        return await self.linker.link(text)

    async def build_graph(
        self,
        entities: Iterable[Mapping[str, Any]] | None = None,
        relationships: Iterable[Mapping[str, Any]] = (),
        **whose: Unpack[AgentScope],
    ) -> dict[str, int]:
        """Put nodes and edges into the graph; without any, the names in all memories of the scope."""
        if entities is not None:
            nodes = await self.graph.add_nodes(entities)
            return {"nodes": nodes, "edges": await self.graph.add_edges(relationships)}
        nodes = edges = 0
        async for each in self._walk(scope_of(self.scope, whose), And()):
            graph = self.graph_for(each.scope)
            found = await mentions(graph, each.text)
            new = await connect(graph, found, each, edges=True)
            nodes, edges = nodes + new[0], edges + new[1]
        return {"nodes": nodes, "edges": edges}

    def graph_for(self, scope: Scope) -> Graph:
        """Where the names in memories of a scope go: nobody else's graph than that of whom they are."""
        if holds(self.scope, scope):
            return self.graph
        return AsyncContextGraph(self.desk, name=graph_name(scope))

    async def _store(self, items: list[tuple[str, dict[str, Any]]]) -> list[MemoryWritten]:
        named = [await self._named(*each) for each in items]
        done = await super()._store([each[0] for each in named])
        for stored, (item, found) in zip(done, named, strict=True):
            whose, beside = divided(item[1])
            scope = scope_of(self.scope, whose)
            memory = await self._find(stored.id, scope) if found and stored.outcome != "unchanged" else None
            if memory is not None:
                edges = beside.get("extract_relationships", True)
                await connect(self.graph_for(scope), found, memory, edges=edges)
        return done

    async def _named(
        self, content: str, given: dict[str, Any]
    ) -> tuple[tuple[str, dict[str, Any]], list[Mention]]:
        """An item with the names in it, if they are asked for."""
        whose, beside = divided(given)
        if not beside.get("extract_entities", False):
            return (content, given), []
        found = await mentions(self.graph_for(scope_of(self.scope, whose)), content)
        given = {**given, "entities": [*(beside.get("entities") or ()), *(each.name for each in found)]}
        return (content, given), found

    async def _forget(self, what: MemorySelection, scope: Scope, *, preview: bool = False) -> MemoryReceipt:
        """Names that only forgotten memories mention leave the graph with them."""
        if preview:
            return await super()._forget(what, scope, preview=True)
        named = await self._names_in(what, scope)
        receipt = await super()._forget(what, scope)
        for owner, keys in named.items():
            wide = Scope(owner.user, owner.agent)
            gone = [each for each in keys if not await self._count_where(wide, In((ENTITIES,), (each,)))]
            graph = self.graph_for(owner)
            if gone and await graph.exists():
                await disconnect(graph, gone)
        return receipt

    async def _names_in(self, what: MemorySelection, scope: Scope) -> dict[Scope, set[str]]:
        """By scope the names of memories that are to be forgotten."""
        named: dict[Scope, set[str]] = {}
        parts: list[Filter] = [And()]
        if not what.everything:
            ids = what.ids or (await super()._forget(what, scope, preview=True)).ids
            parts = [In("document", ids[start : start + BATCH]) for start in range(0, len(ids), BATCH)]
        for part in parts:
            async for each in self._walk(scope, And((part, Exists((ENTITIES,))))):
                named.setdefault(each.scope, set()).update(map(key_of, each.entities))
        return named


def _those(words: type, given: Mapping[str, Any]) -> Any:
    """What is given of some words."""
    return {name: given[name] for name in words.__annotations__ if name in given}


def desk_beside(store: Any, graph: Graph | None, collection: str) -> AgentSession:
    """Where a context is: with its store, or with its graph."""
    return graph.desk if store is None and graph is not None else desk_of(store, collection)
