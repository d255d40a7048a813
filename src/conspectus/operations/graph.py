"""The operations on graphs and entities, each declared once."""

from typing import Final

from conspectus.engine.graph import GraphService
from conspectus.operations.operation import Operation

_GRAPH: Final = "/graphs/{graph}"
_ENTITIES: Final = "/collections/{collection}/entities"
_IN: Final = ("collection",)

GRAPH_OPERATIONS: Final = (
    Operation(GraphService.list_entities, "GET", _ENTITIES),
    Operation(GraphService.set_entity_extraction, "PUT", _ENTITIES, for_models="named", audited=True),
    Operation(GraphService.extract_entities, "POST", f"{_ENTITIES}/extract", reads=True),
    Operation(
        GraphService.wait_until_extracted,
        "POST",
        f"{_ENTITIES}/wait",
        unhurried=True,
        wrapped="read",
    ),
    Operation(GraphService.link_entities, "POST", f"{_GRAPH}/link", query=_IN, reads=True),
    Operation(GraphService.merge_nodes, "POST", f"{_GRAPH}/merge", query=_IN),
    Operation(GraphService.undo_merge, "POST", f"{_GRAPH}/undo-merge", query=_IN),
    Operation(GraphService.list_merges, "GET", f"{_GRAPH}/merges"),
    Operation(GraphService.get_or_create, "POST", "/graphs", id="get_or_create_graph"),
    Operation(GraphService.list, "GET", "/graphs", id="list_graphs"),
    Operation(GraphService.add_nodes, "POST", f"{_GRAPH}/nodes", query=_IN, unhurried=True, status=201),
    Operation(GraphService.list_nodes, "GET", f"{_GRAPH}/nodes"),
    Operation(
        GraphService.delete_nodes,
        "POST",
        f"{_GRAPH}/nodes/delete",
        query=_IN,
        unhurried=True,
        for_models="named",
    ),
    Operation(GraphService.add_edges, "POST", f"{_GRAPH}/edges", query=_IN, unhurried=True, status=201),
    Operation(GraphService.list_edges, "GET", f"{_GRAPH}/edges"),
    Operation(
        GraphService.delete_edges,
        "POST",
        f"{_GRAPH}/edges/delete",
        query=_IN,
        unhurried=True,
        for_models="named",
    ),
    Operation(GraphService.get_node, "GET", f"{_GRAPH}/node"),
    Operation(GraphService.neighbors, "GET", f"{_GRAPH}/neighbors"),
    Operation(GraphService.search_nodes, "POST", f"{_GRAPH}/find", query=_IN, reads=True),
    Operation(GraphService.snapshot, "GET", f"{_GRAPH}/at", id="get_graph_snapshot"),
    Operation(
        GraphService.delete,
        "DELETE",
        _GRAPH,
        unhurried=True,
        id="delete_graph",
        for_models="named",
        audited=True,
    ),
)
"""In matching order: a name may contain a slash, so the shorter path comes last."""
