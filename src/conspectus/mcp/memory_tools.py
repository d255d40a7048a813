"""Tools of memory and of graphs: remember, recall, graph, and what changes or lists them."""

from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import Field, StringConstraints

from conspectus.errors import DanglingEdges, InvalidInput, NotFound
from conspectus.graph.name_keys import key_of
from conspectus.mcp.tool import (
    ISO,
    ArgumentModel,
    Arguments,
    Identifier,
    Instant,
    MinConfidence,
    MinTrustArgument,
    Name,
    Question,
    ResultPage,
    ScopedArguments,
    ToolCall,
    filled,
    is_of_memory,
    json_of,
    memory_lines,
    neighbor_line,
    node_line,
    notices,
    recalled_lines,
    short,
    tool,
)
from conspectus.memory.retention import COUNTED
from conspectus.memory.scopes import GRAPHS, MEMORIES, holds, scope_of
from conspectus.model.graph import (
    ENTITY,
    Direction,
    Fact,
    GraphExpansion,
    GraphWritten,
    Neighbor,
    NewEdge,
    NewNode,
    Traversal,
)
from conspectus.model.memory import (
    MEMORY,
    GivenKind,
    MemoryKind,
    MemoryPage,
    MemoryQueryOptions,
    MemoryReceipt,
    MemoryRetrieval,
    MemorySelection,
    NewMemory,
)
from conspectus.model.query import Budget
from conspectus.model.records import Source
from conspectus.text.times import parse_instant

MAX_BATCH = 50
MAX_IDS = 200
MAX_LENGTH = 100_000
MAX_ENTITIES = 50

LongText = Annotated[str, StringConstraints(min_length=1, max_length=MAX_LENGTH)]


class FactPart(ArgumentModel):
    """The fact that a memory states, as an edge of the graph."""

    subject: Name
    predicate: Name
    object: Name
    single: bool = Field(True, description="A newer object ends this one.")


class MemoryPart(ArgumentModel):
    """A memory to store."""

    text: LongText = Field(description="Verbatim, self-contained.")
    kind: GivenKind = Field(
        "turn",
        description="note: a persistent preference or instruction.",
    )
    role: Name | None = Field(None, description="user, assistant.")
    speaker: Name | None = Field(None, description="Name of the speaker.")
    at: Instant | None = Field(None, description=f"{ISO}; none: now.")
    key: Name | None = Field(None, description="Your id; the same key replaces the memory.")
    pinned: bool = Field(False, description="Excluded from retention.")
    fact: FactPart | None = Field(None, description="The fact it states.")
    valid_from: Instant | None = Field(None, description="Start of the fact.")
    valid_until: Instant | None = Field(None, description="End of the fact.")
    entities: list[Name] = Field(
        default_factory=list,
        max_length=MAX_ENTITIES,
        description="Names it mentions.",
    )

    def memory(self) -> NewMemory:
        """The memory to add."""
        given = self.model_dump(exclude={"fact", "entities"})
        entities = tuple(self.entities)
        return NewMemory(**given, fact=fact_of(self.fact), entities=entities)


class RememberArguments(ScopedArguments):
    """The arguments of remember."""

    memories: list[MemoryPart] = Field(min_length=1, max_length=MAX_BATCH, description="In order of time.")


class UpdateArguments(ScopedArguments):
    """The arguments of update_memory."""

    memory: Identifier = Field(description="Id of the memory.")
    text: LongText | None = Field(None, description="The whole new text.")
    kind: GivenKind | None = Field(None, description="turn or note.")
    pinned: bool | None = Field(None, description="Excluded from retention.")
    fact: FactPart | None = Field(None, description="The fact it states.")
    valid_from: Instant | None = Field(None, description="Start of the fact.")
    valid_until: Instant | None = Field(None, description="End of the fact.")

    def changes(self) -> dict[str, Any]:
        """The changed fields. Raises InvalidInput if there are none."""
        names = ("text", "kind", "pinned", "valid_from", "valid_until")
        given: dict[str, Any] = {
            name: getattr(self, name) for name in names if getattr(self, name) is not None
        }
        if self.fact is not None:
            given["fact"] = fact_of(self.fact)
        if not given:
            raise InvalidInput("text", "give at least one thing to change")
        return given


