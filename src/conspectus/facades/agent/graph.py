"""A knowledge graph of dictionaries: typed and weighted nodes and edges with validity, and traversal."""

import json
from asyncio import to_thread
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypedDict, TypeVar, Unpack
from uuid import uuid4

from conspectus.bridge.engine_access import Work
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import DanglingEdges, InvalidInput, NotFound
from conspectus.facades.agent.arguments import Instant, instant_of, require_known
from conspectus.facades.agent.graph_items import (
    content_of,
    edge_dict,
    exported_graph,
    neighbor_dict,
    new_edge,
    new_node,
    node_dict,
)
from conspectus.facades.agent.json_files import read_json, write_lines
from conspectus.facades.agent.parts import AsyncPart, has_own_storage, storage_of
from conspectus.facades.agent.storage import AgentStorage
from conspectus.model.graph import (
    Direction,
    GraphForm,
    NewEdge,
    NewNode,
    Node,
    Traversal,
)
from conspectus.model.memory import MEMORY
from conspectus.model.pages import pages
from conspectus.text.times import canonical

T = TypeVar("T")
DEFAULT_NAME: Final = "knowledge"
MAX_PARTS_PER_CALL: Final = 10_000
PARTS_PER_PAGE: Final = 1_000


class GraphTraversal(TypedDict, total=False):
    """Options of a traversal: edge types, direction, limit and time."""

    relationship_types: Sequence[str] | None
    min_weight: float
    direction: Direction
    skip: int
    limit: int
    at: Instant | None


