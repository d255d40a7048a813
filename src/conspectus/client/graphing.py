"""Graphs of a server: nodes, edges, ways between them, and the entities that passages mention."""

from datetime import datetime
from typing import Final

from conspectus.client.alerting import Alerting
from conspectus.client.catalog import in_collection
from conspectus.client.encode import instant_json
from conspectus.client.operations import remote
from conspectus.client.request import get, path_of, work
from conspectus.engine import Engine
from conspectus.model.graph import GraphForm
from conspectus.ports import Progress

LOOKING: Final = "looking for names"


class Graphing(Alerting):
    """What is connected with what, and which nodes names mean."""

    graph = remote(Engine.graph)
    graphs = remote(Engine.graphs)
    delete_graph = remote(Engine.delete_graph)
    add_nodes = remote(Engine.add_nodes)
    add_edges = remote(Engine.add_edges)
    node = remote(Engine.node)
    nodes = remote(Engine.nodes)
    edges = remote(Engine.edges)
    delete_nodes = remote(Engine.delete_nodes)
    delete_edges = remote(Engine.delete_edges)
    neighbours = remote(Engine.neighbours)
    find_nodes = remote(Engine.find_nodes)
    graph_at = remote(Engine.graph_at)
    keep_names = remote(Engine.keep_names)
    names = remote(Engine.names)
    find_names = remote(Engine.find_names)
    link = remote(Engine.link)
    merge_nodes = remote(Engine.merge_nodes)
    split_node = remote(Engine.split_node)
    node_history = remote(Engine.node_history)

    async def export_graph(
        self,
        form: GraphForm = "json",
        *,
        graph: str = "default",
        collection: str = "default",
        at: datetime | None = None,
    ) -> str:
        """A graph as JSON, as GraphML, or as a picture (SVG)."""
        path = path_of("graphs", ("graph", graph), "export")
        request = get(path, form=form, collection=collection, at=instant_json(at))
        return b"".join([piece async for piece in self._channel.pieces(request)]).decode("utf-8")

    async def settle_names(self, *, collection: str = "default", progress: Progress | None = None) -> int:
        """Wait until every passage is looked through; returns how many were meanwhile."""
        if progress is not None:
            progress(LOOKING, 0, 0)
        return await self._channel.member(int, "read", work(in_collection(collection, "names", "settle")))
