"""Entities and relations of memories in the graph of an agent's context."""

from collections.abc import Iterable, Sequence
from typing import Final

from conspectus.engine.any_engine import AnyEngine
from conspectus.facades.agent.graph import Graph
from conspectus.facades.agent.memory_items import time_of
from conspectus.graph.node_mentions import NodeMention, node_mentions, split_for_linking
from conspectus.graph.relations import relations_of
from conspectus.model.memory import Memory

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


async def remove_unused_entities(graph: Graph, nodes: Iterable[str]) -> int:
    """Remove those of these nodes that were extracted and have no edge; return their number."""
    unused = []
    for name in nodes:
        node = await graph.get_node(name)
        if node is not None and node["properties"].get(EXTRACTED) is True and not await graph.get_edges(name):
            unused.append(name)
    return await graph.remove_nodes(unused) if unused else 0
