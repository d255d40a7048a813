"""Entities and relations of memories in the graph of an agent's context."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from conspectus.engine.any_engine import AnyEngine
from conspectus.facades.agent.arguments import Entity
from conspectus.facades.agent.graph import Graph
from conspectus.facades.agent.memory_items import time_of
from conspectus.graph.node_mentions import NodeMention, node_mentions, split_for_linking
from conspectus.graph.relations import relations_of
from conspectus.model.memory import Memory
from conspectus.text.name_keys import key_of

END_KEYS: Final = frozenset({"source_id", "target_id", "source", "target"})
EXTRACTED: Final = "extracted"
"""Property of nodes that exist only because a memory mentions them."""


async def find_mentions(graph: Graph, text: str) -> list[NodeMention]:
    """Return the entity mentions of a text, each with its node in the graph."""

    async def link(engine: AnyEngine) -> list[NodeMention]:
        return node_mentions(
            [
                (piece, await engine.graph.link_entities(piece, **graph.address))
                for piece in split_for_linking(text)
            ]
        )

    return await graph.run(link)


async def add_entities(
    graph: Graph, mentions: Sequence[NodeMention], memory: Memory, *, with_edges: bool
) -> tuple[int, int]:
    """Add the entities of a memory to the graph, with stated relations or else co-occurrence edges.

    Returns the numbers of new nodes and new edges.
    """
    missing = {mention.node: mention for mention in mentions if not mention.exists}
    nodes = [
        {"id": node, "type": mention.type, "name": mention.name, "properties": {EXTRACTED: True}}
        for node, mention in missing.items()
        if await graph.get_node(node) is None
    ]
    edges = [
        {
            "source_id": relation.source,
            "target_id": relation.target,
            "type": relation.type,
            "weight": relation.weight,
            "valid_from": time_of(memory),
            "evidence": memory.id,
        }
        for relation in (relations_of(memory.text, mentions) if with_edges else ())
    ]
    new_nodes = await graph.add_nodes(nodes) if nodes else 0
    return new_nodes, await graph.add_edges(edges) if edges else 0


async def add_relationships(
    graph: Graph,
    relationships: Sequence[Mapping[str, Any]],
    memory: Memory,
    *,
    entities: Sequence[Entity],
) -> int:
    """Add the stated relationships of a memory, and nodes that they name; return the number of new edges.

    An end is the id of a node, or the name of one of the entities.
    """
    typed = [{"name": entity} if isinstance(entity, str) else dict(entity) for entity in entities]
    ids = {_name_of(entity): node_id(entity) for entity in typed}
    edges = []
    for relationship in relationships:
        edge = {**relationship, "evidence": memory.id}
        for end in END_KEYS & edge.keys():
            edge[end] = ids.get(edge[end], edge[end])
        edges.append(edge)
    nodes = [
        {"id": node_id(entity), "type": entity.get("type"), "name": _name_of(entity)}
        for entity in typed
        if await graph.get_node(node_id(entity)) is None
    ]
    if nodes:
        await graph.add_nodes(nodes)
    return await graph.add_edges(edges)


def node_id(entity: Mapping[str, Any]) -> str:
    """Return the id of the node of an entity: its own, or else the key of its name."""
    return str(entity["id"]) if entity.get("id") else key_of(_name_of(entity))


def _name_of(entity: Mapping[str, Any]) -> str:
    return str(entity.get("name") or entity.get("text") or entity.get("id") or "")


async def remove_unused_entities(graph: Graph, nodes: Iterable[str]) -> int:
    """Remove those of these nodes that were extracted and have no edge; return their number."""
    unused = []
    for name in nodes:
        node = await graph.get_node(name)
        if node is not None and node["properties"].get(EXTRACTED) is True and not await graph.get_edges(name):
            unused.append(name)
    return await graph.remove_nodes(unused) if unused else 0