class ForgetArguments(ScopedArguments):
    """The arguments of forget: one of ids, before, older_than_days and everything."""

    ids: list[Identifier] = Field(
        default_factory=list, max_length=MAX_IDS, description="Ids of the memories to delete."
    )
    before: Instant | None = Field(None, description=f"Delete memories from before this time ({ISO}).")
    older_than_days: float | None = Field(
        None, ge=0, description="Delete memories older than this number of days."
    )
    everything: bool = Field(False, description="Delete all memories of the scope.")
    pinned: bool = Field(False, description="Also delete pinned memories.")
    confirm: bool = Field(False, description="Delete; false: only count.")

    def selection(self) -> MemorySelection:
        """The memories to delete."""
        before = None if self.before is None else parse_instant(self.before)
        return MemorySelection(tuple(self.ids), before, self.older_than_days, self.everything, self.pinned)


@tool("adds")
async def remember(call: ToolCall, given: RememberArguments) -> str:
    """Store memories for later conversations: turns, facts, preferences. One memory for each thing."""
    scope = given.scope(call.options.scope)
    stored = await call.engine.memory.add([each.memory() for each in given.memories], scope=scope)
    return call.data("memories", stored, stored=len(stored))


@tool("changes")
async def update_memory(call: ToolCall, given: UpdateArguments) -> str:
    """Correct a memory; it keeps its id and its earlier versions. To record a change, remember it."""
    scope = given.scope(call.options.scope)
    written = await call.engine.memory.update(given.memory, scope=scope, **given.changes())
    return json_of(written)


@tool("deletes")
async def forget(call: ToolCall, given: ForgetArguments) -> str:
    """Delete memories permanently with confirm=true; without it, count them. Give exactly one of ids,
    before, older_than_days and everything.
    """
    scope = given.scope(call.options.scope)
    dry_run = not given.confirm
    asked = call.engine.memory.forget(given.selection(), scope=scope, dry_run=dry_run)
    receipt = await call.remembered(asked, MemoryReceipt(0, dry_run=dry_run))
    counts = {name: getattr(receipt, name) for name in COUNTED}
    following = {"next": "call again with confirm=true"} if dry_run and receipt.memories else {}
    return call.data("ids", receipt.ids, dry_run=dry_run, **counts, **following)


def fact_of(part: FactPart | None) -> Fact | None:
    """The fact of a memory."""
    return None if part is None else Fact(part.subject, part.predicate, part.object, part.single)


MAX_MEMORIES = 50
MAX_TURNS = 200
MAX_CURSOR_LENGTH = 2_000
NOTHING = "No relevant memory was found."
FOOT_SHARE = 8
MAX_FOOTER_TOKENS = 100
GRAPH_WEIGHT = 0.5


class RecallArguments(ScopedArguments):
    """The arguments of recall."""

    query: Question = Field(description="Subject.")
    limit: int = Field(10, ge=1, le=MAX_MEMORIES, description="Maximum memories.")
    as_of: Instant | None = Field(None, description=f"State known at this time ({ISO}).")
    min_confidence: MinConfidence = 0.0
    min_trust: MinTrustArgument = None
    window: bool = Field(
        False, description="Context for the next turn: notes, relevant memories, last turns."
    )
    turns: int | None = Field(None, ge=0, le=MAX_TURNS, description="Maximum last turns in the window.")

    def search_options(self) -> MemoryQueryOptions:
        """The options of the query."""
        return {
            "limit": self.limit,
            "as_of": None if self.as_of is None else parse_instant(self.as_of),
            "graph": GraphExpansion(GRAPH_WEIGHT),
            "min_confidence": self.min_confidence,
            "min_trust": self.min_trust,
        }


class HistoryArguments(ScopedArguments):
    """The arguments of history."""

    limit: int = Field(20, ge=1, le=MAX_TURNS, description="Maximum memories.")
    kind: MemoryKind | None = Field(None, description="Only this kind.")
    cursor: str | None = Field(
        None,
        min_length=1,
        max_length=MAX_CURSOR_LENGTH,
        description="Cursor of the previous page.",
    )


@tool()
async def recall(call: ToolCall, given: RecallArguments) -> str:
    """Find memories, best first, with id, time and speaker; or with window=true build the context for the
    next turn.
    """
    if given.window:
        return await _window(call, given)
    nothing = MemoryRetrieval("no_match", ())
    scope = given.scope(call.options.scope)
    search = call.engine.memory.recall(given.query, scope=scope, **given.search_options())
    found = await call.remembered(search, nothing)
    head = NOTHING if found.outcome == "no_match" else ""
    foot = "\n".join(filter(None, (notices(found.notices), _since(found))))
    return call.page(ResultPage(list(map(recalled_lines, found.memories)), head, foot, between="\n"))


