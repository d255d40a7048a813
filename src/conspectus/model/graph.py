"""A graph of entities: nodes and dated, weighted edges, and results of reads."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Annotated, Literal, get_args

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example, Length, Range
from conspectus.model.checks import Checked
from conspectus.model.parameters import (
    GraphLimit,
    Label,
    LowestTrust,
    Name,
    NodeName,
    PersonName,
    StoredId,
    StoredSource,
    WriterOrigin,
)
from conspectus.model.records import Mention, Metadata, Source
from conspectus.model.trust import MinTrust, Origin, Trust

Direction = Literal["out", "in", "both"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
GraphForm = Literal["json", "graphml", "svg"]
GRAPH_FORMS: tuple[GraphForm, ...] = get_args(GraphForm)
RELATED = "related_to"
ENTITY = "entity"
MENTIONED_WITH = "mentioned_with"
"""The type of edges that are not stored: two entities that the same passage mentions."""


@dataclass(frozen=True, slots=True)
class Fact(Checked):
    """A statement of subject, predicate and object, such as Ann, lives in, Köln.

    With `single` the subject has one object at a time: a later fact with another object ends the earlier one.
    """

    subject: Annotated[Label, "Subject of the fact.", Example("backup")]
    predicate: Annotated[Label, "Relation of subject and object.", Example("runs at")]
    object: Annotated[Label, "Object of the fact.", Example("02:00")]
    single: Annotated[bool, "The subject has one object at a time."] = True


@dataclass(frozen=True, slots=True)
class GraphExpansion(Checked):
    """How a search uses graphs.

    `alpha` (0 to 1) is the weight of graph scores: 0 is vector and keyword search alone, 1 graphs alone.
    `hops` (0 to 5) is the depth of the traversal. `graphs` are ids or names of the graphs to traverse (None:
    all of the collection that you may read; empty: none). Shared entities always connect passages.
    """

    alpha: Annotated[float, Range(0, 1), "Weight of graph scores; 1: graphs alone."] = 0.5
    hops: Annotated[int, Range(0, "max_hops"), "Depth of the traversal."] = 2
    graphs: (
        Annotated[tuple[Name, ...], Length(0, 1_000), "Names or ids of graphs; none: all of the collection."]
        | None
    ) = None


@dataclass(frozen=True, slots=True)
class NewNode(Checked):
    """A node to be added; `name` is its name in texts (None: its id), `aliases` are other names.

    It exists from `valid_from` until `valid_until` (None: open; both inclusive). Adding a node with a stored
    id changes the stored node. `origin` and `trust` lower its level (None: that of the writer).
    """

    id: NodeName
    type: Annotated[str, "Type of the node.", Example("process")] = ENTITY
    name: Annotated[str | None, "Name in texts; by default the id.", Example("Nightly backup")] = None
    aliases: Annotated[tuple[str, ...], "Other names."] = ()
    properties: Annotated[Mapping[str, object], "Properties as JSON."] = field(default_factory=dict)
    valid_from: Annotated[datetime | str | None, "First instant at which it exists."] = None
    valid_until: Annotated[datetime | str | None, "Last instant at which it exists."] = None
    origin: WriterOrigin | None = None
    trust: Annotated[MinTrust | None, "A lower trust level than that of the writer."] = None


@dataclass(frozen=True, slots=True)
class NewEdge(Checked):
    """An edge to be added, from `source` to `target`, with a weight above 0 and up to 1.

    A stored edge of the same source, target, type and `valid_from` is changed. With `single` it ends the open
    edges of the same source and type to other targets. `evidence` is the document that states it, whose level
    it has at most. `origin` and `trust` lower its level (None: that of the writer).
    """

    source: Annotated[NodeName, "Node where the edge begins."]
    target: Annotated[NodeName, "Node where the edge ends.", Example("database")]
    type: Annotated[str, "Type of the edge.", Example("depends on")] = RELATED
    weight: Annotated[float, Range(0, 1, above=True), "Weight of the edge."] = 1.0
    properties: Annotated[Mapping[str, object], "Properties as JSON."] = field(default_factory=dict)
    valid_from: Annotated[datetime | str | None, "First instant at which it is true."] = None
    valid_until: Annotated[datetime | str | None, "Last instant at which it is true."] = None
    single: Annotated[bool, "End open edges of the same source and type to other targets."] = False
    evidence: Annotated[str | None, "Id of the document that states it."] = None
    origin: WriterOrigin | None = None
    trust: Annotated[MinTrust | None, "A lower trust level than that of the writer."] = None


@dataclass(frozen=True, slots=True)
class Node:
    """A stored node of a graph. `recorded` and `updated` are the times of its first and last write.

    Its level is the lowest of all that made it what it is.
    """

    id: Annotated[str, Example("backup")]
    graph: Source
    type: Annotated[str, Example("process")]
    name: Annotated[str, Example("Nightly backup")]
    aliases: Annotated[tuple[str, ...], Example(["the backup"])]
    properties: Metadata
    recorded: datetime
    updated: datetime
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    origin: Origin = "user"
    trust: Trust = "trusted"


@dataclass(frozen=True, slots=True)
class Edge:
    """A stored edge; `closed_by` is the id of the edge that ended it.

    Its level is the lowest of all that made it what it is, its evidence included.
    """

    id: StoredId
    graph: Source
    source: Annotated[str, Example("backup")]
    target: Annotated[str, Example("database")]
    type: Annotated[str, Example("depends on")]
    weight: float
    properties: Metadata
    recorded: datetime
    updated: datetime
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    evidence: StoredId | None = None
    closed_by: str | None = None
    origin: Origin = "user"
    trust: Trust = "trusted"


WriteOutcome = Literal["added", "updated", "unchanged"]


@dataclass(frozen=True, slots=True)
class GraphWritten:
    """The outcome of one node or edge; `closed` are the ids of the edges that it ended."""

    id: StoredId
    outcome: WriteOutcome
    closed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EdgeStep:
    """One edge of a path: from `source` over `type` to `target`, against its direction if `backwards`."""

    source: StoredSource
    type: Annotated[str, Example("depends on")]
    target: Annotated[str, Example("database")]
    weight: float
    backwards: bool = False
    trust: Trust = "trusted"


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A node that was reached in `hop` steps; `decay` is the product of the weights on the best path."""

    node: Node
    hop: int
    decay: float
    path: tuple[str, ...]
    steps: tuple[EdgeStep, ...]


