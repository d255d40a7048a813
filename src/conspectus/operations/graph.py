"""Operations on graphs: nodes, edges, mentions of entities and what those mean."""

from typing import Final

from conspectus.engine.graph import GraphService
from conspectus.operations.operation import Operation

_GRAPH: Final = "/graphs/{graph}"
_ENTITIES: Final = "/collections/{collection}/entities"
_IN: Final = ("collection",)

GRAPH_OPERATIONS: Final = (
    Operation(GraphService.entities, "GET", _ENTITIES, id="list_mentioned_entities"),
    Operation(GraphService.extract_entities, "PUT", _ENTITIES, id="set_entity_extraction"),
    Operation(GraphService.find_mentions, "POST", f"{_ENTITIES}/extract", reads=True, id="extract_entities"),
    Operation(
        GraphService.settle_entities,
        "POST",
        f"{_ENTITIES}/wait",
        unhurried=True,
        wrapped="read",
        id="settle_names",
    ),
    Operation(GraphService.link, "POST", f"{_GRAPH}/link", query=_IN, reads=True),
    Operation(GraphService.merge_nodes, "POST", f"{_GRAPH}/merge", query=_IN),
    Operation(GraphService.split_node, "POST", f"{_GRAPH}/undo-merge", query=_IN),
    Operation(GraphService.node_history, "GET", f"{_GRAPH}/merges"),
    Operation(GraphService.get_or_create, "POST", "/graphs", id="get_or_make_graph"),
    Operation(GraphService.list, "GET", "/graphs", id="list_graphs"),
    Operation(GraphService.add_nodes, "POST", f"{_GRAPH}/nodes", query=_IN, unhurried=True, status=201),
    Operation(GraphService.nodes, "GET", f"{_GRAPH}/nodes", id="list_nodes"),
    Operation(GraphService.delete_nodes, "POST", f"{_GRAPH}/nodes/delete", query=_IN, unhurried=True),
    Operation(GraphService.add_edges, "POST", f"{_GRAPH}/edges", query=_IN, unhurried=True, status=201),
    Operation(GraphService.edges, "GET", f"{_GRAPH}/edges", id="list_edges"),
    Operation(GraphService.delete_edges, "POST", f"{_GRAPH}/edges/delete", query=_IN, unhurried=True),
    Operation(GraphService.node, "GET", f"{_GRAPH}/node", id="get_node"),
    Operation(GraphService.neighbors, "GET", f"{_GRAPH}/neighbors", id="neighbors"),
    Operation(GraphService.find_nodes, "POST", f"{_GRAPH}/find", query=_IN, reads=True),
    Operation(GraphService.state_at, "GET", f"{_GRAPH}/at", id="graph_at"),
    Operation(GraphService.delete, "DELETE", _GRAPH, unhurried=True, id="delete_graph"),
)
"""In the order in which paths are matched: a name may hold a slash, so the shorter path comes last."""
