"""Manual merges of nodes, and their undoing.

A merge removes the other nodes from the graph and moves their edges to the remaining one. An edge that would
become a loop or a duplicate is removed too. Everything stays stored under the number of the merge, so that a
split can restore it.
"""

import json
from collections.abc import Sequence
from typing import Any, TypeAlias

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Row,
    Table,
    Update,
    bindparam,
    delete,
    exists,
    insert,
    or_,
    select,
    update,
)

from conspectus.errors import Conflict, NotFound
from conspectus.model.graph import Node, NodeEvent
from conspectus.model.ids import SourceId
from conspectus.model.trust import HIGHEST, Origin, Trust
from conspectus.records.core.counters import allocate
from conspectus.records.core.levels import lower_origin, lower_trust
from conspectus.records.core.rows import to_moment
from conspectus.records.core.statements import IDS, fetch_in_blocks, fetch_scalar
from conspectus.records.graph.reads import nodes_by_id
from conspectus.records.graph.rows import IN_GRAPH, add_evidence, event_values
from conspectus.records.tables.graph import edges, events, evidence, moves, names, nodes, terms
from conspectus.text.hashing import edge_id, edge_id_as_spelled

_MERGED_NODES = select(nodes).where(
    nodes.c.graph == bindparam("of"), nodes.c.id.in_(IDS), nodes.c.aside == bindparam("aside")
)
_TOUCHING = (
    select(edges)
    .where(or_(edges.c.source.in_(IDS), edges.c.target.in_(IDS)), edges.c.aside == IN_GRAPH)
    .order_by(edges.c.number)
)
_EDGE_BY_ID = select(edges.c.number).where(edges.c.id == bindparam("name"), edges.c.aside == IN_GRAPH)
_MOVED_EDGES = select(edges, moves.c.source.label("old_source"), moves.c.target.label("old_target")).join(
    moves, moves.c.edge == edges.c.number
)
_UPDATE_EDGE = update(edges).where(edges.c.number == bindparam("at"))
_LOWER_NODE, _LOWER_EDGE = (
    update(table)
    .where(table.c.number == bindparam("at"))
    .values(trust=lower_trust(table.c.trust), origin=lower_origin(table.c.origin))
    for table in (nodes, edges)
)
Level: TypeAlias = tuple[Origin, Trust]
_WORD_COLUMNS: tuple[tuple[Table, Column[Any]], ...] = ((names, names.c.key), (terms, terms.c.term))


def merge(
    connection: Connection,
    graph: SourceId,
    keep: str,
    others: Sequence[str],
    event: NodeEvent,
    *,
    origin: Origin = "user",
) -> Node:
    """Merge nodes into one, which has the lowest level of all and of the writer. Raises NotFound."""
    ids = list(dict.fromkeys((keep, *others)))
    rows_by_id = _read_nodes(connection, graph, ids, aside=IN_GRAPH)
    for name in ids:
        if name not in rows_by_id:
            raise NotFound("node", name)
    target, merged = rows_by_id[keep], [rows_by_id[name] for name in ids if name != keep]
    number = allocate(connection, "graph_event", 1)
    connection.execute(insert(events), event_values(graph, number, event))
    _redirect_edges(connection, number, target, merged, origin)
    _add_names(connection, number, target, merged)
    _lower(connection, _LOWER_NODE, target.number, [(origin, HIGHEST[origin]), *_levels(merged)])
    aside = update(nodes).where(nodes.c.number.in_([row.number for row in merged]))
    connection.execute(aside.values(aside=number))
    return nodes_by_id(connection, [graph], [keep])[0]


