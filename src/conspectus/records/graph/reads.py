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
from conspectus.records.core.dialects import given
from conspectus.records.core.name_lookup import one_of, parted, rare
from conspectus.records.core.pages import from_cursor, to_cursor
from conspectus.records.core.statements import IDS, rows_in
from conspectus.records.graph.rows import EDGES, HERE, NODE_COLUMNS, sources_by_id, to_edge, to_event, to_node
from conspectus.records.tables.graph import edges, events, evidence, names, nodes, terms
from conspectus.text.times import to_microseconds

_GRAPHS: BindParameter[Any] = bindparam("graphs", expanding=True)
_NODES = select(*NODE_COLUMNS).where(nodes.c.graph.in_(_GRAPHS), nodes.c.aside == HERE)
_BY_ID = _NODES.where(nodes.c.id.in_(IDS))
_NUMBERS = _BY_ID.with_only_columns(nodes.c.number)
_BY_NUMBER = select(*NODE_COLUMNS).where(nodes.c.number.in_(IDS), nodes.c.aside == HERE)
_CALLED = select(names.c.key, *NODE_COLUMNS).join(nodes, nodes.c.number == names.c.node)
_CALLED = _CALLED.where(names.c.key.in_(given("ids")), nodes.c.aside == HERE)
CALLED: Final = {way: _CALLED.where(one_of(names.c.graph, "sources", by_name=way)) for way in (False, True)}
_RARE_KEYS = rare(names.c.key)
_CALLED_SO = select(*NODE_COLUMNS).where(nodes.c.id.in_(given("ids")), nodes.c.aside == HERE)
NODES_BY_ID: Final = {
    way: _CALLED_SO.where(one_of(nodes.c.graph, "sources", by_name=way)) for way in (False, True)
}
RARE_IDS: Final = rare(nodes.c.id)
_MATCHES = func.count().label("matches")
_LIKE = (
    select(nodes.c.number, _MATCHES)
    .join(nodes, nodes.c.number == terms.c.node)
    .where(terms.c.graph.in_(_GRAPHS), terms.c.term.in_(IDS), nodes.c.aside == HERE)
    .group_by(nodes.c.number, nodes.c.id, nodes.c.graph)
    .order_by(_MATCHES.desc(), nodes.c.id, nodes.c.graph)
    .limit(bindparam("maximum"))
)
_EDGES = EDGES.where(edges.c.graph.in_(_GRAPHS), edges.c.aside == HERE, edges.c.number > bindparam("after"))
_EDGES_BY_ID = _EDGES.where(edges.c.id.in_(IDS))
_EDGE_PAGE = _EDGES.order_by(edges.c.number).limit(bindparam("maximum"))
_BEYOND = and_(edges.c.aside == HERE, edges.c.number > bindparam("after"))
_BY_EDGE = EDGES.where(edges.c.number.in_(IDS)).order_by(edges.c.number)
_RESTING = (
    select(evidence.c.edge)
    .distinct()
    .join(edges, edges.c.number == evidence.c.edge)
    .where(evidence.c.document.in_(IDS), edges.c.stands == 0)
)
_PROOFS = select(evidence.c.edge, evidence.c.document).where(evidence.c.edge.in_(IDS))


def nodes_by_id(connection: Connection, graphs: Sequence[SourceId], ids: Sequence[str]) -> list[Node]:
    """Return the nodes that exist, in the given order; an id may be in several graphs."""
    found: dict[str, list[Node]] = {}
    rows = [
        row
        for by_name, traversal in parted(connection, RARE_IDS, ids, graphs)
        for row in connection.execute(NODES_BY_ID[by_name], traversal)
    ]
    known = sources_by_id(connection, (row.graph for row in rows))
    for row in rows:
        found.setdefault(row.id, []).append(to_node(row, known))
    places = {graph: place for place, graph in enumerate(graphs)}
    for several in found.values():
        several.sort(key=lambda node: places[node.graph.id])
    return [node for each in ids for node in found.get(each, ())]


def nodes_by_number(
    connection: Connection, graphs: Sequence[SourceId], numbers: Sequence[int]
) -> dict[int, Node]:
    """Return nodes of these graphs by number."""
    known = sources_by_id(connection, graphs)
    return {row.number: to_node(row, known) for row in rows_in(connection, _BY_NUMBER, numbers)}


def node_page(
    connection: Connection,
    graphs: Sequence[SourceId],
    *,
    type: str | None = None,
    min_trust: MinTrust | None = None,
    after: str | None = None,
    limit: int,
) -> NodePage:
    known = sources_by_id(connection, graphs)
    chosen = _NODES if type is None else _NODES.where(nodes.c.type == type)
    if min_trust is not None:
        chosen = chosen.where(nodes.c.trust.in_(levels_from(min_trust)))
    if after is not None:
        chosen = chosen.where(tuple_(nodes.c.id, nodes.c.graph) > tuple_(*from_cursor(after, (str, str))))
    ordered = chosen.order_by(nodes.c.id, nodes.c.graph).limit(limit + 1)
    rows = connection.execute(ordered, {"graphs": list(known)}).all()
    found = tuple(to_node(row, known) for row in rows[:limit])
    return NodePage(
        found, to_cursor(rows[limit - 1].id, rows[limit - 1].graph) if len(rows) > limit else None
    )


