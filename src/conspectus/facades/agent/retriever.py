"""Retrieval over the short term, the long term and the graph, with one score for all of them."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, TypedDict, Unpack

from conspectus.facades.agent.graph import Graph
from conspectus.facades.agent.mapping import (
    CONTENT,
    AgentQuery,
    Instant,
    Told,
    graph_of,
    instant_of,
    number,
    query_options,
    scope_asked,
    weight,
)
from conspectus.facades.agent.memory import AsyncAgentMemory
from conspectus.facades.agent.session import AsyncPart, is_new
from conspectus.memory.scopes import GRAPHS, holds
from conspectus.model.graph import GraphExpansion
from conspectus.model.memory import MemoryQueryOptions, MemoryWindow, Scope
from conspectus.model.query import Budget

GRAPH: Final = "graph"
STARTS: Final = 3
"""So many nodes of a question are walked from."""
REACHED: Final = 20
"""So many nodes are looked at from each, and so many memories for a window."""


class Expansion(TypedDict, total=False):
    """How far the graph has a say: its weight, whether it is walked at all, and over how many hops.

    `as_of` is the time of questions that name none.
    """

    hybrid_alpha: float
    use_graph_expansion: bool
    max_expansion_hops: int
    as_of: Instant | None


class AsyncContextRetriever(AsyncPart):
    """Finds in a memory, and in a graph beside it.

    The score is vector · (1 - alpha) + graph · alpha, both from 0 to 1, with bounded parts beside them that
    every answer names: `hybrid_alpha` 0 is vectors and words alone, 1 the graph alone. Of the graph there are
    the memories that lie on its ways, each with the way there, and what nodes with a `content` say. While the
    graph has no nodes, the graph part is 0, except for memories that a name in others leads to.
    """

    def __init__(
        self, memory: Any = None, knowledge_graph: Graph | None = None, **expansion: Unpack[Expansion]
    ) -> None:
        self.memory = memory if isinstance(memory, AsyncAgentMemory) else AsyncAgentMemory(memory)
        self.desk, self.owns = self.memory.desk, is_new(memory)
        self.graph = knowledge_graph
        if knowledge_graph is not None and knowledge_graph.desk.home is not self.desk.home:
            knowledge_graph.move(self.desk)
        hops = number("max_expansion_hops", expansion.get("max_expansion_hops"), 2)
        self.expansion = GraphExpansion(weight("hybrid_alpha", expansion.get("hybrid_alpha", 0.5)), hops)
        self.expands = expansion.get("use_graph_expansion", True)
        self.as_of = instant_of(expansion.get("as_of"))

    async def retrieve(self, query: str, max_results: int = 5, **asking: Unpack[AgentQuery]) -> Told:
        """What answers a query, best first, of at most `max_tokens` (or the token limit) together."""
        scope, options = await self._options(max_results, asking)
        found = await self.memory.recalled(query, scope, options)
        graph = options.get("graph")
        if graph is not None and graph.alpha > 0:
            if graph.graphs:
                found += await self._graph_results(query, graph, options.get("as_of"))
            else:
                found = [_unled(each) for each in found]
            found.sort(key=lambda each: -float(each["score"]))
        return self.memory.within(found[:max_results], asking)

    async def window(self, query: str, **asking: Unpack[AgentQuery]) -> MemoryWindow:
        """Notes, the last turns and what answers a question, as one text that costs no more."""
        scope, options = await self._options(REACHED, asking)
        allowed = number("max_tokens", asking.get("max_tokens"), self.memory.token_limit)
        budget = Budget(allowed, self.memory.tokenizer)
        await self.memory.wait_until_embedded()
        return await self.desk.run(lambda engine: engine.memory.window(query, budget, scope=scope, **options))

    async def _options(self, max_results: int, asking: AgentQuery) -> tuple[Scope, MemoryQueryOptions]:
        """The scope and the options of a query."""
        scope, options = scope_asked(asking, self.memory.scope), query_options(max_results, asking)
        if "as_of" not in asking:
            options["as_of"] = self.as_of
        graph = graph_of(asking, self.expansion, expands=self.expands)
        if graph is not None:
            graph = replace(graph, graphs=await self._graphs(scope))
        return scope, {
            **options,
            "collection": self.desk.collection,
            "graph": graph,
            "recent": self.memory.short_term_limit,
            "recent_tokens": self.memory.token_limit,
        }

    async def _graphs(self, scope: Scope) -> tuple[str, ...]:
        """The graph, if it has nodes and is not that of memories outside the scope."""
        if self.graph is None:
            return ()
        if self.graph.name.startswith(f"{GRAPHS}/") and not holds(scope, self.memory.scope):
            return ()
        source = await self.graph.filled()
        return () if source is None else (source,)

    async def _graph_results(self, query: str, ask: GraphExpansion, as_of: datetime | None) -> Told:
        """The contents of nodes that the query names, or that are reached from those, each once."""
        if self.graph is None or not query.strip():
            return []
        found: dict[str, dict[str, Any]] = {}
        for start in await self.graph.query(query, STARTS):
            if not _there(start["node"], as_of):
                continue
            name, worth = start["node"]["id"], ask.alpha * start["score"]
            if CONTENT in start["node"]["properties"]:
                _keep(found, _answer(start["node"], worth, [name]))
            walked = (
                await self.graph.get_neighbors(name, ask.hops, limit=REACHED, at=as_of) if ask.hops else []
            )
            for each in walked:
                if CONTENT in each["properties"]:
                    _keep(found, _answer(each, worth * each["decay"], each["path"]))
        return list(found.values())


def _unled(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer of which no graph part is left, unless a name led to it."""
    if answer["through"]:
        return answer
    parts = {**answer["parts"], GRAPH: 0.0}
    return {**answer, "parts": parts, "score": sum(parts.values())}


def _there(node: Mapping[str, Any], at: datetime | None) -> bool:
    """Whether a node was there at a time, both ends of its own included; at no time in particular all are."""
    begins, ends = node["valid_from"], node["valid_until"]
    return at is None or ((begins is None or begins <= at) and (ends is None or at <= ends))


def _keep(found: dict[str, dict[str, Any]], answer: dict[str, Any]) -> None:
    stored = found.get(answer["id"])
    if stored is None or stored["score"] < answer["score"]:
        found[answer["id"]] = answer


def _answer(node: dict[str, Any], score: float, path: list[str]) -> dict[str, Any]:
    return {
        "id": node["id"],
        "content": str(node["properties"][CONTENT]),
        "score": score,
        "source": GRAPH,
        "sources": [GRAPH],
        "parts": {GRAPH: score},
        "similarity": None,
        "metadata": {"node_type": node["type"]},
        "entities": [{"name": node["name"]}],
        "related_entities": [{"name": each} for each in path],
        "through": path,
        "why": [f"found through {' → '.join(path)}"],
    }
