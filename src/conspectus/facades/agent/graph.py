"""A graph of dictionaries: typed, weighted, dated nodes and edges, walked over several hops."""

import json
from asyncio import to_thread
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypedDict, TypeVar, Unpack
from uuid import uuid4

from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput, NotFound
from conspectus.facades.agent.mapping import (
    Instant,
    carried,
    content_of,
    instant_of,
    known,
    new_edge,
    new_node,
    shown_edge,
    shown_neighbor,
    shown_node,
)
from conspectus.facades.agent.session import (
    AgentSession,
    AsyncPart,
    Work,
    desk_of,
    is_new,
    read_json,
    write_whole,
)
from conspectus.model.graph import (
    Direction,
    Edge,
    EdgePage,
    GraphForm,
    NewEdge,
    NewNode,
    Node,
    NodePage,
    Traversal,
)
from conspectus.model.memory import MEMORY
from conspectus.model.pages import pages
from conspectus.text.hashing import stable_id

T = TypeVar("T")
NAME: Final = "knowledge"
AT_ONCE: Final = 10_000
PAGE: Final = 1_000


class GraphTraversal(TypedDict, total=False):
    """How neighbors are looked for: over which edges, which way, how many, and as of what time."""

    relationship_types: Sequence[str] | None
    min_weight: float
    direction: Direction
    skip: int
    limit: int
    at: Instant | None


