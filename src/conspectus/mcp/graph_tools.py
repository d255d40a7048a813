"""Tools that look at graphs and write them: find_entities, neighbors, add_facts."""

from collections.abc import Sequence
from urllib.parse import quote

from pydantic import BaseModel, Field

from conspectus.errors import DanglingEdges, InvalidInput, NotFound
from conspectus.graph.name_keys import key_of
from conspectus.mcp.formatting import neighbor_line, node_line, short
from conspectus.mcp.tool import (
    ISO,
    ArgumentModel,
    Arguments,
    Identifier,
    Instant,
    Name,
    Question,
    ResultPage,
    ScopedArguments,
    ToolCall,
    ToolResult,
    is_of_memory,
    tool,
)
from conspectus.memory.scopes import GRAPHS, MEMORIES, holds, scope_of
from conspectus.model.graph import (
    ENTITY,
    Direction,
    EntityCount,
    GraphWritten,
    Neighbor,
    NewEdge,
    NewNode,
    Traversal,
)
from conspectus.model.memory import MEMORY
from conspectus.model.records import Source
from conspectus.text.times import parse_instant

MAX_NODES = 100
MAX_FACTS = 50
FURTHEST = 5
MAX_GRAPHS = 50
NO_NODES = "No node is about that."


class GraphArguments(ScopedArguments):
    """Which graph: one of a collection, or that of what is remembered."""

    of_memory: bool = Field(
        False,
        description="Use the graph of remembered facts.",
    )
    collection: Name = Field("default", description="The collection that the graph is in.")
    graph: Name = Field("default", description="Name of the graph.")

    async def places(self, call: ToolCall) -> list[dict[str, str]]:
        """The graphs, as the engine is told of them. Raises NotFound, or InvalidInput for too many."""
        if not self.of_memory:
            if call.has_fixed_scope:
                call.require_inside(await self._source(call))
            return [{"graph": self.graph, "collection": self.collection}]
        scope = self.scope(call.options.scope)
        seen = await call.remembered(call.engine.collections.list_sources(collection=MEMORY), ())
        graphs = [each.name for each in seen if each.kind == GRAPHS and is_of_memory(each)]
        names = [each for each in graphs if holds(scope, scope_of(each))]
        if len(names) > MAX_GRAPHS:
            raise InvalidInput("conversation", f"is required: facts are in {len(names)} conversations")
        return [{"graph": name, "collection": MEMORY} for name in names]

    async def _source(self, call: ToolCall) -> Source:
        """What the graph is stored as, whether its name or its id was given. Raises NotFound."""
        for name in (f"{GRAPHS}/{quote(self.graph, safe='')}", self.graph):
            try:
                return await call.engine.collections.get_source(name, collection=self.collection)
            except NotFound as fault:
                if fault.kind != "source":
                    raise
        raise NotFound("graph", self.graph)


class FindArguments(GraphArguments):
    """The arguments of find_entities."""

    query: Question = Field(description="Whole words of names.")
    limit: int = Field(10, ge=1, le=MAX_NODES, description="Most nodes, and most names.")


class NeighborArguments(GraphArguments):
    """The arguments of neighbors."""

    node: Name = Field(description="Id of the node.")
    hops: int = Field(1, ge=1, le=FURTHEST, description="Steps.")
    types: list[Name] = Field(default_factory=list, max_length=MAX_NODES, description="Only these relations.")
    min_weight: float = Field(0.0, ge=0.0, le=1.0, description="Least weight.")
    direction: Direction = Field("both", description="Direction of relations.")
    at: Instant | None = Field(None, description=f"As true at this time ({ISO}).")
    limit: int = Field(50, ge=1, le=MAX_NODES, description="Most nodes.")

    def walk(self) -> Traversal:
        """As the engine takes it."""
        at = None if self.at is None else parse_instant(self.at)
        return Traversal(self.hops, tuple(self.types), self.min_weight, self.direction, at, limit=self.limit)


class FactToAdd(ArgumentModel):
    """Two things and how they are related."""

    subject: Name = Field(description="Id of a node: the usual name; created if new.")
    predicate: Name = Field(description="The relation, such as depends_on.")
    object: Name = Field(description="Id of a node; created if new.")
    subject_type: Name = Field(ENTITY, description="Type of a new subject: person, project, ...")
    object_type: Name = Field(ENTITY, description="Type of a new object.")
    weight: float = Field(1.0, gt=0.0, le=1.0, description="Strength or confidence.")
    valid_from: Instant | None = Field(None, description=f"Start ({ISO}).")
    valid_until: Instant | None = Field(None, description="End.")
    single: bool = Field(False, description="Ends the earlier object of the subject.")
    evidence: Identifier | None = Field(None, description="Id of the document that states it.")

    def edge(self) -> NewEdge:
        """As the engine takes it."""
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

    facts: list[FactToAdd] = Field(min_length=1, max_length=MAX_FACTS, description="What is true.")
    collection: Name = Field("default", description="The collection that the graph is in.")
    graph: Name = Field("default", description="Name of the graph; created if new.")


