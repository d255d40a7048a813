"""A graph of entities: nodes and dated, weighted edges, and what is asked of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

from conspectus.model.checks import Checked
from conspectus.model.records import Metadata, Source

Direction = Literal["out", "in", "both"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
GraphForm = Literal["json", "graphml", "svg"]
GRAPH_FORMS: tuple[GraphForm, ...] = get_args(GraphForm)
RELATED = "related_to"
ENTITY = "entity"
MENTIONED_WITH = "mentioned_with"
"""The type of edges that are not stored: two names that are in the same passage."""


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
    """How far the graph has a say in a search.

    `alpha` (0 to 1) is its weight: 0 is vectors and words alone, 1 the graph alone. `hops` (0 to 5) is how
    far it is walked. `graphs` are ids or names of graphs that may be walked beside what is in the same
    passages (None: every graph of the collection that can be seen; empty: none).
    """

    alpha: float = 0.5
    hops: int = 2
    graphs: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class NewNode(Checked):
    """A node as it is given; `name` is what texts call it (None: its id), `aliases` what else they do.

    It is there from `valid_from` until `valid_until` (None: open; both ends included). Adding a node of an
    id that is stored changes it.
    """

    id: str
    type: str = ENTITY
    name: str | None = None
    aliases: tuple[str, ...] = ()
    properties: Mapping[str, object] = field(default_factory=dict)
    valid_from: datetime | str | None = None
    valid_until: datetime | str | None = None


@dataclass(frozen=True, slots=True)
class NewEdge(Checked):
    """An edge as it is given, from `source` to `target`, with a weight above 0 and up to 1.

    An edge of the same source, target, type and `valid_from` that is stored is changed. With `single` it ends
    the open edges of the same source and type that lead elsewhere. `evidence` is the document that says so.
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


@dataclass(frozen=True, slots=True)
class Node:
    """A stored node of a graph. `recorded` and `updated` are when we learnt of it."""

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


@dataclass(frozen=True, slots=True)
class Edge:
    """A stored edge; `closed_by` is the id of the edge that ended it."""

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


WriteOutcome = Literal["added", "updated", "unchanged"]


@dataclass(frozen=True, slots=True)
class GraphWritten:
    """What became of one node or edge; `closed` are the ids of the edges that it ended."""

    id: str
    outcome: WriteOutcome
    closed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EdgeStep:
    """One edge of a way: from `source` over `type` to `target`, against its direction if `backwards`."""

    source: str
    type: str
    target: str
    weight: float
    backwards: bool = False


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A node that was reached in `hop` steps; `decay` is the product of the weights on the best way there."""

    node: Node
    hop: int
    decay: float
    path: tuple[str, ...]
    steps: tuple[EdgeStep, ...]


@dataclass(frozen=True, slots=True)
class Traversal(Checked):
    """How far to walk, and over which edges; `at` leaves out what was not there at that instant."""

    hops: int = 1
    types: tuple[str, ...] = ()
    min_weight: float = 0.0
    direction: Direction = "both"
    at: datetime | None = None
    offset: int = 0
    limit: int = 100


@dataclass(frozen=True, slots=True)
class NodeHit:
    """A node that a question is about, by its whole words, and how well (0 to 1)."""

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
    """A graph in numbers."""

    source: Source
    nodes: int
    edges: int
    types: Mapping[str, int] = field(default_factory=dict)
    relations: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GraphState:
    """What a graph was at an instant; edges that lost an end are left out."""

    at: datetime
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class GraphReceipt:
    """How many nodes and edges are gone."""

    nodes: int = 0
    edges: int = 0


@dataclass(frozen=True, slots=True)
class Mention:
    """A name in a text: characters [start, end), what kind of thing it seems to be, and how sure that is.

    `key` is the name as names are compared: the same for every spelling that differs in case, accents, a
    leading article or a possessive only.
    """

    start: int
    end: int
    text: str
    key: str
    type: str
    score: float = 1.0


@dataclass(frozen=True, slots=True)
class EntityCount:
    """A name that passages mention: how it is spelt most, and in how many passages it stands."""

    key: str
    name: str
    type: str
    passages: int


@dataclass(frozen=True, slots=True)
class LinkCandidate:
    """A node that a mention may mean, with the parts that its score (0 to 1) is made of."""

    node: Node
    score: float
    parts: Mapping[str, float]
    uri: str


@dataclass(frozen=True, slots=True)
class EntityLink:
    """What a mention means: the node, if one is likely enough, and all candidates, best first."""

    mention: Mention
    node: Node | None
    candidates: tuple[LinkCandidate, ...]


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """A merge or a split that was made by hand: which nodes there were before, and which after."""

    number: int
    kind: Literal["merge", "split"]
    at: datetime
    by: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    reason: str = ""
