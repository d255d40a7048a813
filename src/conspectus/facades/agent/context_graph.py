"""A knowledge graph whose nodes can link to nodes of other graphs."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from conspectus.errors import InvalidInput
from conspectus.facades.agent.graph import Graph
from conspectus.model.memory import MEMORY
from conspectus.text.hashing import stable_id

DEFAULT_LINK_TYPE: Final = "CROSS_GRAPH"


class AsyncContextGraph(Graph):
    """A graph of dictionaries that can also link to nodes of other graphs.

    A link holds the name of the other graph. Graphs of the same store are found by name; graphs of other
    stores must be passed to `resolve_links` once.
    """

    def __init__(
        self, vector_store: Any = None, *, name: str | None = None, collection: str = MEMORY
    ) -> None:
        super().__init__(vector_store, name=name, collection=collection)
        self._others: dict[str, Graph] = {}

    async def link_graph(
        self, other: Graph, source_node_id: str, target_node_id: str, link_type: str = DEFAULT_LINK_TYPE
    ) -> str:
        """Link a node of this graph to a node of another one and return the link's id.

        Linking twice has no effect. Raises KeyError for an unknown node, and InvalidInput for a graph of the
        same name in another store, as a link holds only the name.
        """
        if other.name == self.name and not other.storage.is_same(self.storage):
            raise InvalidInput("other", f"has the name of this graph, {self.name!r}; rename one of the two")
        self.named = other.named = True
        there = Graph(other.storage, name=other.name)
        for graph, node in ((self, source_node_id), (there, target_node_id)):
            if await graph.get_node(node) is None:
                raise KeyError(f"no node {node!r} in the graph {graph.name!r}")
        link = stable_id("link", self.name, source_node_id, link_type, other.name, target_node_id)
        await self._links.add_nodes([_link_node(link, source_node_id, other.name, target_node_id, link_type)])
        self._others[other.name] = other
        return link

    async def links(self) -> list[dict[str, Any]]:
        """Return all links with id, type, and the nodes and the graph that they connect."""
        await self.source()
        if not await self._links.exists():
            return []
        return [_link_dict(node) for node in await self._links.get_nodes()]

    async def navigate_to(self, link_id: str) -> tuple[Graph, str]:
        """Return the graph and the node that a link leads to.

        Raises KeyError for an unknown link, and for a graph that is neither in this store nor registered.
        """
        await self.source()
        link_node = await self._links.get_node(link_id) if await self._links.exists() else None
        if link_node is None:
            raise KeyError(f"no link {link_id!r} in the graph {self.name!r}")
        link = _link_dict(link_node)
        graph = await self._find_graph(link["target_graph"])
        if graph is None:
            raise KeyError(f"the graph {link['target_graph']!r} is unknown; give it to resolve_links")
        return graph, link["target_node_id"]

    async def resolve_links(self, graphs: Mapping[str, Graph] | Iterable[Graph]) -> int:
        """Register graphs of other stores and return the number of links that can be followed now."""
        graphs_by_name = graphs if isinstance(graphs, Mapping) else {graph.name: graph for graph in graphs}
        self._others |= graphs_by_name
        return sum([await self._find_graph(link["target_graph"]) is not None for link in await self.links()])

    async def to_dict(self) -> dict[str, Any]:
        """Return the whole graph with its links as JSON values."""
        return {**await super().to_dict(), "links": await self.links()}

    async def import_dict(self, data: object) -> dict[str, int]:
        """Import a result of `to_dict` and return the numbers of new or changed items."""
        done = await super().import_dict(data)
        links = data.get("links") or () if isinstance(data, Mapping) else ()
        if any(not isinstance(link, Mapping) or not _LINK_KEYS.issubset(link) for link in links):
            raise InvalidInput("links", f"must have {', '.join(sorted(_LINK_KEYS))}")
        words = ("id", "source_node_id", "target_graph", "target_node_id", "type")
        nodes = [_link_node(*(str(link[word]) for word in words)) for link in links]
        return {**done, "links": await self._links.add_nodes(nodes) if nodes else 0}

    async def clear(self) -> int:
        """Delete all nodes, edges and links and return the number of nodes."""
        if await self._links.exists():
            await self._links.clear()
        return await super().clear()

    @property
    def _links(self) -> Graph:
        """Return the graph that stores the links: links must survive the replacement of a node."""
        return Graph(self.storage, name=f"links of {self.name}")

    async def _find_graph(self, name: str) -> Graph | None:
        if name in self._others:
            return self._others[name]
        graph = AsyncContextGraph(self.storage, name=name)
        return graph if await graph.exists() else None


_LINK_KEYS: Final = frozenset({"id", "source_node_id", "target_graph", "target_node_id", "type"})


def _link_node(link: str, source: str, graph: str, target: str, type: str) -> dict[str, Any]:
    led = {"source_node_id": source, "target_graph": graph, "target_node_id": target}
    return {"id": link, "type": type, "properties": led}


def _link_dict(node: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": node["id"], "type": node["type"], **node["properties"]}
