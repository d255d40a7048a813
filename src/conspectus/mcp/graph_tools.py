"""Tools of graphs: graph and add_facts."""

from collections.abc import Sequence
from typing import Annotated
from urllib.parse import quote

from pydantic import Field

from conspectus.engine.graph import GraphService
from conspectus.errors import DanglingEdges, InvalidInput, NotFound
from conspectus.mcp.arguments import (
    ArgumentModel,
    Arguments,
    Collection,
    Instant,
    MinTrustArgument,
    Name,
    Question,
    ScopedArguments,
)
from conspectus.mcp.lines import neighbor_line, node_line, shorten
from conspectus.mcp.token_budget import ResultPage
from conspectus.mcp.tool import ToolCall, is_of_memory, tool
from conspectus.memory.scopes import GRAPHS, MEMORIES, includes_scope, scope_of
from conspectus.model import parameters
from conspectus.model.graph import (
    ENTITY,
    Direction,
    GraphWritten,
    Neighbor,
    NewEdge,
    NewNode,
    Traversal,
)
from conspectus.model.memory import (
    MEMORY,
)
from conspectus.model.records import Source
from conspectus.operations.declared import declared, facts_of
from conspectus.text.counts import format_count
from conspectus.text.name_keys import key_of
from conspectus.text.times import parse_instant

MAX_FACTS = 50
MAX_GRAPHS = 50
NO_NODES = "No matching node."


class GraphAddress(ScopedArguments):
    """A graph: one of a collection, or that of memories."""

    of_memory: bool = Field(False, description="The graph of memories.")
    collection: Collection = "default"
    graph: Annotated[str, Field(**facts_of(parameters.GraphName))] = "default"

    async def addresses(self, call: ToolCall) -> list[dict[str, str]]:
        """Return the names of graphs and collections. Raises NotFound, or InvalidInput for too many."""
        if not self.of_memory:
            if call.has_fixed_scope:
                source = await self._source(call)
                if not call.is_inside(source):
                    raise NotFound("graph", self.graph)
            return [{"graph": self.graph, "collection": self.collection}]
        scope = self.scope(call.options.scope)
        seen = await call.answer_or(call.engine.collections.list_sources(collection=MEMORY), ())
        graphs = [source.name for source in seen if source.kind == GRAPHS and is_of_memory(source)]
        names = [graph for graph in graphs if includes_scope(scope, scope_of(graph))]
        if len(names) > MAX_GRAPHS:
            raise InvalidInput(
                "conversation", f"is required: facts are in {format_count(len(names), 'conversation')}"
            )
        return [{"graph": name, "collection": MEMORY} for name in names]

    async def _source(self, call: ToolCall) -> Source:
        """Return the source of the graph by its name or id. Raises NotFound."""
        for name in (f"{GRAPHS}/{quote(self.graph, safe='')}", self.graph):
            try:
                return await call.engine.collections.get_source(name, collection=self.collection)
            except NotFound as fault:
                if fault.kind != "source":
                    raise
        raise NotFound("graph", self.graph)


class GraphArguments(GraphAddress):
    """The arguments of graph: a query for nodes, or a node whose neighbors are shown."""

    query: Question | None = None
    node: Annotated[str | None, declared(GraphService.neighbors, "node")] = None
    hops: Annotated[int, declared(Traversal, "hops")] = 1
    types: Annotated[list[Name], declared(Traversal, "types")] = Field(default_factory=list)
    min_weight: Annotated[float, declared(Traversal, "min_weight")] = 0.0
    direction: Annotated[Direction, declared(Traversal, "direction")] = "both"
    at: Annotated[Instant | None, declared(Traversal, "at")] = None
    limit: Annotated[int, declared(Traversal, "limit")] = 20
    min_trust: MinTrustArgument = None

    def traversal(self) -> Traversal:
        """Return the traversal from the node."""
        at = None if self.at is None else parse_instant(self.at)
        types = tuple(self.types)
        return Traversal(
            *(self.hops, types, self.min_weight, self.direction, at),
            limit=self.limit,
            min_trust=self.min_trust,
        )


class FactToAdd(ArgumentModel):
    """An edge between two nodes."""

    subject: Annotated[str, declared(NewEdge, "source")]
    predicate: Annotated[str, declared(NewEdge, "type")]
    object: Annotated[str, declared(NewEdge, "target")]
    subject_type: Annotated[str, declared(NewNode, "type")] = ENTITY
    object_type: Annotated[str, declared(NewNode, "type")] = ENTITY
    weight: Annotated[float, declared(NewEdge, "weight")] = 1.0
    valid_from: Annotated[Instant | None, declared(NewEdge, "valid_from")] = None
    valid_until: Annotated[Instant | None, declared(NewEdge, "valid_until")] = None
    single: Annotated[bool, declared(NewEdge, "single")] = False
    evidence: Annotated[str | None, declared(NewEdge, "evidence")] = None

    def edge(self) -> NewEdge:
        """Return the edge to write."""
        return NewEdge(
            self.subject,
            self.object,
            self.predicate,
            self.weight,
            valid_from=self.valid_from,
            valid_until=self.valid_until,
            single=self.single,
            evidence=self.evidence,
        )