def edge_page(
    connection: Connection,
    graphs: Sequence[SourceId],
    *,
    node: str | None = None,
    min_trust: MinTrust | None = None,
    after: str | None = None,
    limit: int,
) -> EdgePage:
    known = sources_by_id(connection, graphs)
    page: dict[str, Any] = {
        "graphs": list(known),
        "after": 0 if after is None else from_cursor(after, (int,))[0],
        "maximum": limit + 1,
    }
    if node is None:
        allowed = edges.c.trust.in_(levels_from(min_trust))
        chosen_edges = _EDGE_PAGE if min_trust is None else _EDGE_PAGE.where(allowed)
        rows = connection.execute(chosen_edges, page).all()
    else:
        own = connection.execute(_NUMBERS, {"graphs": list(known), "ids": [node]}).scalars().all()
        numbers = _of_node(min_trust).order_by(edges.c.number.name).limit(limit + 1)
        chosen = connection.execute(numbers, {"ids": own, "after": page["after"]}).scalars().all()
        rows = connection.execute(_BY_EDGE, {"ids": chosen}).all()
    found = tuple(to_edge(row, known) for row in rows[:limit])
    return EdgePage(found, to_cursor(rows[limit - 1].number) if len(rows) > limit else None)


def _of_node(min_trust: MinTrust | None) -> CompoundSelect[Any]:
    """Return the numbers of the edges of nodes, those from a level on."""
    beyond = _BEYOND
    if min_trust is not None:
        beyond = and_(_BEYOND, edges.c.trust.in_(levels_from(min_trust)))
    ends = (edges.c.source, edges.c.target)
    return union(*(select(edges.c.number).where(end.in_(IDS), beyond) for end in ends))


def edges_by_id(connection: Connection, graphs: Sequence[SourceId], ids: Sequence[str]) -> list[Edge]:
    known = sources_by_id(connection, graphs)
    rows = rows_in(connection, _EDGES_BY_ID, dict.fromkeys(ids), graphs=list(known), after=0)
    found = {row.id: to_edge(row, known) for row in rows}
    return [found[each] for each in ids if each in found]


def nodes_by_name(
    connection: Connection, graphs: Sequence[SourceId], keys: Sequence[str]
) -> list[tuple[str, Node]]:
    rows = [
        row
        for by_name, traversal in parted(connection, _RARE_KEYS, keys, graphs)
        for row in connection.execute(CALLED[by_name], traversal)
    ]
    known = sources_by_id(connection, (row.graph for row in rows))
    order = {key: place for place, key in enumerate(keys)}
    rows.sort(key=lambda row: (order[row.key], row.id, row.graph))
    return [(row.key, to_node(row[1:], known)) for row in rows]


def nodes_by_terms(
    connection: Connection,
    graphs: Sequence[SourceId],
    words: Sequence[str],
    *,
    min_trust: MinTrust | None = None,
    limit: int,
) -> list[tuple[Node, int]]:
    traversal = {"graphs": list(graphs), "ids": list(dict.fromkeys(words)), "maximum": limit}
    chosen = _LIKE if min_trust is None else _LIKE.where(nodes.c.trust.in_(levels_from(min_trust)))
    rows = connection.execute(chosen, traversal).all()
    found = nodes_by_number(connection, graphs, [row.number for row in rows])
    return [(found[row.number], row.matches) for row in rows]


def summary(connection: Connection, graph: SourceId) -> GraphSummary:
    known = sources_by_id(connection, [graph])
    if graph not in known:
        raise NotFound("graph", graph)
    types, relations = (_counts(connection, table, graph) for table in (nodes, edges))
    return GraphSummary(known[graph], sum(types.values()), sum(relations.values()), types, relations)


def _counts(connection: Connection, table: Table, graph: SourceId) -> dict[str, int]:
    """Return the number of nodes or edges by type, most first."""
    here = select(table.c.type, func.count()).where(table.c.graph == graph, table.c.aside == HERE)
    ordered = here.group_by(table.c.type).order_by(func.count().desc(), table.c.type)
    return {row[0]: row[1] for row in connection.execute(ordered)}


def at(connection: Connection, graph: SourceId, instant: datetime) -> tuple[list[Node], list[Edge]]:
    """Return the nodes valid at an instant, and the edges with both ends valid."""
    known = sources_by_id(connection, [graph])
    moment = to_microseconds(instant)
    there = _NODES.where(valid(nodes.c.valid_from, nodes.c.valid_until, moment)).order_by(nodes.c.id)
    found = {row.number: to_node(row, known) for row in connection.execute(there, {"graphs": [graph]})}
    held = _EDGES.where(valid(edges.c.valid_from, edges.c.valid_until, moment)).order_by(edges.c.number)
    ended = held.add_columns(edges.c.source, edges.c.target)
    rows = connection.execute(ended, {"graphs": [graph], "after": 0})
    return list(found.values()), [
        to_edge(row, known) for row in rows if row.source in found and row.target in found
    ]


def valid(
    begins: ColumnElement[Any], ends: ColumnElement[Any], moment: int | ColumnElement[Any]
) -> ColumnElement[bool]:
    """Return whether something was valid at an instant; both ends are included, and None is open."""
    return and_(or_(begins.is_(None), begins <= moment), or_(ends.is_(None), ends >= moment))


def resting_edges(connection: Connection, ids: Sequence[str]) -> list[int]:
    """Return the edges without other evidence than these documents, which are deleted with them.

    Edges ended by such an edge stay ended, since no evidence says that they are valid again.
    """
    going = set(ids)
    touched = {row.edge for row in rows_in(connection, _RESTING, ids)}
    proofs = rows_in(connection, _PROOFS, sorted(touched))
    return sorted(touched - {edge for edge, document in proofs if document not in going})


def event_list(connection: Connection, graph: SourceId, *, node: str | None = None) -> list[NodeEvent]:
    chosen = select(*events.c).where(events.c.graph == graph).order_by(events.c.number)
    found = [to_event(row) for row in connection.execute(chosen)]
    return [each for each in found if node is None or node in (*each.before, *each.after)]