class Graph(AsyncPart):
    """A named graph in a store; `vector_store` accepts what AsyncAgentContext accepts.

    The default name is "knowledge"; a graph without name and store gets a unique name. A graph without a
    store moves into the store of the context that it is passed to. If it has no name and no links, it is then
    named "knowledge" in a permanent store.
    """

    def __init__(
        self, vector_store: Any = None, *, name: str | None = None, collection: str = MEMORY
    ) -> None:
        self.storage: AgentStorage = storage_of(vector_store, collection)
        self.owns = has_own_storage(vector_store)
        self.named = name is not None or vector_store is not None
        self.name = name or (DEFAULT_NAME if self.named else f"{DEFAULT_NAME} {uuid4().hex}")
        self._old_storage: AgentStorage | None = None
        self._old_name = self.name
        self._source: str | None = None

    async def add_nodes(self, nodes: Iterable[Mapping[str, Any]]) -> int:
        """Add nodes and return how many are new or changed. Adding a node twice has no effect."""
        return await self._add_in_batches("nodes", [new_node(node) for node in nodes])

    async def add_edges(self, edges: Iterable[Mapping[str, Any]]) -> int:
        """Add edges and return how many are new or changed.

        Nodes that an edge names and the graph lacks are added with their id as name; `add_nodes` gives them
        a type and properties later.
        """
        return await self._add_in_batches("edges", [new_edge(edge) for edge in edges])

    async def get_neighbors(
        self, node_id: str, hops: int = 1, **options: Unpack[GraphTraversal]
    ) -> list[dict[str, Any]]:
        """Return the nodes within `hops`, nearest first, with decay and path. Raises NotFound."""
        require_known(options, frozenset(GraphTraversal.__annotations__))
        walk = Traversal(
            hops=hops,
            types=tuple(options.get("relationship_types") or ()),
            min_weight=options.get("min_weight", 0.0),
            direction=options.get("direction", "both"),
            at=instant_of(options.get("at")),
            offset=options.get("skip", 0),
            limit=options.get("limit", 100),
        )
        neighbors = await self.run(lambda engine: engine.graph.neighbors(node_id, walk, **self.address))
        return [neighbor_dict(neighbor) for neighbor in neighbors]

    async def query(self, query_str: str, limit: int = 10) -> list[dict[str, Any]]:
        """Return the nodes whose names or texts contain words of a query, best first."""
        hits = await self.run(
            lambda engine: engine.graph.search_nodes(query_str, limit=limit, **self.address)
        )
        return [
            {"node": node_dict(hit.node), "content": content_of(hit.node), "score": hit.score} for hit in hits
        ]

    async def get_node(self, node_id: str) -> dict[str, Any] | None:
        """Return a node, or None if it does not exist."""
        try:
            return node_dict(await self.run(lambda engine: engine.graph.get_node(node_id, **self.address)))
        except NotFound:
            return None

    async def get_nodes(self, type: str | None = None) -> list[dict[str, Any]]:
        """Return copies of all nodes, or of those of one type, by id."""
        return [node_dict(node) for node in await self._list_all("nodes", type=type)]

    async def get_edges(self, node_id: str | None = None) -> list[dict[str, Any]]:
        """Return copies of all edges, or of those of one node, in the order of insertion."""
        return [edge_dict(edge) for edge in await self._list_all("edges", node=node_id)]

    async def remove_nodes(self, node_ids: Sequence[str]) -> int:
        """Delete nodes with their edges and return their number."""
        receipt = await self.run(lambda engine: engine.graph.delete_nodes(list(node_ids), **self.address))
        return receipt.nodes

    async def remove_edges(self, edge_ids: Sequence[str]) -> int:
        """Delete edges by id and return their number."""
        receipt = await self.run(lambda engine: engine.graph.delete_edges(list(edge_ids), **self.address))
        return receipt.edges

    async def state_at(self, time: Instant) -> dict[str, Any]:
        """Return the nodes that were valid at an instant (bounds included) and the edges between them."""
        at = instant_of(time)
        if at is None:
            raise InvalidInput("time", "is missing; give an instant such as 2026-03-02T08:00:00Z")
        state = await self.run(lambda engine: engine.graph.snapshot(at, **self.address))
        return {
            "at": canonical(state.at),
            "nodes": [node_dict(node) for node in state.nodes],
            "edges": [edge_dict(edge) for edge in state.edges],
        }

    async def stats(self) -> dict[str, Any]:
        """Return the numbers of nodes and edges, by type."""
        graphs = await self.run(lambda engine: engine.graph.list(collection=self.storage.collection))
        one = next((graph for graph in graphs if graph.source.id == self._source), None)
        return {
            "name": self.name,
            "node_count": one.nodes if one else 0,
            "edge_count": one.edges if one else 0,
            "node_types": dict(one.types) if one else {},
            "edge_types": dict(one.relations) if one else {},
        }

    async def to_dict(self) -> dict[str, Any]:
        """Return the whole graph as JSON values."""
        nodes, edges = await self._list_all("nodes"), await self._list_all("edges")
        return {"name": self.name, **exported_graph(nodes, edges)}

    async def to_json(self) -> str:
        """Return the whole graph as JSON text."""
        return json.dumps(await self.to_dict(), ensure_ascii=False, indent=1)

    async def to_graphml(self) -> str:
        """Return the graph as GraphML."""
        return await self._export("graphml")

    async def to_svg(self) -> str:
        """Return the graph as an SVG picture."""
        return await self._export("svg")

    async def import_dict(self, data: object) -> dict[str, int]:
        """Import a result of `to_dict` and return the numbers of new or changed nodes and edges.

        An unnamed, unused graph takes the imported name, so that links to that name lead here.
        """
        if not isinstance(data, Mapping):
            raise InvalidInput("graph", "must be a dictionary with nodes and edges")
        name = data.get("name")
        if isinstance(name, str) and not self.named and await self._first_nodes() is None:
            self.name, self.named = name, True
        edges = [{k: v for k, v in edge.items() if k != "evidence"} for edge in data.get("edges") or ()]
        return {
            "nodes": await self.add_nodes(data.get("nodes") or ()),
            "edges": await self.add_edges(edges),
        }

    async def save(self, path: str | Path) -> None:
        """Write the graph to a JSON file."""
        await write_lines(Path(path), _yield_line(await self.to_json()))

    async def load(self, path: str | Path) -> dict[str, int]:
        """Import a JSON file. Raises InvalidInput, also for a pickle."""
        return await self.import_dict(await to_thread(read_json, Path(path)))

    async def clear(self) -> int:
        """Delete all nodes and edges and return the number of nodes."""
        receipt = await self.run(
            lambda engine: engine.graph.delete(self.name, collection=self.storage.collection)
        )
        self._source = None
        return receipt.nodes

    async def exists(self) -> bool:
        """Return whether a graph of this name was ever written."""
        return await self.source() is not None

    async def source(self) -> str | None:
        """Return the id of the graph in its store; None if it was never written."""
        if self._old_storage is None and await self._first_nodes() is None:
            self._source = None
            return None
        await self.run(_do_nothing)
        return self._source

    async def source_if_not_empty(self) -> str | None:
        """Return the id of the graph in its store; None if it has no nodes."""
        source = await self.source()
        return source if source is not None and await self._first_nodes() else None

    async def _first_nodes(self) -> tuple[Node, ...] | None:
        """Return the first node as a tuple, empty if there is none; None if the graph does not exist."""
        try:
            return (
                await self.storage.run(lambda engine: engine.graph.list_nodes(limit=1, **self.address))
            ).nodes
        except NotFound:
            return None

    def move(self, storage: AgentStorage) -> None:
        """Use another storage. The next call copies the graph from its old store.

        Raises InvalidInput if the graph is fixed to its store.
        """
        old_storage = self.storage
        stays = old_storage.is_same(storage)
        if not (stays or old_storage.is_temporary):
            raise InvalidInput(
                "knowledge_graph", "is in another store than the memory; open both with one engine"
            )
        self._old_storage = old_storage if old_storage.is_prepared and not stays else None
        if self._old_storage is None and old_storage is not storage:
            old_storage.close()
        self.storage, self._source, self.owns = storage, None, False
        self._old_name = self.name
        if not self.named and not storage.is_temporary:
            self.name, self.named = DEFAULT_NAME, True

    async def run(self, work: Work[T]) -> T:
        """Run work with the engine after ensuring that the graph exists."""
        if self._old_storage is not None:
            old_graph, self._old_storage = type(self)(self._old_storage, name=self._old_name), None
            await self.import_dict(await old_graph.to_dict())
            old_graph.storage.close()

        async def work_in_graph(engine: AnyEngine) -> T:
            if self._source is None:
                self._source = (
                    await engine.graph.get_or_create(self.name, collection=self.storage.collection)
                ).id
            return await work(engine)

        return await self.storage.run(work_in_graph)

    @property
    def address(self) -> dict[str, Any]:
        """Return the arguments that identify the graph in calls of the engine."""
        return {"graph": self.name, "collection": self.storage.collection}

    async def _add_in_batches(self, kind: str, parts: Sequence[NewNode] | Sequence[NewEdge]) -> int:
        """Add nodes or edges and return how many are new or changed."""

        async def add(engine: AnyEngine) -> int:
            changed = 0
            for start in range(0, len(parts), MAX_PARTS_PER_CALL):
                part = parts[start : start + MAX_PARTS_PER_CALL]
                write = partial(getattr(engine.graph, f"add_{kind}"), part, **self.address)
                try:
                    written = await write()
                except DanglingEdges as fault:
                    await engine.graph.add_nodes(list(map(NewNode, fault.missing)), **self.address)
                    written = await write()
                changed += sum(part.outcome != "unchanged" for part in written)
            return changed

        return await self.run(add) if parts else 0

    async def _export(self, form: GraphForm) -> str:
        return await self.run(lambda engine: engine.graph.export(form, **self.address))

    async def _list_all(self, kind: str, **selection: str | None) -> list[Any]:
        """Return all nodes or edges that are chosen."""

        async def read(engine: AnyEngine) -> list[Any]:
            listing = pages(
                getattr(engine.graph, f"list_{kind}"), **selection, limit=PARTS_PER_PAGE, **self.address
            )
            return [part async for page in listing for part in getattr(page, kind)]

        return await self.run(read)


async def _yield_line(text: str) -> AsyncIterator[str]:
    yield text


async def _do_nothing(engine: AnyEngine) -> None:
    """Do nothing; the call only ensures that the graph exists."""
