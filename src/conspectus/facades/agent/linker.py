"""Names in texts, linked to the one node that they mean, with an address for each."""

from collections.abc import Sequence
from typing import Any, Final

from conspectus.errors import require_range
from conspectus.facades.agent.graph import AsyncContextGraph, Graph
from conspectus.facades.agent.mapping import shown_node
from conspectus.facades.agent.session import AsyncPart, is_new
from conspectus.graph.name_keys import BASE, uri_of
from conspectus.model.graph import ENTITY, EntityLink, LinkCandidate

THRESHOLD: Final = 0.8
URI: Final = "uri"
SAME: Final = "same_as"
SAME_NAME: Final = 100
"""So many nodes of a name are looked at for the same address."""


class AsyncEntityLinker(AsyncPart):
    """What names mean in a graph: whole names and aliases decide, never a part of one.

    `knowledge_graph` is a graph, or what one can be made in. A name means a node from a likeness of
    `similarity_threshold` on; below it there are candidates only.
    """

    def __init__(
        self, knowledge_graph: Any = None, *, similarity_threshold: float = THRESHOLD, base_uri: str = BASE
    ) -> None:
        require_range("similarity_threshold", similarity_threshold, 0, 1)
        given = knowledge_graph
        self.graph = given if isinstance(given, Graph) else AsyncContextGraph(given)
        self.desk, self.owns = self.graph.desk, is_new(given)
        self.threshold = similarity_threshold
        self.base_uri = base_uri

    async def assign_uri(self, entity_id: str, text: str | None = None, entity_type: str = ENTITY) -> str:
        """The address of a node, which keeps it; one that is not there is made, with `text` as its name.

        Of two nodes with the same name and type each has its own.
        """
        node = await self.graph.get_node(entity_id)
        if node is None:
            node = {"id": entity_id, "type": entity_type, "name": text or entity_id, "properties": {}}
        stored = node["properties"].get(URI)
        if isinstance(stored, str):
            return stored
        name = text or node["name"]
        named = [each["node"] for each in await self.graph.query(name, SAME_NAME)]
        taken = {each["properties"].get(URI) for each in named if each["id"] != entity_id}
        uri = uri_of(name, node["type"], base=self.base_uri)
        if uri in taken:
            uri = uri_of(name, node["type"], base=self.base_uri, id=entity_id)
        await self.graph.add_nodes([{**node, "properties": {**node["properties"], URI: uri}}])
        return uri

    async def link(self, text: str) -> list[dict[str, Any]]:
        """The names in a text: for each its place, the node that it means, if any, and the candidates."""
        found = await self.graph.run(
            lambda engine: engine.graph.link_entities(
                text,
                **self.graph.place,
                min_score=self.threshold,
            )
        )
        return [self._linked(each) for each in found]

    async def find_similar(self, name: str, limit: int = 10) -> list[dict[str, Any]]:
        """The nodes that a name may mean, best first, with what speaks for each."""
        found = await self.graph.run(
            lambda engine: engine.graph.link_entities(
                name,
                **self.graph.place,
                mention=(0, len(name)),
                min_score=self.threshold,
            )
        )
        return [self._candidate(each) for each in (found[0].candidates if found else ())][:limit]

    async def link_entities(
        self, first: str, second: str, link_type: str = SAME, confidence: float = 1.0
    ) -> int:
        """Say that two nodes have to do with each other, both ways; how many edges are new or changed."""
        both = ((first, second), (second, first))
        return await self.graph.add_edges(
            {"source_id": source, "target_id": target, "type": link_type, "weight": confidence}
            for source, target in both
        )

    async def merge(self, keep: str, others: Sequence[str], reason: str = "") -> dict[str, Any]:
        """Make several nodes one, by hand: names become aliases, edges are those of the one that is kept."""
        found = await self.graph.run(
            lambda engine: engine.graph.merge_nodes(
                keep,
                list(others),
                **self.graph.place,
                reason=reason,
            )
        )
        return shown_node(found)

    async def split(self, merge: int, reason: str = "") -> list[dict[str, Any]]:
        """Undo a merge, by the number that `history` gives, and return the nodes as they are again."""
        found = await self.graph.run(
            lambda engine: engine.graph.undo_merge(merge, **self.graph.place, reason=reason)
        )
        return [shown_node(each) for each in found]

    async def history(self, node_id: str | None = None) -> list[dict[str, Any]]:
        """Merges and splits in order, all or those of a node."""
        found = await self.graph.run(lambda engine: engine.graph.list_merges(node_id, **self.graph.place))
        return [{name: getattr(each, name) for name in each.__dataclass_fields__} for each in found]

    def _linked(self, linking: EntityLink) -> dict[str, Any]:
        mention = linking.mention
        node = None if linking.node is None else shown_node(linking.node)
        meant = next((each for each in linking.candidates if each.node == linking.node), None)
        return {
            "text": mention.text,
            "start": mention.start,
            "end": mention.end,
            "type": mention.type,
            "node": node,
            "uri": uri_of(mention.text, mention.type, base=self.base_uri)
            if meant is None
            else self._uri(meant),
            "candidates": [self._candidate(each) for each in linking.candidates],
        }

    def _candidate(self, candidate: LinkCandidate) -> dict[str, Any]:
        return {
            "node": shown_node(candidate.node),
            "score": candidate.score,
            "parts": dict(candidate.parts),
            "uri": self._uri(candidate),
        }

    def _uri(self, candidate: LinkCandidate) -> str:
        stored = candidate.node.properties.get(URI)
        if isinstance(stored, str):
            return stored
        node = candidate.node
        return uri_of(node.name, node.type, base=self.base_uri, id=node.id)