class Graph(AsyncPart):
    """A graph of a name in a store; `vector_store` is what that of an agent's memory may be.

    Without a name it is the graph "knowledge" of the store, and without a store it has a name that no other
    graph has. One that is made without a store, and then given to an agent's context, moves into that one's;
    if it has no name, and no link leads from or to it, it is "knowledge" in a store that stays.
    """

    def __init__(
        self, vector_store: Any = None, *, name: str | None = None, collection: str = MEMORY
    ) -> None:
        self.desk: AgentSession = desk_of(vector_store, collection)
        self.owns = is_new(vector_store)
        self.named = name is not None or vector_store is not None
        self.name = name or (NAME if self.named else f"{NAME} {uuid4().hex}")
        self._left: AgentSession | None = None
        self._was = self.name
        self._source: str | None = None

    async def add_nodes(self, nodes: Iterable[Mapping[str, Any]]) -> int:
        """Store nodes, and say how many were new or are changed: adding one twice is adding it once."""
        given = [new_node(each) for each in nodes]
        changed = 0
        for start in range(0, len(given), AT_ONCE):
            changed += await self._nodes_changed(given[start : start + AT_ONCE])
        return changed

    async def add_edges(self, edges: Iterable[Mapping[str, Any]]) -> int:
        """Store edges, and say how many were new or are changed.

        Raises DanglingEdges, which names the nodes that are missing; of the 10,000 around it none is stored.
        """
        given = [new_edge(each) for each in edges]
        changed = 0
        for start in range(0, len(given), AT_ONCE):
            changed += await self._edges_changed(given[start : start + AT_ONCE])
        return changed

    async def get_neighbors(
        self, node_id: str, hops: int = 1, **walking: Unpack[GraphTraversal]
    ) -> list[dict[str, Any]]:
        """What is reached in so many hops, nearest first, with decay and path. Raises NotFound."""
        known(walking, frozenset(GraphTraversal.__annotations__))
        walk = Traversal(
            hops=hops,
            types=tuple(walking.get("relationship_types") or ()),
            min_weight=walking.get("min_weight", 0.0),
            direction=walking.get("direction", "both"),
            at=instant_of(walking.get("at")),
            offset=walking.get("skip", 0),
            limit=walking.get("limit", 100),
        )
        found = await self.run(lambda engine: engine.graph.neighbors(node_id, walk, **self.place))
        return [shown_neighbor(each) for each in found]

    async def query(self, query_str: str, limit: int = 10) -> list[dict[str, Any]]:
        """The nodes that have words of a question in their names or texts, whole words, best first."""
        found = await self.run(lambda engine: engine.graph.search_nodes(query_str, limit=limit, **self.place))
        return [
            {"node": shown_node(each.node), "content": content_of(each.node), "score": each.score}
            for each in found
        ]

    async def get_node(self, node_id: str) -> dict[str, Any] | None:
        """A node; None where there is none of that id."""
        try:
            return shown_node(await self.run(lambda engine: engine.graph.get_node(node_id, **self.place)))
        except NotFound:
            return None

    async def get_nodes(self, type: str | None = None) -> list[dict[str, Any]]:
        """Copies of all nodes, or of those of a type, by id."""
        return [shown_node(each) async for each in self._nodes(type)]

    async def get_edges(self, node_id: str | None = None) -> list[dict[str, Any]]:
        """Copies of all edges, or of those of a node, as they came."""
        return [shown_edge(each) async for each in self._edges(node_id)]

    async def remove_nodes(self, node_ids: Sequence[str]) -> int:
        """Delete nodes with their edges, and say how many there were."""
        found = await self.run(lambda engine: engine.graph.delete_nodes(list(node_ids), **self.place))
        return found.nodes

    async def remove_edges(self, edge_ids: Sequence[str]) -> int:
        """Delete edges by id, and say how many there were."""
        found = await self.run(lambda engine: engine.graph.delete_edges(list(edge_ids), **self.place))
        return found.edges

    async def state_at(self, time: Instant) -> dict[str, Any]:
        """The nodes there were at an instant, both ends of their time included, with their edges."""
        at = instant_of(time)
        if at is None:
            raise InvalidInput("time", "is missing")
        state = await self.run(lambda engine: engine.graph.snapshot(at, **self.place))
        return {
            "at": state.at,
            "nodes": [shown_node(each) for each in state.nodes],
            "edges": [shown_edge(each) for each in state.edges],
        }

    async def stats(self) -> dict[str, Any]:
        """The graph in numbers, by types."""
        found = await self.run(lambda engine: engine.graph.list(collection=self.desk.collection))
        one = next((each for each in found if each.source.id == self._source), None)
        return {
            "name": self.name,
            "node_count": one.nodes if one else 0,
            "edge_count": one.edges if one else 0,
            "node_types": dict(one.types) if one else {},
            "edge_types": dict(one.relations) if one else {},
        }

    async def to_dict(self) -> dict[str, Any]:
        """The whole graph as JSON can hold it."""
        nodes = [each async for each in self._nodes(None)]
        return {"name": self.name, **carried(nodes, [each async for each in self._edges(None)])}

    async def to_json(self) -> str:
        """The same as a text."""
        return json.dumps(await self.to_dict(), ensure_ascii=False, indent=1)

    async def to_graphml(self) -> str:
        """The graph as GraphML, for other programs."""
        return await self._as("graphml")

    async def to_svg(self) -> str:
        """A picture of the graph."""
        return await self._as("svg")

    async def take(self, told: object) -> dict[str, int]:
        """Import what `to_dict` gave, and say how many nodes and edges are new or changed.

        A graph that has no name and was not used yet takes that one's name, so that links to it lead here.
        """
        if not isinstance(told, Mapping):
            raise InvalidInput("graph", "must be a dictionary with nodes and edges")
        name = told.get("name")
        if isinstance(name, str) and not self.named and await self._first() is None:
            self.name, self.named = name, True
        edges = [{k: v for k, v in each.items() if k != "evidence"} for each in told.get("edges") or ()]
        return {
            "nodes": await self.add_nodes(told.get("nodes") or ()),
            "edges": await self.add_edges(edges),
        }

    async def save(self, path: str | Path) -> None:
        """Write the graph into a file of JSON."""
        text = await self.to_json()
        await to_thread(write_whole, Path(path), text)

    async def load(self, path: str | Path) -> dict[str, int]:
        """Import such a file. Raises InvalidInput, for a pickle too."""
        return await self.take(await to_thread(read_json, Path(path)))

    async def clear(self) -> int:
        """Delete all nodes and edges, and say how many nodes there were."""
        found = await self.run(lambda engine: engine.graph.delete(self.name, collection=self.desk.collection))
        self._source = None
        return found.nodes

    async def exists(self) -> bool:
        """Whether anything was ever written into a graph of that name."""
        return await self.source() is not None

    async def source(self) -> str | None:
        """The id of the graph in its store; None where nothing was ever written into it."""
        if self._left is None and await self._first() is None:
            self._source = None
            return None
        await self.run(_nothing)
        return self._source

    async def filled(self) -> str | None:
        """The same; None where it has no nodes either."""
        source = await self.source()
        return source if source is not None and await self._first() else None

    async def _first(self) -> tuple[Node, ...] | None:
        """The first node, if there is any; None where there is no graph."""
        try:
            return (await self.desk.run(lambda engine: engine.graph.list_nodes(limit=1, **self.place))).nodes
        except NotFound:
            return None

    def move(self, desk: AgentSession) -> None:
        """Be at another desk from now on; what there is in another store moves along with the next use.

        Raises InvalidInput for one that is to stay where it is.
        """
        home = self.desk.home
        stays = home.is_same(desk.home)
        if not (stays or home.temporary):
            raise InvalidInput("knowledge_graph", "is in another store than the memory")
        self._left = self.desk if home.used and not stays else None
        if self._left is None and home is not desk.home:
            home.close()
        self.desk, self._source, self.owns = desk, None, False
        self._was = self.name
        if not self.named and not desk.home.temporary:
            self.name, self.named = NAME, True

    async def run(self, work: Work[T]) -> T:
        """What comes of work with the engine, in which there is this graph."""
        if self._left is not None:
            left, self._left = type(self)(self._left.home, name=self._was), None
            await self.take(await left.to_dict())
            left.desk.home.close()

        async def done(engine: AnyEngine) -> T:
            if self._source is None:
                self._source = (
                    await engine.graph.get_or_create(self.name, collection=self.desk.collection)
                ).id
            return await work(engine)

        return await self.desk.run(done)

    @property
    def place(self) -> dict[str, Any]:
        """How the methods of an engine name it."""
        return {"graph": self.name, "collection": self.desk.collection}

    async def _nodes_changed(self, nodes: Sequence[NewNode]) -> int:
        written = await self.run(lambda engine: engine.graph.add_nodes(nodes, **self.place))
        return sum(each.outcome != "unchanged" for each in written)

    async def _edges_changed(self, edges: Sequence[NewEdge]) -> int:
        written = await self.run(lambda engine: engine.graph.add_edges(edges, **self.place))
        return sum(each.outcome != "unchanged" for each in written)

    async def _as(self, form: GraphForm) -> str:
        return await self.run(lambda engine: engine.graph.export(form, **self.place))

    async def _nodes(self, type: str | None) -> AsyncIterator[Node]:
        async for page in pages(self._node_page, type):
            for each in page.nodes:
                yield each

    async def _edges(self, node: str | None) -> AsyncIterator[Edge]:
        async for page in pages(self._edge_page, node):
            for each in page.edges:
                yield each

    async def _node_page(self, type: str | None, after: str | None = None) -> NodePage:
        return await self.run(
            lambda engine: engine.graph.list_nodes(type=type, after=after, limit=PAGE, **self.place)
        )

    async def _edge_page(self, node: str | None, after: str | None = None) -> EdgePage:
        return await self.run(
            lambda engine: engine.graph.list_edges(node=node, after=after, limit=PAGE, **self.place)
        )


async def _nothing(engine: AnyEngine) -> None:
    """Only that the graph is there."""


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
            raise InvalidInput("other", f"has the name of this graph, {self.name!r}; rename one of the two")
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
            raise KeyError(f"the graph {link['target_graph']!r} is unknown; give it to resolve_links")
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
        """Import what `to_dict` gave, and say how much of it is new or changed."""
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
