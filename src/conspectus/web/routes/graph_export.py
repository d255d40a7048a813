"""Graphs: nodes, edges, and ways between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Query, Response
from pydantic import AwareDatetime

from conspectus.model.graph import (
    Direction,
    EdgePage,
    GraphForm,
    GraphReceipt,
    GraphState,
    GraphSummary,
    GraphWritten,
    Neighbor,
    Node,
    NodeHit,
    NodePage,
    Traversal,
)
from conspectus.model.records import Source
from conspectus.web.deps import After, EngineOf, Limit, Unhurried
from conspectus.web.graphs import (
    GRAPH,
    GRAPHS,
    MEDIA_TYPES,
    At,
    InCollection,
    NodeInQuery,
    OfGraph,
    exported,
)
from conspectus.web.openapi import Responses, Section, problems
from conspectus.web.schemas.base import INT64, LONGEST_QUESTION, NAME
from conspectus.web.schemas.graphs import (
    EdgePageAnswer,
    EdgesBody,
    GraphBody,
    GraphReceiptAnswer,
    GraphStateAnswer,
    GraphSummaryAnswer,
    GraphWrittenAnswer,
    NeighbourAnswer,
    NodeAnswer,
    NodeHitAnswer,
    NodePageAnswer,
    NodeQuestionBody,
    NodesBody,
    PartsBody,
)
from conspectus.web.schemas.records import SourceAnswer

router = Section("graphs")
MOST_TYPES = 100
Whole = Annotated[int, Query(ge=-INT64, lt=INT64)]
FORMS: Responses = {200: {"content": {kind: {} for kind in MEDIA_TYPES.values()}}, **problems()}


@dataclass(frozen=True, slots=True)
class TraversalQuery:
    """How far to walk, and over which edges."""

    hops: Annotated[int, Query(ge=-INT64, lt=INT64, description="How far.")] = 1
    types: Annotated[
        list[Annotated[str, Query(max_length=NAME)]] | None,
        Query(max_length=MOST_TYPES, description="Over edges of these types; without any, over all."),
    ] = None
    min_weight: Annotated[float, Query(allow_inf_nan=False, description="Over edges of this weight on.")] = (
        0.0
    )
    direction: Annotated[Direction, Query()] = "both"
    at: At = None
    skip: Whole = 0
    limit: Whole = 100

    def walk(self) -> Traversal:
        """As the engine takes it."""
        return Traversal(
            self.hops,
            tuple(self.types or ()),
            self.min_weight,
            self.direction,
            self.at,
            self.skip,
            self.limit,
        )


@router.post(GRAPHS, response_model=SourceAnswer, responses=problems())
async def get_or_make_graph(body: GraphBody, engine: EngineOf) -> Source:
    """The graph of that name, made if it is new."""
    return await engine.graph(body.name, collection=body.collection)


@router.get(GRAPHS, response_model=list[GraphSummaryAnswer], responses=problems())
async def list_graphs(engine: EngineOf, *, collection: InCollection = "default") -> Sequence[GraphSummary]:
    """The graphs of a collection that can be seen, in numbers."""
    return await engine.graphs(collection=collection)


@router.post(
    f"{GRAPH}/nodes",
    response_model=list[GraphWrittenAnswer],
    status_code=201,
    responses=problems(),
    dependencies=[Unhurried],
)
async def add_nodes(of: OfGraph, body: NodesBody, engine: EngineOf) -> Sequence[GraphWritten]:
    """Add nodes, or change those of a stored id; the graph is made if it is new."""
    return await engine.add_nodes([each.node() for each in body.nodes], **of.told)


@router.get(f"{GRAPH}/nodes", response_model=NodePageAnswer, responses=problems())
async def list_nodes(
    of: OfGraph,
    engine: EngineOf,
    *,
    kind: Annotated[str | None, Query(alias="type", max_length=NAME)] = None,
    after: After = None,
    limit: Limit = 100,
) -> NodePage:
    """A page of the nodes of a graph, by id."""
    return await engine.nodes(**of.told, type=kind, after=after, limit=limit)


@router.post(
    f"{GRAPH}/nodes/delete",
    response_model=GraphReceiptAnswer,
    responses=problems(),
    dependencies=[Unhurried],
)
async def delete_nodes(of: OfGraph, body: PartsBody, engine: EngineOf) -> GraphReceipt:
    """Delete nodes by their ids, with their edges."""
    return await engine.delete_nodes(body.ids, **of.told)


@router.post(
    f"{GRAPH}/edges",
    response_model=list[GraphWrittenAnswer],
    status_code=201,
    responses=problems(),
    dependencies=[Unhurried],
)
async def add_edges(of: OfGraph, body: EdgesBody, engine: EngineOf) -> Sequence[GraphWritten]:
    """Add edges, or change those that are stored; where one leads nowhere, none is added."""
    return await engine.add_edges([each.edge() for each in body.edges], **of.told)


@router.get(f"{GRAPH}/edges", response_model=EdgePageAnswer, responses=problems())
async def list_edges(
    of: OfGraph,
    engine: EngineOf,
    *,
    node: Annotated[str | None, Query(max_length=LONGEST_QUESTION, description="Only its edges.")] = None,
    after: After = None,
    limit: Limit = 100,
) -> EdgePage:
    """A page of the edges of a graph, in order of recording."""
    return await engine.edges(**of.told, node=node, after=after, limit=limit)


@router.post(
    f"{GRAPH}/edges/delete",
    response_model=GraphReceiptAnswer,
    responses=problems(),
    dependencies=[Unhurried],
)
async def delete_edges(of: OfGraph, body: PartsBody, engine: EngineOf) -> GraphReceipt:
    """Delete edges by their ids."""
    return await engine.delete_edges(body.ids, **of.told)


@router.get(f"{GRAPH}/node", response_model=NodeAnswer, responses=problems())
async def get_node(of: OfGraph, node: NodeInQuery, engine: EngineOf) -> Node:
    """The node of that id."""
    return await engine.node(node, **of.told)


@router.get(f"{GRAPH}/neighbours", response_model=list[NeighbourAnswer], responses=problems())
async def neighbours(
    of: OfGraph, node: NodeInQuery, walking: Annotated[TraversalQuery, Depends()], engine: EngineOf
) -> Sequence[Neighbor]:
    """What a node is connected with, near first, each with the best way there."""
    return await engine.neighbours(node, walking.walk(), **of.told)


@router.post(f"{GRAPH}/find", response_model=list[NodeHitAnswer], responses=problems())
async def find_nodes(of: OfGraph, body: NodeQuestionBody, engine: EngineOf) -> Sequence[NodeHit]:
    """The nodes that a question is about, by whole words, best first."""
    return await engine.find_nodes(body.query, **of.told, limit=body.limit)


@router.get(f"{GRAPH}/at", response_model=GraphStateAnswer, responses=problems())
async def graph_at(
    of: OfGraph, at: Annotated[AwareDatetime, Query(description="An instant.")], engine: EngineOf
) -> GraphState:
    """What a graph was at an instant."""
    return await engine.graph_at(at, **of.told)


@router.get(f"{GRAPH}/export", response_class=Response, responses=FORMS, dependencies=[Unhurried])
async def export_graph(of: OfGraph, engine: EngineOf, *, form: GraphForm = "json", at: At = None) -> Response:
    """A graph as JSON, as GraphML, or as a picture (SVG)."""
    return exported(await engine.export_graph(form, **of.told, at=at), form)


@router.delete(GRAPH, response_model=GraphReceiptAnswer, responses=problems(), dependencies=[Unhurried])
async def delete_graph(of: OfGraph, engine: EngineOf) -> GraphReceipt:
    """Delete a graph with everything in it."""
    return await engine.delete_graph(of.graph, collection=of.collection)
