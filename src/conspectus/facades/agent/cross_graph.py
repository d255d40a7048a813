"""Links from a node of one graph to a node of another, which may be in another store."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from conspectus.errors import InvalidInput
from conspectus.facades.agent.graph import Graph
from conspectus.model.memory import MEMORY
from conspectus.text.hashing import stable_id

LINK: Final = "CROSS_GRAPH"


class AsyncContextGraph(Graph):
    """A graph of dictionaries, with links to other graphs beside its edges.

    A link names the other graph by its name. One of the same store is found by that; of another store it is
    to be told once, with `resolve_links`.
    """

    def __init__(
        self, vector_store: Any = None, *, name: str | None = None, collection: str = MEMORY
    ) -> None:
        super().__init__(vector_store, name=name, collection=collection)
        self._others: dict[str, Graph] = {}

    async def link_graph(
        self, other: Graph, source_node_id: str, target_node_id: str, link_type: str = LINK
    ) -> str:
        """Link a node of this graph to one of another, and return the link's id; twice is the same link.

        Raises KeyError for a node that is not there, and InvalidInput for a graph of the same name in another
        store: the link could not tell them apart.
        """
        if other.name == self.name and not other.desk.home.is_same(self.desk.home):
            raise InvalidInput("other", f"is called {self.name!r} like this graph; give one of them a name")
        self.named = other.named = True
        there = Graph(other.desk.home, name=other.name)
        for graph, node in ((self, source_node_id), (there, target_node_id)):
            if await graph.get_node(node) is None:
                raise KeyError(f"no node {node!r} in the graph {graph.name!r}")
        link = stable_id("link", self.name, source_node_id, link_type, other.name, target_node_id)
        await self._links.add_nodes([_written(link, source_node_id, other.name, target_node_id, link_type)])
        self._others[other.name] = other
        return link

    async def links(self) -> list[dict[str, Any]]:
        """All links: id, type, and the nodes and the graph that they lead from and to."""
        await self.source()
        if not await self._links.exists():
            return []
        return [_read(each) for each in await self._links.get_nodes()]

    async def navigate_to(self, link_id: str) -> tuple[Graph, str]:
        """The graph and the node that a link leads to.

        Raises KeyError for an unknown link, and for a graph that is neither in this store nor was resolved.
        """
        await self.source()
        told = await self._links.get_node(link_id) if await self._links.exists() else None
        if told is None:
            raise KeyError(f"no link {link_id!r} in the graph {self.name!r}")
        link = _read(told)
        graph = await self._other(link["target_graph"])
        if graph is None:
            raise KeyError(f"the graph {link['target_graph']!r} is not known: name it with resolve_links")
        return graph, link["target_node_id"]

    async def resolve_links(self, graphs: Mapping[str, Graph] | Iterable[Graph]) -> int:
        """Tell which graphs there are, and how many of the links lead to one that is known now."""
        named = graphs if isinstance(graphs, Mapping) else {each.name: each for each in graphs}
        self._others |= named
        return sum([await self._other(each["target_graph"]) is not None for each in await self.links()])

    async def to_dict(self) -> dict[str, Any]:
        """The whole graph with its links as JSON can hold it."""
        return {**await super().to_dict(), "links": await self.links()}

    async def take(self, told: object) -> dict[str, int]:
        """Take in what `to_dict` gave, and say how much of it is new or changed."""
        done = await super().take(told)
        links = told.get("links") or () if isinstance(told, Mapping) else ()
        if any(not isinstance(each, Mapping) or not _LINK.issubset(each) for each in links):
            raise InvalidInput("links", f"must have {', '.join(sorted(_LINK))}")
        words = ("id", "source_node_id", "target_graph", "target_node_id", "type")
        nodes = [_written(*(str(each[word]) for word in words)) for each in links]
        return {**done, "links": await self._links.add_nodes(nodes) if nodes else 0}

    async def clear(self) -> int:
        """Delete all nodes, edges and links, and say how many nodes there were."""
        if await self._links.exists():
            await self._links.clear()
        return await super().clear()

    @property
    def _links(self) -> Graph:
        """Links are kept in a graph of their own, so that a node that is written anew keeps them."""
        return Graph(self.desk, name=f"links of {self.name}")

    async def _other(self, name: str) -> Graph | None:
        if name in self._others:
            return self._others[name]
        graph = AsyncContextGraph(self.desk, name=name)
        return graph if await graph.exists() else None


_LINK: Final = frozenset({"id", "source_node_id", "target_graph", "target_node_id", "type"})


def _written(link: str, source: str, graph: str, target: str, type: str) -> dict[str, Any]:
    led = {"source_node_id": source, "target_graph": graph, "target_node_id": target}
    return {"id": link, "type": type, "properties": led}


def _read(node: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": node["id"], "type": node["type"], **node["properties"]}