class FactRow(BaseModel):
    """An edge as it was written; `closed` are those that it ended."""

    id: str
    outcome: str
    closed: list[str] | None = None


class FactsAnswer(BaseModel):
    """What was written; `left_out` of the rows did not fit into max_tokens, and are written all the same."""

    written: int
    new_nodes: int
    facts: list[FactRow]
    left_out: int


@tool("Find entities")
async def find_entities(call: ToolCall, given: FindArguments) -> ToolResult:
    """Find nodes of a knowledge graph, with ids and types, and names in documents. Start here before
    neighbors and add_facts.
    """
    found = [
        hit
        for place in await given.places(call)
        for hit in await call.engine.graph.search_nodes(given.query, limit=given.limit, **place)
    ]
    best = sorted(found, key=lambda each: -each.score)[: given.limit]
    lines = [node_line(each.node, each.score) for each in best]
    if await _may_tell_names(call, given):
        named = await call.engine.graph.list_entities(
            collection=given.collection, prefix=given.query, limit=given.limit
        )
        lines += map(_name_line, named)
    return call.page(ResultPage(lines, "" if lines else NO_NODES, between="\n"))


@tool("Look around a node")
async def neighbors(call: ToolCall, given: NeighborArguments) -> ToolResult:
    """Show what a node of a knowledge graph is connected with, and over which path, nearest first."""
    around = [await _around(call, given, place) for place in await given.places(call)]
    if all(each is None for each in around):
        raise NotFound("node", given.node)
    found = [each for reached in around for each in reached or ()]
    nearest = sorted(found, key=lambda each: (each.hop, -each.decay))[: given.limit]
    lines = list(map(neighbor_line, nearest))
    count = "1 node" if len(lines) == 1 else f"{len(lines)} nodes"
    return call.page(ResultPage(lines, f"{count} around {short(given.node)}", between="\n"))


@tool("Add facts to a graph", effect="changes", gives=FactsAnswer)
async def add_facts(call: ToolCall, given: AddArguments) -> ToolResult:
    """Write facts into a knowledge graph as relations between named things. For facts about the user, use
    remember with a fact.
    """
    if "/" in given.graph.removeprefix(f"{GRAPHS}/"):
        raise InvalidInput("graph", "must be a name without a slash; add facts of memories with remember")
    if is_of_memory(await call.engine.graph.get_or_create(given.graph, collection=given.collection)):
        raise InvalidInput("graph", "is a graph of memories; add the fact with remember")
    place = {"graph": given.graph, "collection": given.collection}
    edges = [each.edge() for each in given.facts]
    made: Sequence[GraphWritten] = []
    try:
        written = await call.engine.graph.add_edges(edges, **place)
    except DanglingEdges as fault:
        made = await call.engine.graph.add_nodes(_nodes(given.facts, fault.missing), **place)
        written = await call.engine.graph.add_edges(edges, **place)

    def shown(kept: Sequence[GraphWritten], left: int) -> FactsAnswer:
        rows = [FactRow(id=each.id, outcome=each.outcome, closed=list(each.closed) or None) for each in kept]
        return FactsAnswer(written=len(written), new_nodes=len(made), facts=rows, left_out=left)

    return call.data(written, shown)


async def _around(
    call: ToolCall, given: NeighborArguments, place: dict[str, str]
) -> Sequence[Neighbor] | None:
    """What is around the node of that id, or of that name as a memory's fact has it; None where it is not."""
    for name in filter(None, dict.fromkeys((given.node, key_of(given.node)))):
        try:
            return await call.engine.graph.neighbors(name, given.walk(), **place)
        except NotFound as fault:
            if fault.kind != "node":
                raise
    return None


async def _may_tell_names(call: ToolCall, given: GraphArguments) -> bool:
    """Names are those of all passages of a collection: not told where a wall goes through it."""
    if given.of_memory:
        return False
    if not call.has_fixed_scope:
        return True
    inside = await call.engine.collections.list_sources(collection=given.collection)
    return all(each.kind != MEMORIES for each in inside)


def _nodes(facts: Sequence[FactToAdd], missing: Sequence[str]) -> list[NewNode]:
    types = {each.object: each.object_type for each in facts}
    types |= {each.subject: each.subject_type for each in facts}
    return [NewNode(each, types.get(each, ENTITY)) for each in missing]


def _name_line(named: EntityCount) -> str:
    return f"“{short(named.name)}” ({short(named.type)}) is mentioned in {named.passages} passages"