@dataclass(frozen=True, slots=True)
class Traversal(Checked):
    """The depth of a traversal, and which edges it follows.

    `at` keeps only nodes and edges that were valid at that instant. `min_trust` keeps only those of that
    trust level or above.
    """

    hops: Annotated[int, Range(0, "max_hops"), "Maximum number of steps."] = 1
    types: Annotated[
        tuple[str, ...],
        Length(0, 1_000),
        "Edge types; none: all.",
        Example(["depends on"]),
    ] = ()
    min_weight: Annotated[float, Range(0, 1), "Lowest weight of an edge."] = 0.0
    direction: Annotated[Direction, "Direction of the edges."] = "both"
    at: Annotated[datetime | None, "Only what was valid at that instant."] = None
    offset: Annotated[int, Range(0, "max_traversal_nodes"), "Number of nodes that are left out first."] = 0
    limit: GraphLimit = 100
    min_trust: LowestTrust | None = None


@dataclass(frozen=True, slots=True)
class NodeHit:
    """A node whose name or alias is in a query as whole words, with its score (0 to 1)."""

    node: Node
    score: float


@dataclass(frozen=True, slots=True)
class NodePage:
    """Nodes by id, and the cursor of the next page."""

    nodes: tuple[Node, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class EdgePage:
    """Edges in order of recording, and the cursor of the next page."""

    edges: tuple[Edge, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class GraphSummary:
    """Numbers of a graph."""

    source: Source
    nodes: int
    edges: int
    types: Annotated[Mapping[str, int], Example({"process": 1})] = field(default_factory=dict)
    relations: Annotated[Mapping[str, int], Example({"depends on": 1})] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GraphState:
    """A graph as of an instant, without edges that lack an end."""

    at: Annotated[datetime, Example("2026-03-02T08:00:00Z")]
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class GraphReceipt:
    """How many nodes and edges were deleted."""

    nodes: int = 0
    edges: int = 0


@dataclass(frozen=True, slots=True)
class EntityCount:
    """An entity that passages mention: its most frequent spelling, and the number of passages."""

    key: Annotated[str, Example("backup")]
    name: Annotated[str, Example("Backup")]
    type: Annotated[str, Example("process")]
    passages: int


@dataclass(frozen=True, slots=True)
class LinkCandidate:
    """A node that a mention may refer to, with the parts of its score (0 to 1)."""

    node: Node
    score: float
    parts: Mapping[str, float]
    uri: Annotated[str, Example("https://www.wikidata.org/entity/Q194274")]


@dataclass(frozen=True, slots=True)
class EntityLink:
    """The node that a mention refers to, if one is likely enough, and all candidates, best first."""

    mention: Mention
    node: Node | None
    candidates: tuple[LinkCandidate, ...]


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """A merge, or its undo: the nodes before, and those after."""

    number: int
    kind: Literal["merge", "split"]
    at: Annotated[datetime, Example("2026-03-02T08:00:00Z")]
    by: PersonName
    before: Annotated[tuple[str, ...], Example(["backup", "backups"])]
    after: Annotated[tuple[str, ...], Example(["backup"])]
    reason: Annotated[str, Example("Both mean the nightly backup.")] = ""
