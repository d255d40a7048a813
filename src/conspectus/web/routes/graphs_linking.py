"""Names in passages, what they mean in a graph, and nodes that are one."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query

from conspectus.model.graph import EntityCount, EntityLink, Mention, Node, NodeEvent
from conspectus.model.records import Collection
from conspectus.web.deps import CollectionName, EngineOf, NamedInQuery, Unhurried
from conspectus.web.graphs import GRAPH, OfGraph
from conspectus.web.openapi import Section, problems
from conspectus.web.schemas.base import INT64, LONGEST_QUESTION, NAME
from conspectus.web.schemas.graphs import (
    FoundAnswer,
    LinkBody,
    LinkingAnswer,
    MergeBody,
    NameCountAnswer,
    NamesBody,
    NameTextBody,
    NodeAnswer,
    NodeEventAnswer,
    ReadAnswer,
    SplitBody,
)
from conspectus.web.schemas.records import CollectionAnswer

router = Section("graphs")
NAMES = "/collections/{collection:path}/names"
OfNode = Annotated[str | None, Query(max_length=LONGEST_QUESTION, description="Only of this node.")]


@router.get(NAMES, response_model=list[NameCountAnswer], responses=problems())
async def list_names(
    collection: CollectionName,
    engine: EngineOf,
    *,
    begins: Annotated[str, Query(max_length=NAME)] = "",
    limit: Annotated[int, Query(ge=-INT64, lt=INT64)] = 100,
    source: NamedInQuery = None,
) -> Sequence[EntityCount]:
    """The names that passages mention, of those that can be seen, the most frequent first."""
    return await engine.names(collection=collection, begins=begins, limit=limit, source=source)


@router.put(NAMES, response_model=CollectionAnswer, responses=problems())
async def keep_names(collection: CollectionName, body: NamesBody, engine: EngineOf) -> Collection:
    """Look through the passages of a collection for names, in the background; or no more."""
    return await engine.keep_names(body.on, collection=collection)


@router.post(f"{NAMES}/settle", response_model=ReadAnswer, responses=problems(), dependencies=[Unhurried])
async def settle_names(collection: CollectionName, engine: EngineOf) -> ReadAnswer:
    """Wait until every passage is looked through for names."""
    return ReadAnswer(read=await engine.settle_names(collection=collection))


@router.post(f"{NAMES}/find", response_model=list[FoundAnswer], responses=problems())
async def find_names(collection: CollectionName, body: NameTextBody, engine: EngineOf) -> Sequence[Mention]:
    """The names in a text, as they are found in passages."""
    return await engine.find_names(body.text, collection=collection)


@router.post(f"{GRAPH}/link", response_model=list[LinkingAnswer], responses=problems())
async def link(of: OfGraph, body: LinkBody, engine: EngineOf) -> Sequence[EntityLink]:
    """Which nodes the names in a text mean, each with its candidates."""
    return await engine.link(body.text, **of.told, mention=body.mention, threshold=body.threshold)


@router.post(f"{GRAPH}/merge", response_model=NodeAnswer, responses=problems())
async def merge_nodes(of: OfGraph, body: MergeBody, engine: EngineOf) -> Node:
    """Make nodes one; it can be undone."""
    return await engine.merge_nodes(body.keep, body.others, **of.told, reason=body.reason)


@router.post(f"{GRAPH}/split", response_model=list[NodeAnswer], responses=problems())
async def split_node(of: OfGraph, body: SplitBody, engine: EngineOf) -> Sequence[Node]:
    """Undo a merge."""
    return await engine.split_node(body.merge, **of.told, reason=body.reason)


@router.get(f"{GRAPH}/history", response_model=list[NodeEventAnswer], responses=problems())
async def node_history(of: OfGraph, engine: EngineOf, *, node: OfNode = None) -> Sequence[NodeEvent]:
    """What was merged and split by hand, in order."""
    return await engine.node_history(node, **of.told)