class AddArguments(Arguments):
    """The arguments of add_facts."""

    facts: list[FactToAdd] = Field(min_length=1, max_length=MAX_FACTS, description="The facts.")
    collection: Collection = "default"
    graph: Annotated[str, Field(**facts_of(parameters.GraphName))] = "default"


@tool()
async def graph(call: ToolCall, arguments: GraphArguments) -> str:
    """Find nodes of a knowledge graph by query, or show the neighbors of a node with the paths."""
    if (arguments.query is None) == (arguments.node is None):
        raise InvalidInput("query", "give either query or node")
    return await (
        _find_nodes(call, arguments, arguments.query)
        if arguments.query
        else _neighbors(call, arguments, arguments.node or "")
    )


async def _find_nodes(call: ToolCall, arguments: GraphArguments, query: str) -> str:
    hits = [
        hit
        for address in await arguments.addresses(call)
        for hit in await call.engine.graph.search_nodes(
            query, limit=arguments.limit, min_trust=arguments.min_trust, **address
        )
    ]
    best = sorted(hits, key=lambda hit: -hit.score)[: arguments.limit]
    lines = [node_line(hit.node, hit.score) for hit in best]
    # Nobody knows the level of a name that passages of all levels mention.
    if arguments.min_trust is None and await _may_show_names(call, arguments):
        named = await call.engine.graph.list_entities(
            collection=arguments.collection, prefix=query, limit=arguments.limit
        )
        lines += [
            f"“{shorten(entity.name)}” ({shorten(entity.type)}) is mentioned in"
            f" {format_count(entity.passages, 'passage')}"
            for entity in named
        ]
    return call.page(ResultPage(lines, "" if lines else NO_NODES, between="\n"))


async def _neighbors(call: ToolCall, arguments: GraphArguments, node: str) -> str:
    around = [
        await _neighbors_of_name(call, arguments, address) for address in await arguments.addresses(call)
    ]
    if all(neighbors is None for neighbors in around):
        raise NotFound("node", node)
    neighbors = [neighbor for reached in around for neighbor in reached or ()]
    nearest = sorted(neighbors, key=lambda neighbor: (neighbor.hop, -neighbor.decay))[: arguments.limit]
    lines = list(map(neighbor_line, nearest))
    count = format_count(len(lines), "node")
    return call.page(ResultPage(lines, f"{count} around {shorten(node)}", between="\n"))


@tool("changes")
async def add_facts(call: ToolCall, arguments: AddArguments) -> str:
    """Write facts into a knowledge graph; missing nodes are created. For facts about the user, use remember
    with a fact.
    """
    if "/" in arguments.graph.removeprefix(f"{GRAPHS}/"):
        raise InvalidInput("graph", "must be a name without a slash; add facts of memories with remember")
    graph = await call.engine.graph.get_or_create(arguments.graph, collection=arguments.collection)
    if not call.is_inside(graph):
        raise NotFound("graph", arguments.graph)
    if is_of_memory(graph):
        raise InvalidInput("graph", "is a graph of memories; add the fact with remember")
    address = {"graph": arguments.graph, "collection": arguments.collection}
    edges = [fact.edge() for fact in arguments.facts]
    new_nodes: Sequence[GraphWritten] = []
    try:
        written = await call.engine.graph.add_edges(edges, **address)
    except DanglingEdges as fault:
        new_nodes = await call.engine.graph.add_nodes(
            _make_missing_nodes(arguments.facts, fault.missing), **address
        )
        written = await call.engine.graph.add_edges(edges, **address)
    return call.data("facts", written, written=len(written), new_nodes=len(new_nodes))


async def _neighbors_of_name(
    call: ToolCall, arguments: GraphArguments, address: dict[str, str]
) -> Sequence[Neighbor] | None:
    """Return the neighbors of the node with that id or name; None without such a node."""
    for name in filter(None, dict.fromkeys((arguments.node, key_of(arguments.node or "")))):
        try:
            return await call.engine.graph.neighbors(name, arguments.traversal(), **address)
        except NotFound as fault:
            if fault.kind != "node":
                raise
    return None


async def _may_show_names(call: ToolCall, arguments: GraphArguments) -> bool:
    """Return whether entity names of the whole collection may be shown in the fixed scope."""
    if arguments.of_memory:
        return False
    if not call.has_fixed_scope:
        return True
    inside = await call.engine.collections.list_sources(collection=arguments.collection)
    return all(source.kind != MEMORIES for source in inside)


def _make_missing_nodes(facts: Sequence[FactToAdd], missing: Sequence[str]) -> list[NewNode]:
    types = {fact.object: fact.object_type for fact in facts}
    types |= {fact.subject: fact.subject_type for fact in facts}
    return [NewNode(node, types.get(node, ENTITY)) for node in missing]
