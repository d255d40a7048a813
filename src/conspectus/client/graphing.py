"""Graphs of a server: nodes, edges and ways between them."""

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Any, Final

from conspectus.client.alerting import Alerting
from conspectus.client.encode import encoded, instant_json, metadata_json
from conspectus.client.request import Request, ask, get, path_of, post, remove, work
from conspectus.errors import InvalidInput
from conspectus.model.graph import (
    EdgePage,
    GraphForm,
    GraphReceipt,
    GraphState,
    GraphSummary,
    GraphWritten,
    Neighbor,
    NewEdge,
    NewNode,
    Node,
    NodeHit,
    NodePage,
    Traversal,
)
from conspectus.model.records import Json, Source
from conspectus.text.clean import clean

NEARBY: Final = Traversal()


class Graphing(Alerting):
    """What is connected with what."""

    async def graph(self, name: str = "default", *, collection: str = "default") -> Source:
        """The graph of that name, made if it is new."""
        body: Json = {"name": encoded(name), "collection": encoded(collection)}
        return await self._channel.one(Source, post("/graphs", body))

    async def graphs(self, *, collection: str = "default") -> list[GraphSummary]:
        """The graphs of a collection that can be seen, in numbers."""
        return await self._channel.several(GraphSummary, get("/graphs", collection=collection))

    async def delete_graph(self, graph: str, *, collection: str = "default") -> GraphReceipt:
        """Delete a graph with everything in it. Raises NotFound."""
        return await self._channel.one(GraphReceipt, remove(in_graph(graph), collection=collection))

    async def add_nodes(
        self, nodes: Iterable[NewNode], *, graph: str = "default", collection: str = "default"
    ) -> list[GraphWritten]:
        """Add nodes, or change those of a stored id; the graph is made if it is new.

        Raises InvalidInput, TooLarge or NotAllowed; then none is written.
        """
        body: Json = {"nodes": [_part_json(each) for each in nodes]}
        request = inside(work(in_graph(graph, "nodes"), body), collection)
        return await self._channel.several(GraphWritten, request)

    async def add_edges(
        self, edges: Iterable[NewEdge], *, graph: str = "default", collection: str = "default"
    ) -> list[GraphWritten]:
        """Add edges, or change those that are stored; the graph is made if it is new.

        Raises DanglingEdges with the ids of nodes that are missing, InvalidInput or TooLarge; then none is
        written.
        """
        body: Json = {"edges": [_part_json(each) for each in edges]}
        request = inside(work(in_graph(graph, "edges"), body), collection)
        return await self._channel.several(GraphWritten, request)

    async def node(self, node: str, *, graph: str = "default", collection: str = "default") -> Node:
        """The node of that id. Raises NotFound."""
        return await self._channel.one(Node, get(in_graph(graph, "node"), node=node, collection=collection))

    async def nodes(
        self,
        *,
        graph: str = "default",
        collection: str = "default",
        type: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> NodePage:
        """A page of nodes by id, of one type if that is named."""
        told = {"collection": collection, "type": type, "after": after, "limit": limit}
        return await self._channel.one(NodePage, get(in_graph(graph, "nodes"), **told))

    async def edges(
        self,
        *,
        graph: str = "default",
        collection: str = "default",
        node: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> EdgePage:
        """A page of edges in order of recording, of one node if that is named."""
        told = {"collection": collection, "node": node, "after": after, "limit": limit}
        return await self._channel.one(EdgePage, get(in_graph(graph, "edges"), **told))

    async def delete_nodes(
        self, nodes: Sequence[str], *, graph: str = "default", collection: str = "default"
    ) -> GraphReceipt:
        """Delete nodes with their edges; unknown ids count as nothing."""
        return await self._delete("nodes", nodes, graph, collection)

    async def delete_edges(
        self, edges: Sequence[str], *, graph: str = "default", collection: str = "default"
    ) -> GraphReceipt:
        """Delete edges by their ids; unknown ids count as nothing."""
        return await self._delete("edges", edges, graph, collection)

    async def neighbours(
        self, node: str, walk: Traversal = NEARBY, *, graph: str = "default", collection: str = "default"
    ) -> list[Neighbor]:
        """What a node is connected with, near first, each with the best way there. Raises NotFound."""
        told = {each.name: encoded(getattr(walk, each.name)) for each in fields(walk)}
        told["types"] = ids_json("types", walk.types)
        told |= {"node": node, "collection": collection, "at": instant_json(walk.at)}
        return await self._channel.several(Neighbor, get(in_graph(graph, "neighbours"), **told))

    async def find_nodes(
        self, query: str, *, graph: str = "default", collection: str = "default", limit: int = 10
    ) -> list[NodeHit]:
        """The nodes that a question is about, by whole words, best first."""
        body: Json = {"query": encoded(query), "limit": limit}
        return await self._channel.several(NodeHit, inside(ask(in_graph(graph, "find"), body), collection))

    async def graph_at(
        self, at: datetime, *, graph: str = "default", collection: str = "default"
    ) -> GraphState:
        """What a graph was at an instant."""
        told = {"at": instant_json(at), "collection": collection}
        return await self._channel.one(GraphState, get(in_graph(graph, "at"), **told))

    async def export_graph(
        self,
        form: GraphForm = "json",
        *,
        graph: str = "default",
        collection: str = "default",
        at: datetime | None = None,
    ) -> str:
        """A graph as JSON, as GraphML, or as a picture (SVG)."""
        told = {"form": form, "collection": collection, "at": instant_json(at)}
        request = get(in_graph(graph, "export"), **told)
        return b"".join([piece async for piece in self._channel.pieces(request)]).decode("utf-8")

    async def _delete(self, what: str, ids: Sequence[str], graph: str, collection: str) -> GraphReceipt:
        body: Json = {"ids": ids_json(what, ids)}
        return await self._channel.one(
            GraphReceipt, inside(work(in_graph(graph, what, "delete"), body), collection)
        )


def in_graph(graph: str, *parts: str) -> str:
    """The path of something in a graph. Raises NotFound for what no name of a graph is."""
    return path_of("graphs", ("graph", graph), *parts)


def inside(request: Request, collection: str) -> Request:
    """A request about something in a collection."""
    return replace(request, query={**request.query, "collection": clean(collection)})


def ids_json(field: str, ids: Sequence[str]) -> Json:
    """Several ids. Raises InvalidInput for a string, which is a sequence of letters."""
    if isinstance(ids, str):
        raise InvalidInput(field, "must be a sequence of ids")
    return encoded([*ids])


def _part_json(part: NewNode | NewEdge) -> Json:
    told: dict[str, Any] = {each.name: getattr(part, each.name) for each in fields(part)}
    told["properties"] = metadata_json(part.properties)
    return encoded(told)
