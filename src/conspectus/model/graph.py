"""A graph of entities: nodes and dated, weighted edges, and results of reads."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Literal, get_args

from conspectus.deferred import dataclass
from conspectus.model.checks import Checked
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
    """Subject, relation, object. With `single` the subject has one object at a time.

    Then a fact with another object, true from later on, ends the one before it.
    """

    subject: str
    predicate: str
    object: str
    single: bool = True


@dataclass(frozen=True, slots=True)
class GraphExpansion(Checked):
    """How a search uses graphs.

    `alpha` (0 to 1) is the weight of graph scores: 0 is vector and keyword search alone, 1 graphs alone.
    `hops` (0 to 5) is the depth of the traversal. `graphs` are ids or names of graphs that are traversed
    besides entities of the same passages (None: all graphs of the collection that you may read; empty: none).
    """

    alpha: float = 0.5
    hops: int = 2
    graphs: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class NewNode(Checked):
    """A node to be added; `name` is its name in texts (None: its id), `aliases` are other names.

    It exists from `valid_from` until `valid_until` (None: open; both inclusive). Adding a node with a stored
    id changes the stored node. `origin` and `trust` lower its level (None: that of the writer).
    """

    id: str
    type: str = ENTITY
    name: str | None = None
    aliases: tuple[str, ...] = ()
    properties: Mapping[str, object] = field(default_factory=dict)
    valid_from: datetime | str | None = None
    valid_until: datetime | str | None = None
    origin: Origin | None = None
    trust: MinTrust | None = None


@dataclass(frozen=True, slots=True)
class NewEdge(Checked):
    """An edge to be added, from `source` to `target`, with a weight above 0 and up to 1.

    A stored edge of the same source, target, type and `valid_from` is changed. With `single` it ends the open
    edges of the same source and type to other targets. `evidence` is the document that states it, whose level
    it has at most. `origin` and `trust` lower its level (None: that of the writer).
    """

    source: str
    target: str
    type: str = RELATED
    weight: float = 1.0
    properties: Mapping[str, object] = field(default_factory=dict)
    valid_from: datetime | str | None = None
    valid_until: datetime | str | None = None
    single: bool = False
    evidence: str | None = None
    origin: Origin | None = None
    trust: MinTrust | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """A stored node of a graph. `recorded` and `updated` are the times of its first and last write.

    Its level is the lowest of all that made it what it is.
    """

    id: str
    graph: Source
    type: str
    name: str
    aliases: tuple[str, ...]
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

    id: str
    graph: Source
    source: str
    target: str
    type: str
    weight: float
    properties: Metadata
    recorded: datetime
    updated: datetime
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    evidence: str | None = None
    closed_by: str | None = None
    origin: Origin = "user"
    trust: Trust = "trusted"


WriteOutcome = Literal["added", "updated", "unchanged"]


@dataclass(frozen=True, slots=True)
class GraphWritten:
    """The outcome of one node or edge; `closed` are the ids of the edges that it ended."""

    id: str
    outcome: WriteOutcome
    closed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EdgeStep:
    """One edge of a path: from `source` over `type` to `target`, against its direction if `backwards`."""

    source: str
    type: str
    target: str
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
    """The depth of a traversal, and its edges; `at` leaves out what was not valid at that instant.

    `min_trust` leaves out nodes and edges below that level.
    """

    hops: int = 1
    types: tuple[str, ...] = ()
    min_weight: float = 0.0
    direction: Direction = "both"
    at: datetime | None = None
    offset: int = 0
    limit: int = 100
    min_trust: MinTrust | None = None


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
    types: Mapping[str, int] = field(default_factory=dict)
    relations: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GraphState:
    """A graph as of an instant, without edges that lack an end."""

    at: datetime
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

    key: str
    name: str
    type: str
    passages: int


@dataclass(frozen=True, slots=True)
class LinkCandidate:
    """A node that a mention may refer to, with the parts of its score (0 to 1)."""

    node: Node
    score: float
    parts: Mapping[str, float]
    uri: str


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
    at: datetime
    by: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    reason: str = ""