def split(connection: Connection, graph: SourceId, merge: int, event: NodeEvent) -> list[Node]:
    """Undo a merge: restore the nodes, with those of their edges that still exist.

    Additions to the kept node stay with it. Raises NotFound, or Conflict if the merge was undone already, a
    node exists again, or a later merge depends on it.
    """
    record = connection.execute(select(events).where(events.c.number == merge)).one_or_none()
    if record is None or record.graph != graph or record.kind != "merge":
        raise NotFound("merge", str(merge))
    keep, *others = json.loads(record.before)
    _require_last(connection, record)
    for name in _read_nodes(connection, graph, others, aside=IN_GRAPH):
        raise Conflict("node", name, "exists again")
    target = _read_nodes(connection, graph, [keep], aside=IN_GRAPH).get(keep)
    if target is None:
        raise NotFound("node", keep)
    merged = _read_nodes(connection, graph, others, aside=merge)
    connection.execute(update(nodes).where(nodes.c.aside == merge).values(aside=IN_GRAPH))
    _restore_edges(connection, merge, {row.number: row.id for row in merged.values()})
    _remove_names(connection, merge, target)
    connection.execute(update(events).where(events.c.number == merge).values(undone=1))
    number = allocate(connection, "graph_event", 1)
    connection.execute(insert(events), event_values(graph, number, event))
    return nodes_by_id(connection, [graph], [keep, *others])


def _read_nodes(
    connection: Connection, graph: SourceId, ids: Sequence[str], *, aside: int
) -> dict[str, Row[*tuple[Any, ...]]]:
    return {row.id: row for row in fetch_in_blocks(connection, _MERGED_NODES, ids, of=graph, aside=aside)}


def _rename(row: Row[*tuple[Any, ...]], source: str, target: str) -> str:
    """Return the id of an edge between other nodes, made as its id was."""
    begins = to_moment(row.valid_from)
    spelled = edge_id_as_spelled(row.graph, row.source_id, row.target_id, row.type, begins)
    make_id = edge_id_as_spelled if row.id == spelled else edge_id
    return make_id(row.graph, source, target, row.type, begins)


def _redirect_edges(
    connection: Connection,
    merge: int,
    survivor: Row[*tuple[Any, ...]],
    merged: Sequence[Row[*tuple[Any, ...]]],
    origin: Origin,
) -> None:
    """Redirect the edges of the other nodes to the kept node, or remove them.

    They then are at most at the level of the writer.
    """
    numbers = {row.number for row in merged}
    merged_numbers = numbers | {survivor.number}
    touching = {row.number: row for row in fetch_in_blocks(connection, _TOUCHING, sorted(numbers))}
    for row in touching.values():
        source = (survivor.number, survivor.id) if row.source in numbers else (row.source, row.source_id)
        target = (survivor.number, survivor.id) if row.target in numbers else (row.target, row.target_id)
        name = _rename(row, source[1], target[1])
        equal_edge = fetch_scalar(connection, _EDGE_BY_ID, {"name": name})
        is_loop = row.source != row.target and {row.source, row.target} <= merged_numbers
        if is_loop or equal_edge is not None:
            connection.execute(_UPDATE_EDGE.values(aside=merge), {"at": row.number})
            if equal_edge is not None:
                _move_evidence(connection, merge, row.number, equal_edge)
                levels = [*_levels([row]), (origin, HIGHEST[origin])]
                _lower(connection, _LOWER_EDGE, equal_edge, levels)
            continue
        connection.execute(
            insert(moves), {"event": merge, "edge": row.number, "source": row.source, "target": row.target}
        )
        _redirect(connection, row.number, name, source=source, target=target)
        _lower(connection, _LOWER_EDGE, row.number, [(origin, HIGHEST[origin])])


def _levels(rows: Sequence[Row[*tuple[Any, ...]]]) -> list[Level]:
    return [(row.origin, row.trust) for row in rows]


def _lower(connection: Connection, statement: Update, number: int, levels: Sequence[Level]) -> None:
    """Lower a node or an edge to the lowest of some levels."""
    for origin, trust in levels:
        connection.execute(statement, {"at": number, "new_origin": origin, "new_trust": trust})


def _redirect(
    connection: Connection, edge: int, name: str, *, source: tuple[int, str], target: tuple[int, str]
) -> None:
    ends = {"source": source[0], "source_id": source[1], "target": target[0], "target_id": target[1]}
    connection.execute(_UPDATE_EDGE.values(id=name, **ends), {"at": edge})


