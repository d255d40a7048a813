"""Operations on graphs: nodes, edges, mentions of entities and what those mean."""

from typing import Final

from conspectus.engine import Engine
from conspectus.operations.operation import Operation

_GRAPH: Final = "/graphs/{graph}"
_NAMES: Final = "/collections/{collection}/names"
_IN: Final = ("collection",)

GRAPH_OPERATIONS: Final = (
    Operation(Engine.names, "GET", _NAMES, id="list_names"),
    Operation(Engine.keep_names, "PUT", _NAMES),
    Operation(Engine.find_names, "POST", f"{_NAMES}/find", reads=True),
    Operation(Engine.link, "POST", f"{_GRAPH}/link", query=_IN, reads=True),
    Operation(Engine.merge_nodes, "POST", f"{_GRAPH}/merge", query=_IN),
    Operation(Engine.split_node, "POST", f"{_GRAPH}/split", query=_IN),
    Operation(Engine.node_history, "GET", f"{_GRAPH}/history"),
    Operation(Engine.graph, "POST", "/graphs", id="get_or_make_graph"),
    Operation(Engine.graphs, "GET", "/graphs", id="list_graphs"),
    Operation(Engine.add_nodes, "POST", f"{_GRAPH}/nodes", query=_IN, unhurried=True, status=201),
    Operation(Engine.nodes, "GET", f"{_GRAPH}/nodes", id="list_nodes"),
    Operation(Engine.delete_nodes, "POST", f"{_GRAPH}/nodes/delete", query=_IN, unhurried=True),
    Operation(Engine.add_edges, "POST", f"{_GRAPH}/edges", query=_IN, unhurried=True, status=201),
    Operation(Engine.edges, "GET", f"{_GRAPH}/edges", id="list_edges"),
    Operation(Engine.delete_edges, "POST", f"{_GRAPH}/edges/delete", query=_IN, unhurried=True),
    Operation(Engine.node, "GET", f"{_GRAPH}/node", id="get_node"),
    Operation(Engine.neighbours, "GET", f"{_GRAPH}/neighbours"),
    Operation(Engine.find_nodes, "POST", f"{_GRAPH}/find", query=_IN, reads=True),
    Operation(Engine.graph_at, "GET", f"{_GRAPH}/at"),
    Operation(Engine.delete_graph, "DELETE", _GRAPH, unhurried=True),
)
"""In the order in which paths are matched: a name may hold a slash, so the shorter path comes last."""
