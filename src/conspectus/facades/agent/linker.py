"""Entities: they are extracted from texts and linked to nodes, and nodes have URIs."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from conspectus.facades.agent.context_graph import AsyncContextGraph
from conspectus.facades.agent.graph import Graph
from conspectus.facades.agent.graph_items import node_dict
from conspectus.facades.agent.json_values import with_iso_times
from conspectus.facades.agent.parts import AsyncPart, has_own_storage
from conspectus.model.annotations import Range
from conspectus.model.graph import ENTITY, EntityLink, LinkCandidate
from conspectus.text.name_keys import BASE, uri_of

DEFAULT_SIMILARITY_THRESHOLD: Final = 0.8
URI_PROPERTY: Final = "uri"
SAME_AS: Final = "same_as"
MAX_NAMESAKES: Final = 100
"""Maximum number of nodes with the same name that are checked for a URI."""


class AsyncEntityLinker(AsyncPart):
    """Links mentions to nodes by whole names and aliases, never by parts of a name.

    `knowledge_graph` is a graph, or a store to create one in. A mention is linked if its score reaches
    `similarity_threshold` (0 to 1); otherwise only candidates are returned.
    """

    def __init__(
        self,
        knowledge_graph: Any = None,
        *,
        similarity_threshold: float = DEFAULT_SIMILARITY_THRESHOLD,
        base_uri: str = BASE,
    ) -> None:
        Range(0, 1).require("similarity_threshold", similarity_threshold)
        if isinstance(knowledge_graph, Graph):
            self.graph = knowledge_graph
        else:
            self.graph = AsyncContextGraph(knowledge_graph)
        self.storage, self.owns = self.graph.storage, has_own_storage(knowledge_graph)
        self.threshold = similarity_threshold
        self.base_uri = base_uri

    async def assign_uri(self, entity_id: str, text: str | None = None, entity_type: str = ENTITY) -> str:
        """Return the permanent URI of a node; a missing node is created with the name `text`.

        Two nodes with the same name and type have different URIs.
        """
        node = await self.graph.get_node(entity_id)
        if node is None:
            node = {"id": entity_id, "type": entity_type, "name": text or entity_id, "properties": {}}
        stored = node["properties"].get(URI_PROPERTY)
        if isinstance(stored, str):
            return stored
        name = text or node["name"]
        namesakes = [hit["node"] for hit in await self.graph.query(name, MAX_NAMESAKES)]
        used_uris = {other["properties"].get(URI_PROPERTY) for other in namesakes if other["id"] != entity_id}
        uri = uri_of(name, node["type"], base=self.base_uri)
        if uri in used_uris:
            uri = uri_of(name, node["type"], base=self.base_uri, id=entity_id)
        await self.graph.add_nodes([{**node, "properties": {**node["properties"], URI_PROPERTY: uri}}])
        return uri

    async def link(self, text: str) -> list[dict[str, Any]]:
        """Return the mentions of a text with position, linked node (if any) and candidates."""
        return [self._link_dict(link) for link in await self._links(text)]

    async def find_similar(self, name: str, limit: int = 10) -> list[dict[str, Any]]:
        """Return the nodes that a name may refer to, best first, with the parts of their scores."""
        links = await self._links(name, mention=(0, len(name)))
        candidates = links[0].candidates[:limit] if links else ()
        return [self._candidate_dict(candidate) for candidate in candidates]

    async def link_entities(
        self, first: str, second: str, link_type: str = SAME_AS, confidence: float = 1.0
    ) -> int:
        """Connect two nodes in both directions and return the number of new or changed edges."""
        both = ((first, second), (second, first))
        return await self.graph.add_edges(
            {"source_id": source, "target_id": target, "type": link_type, "weight": confidence}
            for source, target in both
        )

    async def merge(self, keep: str, others: Sequence[str], reason: str = "") -> dict[str, Any]:
        """Merge nodes into one: it gets their names as aliases, and their edges."""
        node = await self.graph.run(
            lambda engine: engine.graph.merge_nodes(keep, list(others), **self.graph.address, reason=reason)
        )
        return node_dict(node)

    async def split(self, merge: int, reason: str = "") -> list[dict[str, Any]]:
        """Undo a merge by its number in `history` and return the restored nodes."""
        nodes = await self.graph.run(
            lambda engine: engine.graph.undo_merge(merge, **self.graph.address, reason=reason)
        )
        return [node_dict(node) for node in nodes]

    async def history(self, node_id: str | None = None) -> list[dict[str, Any]]:
        """Return merges and splits in order, all or those of one node."""
        events = await self.graph.run(lambda engine: engine.graph.list_merges(node_id, **self.graph.address))
        return [with_iso_times(asdict(event)) for event in events]

    async def _links(self, text: str, mention: tuple[int, int] | None = None) -> Sequence[EntityLink]:
        options = {**self.graph.address, "mention": mention, "min_score": self.threshold}
        return await self.graph.run(lambda engine: engine.graph.link_entities(text, **options))

    def _link_dict(self, link: EntityLink) -> dict[str, Any]:
        mention = link.mention
        node = None if link.node is None else node_dict(link.node)
        meant = next((candidate for candidate in link.candidates if candidate.node == link.node), None)
        return {
            "text": mention.text,
            "start": mention.start,
            "end": mention.end,
            "type": mention.type,
            "node": node,
            "uri": uri_of(mention.text, mention.type, base=self.base_uri)
            if meant is None
            else self._uri_of(meant),
            "candidates": [self._candidate_dict(candidate) for candidate in link.candidates],
        }

    def _candidate_dict(self, candidate: LinkCandidate) -> dict[str, Any]:
        return {
            "node": node_dict(candidate.node),
            "score": candidate.score,
            "parts": dict(candidate.parts),
            "uri": self._uri_of(candidate),
        }

    def _uri_of(self, candidate: LinkCandidate) -> str:
        stored = candidate.node.properties.get(URI_PROPERTY)
        if isinstance(stored, str):
            return stored
        node = candidate.node
        return uri_of(node.name, node.type, base=self.base_uri, id=node.id)
