"""Graphs: nodes, edges, ways between them, names in texts and what those mean."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from conspectus.model.graph import ENTITY, RELATED, Fact, GraphExpansion, NewEdge, NewNode
from conspectus.web.schemas.base import (
    LONGEST_QUESTION,
    Count,
    Finite,
    Int64,
    JsonObject,
    Name,
    Question,
    RequestModel,
    ResponseModel,
    Share,
    Span,
)
from conspectus.web.schemas.records import Label, SourceAnswer

MOST_PARTS = 1_000_000
"""Nodes or edges of a request, as far as reading goes; the settings have the word on how many are taken."""
MOST_ALIASES = 10_000
MOST_HOPS = 1_000
MOST_GRAPHS = 1_000
LONGEST_TIME = 100
NodeId = Annotated[str, Field(max_length=LONGEST_QUESTION, examples=["django"])]
Moment = Annotated[str, Field(max_length=LONGEST_TIME, examples=["2026-03-02T08:00:00Z"])]
Reason = Annotated[str, Field(max_length=LONGEST_QUESTION, description="Why, for the history.")]


class GraphBody(RequestModel):
    """A graph to get, or to make if it is new."""

    name: Name = Field("default", examples=["people"])
    collection: Name = "default"


class GraphAskBody(RequestModel):
    """How far the graph has a say: `alpha` 0 is vectors and words alone, 1 the graph alone."""

    alpha: Share = GraphExpansion().alpha
    hops: int = Field(GraphExpansion().hops, ge=0, le=MOST_HOPS, description="How far it is walked.")
    graphs: list[Name] | None = Field(
        None, max_length=MOST_GRAPHS, description="Graphs that may be walked; null: all that can be seen."
    )

    def asked(self) -> GraphExpansion:
        """As the engine takes it."""
        return GraphExpansion(self.alpha, self.hops, None if self.graphs is None else tuple(self.graphs))


class FactBody(RequestModel):
    """Subject, relation, object; with `single` the subject has one object at a time."""

    subject: Label = Field(examples=["Ann"])
    predicate: Label = Field(examples=["lives in"])
    object: Label = Field(examples=["Köln"])
    single: bool = True

    def fact(self) -> Fact:
        """As the engine takes it."""
        return Fact(**self.model_dump())


class NodeBody(RequestModel):
    """A node; one of an id that is stored is changed."""

    id: NodeId
    type: Label = ENTITY
    name: Label | None = Field(None, description="What texts call it; by default its id.")
    aliases: list[Label] = Field(default=[], max_length=MOST_ALIASES)
    properties: JsonObject = Field(default={})
    valid_from: Moment | None = None
    valid_until: Moment | None = None

    def node(self) -> NewNode:
        """As the engine takes it."""
        return NewNode(**{**self.model_dump(), "aliases": tuple(self.aliases)})


class NodesBody(RequestModel):
    """Nodes to store, in order."""

    nodes: list[NodeBody] = Field(max_length=MOST_PARTS)


class EdgeBody(RequestModel):
    """An edge; one of the same ends, type and `valid_from` that is stored is changed."""

    source: NodeId
    target: NodeId
    type: Label = RELATED
    weight: Finite = Field(1.0, description="Above 0 and up to 1.")
    properties: JsonObject = Field(default={})
    valid_from: Moment | None = None
    valid_until: Moment | None = None
    single: bool = Field(False, description="It ends the open edges of its source and type elsewhere.")
    evidence: Label | None = Field(None, description="The document that says so.")

    def edge(self) -> NewEdge:
        """As the engine takes it."""
        return NewEdge(**self.model_dump())


class EdgesBody(RequestModel):
    """Edges to store, in order; all of them or none."""

    edges: list[EdgeBody] = Field(max_length=MOST_PARTS)


class PartsBody(RequestModel):
    """Nodes or edges by their ids; those that are unknown count as nothing."""

    ids: list[NodeId] = Field(max_length=MOST_PARTS)


class NodeQuestionBody(RequestModel):
    """What nodes are to be about."""

    query: Question = Field(examples=["python web framework"])
    limit: Int64 = Field(10, description="Most nodes.")


class LinkBody(RequestModel):
    """A text whose names are to be understood, or one name in it: characters [start, end)."""

    text: Question
    mention: Span | None = None
    threshold: Finite | None = Field(None, description="How sure (0 to 1) a node has to be.")


class MergeBody(RequestModel):
    """Nodes that are one."""

    keep: NodeId
    others: list[NodeId] = Field(max_length=MOST_PARTS)
    reason: Reason = ""


class SplitBody(RequestModel):
    """A merge, by its number in the history, that is to be undone."""

    merge: Int64
    reason: Reason = ""


class NamesBody(RequestModel):
    """Whether passages are looked through for names."""

    on: bool = True


class NameTextBody(RequestModel):
    """A text to look through."""

    text: Question


class GraphSummaryAnswer(ResponseModel):
    """A graph in numbers; nodes by type, edges by relation."""

    source: SourceAnswer
    nodes: Count
    edges: Count
    types: dict[str, Count]
    relations: dict[str, Count]


class GraphReceiptAnswer(ResponseModel):
    """How many nodes and edges are gone."""

    nodes: Count
    edges: Count


class GraphWrittenAnswer(ResponseModel):
    """What became of one node or edge; `closed` are the ids of the edges that it ended."""

    id: str
    outcome: Literal["added", "updated", "unchanged"]
    closed: list[str]


class NodeAnswer(ResponseModel):
    """A node of a graph; `recorded` and `updated` are when it became known."""

    id: str
    graph: SourceAnswer
    type: str
    name: str
    aliases: list[str]
    properties: JsonObject
    recorded: datetime
    updated: datetime
    valid_from: datetime | None
    valid_until: datetime | None


class EdgeAnswer(ResponseModel):
    """An edge of a graph; `closed_by` is the id of the edge that ended it."""

    id: str
    graph: SourceAnswer
    source: str
    target: str
    type: str
    weight: float
    properties: JsonObject
    recorded: datetime
    updated: datetime
    valid_from: datetime | None
    valid_until: datetime | None
    evidence: str | None
    closed_by: str | None


class NodePageAnswer(ResponseModel):
    """Nodes by id; `next` is the cursor of the page after this one."""

    nodes: list[NodeAnswer]
    next: str | None


class EdgePageAnswer(ResponseModel):
    """Edges in order of recording; `next` is the cursor of the page after this one."""

    edges: list[EdgeAnswer]
    next: str | None


class StepAnswer(ResponseModel):
    """One edge of a way, against its direction if `backwards`."""

    source: str
    type: str
    target: str
    weight: float
    backwards: bool


class NeighbourAnswer(ResponseModel):
    """A node that was reached in `hop` steps; `decay` is the product of the weights on the best way."""

    node: NodeAnswer
    hop: Count
    decay: float
    path: list[str]
    steps: list[StepAnswer]


class NodeHitAnswer(ResponseModel):
    """A node that a question is about, and how well."""

    node: NodeAnswer
    score: float


class GraphStateAnswer(ResponseModel):
    """What a graph was at an instant."""

    at: datetime
    nodes: list[NodeAnswer]
    edges: list[EdgeAnswer]


class FoundAnswer(ResponseModel):
    """A name in a text: characters [start, end), its key, and what kind of thing it seems to be."""

    start: Count
    end: Count
    text: str
    key: str
    type: str
    score: float


class NameCountAnswer(ResponseModel):
    """A name that passages mention, as it is spelt most, and in how many passages it stands."""

    key: str
    name: str
    type: str
    passages: Count


class ReadAnswer(ResponseModel):
    """How many passages were looked through."""

    read: Count


class LinkCandidateAnswer(ResponseModel):
    """A node that a name may mean; `score` is made of `parts`."""

    node: NodeAnswer
    score: float
    parts: dict[str, float]
    uri: str


class LinkingAnswer(ResponseModel):
    """What a name means: the node, if one is likely enough, and all candidates, best first."""

    mention: FoundAnswer
    node: NodeAnswer | None
    candidates: list[LinkCandidateAnswer]


class NodeEventAnswer(ResponseModel):
    """A merge or a split: which nodes there were before, and which after."""

    number: int
    kind: Literal["merge", "split"]
    at: datetime
    by: str
    before: list[str]
    after: list[str]
    reason: str
