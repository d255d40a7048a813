"""Reads of graphs: nodes, edges, names and counts."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    CompoundSelect,
    Connection,
    Table,
    and_,
    bindparam,
    func,
    or_,
    select,
    tuple_,
    union,
)

from conspectus.errors import NotFound
from conspectus.model.graph import (
    Edge,
    EdgePage,
    GraphSummary,
    Node,
    NodeEvent,
    NodePage,
)
from conspectus.model.ids import SourceId
from conspectus.model.trust import MinTrust, levels_from
from conspectus.records.core.dialects import json_list_param
from conspectus.records.core.name_lookup import in_list, select_rare, split_by_cost
from conspectus.records.core.pages import from_cursor, to_cursor
from conspectus.records.core.statements import IDS, fetch_in_blocks
from conspectus.records.graph.rows import (
    EDGES,
    IN_GRAPH,
    NODE_COLUMNS,
    sources_by_id,
    to_edge,
    to_event,
    to_node,
)
from conspectus.records.tables.graph import edges, events, evidence, names, nodes, terms
from conspectus.text.times import to_microseconds

_GRAPHS: BindParameter[Any] = bindparam("graphs", expanding=True)
_NODES = select(*NODE_COLUMNS).where(nodes.c.graph.in_(_GRAPHS), nodes.c.aside == IN_GRAPH)
_BY_ID = _NODES.where(nodes.c.id.in_(IDS))
_NUMBERS = _BY_ID.with_only_columns(nodes.c.number)
_BY_NUMBER = select(*NODE_COLUMNS).where(nodes.c.number.in_(IDS), nodes.c.aside == IN_GRAPH)
_NODES_WITH_KEY = select(names.c.key, *NODE_COLUMNS).join(nodes, nodes.c.number == names.c.node)
_NODES_WITH_KEY = _NODES_WITH_KEY.where(names.c.key.in_(json_list_param("ids")), nodes.c.aside == IN_GRAPH)
NODES_BY_NAME: Final = {
    by_name: _NODES_WITH_KEY.where(in_list(names.c.graph, "sources", by_name=by_name))
    for by_name in (False, True)
}
_RARE_KEYS = select_rare(names.c.key)
_NODES_WITH_ID = select(*NODE_COLUMNS).where(
    nodes.c.id.in_(json_list_param("ids")), nodes.c.aside == IN_GRAPH
)
NODES_BY_ID: Final = {
    by_name: _NODES_WITH_ID.where(in_list(nodes.c.graph, "sources", by_name=by_name))
    for by_name in (False, True)
}
RARE_IDS: Final = select_rare(nodes.c.id)
_MATCHES = func.count().label("matches")
_NODES_BY_TERMS = (
    select(nodes.c.number, _MATCHES)
    .join(nodes, nodes.c.number == terms.c.node)
    .where(terms.c.graph.in_(_GRAPHS), terms.c.term.in_(IDS), nodes.c.aside == IN_GRAPH)
    .group_by(nodes.c.number, nodes.c.id, nodes.c.graph)
    .order_by(_MATCHES.desc(), nodes.c.id, nodes.c.graph)
    .limit(bindparam("maximum"))
)
_EDGES = EDGES.where(
    edges.c.graph.in_(_GRAPHS), edges.c.aside == IN_GRAPH, edges.c.number > bindparam("after")
)
_EDGES_BY_ID = _EDGES.where(edges.c.id.in_(IDS))
_EDGE_PAGE = _EDGES.order_by(edges.c.number).limit(bindparam("maximum"))
_AFTER_CURSOR = and_(edges.c.aside == IN_GRAPH, edges.c.number > bindparam("after"))
_BY_EDGE = EDGES.where(edges.c.number.in_(IDS)).order_by(edges.c.number)
_EDGES_OF_DOCUMENTS = (
    select(evidence.c.edge)
    .distinct()
    .join(edges, edges.c.number == evidence.c.edge)
    .where(evidence.c.document.in_(IDS), edges.c.stands == 0)
)
_EVIDENCE_OF_EDGES = select(evidence.c.edge, evidence.c.document).where(evidence.c.edge.in_(IDS))


def nodes_by_id(connection: Connection, graphs: Sequence[SourceId], ids: Sequence[str]) -> list[Node]:
    """Return the nodes that exist, in the given order; an id may be in several graphs."""
    by_id: dict[str, list[Node]] = {}
    rows = [
        row
        for by_name, parameters in split_by_cost(connection, RARE_IDS, ids, graphs)
        for row in connection.execute(NODES_BY_ID[by_name], parameters)
    ]
    graphs_by_id = sources_by_id(connection, (row.graph for row in rows))
    for row in rows:
        by_id.setdefault(row.id, []).append(to_node(row, graphs_by_id))
    graph_positions = {graph: position for position, graph in enumerate(graphs)}
    for same_id_nodes in by_id.values():
        same_id_nodes.sort(key=lambda node: graph_positions[node.graph.id])
    return [node for node_id in ids for node in by_id.get(node_id, ())]


def nodes_by_number(
    connection: Connection, graphs: Sequence[SourceId], numbers: Sequence[int]
) -> dict[int, Node]:
    """Return nodes of these graphs by number."""
    graphs_by_id = sources_by_id(connection, graphs)
    return {
        row.number: to_node(row, graphs_by_id) for row in fetch_in_blocks(connection, _BY_NUMBER, numbers)
    }


def node_page(
    connection: Connection,
    graphs: Sequence[SourceId],
    *,
    type: str | None = None,
    min_trust: MinTrust | None = None,
    after: str | None = None,
    limit: int,
) -> NodePage:
    graphs_by_id = sources_by_id(connection, graphs)
    query = _NODES if type is None else _NODES.where(nodes.c.type == type)
    if min_trust is not None:
        query = query.where(nodes.c.trust.in_(levels_from(min_trust)))
    if after is not None:
        query = query.where(tuple_(nodes.c.id, nodes.c.graph) > tuple_(*from_cursor(after, (str, str))))
    ordered = query.order_by(nodes.c.id, nodes.c.graph).limit(limit + 1)
    rows = connection.execute(ordered, {"graphs": list(graphs_by_id)}).all()
    page_nodes = tuple(to_node(row, graphs_by_id) for row in rows[:limit])
    if len(rows) <= limit:
        return NodePage(page_nodes, None)
    last = rows[limit - 1]
    return NodePage(page_nodes, to_cursor(last.id, last.graph))


def edge_page(
    connection: Connection,
    graphs: Sequence[SourceId],
    *,
    node: str | None = None,
    min_trust: MinTrust | None = None,
    after: str | None = None,
    limit: int,
) -> EdgePage:
    graphs_by_id = sources_by_id(connection, graphs)
    page: dict[str, Any] = {
        "graphs": list(graphs_by_id),
        "after": 0 if after is None else from_cursor(after, (int,))[0],
        "maximum": limit + 1,
    }
    if node is None:
        query = _EDGE_PAGE
        if min_trust is not None:
            query = query.where(edges.c.trust.in_(levels_from(min_trust)))
        rows = connection.execute(query, page).all()
    else:
        node_rows = connection.execute(_NUMBERS, {"graphs": list(graphs_by_id), "ids": [node]})
        node_numbers = node_rows.scalars().all()
        query_of_numbers = _select_edge_numbers(min_trust).order_by(edges.c.number.name).limit(limit + 1)
        edge_rows = connection.execute(query_of_numbers, {"ids": node_numbers, "after": page["after"]})
        edge_numbers = edge_rows.scalars().all()
        rows = connection.execute(_BY_EDGE, {"ids": edge_numbers}).all()
    page_edges = tuple(to_edge(row, graphs_by_id) for row in rows[:limit])
    return EdgePage(page_edges, to_cursor(rows[limit - 1].number) if len(rows) > limit else None)


def _select_edge_numbers(min_trust: MinTrust | None) -> CompoundSelect[Any]:
    """Return a query of the numbers of the edges of nodes, from a trust level on."""
    beyond = _AFTER_CURSOR
    if min_trust is not None:
        beyond = and_(_AFTER_CURSOR, edges.c.trust.in_(levels_from(min_trust)))
    ends = (edges.c.source, edges.c.target)
    return union(*(select(edges.c.number).where(end.in_(IDS), beyond) for end in ends))


def edges_by_id(connection: Connection, graphs: Sequence[SourceId], ids: Sequence[str]) -> list[Edge]:
    graphs_by_id = sources_by_id(connection, graphs)
    rows = fetch_in_blocks(connection, _EDGES_BY_ID, dict.fromkeys(ids), graphs=list(graphs_by_id), after=0)
    by_id = {row.id: to_edge(row, graphs_by_id) for row in rows}
    return [by_id[edge_id] for edge_id in ids if edge_id in by_id]


def nodes_by_name(
    connection: Connection, graphs: Sequence[SourceId], keys: Sequence[str]
) -> list[tuple[str, Node]]:
    rows = [
        row
        for by_name, parameters in split_by_cost(connection, _RARE_KEYS, keys, graphs)
        for row in connection.execute(NODES_BY_NAME[by_name], parameters)
    ]
    graphs_by_id = sources_by_id(connection, (row.graph for row in rows))
    order = {key: position for position, key in enumerate(keys)}
    rows.sort(key=lambda row: (order[row.key], row.id, row.graph))
    return [(row.key, to_node(row[1:], graphs_by_id)) for row in rows]


def nodes_by_terms(
    connection: Connection,
    graphs: Sequence[SourceId],
    words: Sequence[str],
    *,
    min_trust: MinTrust | None = None,
    limit: int,
) -> list[tuple[Node, int]]:
    parameters = {"graphs": list(graphs), "ids": list(dict.fromkeys(words)), "maximum": limit}
    query = _NODES_BY_TERMS
    if min_trust is not None:
        query = query.where(nodes.c.trust.in_(levels_from(min_trust)))
    rows = connection.execute(query, parameters).all()
    by_number = nodes_by_number(connection, graphs, [row.number for row in rows])
    return [(by_number[row.number], row.matches) for row in rows]


def summary(connection: Connection, graph: SourceId) -> GraphSummary:
    graphs_by_id = sources_by_id(connection, [graph])
    if graph not in graphs_by_id:
        raise NotFound("graph", graph)
    types, relations = (_count_by_type(connection, table, graph) for table in (nodes, edges))
    return GraphSummary(graphs_by_id[graph], sum(types.values()), sum(relations.values()), types, relations)


def _count_by_type(connection: Connection, table: Table, graph: SourceId) -> dict[str, int]:
    """Return the number of nodes or edges by type, most first."""
    here = select(table.c.type, func.count()).where(table.c.graph == graph, table.c.aside == IN_GRAPH)
    ordered = here.group_by(table.c.type).order_by(func.count().desc(), table.c.type)
    return {row[0]: row[1] for row in connection.execute(ordered)}


def read_at(connection: Connection, graph: SourceId, instant: datetime) -> tuple[list[Node], list[Edge]]:
    """Return the nodes valid at an instant, and the edges with both ends valid."""
    graphs_by_id = sources_by_id(connection, [graph])
    moment = to_microseconds(instant)
    query = _NODES.where(is_valid_at(nodes.c.valid_from, nodes.c.valid_until, moment)).order_by(nodes.c.id)
    valid_nodes = {
        row.number: to_node(row, graphs_by_id) for row in connection.execute(query, {"graphs": [graph]})
    }
    valid_edges = _EDGES.where(is_valid_at(edges.c.valid_from, edges.c.valid_until, moment)).order_by(
        edges.c.number
    )
    with_ends = valid_edges.add_columns(edges.c.source, edges.c.target)
    rows = connection.execute(with_ends, {"graphs": [graph], "after": 0})
    edges_between = [
        to_edge(row, graphs_by_id) for row in rows if row.source in valid_nodes and row.target in valid_nodes
    ]
    return list(valid_nodes.values()), edges_between


def is_valid_at(
    begins: ColumnElement[Any], ends: ColumnElement[Any], moment: int | ColumnElement[Any]
) -> ColumnElement[bool]:
    """Return the condition that a row was valid at an instant; both ends are included, and None is open."""
    return and_(or_(begins.is_(None), begins <= moment), or_(ends.is_(None), ends >= moment))


def edges_without_other_evidence(connection: Connection, ids: Sequence[str]) -> list[int]:
    """Return the edges without other evidence than these documents, which are deleted with them.

    Edges ended by such an edge stay ended, since no evidence says that they are valid again.
    """
    deleted_documents = set(ids)
    supported_edges = {row.edge for row in fetch_in_blocks(connection, _EDGES_OF_DOCUMENTS, ids)}
    evidence_rows = fetch_in_blocks(connection, _EVIDENCE_OF_EDGES, sorted(supported_edges))
    edges_that_stay = {edge for edge, document in evidence_rows if document not in deleted_documents}
    return sorted(supported_edges - edges_that_stay)


def event_list(connection: Connection, graph: SourceId, *, node: str | None = None) -> list[NodeEvent]:
    query = select(*events.c).where(events.c.graph == graph).order_by(events.c.number)
    all_events = [to_event(row) for row in connection.execute(query)]
    return [event for event in all_events if node is None or node in (*event.before, *event.after)]