def _move_evidence(connection: Connection, merge: int, edge: int, equal_edge: int) -> None:
    """Add the evidence of an edge to the equal one that stays."""
    stored_evidence = select(evidence.c.document).where(evidence.c.edge == equal_edge)
    more = select(evidence.c.document).where(
        evidence.c.edge == edge, evidence.c.document.not_in(stored_evidence)
    )
    rows = [
        {"edge": equal_edge, "document": name, "merge": merge} for name in connection.execute(more).scalars()
    ]
    if rows:
        add_evidence(connection, rows)


def _add_names(
    connection: Connection,
    merge: int,
    target: Row[*tuple[Any, ...]],
    removed: Sequence[Row[*tuple[Any, ...]]],
) -> None:
    """Make the kept node searchable by the names of the others, and independent of documents."""
    merged_names: dict[str, None] = {}
    for row in removed:
        earlier_merges = [alias for _, alias in json.loads(row.merged)]
        merged_names |= dict.fromkeys([row.name, *json.loads(row.aliases), *earlier_merges])
    merged = json.loads(target.merged)
    merged += [[merge, alias] for alias in merged_names if alias != target.name]
    as_json = json.dumps(merged, ensure_ascii=False)
    connection.execute(update(nodes).where(nodes.c.number == target.number).values(merged=as_json, passing=0))
    for table, word in _WORD_COLUMNS:
        words = set(connection.execute(select(word).where(table.c.node == target.number)).scalars())
        merged_words = select(word).where(table.c.node.in_([row.number for row in removed])).distinct()
        rows = [
            {"graph": target.graph, word.name: text, "node": target.number, "merge": merge}
            for text in connection.execute(merged_words).scalars()
            if text not in words
        ]
        if rows:
            connection.execute(insert(table), rows)


def _require_last(connection: Connection, record: Row[*tuple[Any, ...]]) -> None:
    """Raise Conflict if the merge was undone, or nodes of its moved edges were merged since."""
    if record.undone:
        raise Conflict("merge", str(record.number), "was undone already")
    concerned_nodes = set(json.loads(record.before))
    is_concerned: ColumnElement[bool] = or_(
        edges.c.aside == record.number,
        edges.c.number.in_(select(moves.c.edge).where(moves.c.event == record.number)),
    )
    for row in connection.execute(select(edges.c.source_id, edges.c.target_id).where(is_concerned)):
        concerned_nodes |= set(row)
    later = select(events).where(
        events.c.graph == record.graph,
        events.c.kind == "merge",
        events.c.undone == 0,
        events.c.number > record.number,
    )
    for row in connection.execute(later):
        if not concerned_nodes.isdisjoint(json.loads(row.before)):
            raise Conflict(
                "merge", str(record.number), f"merge {row.number} depends on it; undo that one first"
            )


def _restore_edges(connection: Connection, merge: int, ids_by_number: dict[int, str]) -> None:
    """Restore the ends that edges had before the merge, unless their nodes are deleted."""
    for row in connection.execute(_MOVED_EDGES.where(moves.c.event == merge)).all():
        source = (row.old_source, ids_by_number.get(row.old_source, row.source_id))
        target = (row.old_target, ids_by_number.get(row.old_target, row.target_id))
        name = _rename(row, source[1], target[1])
        _redirect(connection, row.number, name, source=source, target=target)
    connection.execute(delete(moves).where(moves.c.event == merge))
    connection.execute(update(edges).where(edges.c.aside == merge).values(aside=IN_GRAPH))
    connection.execute(delete(evidence).where(evidence.c.merge == merge))
    has_edges = exists().where(or_(edges.c.source == nodes.c.number, edges.c.target == nodes.c.number))
    connection.execute(
        delete(nodes).where(nodes.c.number.in_(ids_by_number), nodes.c.passing == 1, ~has_edges)
    )


def _remove_names(connection: Connection, merge: int, target: Row[*tuple[Any, ...]]) -> None:
    """Remove the names that were added by a merge."""
    remaining = [[number, alias] for number, alias in json.loads(target.merged) if number != merge]
    as_json = json.dumps(remaining, ensure_ascii=False)
    connection.execute(update(nodes).where(nodes.c.number == target.number).values(merged=as_json))
    for table, _ in _WORD_COLUMNS:
        connection.execute(delete(table).where(table.c.node == target.number, table.c.merge == merge))