async def _window(call: ToolCall, given: RecallArguments) -> str:
    told = min(call.room.tokens // FOOT_SHARE, MAX_FOOTER_TOKENS)
    budget = Budget(call.room.tokens - told, call.options.tokenizer)
    options: MemoryQueryOptions = {**given.search_options(), "recent": given.turns}
    window = call.engine.memory.window(given.query, budget, scope=given.scope(call.options.scope), **options)
    made = await call.remembered(window, None)
    if made is None or not made.text:
        return NOTHING
    return call.page(ResultPage((), made.text, notices(made.window.notices)))


@tool()
async def history(call: ToolCall, given: HistoryArguments) -> str:
    """List memories in order of time, newest last, with their ids; the cursor leads to older ones."""
    fields: dict[str, Any] = {"scope": given.scope(call.options.scope), "kind": given.kind}
    limit = given.limit
    while True:
        asked = call.engine.memory.list(after=given.cursor, limit=limit, newest_first=True, **fields)
        page = await call.remembered(asked, MemoryPage((), None))
        older = f"[older: history with cursor={page.next}]" if page.next else ""
        lines = list(map(memory_lines, page.memories))
        head = older or ("" if lines else "No memories.")
        text, kept = filled(ResultPage(lines, head, between="\n", upwards=True), call.room)
        if kept >= len(lines) or kept == 0:
            return text
        limit = kept


def _since(found: MemoryRetrieval) -> str:
    """Changes after the time that was asked for."""
    if found.since is None:
        return ""
    since = found.since
    return f"Since then: {since.recorded} recorded, {since.changed} changed, {since.deleted} deleted."


MAX_NODES = 100
MAX_FACTS = 50
MAX_HOPS = 5
MAX_GRAPHS = 50
NO_NODES = "No matching node."


class GraphPlace(ScopedArguments):
    """A graph: one of a collection, or that of memories."""

    of_memory: bool = Field(False, description="Use the graph of memories.")
    collection: Name = Field("default", description="Collection of the graph.")
    graph: Name = Field("default", description="Name of the graph.")

    async def places(self, call: ToolCall) -> list[dict[str, str]]:
        """The graphs and their collections. Raises NotFound, or InvalidInput for too many."""
        if not self.of_memory:
            if call.has_fixed_scope:
                source = await self._source(call)
                if not call.is_inside(source):
                    raise NotFound("graph", self.graph)
            return [{"graph": self.graph, "collection": self.collection}]
        scope = self.scope(call.options.scope)
        seen = await call.remembered(call.engine.collections.list_sources(collection=MEMORY), ())
        graphs = [each.name for each in seen if each.kind == GRAPHS and is_of_memory(each)]
        names = [each for each in graphs if holds(scope, scope_of(each))]
        if len(names) > MAX_GRAPHS:
            raise InvalidInput("conversation", f"is required: facts are in {len(names)} conversations")
        return [{"graph": name, "collection": MEMORY} for name in names]

    async def _source(self, call: ToolCall) -> Source:
        """The source of the graph by its name or id. Raises NotFound."""
        for name in (f"{GRAPHS}/{quote(self.graph, safe='')}", self.graph):
            try:
                return await call.engine.collections.get_source(name, collection=self.collection)
            except NotFound as fault:
                if fault.kind != "source":
                    raise
        raise NotFound("graph", self.graph)


class GraphArguments(GraphPlace):
    """The arguments of graph: a query for nodes, or a node whose neighbors are shown."""

    query: Question | None = Field(None, description="Words of names to find nodes by.")
    node: Name | None = Field(None, description="Id of a node to show the neighbors of.")
    hops: int = Field(1, ge=1, le=MAX_HOPS, description="Maximum hops.")
    types: list[Name] = Field(
        default_factory=list, max_length=MAX_NODES, description="Edge types; none: all."
    )
    min_weight: float = Field(0.0, ge=0.0, le=1.0, description="Minimum edge weight.")
    direction: Direction = Field("both", description="Edge direction.")
    at: Instant | None = Field(None, description=f"Edges valid at this time ({ISO}).")
    limit: int = Field(20, ge=1, le=MAX_NODES, description="Maximum nodes.")
    min_trust: MinTrustArgument = None

    def traversal(self) -> Traversal:
        """The traversal from the node."""
        at = None if self.at is None else parse_instant(self.at)
        types = tuple(self.types)
        return Traversal(
            *(self.hops, types, self.min_weight, self.direction, at),
            limit=self.limit,
            min_trust=self.min_trust,
        )


class FactToAdd(ArgumentModel):
    """An edge between two nodes."""

    subject: Name = Field(description="Node id: the usual name; created if new.")
    predicate: Name = Field(description="Edge type, such as depends_on.")
    object: Name = Field(description="Node id; created if new.")
    subject_type: Name = Field(ENTITY, description="Type of a new subject.")
    object_type: Name = Field(ENTITY, description="Type of a new object.")
    weight: float = Field(1.0, gt=0.0, le=1.0, description="Edge weight.")
    valid_from: Instant | None = Field(None, description=f"Start ({ISO}).")
    valid_until: Instant | None = Field(None, description="End.")
    single: bool = Field(False, description="Ends the earlier object of the subject.")
    evidence: Identifier | None = Field(None, description="Id of the document that states it.")

    def edge(self) -> NewEdge:
        """The edge to write."""
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
    collection: Name = Field("default", description="Collection of the graph.")
    graph: Name = Field("default", description="Name of the graph; created if new.")


@tool()
async def graph(call: ToolCall, given: GraphArguments) -> str:
    """Find nodes of a knowledge graph by query, or show the neighbors of a node with the paths."""
    if (given.query is None) == (given.node is None):
        raise InvalidInput("query", "give either query or node")
    return await (
        _found(call, given, given.query) if given.query else _neighbors(call, given, given.node or "")
    )


async def _found(call: ToolCall, given: GraphArguments, query: str) -> str:
    found = [
        hit
        for place in await given.places(call)
        for hit in await call.engine.graph.search_nodes(
            query, limit=given.limit, min_trust=given.min_trust, **place
        )
    ]
    best = sorted(found, key=lambda each: -each.score)[: given.limit]
    lines = [node_line(each.node, each.score) for each in best]
    # Nobody knows the level of a name that passages of all levels mention.
    if given.min_trust is None and await _may_show_names(call, given):
        named = await call.engine.graph.list_entities(
            collection=given.collection, prefix=query, limit=given.limit
        )
        lines += [
            f"“{short(each.name)}” ({short(each.type)}) is mentioned in {each.passages} passages"
            for each in named
        ]
    return call.page(ResultPage(lines, "" if lines else NO_NODES, between="\n"))


async def _neighbors(call: ToolCall, given: GraphArguments, node: str) -> str:
    around = [await _around(call, given, place) for place in await given.places(call)]
    if all(each is None for each in around):
        raise NotFound("node", node)
    found = [each for reached in around for each in reached or ()]
    nearest = sorted(found, key=lambda each: (each.hop, -each.decay))[: given.limit]
    lines = list(map(neighbor_line, nearest))
    count = "1 node" if len(lines) == 1 else f"{len(lines)} nodes"
    return call.page(ResultPage(lines, f"{count} around {short(node)}", between="\n"))


@tool("changes")
async def add_facts(call: ToolCall, given: AddArguments) -> str:
    """Write facts into a knowledge graph. For facts about the user, use remember with a fact."""
    if "/" in given.graph.removeprefix(f"{GRAPHS}/"):
        raise InvalidInput("graph", "must be a name without a slash; add facts of memories with remember")
    graph = await call.engine.graph.get_or_create(given.graph, collection=given.collection)
    if not call.is_inside(graph):
        raise NotFound("graph", given.graph)
    if is_of_memory(graph):
        raise InvalidInput("graph", "is a graph of memories; add the fact with remember")
    place = {"graph": given.graph, "collection": given.collection}
    edges = [each.edge() for each in given.facts]
    made: Sequence[GraphWritten] = []
    try:
        written = await call.engine.graph.add_edges(edges, **place)
    except DanglingEdges as fault:
        made = await call.engine.graph.add_nodes(_nodes(given.facts, fault.missing), **place)
        written = await call.engine.graph.add_edges(edges, **place)
    return call.data("facts", written, written=len(written), new_nodes=len(made))


async def _around(call: ToolCall, given: GraphArguments, place: dict[str, str]) -> Sequence[Neighbor] | None:
    """The neighbors of the node with that id, or with that name in a fact; None if there is none."""
    for name in filter(None, dict.fromkeys((given.node, key_of(given.node or "")))):
        try:
            return await call.engine.graph.neighbors(name, given.traversal(), **place)
        except NotFound as fault:
            if fault.kind != "node":
                raise
    return None


async def _may_show_names(call: ToolCall, given: GraphArguments) -> bool:
    """Whether entity names, which are of the whole collection, may be shown in the fixed scope."""
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
