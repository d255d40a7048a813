"""Retrieval from short term, long term and graph with one score."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, TypedDict, Unpack

from conspectus.facades.agent.arguments import Instant, RecordList, instant_of, number, weight
from conspectus.facades.agent.graph import Graph
from conspectus.facades.agent.graph_items import CONTENT
from conspectus.facades.agent.memory import AsyncAgentMemory
from conspectus.facades.agent.named_options import with_named_options
from conspectus.facades.agent.parts import AsyncPart, has_own_storage
from conspectus.facades.agent.queries import AgentQuery, graph_of, query_options, query_scope
from conspectus.memory.scopes import GRAPHS, includes_scope
from conspectus.model.graph import GraphExpansion
from conspectus.model.memory import MemoryQueryOptions, MemoryWindow, Scope
from conspectus.model.query import Budget

GRAPH_PART: Final = "graph"
MAX_START_NODES: Final = 3
"""Maximum number of nodes of a query from which the graph is traversed."""
MAX_REACHED_NODES: Final = 20
"""Maximum numbers of nodes reached from each start, and of memories in a window."""


class Expansion(TypedDict, total=False):
    """Options of the graph: weight of its scores, whether it is traversed, and the number of hops.

    `as_of` is the default time of queries.
    """

    hybrid_alpha: float
    use_graph_expansion: bool
    max_expansion_hops: int
    as_of: Instant | None


EXPANSION_DEFAULTS: Final[Mapping[str, Any]] = {
    "hybrid_alpha": 0.5,
    "use_graph_expansion": True,
    "max_expansion_hops": 2,
}


class AsyncContextRetriever(AsyncPart):
    """Searches a memory and a graph together.

    The score is vector · (1 - alpha) + graph · alpha, both from 0 to 1, plus bounded parts that each result
    names: `hybrid_alpha` 0 uses only vectors and keywords, 1 only the graph. Graph results are memories on
    traversed paths, each with its path, and nodes with `content`. While the graph has no nodes, its part is
    0, except for memories that share an entity with others.
    """

    @with_named_options(Expansion, EXPANSION_DEFAULTS)
    def __init__(
        self, memory: Any = None, knowledge_graph: Graph | None = None, **expansion: Unpack[Expansion]
    ) -> None:
        self.memory = memory if isinstance(memory, AsyncAgentMemory) else AsyncAgentMemory(memory)
        self.storage, self.owns = self.memory.storage, has_own_storage(memory)
        self.graph = knowledge_graph
        if knowledge_graph is not None and knowledge_graph.storage is not self.storage:
            knowledge_graph.move(self.storage)
        options = {**EXPANSION_DEFAULTS, **expansion}
        hops = number(
            "max_expansion_hops", options["max_expansion_hops"], EXPANSION_DEFAULTS["max_expansion_hops"]
        )
        self.expansion = GraphExpansion(weight("hybrid_alpha", options["hybrid_alpha"]), hops)
        self.expands = options["use_graph_expansion"]
        self.as_of = instant_of(expansion.get("as_of"))

    async def retrieve(self, query: str, max_results: int = 5, **arguments: Unpack[AgentQuery]) -> RecordList:
        """Return results for a query, best first, that fit into `max_tokens` (default: the token limit)."""
        scope, options = await self._options(max_results, arguments)
        records = await self.memory.search_scope(query, scope, options)
        graph = options.get("graph")
        if graph is not None and graph.alpha > 0:
            if graph.graphs:
                records += await self._graph_results(query, graph, options.get("as_of"))
            else:
                records = [_drop_graph_part(record) for record in records]
            records.sort(key=lambda record: -float(record["score"]))
        return self.memory.within(records[:max_results], arguments)

    async def window(self, query: str, **arguments: Unpack[AgentQuery]) -> MemoryWindow:
        """Return notes, the last turns and the results of a query as one text within the token limit."""
        scope, options = await self._options(MAX_REACHED_NODES, arguments)
        allowed = number("max_tokens", arguments.get("max_tokens"), self.memory.token_limit)
        budget = Budget(allowed, self.memory.tokenizer)
        await self.memory.wait_until_embedded()
        return await self.storage.run(
            lambda engine: engine.memory.window(query, budget, scope=scope, **options)
        )

    async def _options(self, max_results: int, arguments: AgentQuery) -> tuple[Scope, MemoryQueryOptions]:
        """Return the scope and the options of a query."""
        scope, options = query_scope(arguments, self.memory.scope), query_options(max_results, arguments)
        if "as_of" not in arguments:
            options["as_of"] = self.as_of
        graph = graph_of(arguments, self.expansion, expands=self.expands)
        if graph is not None:
            graph = replace(graph, graphs=await self._graphs(scope))
        return scope, {
            **options,
            "collection": self.storage.collection,
            "graph": graph,
            "recent": self.memory.short_term_limit,
            "recent_tokens": self.memory.token_limit,
        }

    async def _graphs(self, scope: Scope) -> tuple[str, ...]:
        """Return the graphs to traverse: none if empty or outside the scope."""
        if self.graph is None:
            return ()
        if self.graph.name.startswith(f"{GRAPHS}/") and not includes_scope(scope, self.memory.scope):
            return ()
        source = await self.graph.source_if_not_empty()
        return () if source is None else (source,)

    async def _graph_results(
        self, query: str, expansion: GraphExpansion, as_of: datetime | None
    ) -> RecordList:
        """Return the contents of nodes that the query names, and of their neighbors, each once."""
        if self.graph is None or not query.strip():
            return []
        best_records: dict[str, dict[str, Any]] = {}
        for start in await self.graph.query(query, MAX_START_NODES):
            if not _exists_at(start["node"], as_of):
                continue
            name, weight = start["node"]["id"], expansion.alpha * start["score"]
            if CONTENT in start["node"]["properties"]:
                _keep_best(best_records, _graph_record(start["node"], weight, [name]))
            if not expansion.hops:
                continue
            neighbors = await self.graph.get_neighbors(
                name, expansion.hops, limit=MAX_REACHED_NODES, at=as_of
            )
            for neighbor in neighbors:
                if CONTENT in neighbor["properties"]:
                    score = weight * neighbor["decay"]
                    _keep_best(best_records, _graph_record(neighbor, score, neighbor["path"]))
        return list(best_records.values())


def _drop_graph_part(record: dict[str, Any]) -> dict[str, Any]:
    """Set the graph part of a result to 0, unless a shared entity led to it."""
    if record["through"]:
        return record
    parts = {**record["parts"], GRAPH_PART: 0.0}
    return {**record, "parts": parts, "score": sum(parts.values())}


def _exists_at(node: Mapping[str, Any], at: datetime | None) -> bool:
    """Return whether a node was valid at a time (bounds included); True without a time."""
    begins, ends = (instant_of(node[name]) for name in ("valid_from", "valid_until"))
    return at is None or ((begins is None or begins <= at) and (ends is None or at <= ends))


def _keep_best(best_records: dict[str, dict[str, Any]], record: dict[str, Any]) -> None:
    stored = best_records.get(record["id"])
    if stored is None or stored["score"] < record["score"]:
        best_records[record["id"]] = record


def _graph_record(node: dict[str, Any], score: float, path: list[str]) -> dict[str, Any]:
    return {
        "id": node["id"],
        "content": str(node["properties"][CONTENT]),
        "score": score,
        "source": GRAPH_PART,
        "sources": [GRAPH_PART],
        "parts": {GRAPH_PART: score},
        "similarity": None,
        "metadata": {"node_type": node["type"]},
        "entities": [{"name": node["name"]}],
        "related_entities": [{"name": name} for name in path],
        "through": path,
        "why": [f"found through {' → '.join(path)}"],
    }
