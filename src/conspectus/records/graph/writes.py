"""Writes of graphs: adding nodes and edges."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Column, Connection, Row, Table, and_, bindparam, delete, or_, select, update

from conspectus.errors import DanglingEdges, NotFound
from conspectus.model.graph import Edge, GraphWritten, WriteOutcome
from conspectus.model.ids import SourceId
from conspectus.ports.graphs import Adding
from conspectus.records.core.counters import allocate
from conspectus.records.core.levels import level_below, lower_origin, lower_trust
from conspectus.records.core.statements import IDS, execute_in_blocks, fetch_in_blocks, insert_rows
from conspectus.records.graph.rows import (
    IN_GRAPH,
    add_evidence,
    began,
    edge_values,
    node_values,
    sources_by_id,
)
from conspectus.records.tables.core import documents
from conspectus.records.tables.graph import edges, evidence, names, nodes, terms
from conspectus.text.hashing import edge_id_as_spelled
from conspectus.text.times import to_microseconds

Values = dict[str, Any]

_NODES = select(nodes).where(nodes.c.graph == bindparam("of"), nodes.c.id.in_(IDS), nodes.c.aside == IN_GRAPH)
_NUMBERS = _NODES.with_only_columns(nodes.c.id, nodes.c.number)
_EDGES = select(edges).where(edges.c.id.in_(IDS), edges.c.aside == IN_GRAPH)
_EVIDENCE = select(evidence.c.edge, evidence.c.document).where(evidence.c.edge.in_(IDS))
_DOCUMENTS = select(documents.c.id).where(documents.c.id.in_(IDS))
_CHANGE_NODE = (
    update(nodes)
    .where(nodes.c.number == bindparam("at"))
    .values(trust=lower_trust(nodes.c.trust), origin=lower_origin(nodes.c.origin))
)
_CHANGE_EDGE = (
    update(edges)
    .where(edges.c.number == bindparam("at"))
    .values(trust=lower_trust(edges.c.trust), origin=lower_origin(edges.c.origin))
)
_SAME_RELATION = and_(
    edges.c.source == bindparam("from"),
    edges.c.type_key == bindparam("relation"),
    edges.c.target != bindparam("to"),
    edges.c.aside == IN_GRAPH,
)
_ENDED_BY = select(edges).where(edges.c.closed_by == bindparam("at"), edges.c.aside == IN_GRAPH)
_NEXT_SINGLE = (
    select(edges.c.number, edges.c.id, edges.c.began, edges.c.origin, edges.c.trust)
    .where(_SAME_RELATION, edges.c.single == 1, edges.c.began > bindparam("since"))
    .order_by(edges.c.began, edges.c.number)
    .limit(1)
)
_ENDED_LATER = and_(edges.c.closed_by.is_not(None), edges.c.valid_until > bindparam("since"))
_OPEN_EDGES = (
    select(edges.c.number, edges.c.id, edges.c.origin, edges.c.trust)
    .where(
        _SAME_RELATION, edges.c.began <= bindparam("since"), or_(edges.c.valid_until.is_(None), _ENDED_LATER)
    )
    .order_by(edges.c.number)
)
NODE_FIELDS = ("type", "name", "aliases", "properties", "valid_from", "valid_until")


def add(connection: Connection, adding: Adding) -> list[GraphWritten]:
    """Store nodes, then edges. Raises NotFound and DanglingEdges."""
    graphs = {node.graph.id: node.graph for node in adding.nodes}
    graphs |= {edge.graph.id: edge.graph for edge in adding.edges}
    for graph in graphs.keys() - sources_by_id(connection, graphs).keys():
        raise NotFound("graph", graphs[graph].name)
    return [*_add_nodes(connection, adding), *_add_edges(connection, adding)]


def _add_nodes(connection: Connection, adding: Adding) -> list[GraphWritten]:
    stored = _read_stored_nodes(connection, adding)
    fresh: dict[tuple[str, str], Values] = {}
    changed: dict[tuple[str, str], Values] = {}
    written = []
    for node in adding.nodes:
        key = (node.graph.id, node.id)
        new = node_values(node, passing=node.id in adding.passing)
        before = stored.get(key)
        outcome: WriteOutcome = "unchanged"
        if before is None:
            stored[key] = fresh[key] = new
            outcome = "added"
        elif not new["passing"] and (new_values := _changes(before, new)):
            before.update(new_values | _lower(new, before))
            if key not in fresh:
                changed[key] = before
            outcome = "updated"
        written.append(GraphWritten(node.id, outcome))
    _insert_nodes(connection, list(fresh.values()))
    _change_nodes(connection, list(changed.values()))
    _store_names(connection, adding, [*fresh.values(), *changed.values()], anew=bool(changed))
    return written


def _read_stored_nodes(connection: Connection, adding: Adding) -> dict[tuple[str, str], Values]:
    """Return the stored nodes by graph and id."""
    ids_by_graph: dict[str, list[str]] = {}
    for node in adding.nodes:
        ids_by_graph.setdefault(node.graph.id, []).append(node.id)
    return {
        (graph, row.id): dict(row._mapping)
        for graph, ids in ids_by_graph.items()
        for row in fetch_in_blocks(connection, _NODES, ids, of=graph)
    }


def _changes(stored: Values, new: Values) -> Values:
    """Return the changed columns of a stored node; empty if nothing changes."""
    new_values = {name: new[name] for name in NODE_FIELDS if new[name] != stored[name]}
    if stored["passing"]:
        new_values["passing"] = 0
    return {**new_values, "updated": new["updated"]} if new_values else {}


def _lower(new: Values, stored: Values) -> Values:
    """Return the level of a stored node or edge that another one changes: the lower of both."""
    level = level_below((new["origin"], new["trust"]), (stored["origin"], stored["trust"]))
    return {"origin": level[0], "trust": level[1]}


def _new_level(row: Values) -> Values:
    """Return the level of a row as the parameters of an update, which only lowers it."""
    return {"new_origin": row["origin"], "new_trust": row["trust"]}


def _insert_nodes(connection: Connection, rows: Sequence[Values]) -> None:
    if rows:
        first = allocate(connection, "graph_node", len(rows))
        for offset, row in enumerate(rows):
            row["number"] = first + offset
        insert_rows(connection, nodes, rows)


def _change_nodes(connection: Connection, rows: Sequence[Values]) -> None:
    if not rows:
        return
    fields = (*NODE_FIELDS, "passing", "updated")
    change = _CHANGE_NODE.values({name: bindparam(f"new_{name}") for name in fields})
    parameters = [
        {"at": row["number"], **_new_level(row), **{f"new_{name}": row[name] for name in fields}}
        for row in rows
    ]
    connection.execute(change, parameters)


def _store_names(connection: Connection, adding: Adding, rows: Sequence[Values], *, anew: bool) -> None:
    """Store the names and words of nodes. Those from a merge are kept."""
    numbers = [row["number"] for row in rows]
    for table, column, words_by_node in (
        (names, names.c.key, adding.keys),
        (terms, terms.c.term, adding.terms),
    ):
        merged_words = _delete_words(connection, table, column, numbers) if anew else set()
        rows_to_insert = [
            {"graph": row["graph"], column.name: word, "node": row["number"], "merge": IN_GRAPH}
            for row in rows
            for word in dict.fromkeys(words_by_node.get(row["id"], ()))
            if (row["number"], word) not in merged_words
        ]
        insert_rows(connection, table, rows_to_insert)


def _delete_words(
    connection: Connection, table: Table, column: Column[Any], numbers: Sequence[int]
) -> set[tuple[int, str]]:
    """Delete the words of nodes that are not from merges, and return those that are."""
    execute_in_blocks(
        connection, delete(table).where(table.c.node.in_(IDS), table.c.merge == IN_GRAPH), numbers
    )
    merged = fetch_in_blocks(connection, select(table.c.node, column).where(table.c.node.in_(IDS)), numbers)
    return {(node, word) for node, word in merged}


def _add_edges(connection: Connection, adding: Adding) -> list[GraphWritten]:
    if not adding.edges:
        return []
    ends = _numbers_of_ends(connection, adding.edges)
    _require_documents(connection, adding.edges)
    ids = [name for edge in adding.edges for name in (edge.id, _id_as_spelled(edge))]
    stored = fetch_in_blocks(connection, _EDGES, list(dict.fromkeys(ids)))
    writer = _EdgeWriter(connection, {row.id: dict(row._mapping) for row in stored})
    written = []
    for new in adding.edges:
        edge = replace(new, id=writer.stored_id(new.id, _id_as_spelled(new)))
        row = edge_values(edge, single=new.id in adding.single)
        row |= {"source": ends[edge.graph.id, edge.source], "target": ends[edge.graph.id, edge.target]}
        written.append(writer.put(edge, row))
    writer.flush()
    return written


def _id_as_spelled(edge: Edge) -> str:
    return edge_id_as_spelled(edge.graph.id, edge.source, edge.target, edge.type, edge.valid_from)


def _numbers_of_ends(connection: Connection, new: Sequence[Edge]) -> dict[tuple[str, str], int]:
    """Return the numbers of the ends of edges. Raises DanglingEdges."""
    ids_by_graph: dict[str, dict[str, None]] = {}
    for edge in new:
        ids_by_graph.setdefault(edge.graph.id, {}).update({edge.source: None, edge.target: None})
    numbers = {
        (graph, name): number
        for graph, ids in ids_by_graph.items()
        for name, number in fetch_in_blocks(connection, _NUMBERS, ids, of=graph)
    }
    missing = [name for graph, ids in ids_by_graph.items() for name in ids if (graph, name) not in numbers]
    if missing:
        raise DanglingEdges(list(dict.fromkeys(missing)))
    return numbers


def _require_documents(connection: Connection, new: Iterable[Edge]) -> None:
    document_ids = list(dict.fromkeys(edge.evidence for edge in new if edge.evidence is not None))
    stored_ids = {row.id for row in fetch_in_blocks(connection, _DOCUMENTS, document_ids)}
    for name in document_ids:
        if name not in stored_ids:
            raise NotFound("document", name)


def _evidence_by_edge_id(connection: Connection, stored: Iterable[Values]) -> dict[str, set[str]]:
    """Return the documents of stored edges by edge id."""
    ids_by_number = {row["number"]: row["id"] for row in stored}
    evidence_by_id: dict[str, set[str]] = {name: set() for name in ids_by_number.values()}
    for edge, document in fetch_in_blocks(connection, _EVIDENCE, ids_by_number):
        evidence_by_id[ids_by_number[edge]].add(document)
    return evidence_by_id


def withdraw(
    connection: Connection, graph: SourceId, edge: str, *, ends: datetime | None
) -> list[tuple[str, str | None]]:
    """Withdraw the effect of an edge on others, and end it unless it has an end; with None it stays open.

    The edges that it had ended are valid again, until the next single edge begins, if any. Returns them,
    each with the edge that ends it now.
    """
    row = connection.execute(_EDGES.where(edges.c.graph == graph), {"ids": [edge]}).one_or_none()
    if row is None:
        return []
    change: Values = {"single": 0}
    if ends is not None:
        until = max(to_microseconds(ends), row.began) if row.valid_until is None else row.valid_until
        change |= {"valid_until": until, "closed_by": None}
    connection.execute(update(edges).where(edges.c.number == row.number).values(change))
    return [_end_anew(connection, ended) for ended in connection.execute(_ENDED_BY, {"at": row.number}).all()]


def _end_anew(connection: Connection, row: Row[*tuple[Any, ...]]) -> tuple[str, str | None]:
    """Give an edge the end that the next single edge with its relation sets, or none."""
    relation = {"from": row.source, "relation": row.type_key, "to": row.target, "since": row.began}
    later = connection.execute(_NEXT_SINGLE, relation).one_or_none()
    stored_edge = update(edges).where(edges.c.number == row.number)
    if later is None:
        connection.execute(stored_edge.values(valid_until=None, closed_by=None))
        return row.id, None
    connection.execute(stored_edge.values(valid_until=later.began, closed_by=later.number))
    return row.id, later.id


class _EdgeWriter:
    """The edges of one transaction: many are inserted at once, single ones in order."""

    def __init__(self, connection: Connection, stored: Mapping[str, Values]) -> None:
        self._connection = connection
        self._stored = dict(stored)
        self._evidence = _evidence_by_edge_id(connection, stored.values())
        self._new_edges: list[Values] = []
        self._new_evidence: list[tuple[Values, str]] = []

    def stored_id(self, id: str, id_as_spelled: str) -> str:
        """Return the id of a stored edge, which may be an older one, or that of a new one."""
        return id_as_spelled if id not in self._stored and id_as_spelled in self._stored else id

    def put(self, edge: Edge, row: Values) -> GraphWritten:
        """Store an edge or update the stored one."""
        stored = self._stored.get(edge.id)
        if stored is not None:
            return self._change(edge, stored, row)
        self._stored[edge.id] = row
        self._new_edges.append(row)
        self._add_evidence(row, edge.evidence)
        if not row["single"]:
            return GraphWritten(edge.id, "added")
        self.flush()
        return GraphWritten(edge.id, "added", self._end_superseded(row))

    def _change(self, edge: Edge, stored: Values, new: Values) -> GraphWritten:
        new_values = _edge_changes(stored, new)
        has_new_evidence = self._add_evidence(stored, edge.evidence)
        is_updated = has_new_evidence or "updated" in new_values
        lower = _lower(new, stored) if is_updated else {}
        if new_values or lower:
            self.flush()
            stored |= new_values | lower
            parameters = {"at": stored["number"], **_new_level(stored)}
            change = _CHANGE_EDGE.values(new_values) if new_values else _CHANGE_EDGE
            self._connection.execute(change, parameters)
        may_end_others = stored["single"] and not new_values.keys().isdisjoint({"single", "valid_until"})
        closed = self._end_superseded(stored) if may_end_others else ()
        return GraphWritten(edge.id, "updated" if is_updated else "unchanged", closed)

    def _add_evidence(self, row: Values, document: str | None) -> bool:
        """Store a document as evidence of an edge. Returns whether it is new."""
        stored = self._evidence.setdefault(row["id"], set())
        if document is None or document in stored:
            return False
        stored.add(document)
        self._new_evidence.append((row, document))
        return True

    def _end_superseded(self, row: Values) -> tuple[str, ...]:
        """End the open edges to other targets, and this one if a later one exists."""
        relation = {
            "from": row["source"],
            "relation": row["type_key"],
            "to": row["target"],
            "since": row["began"],
        }
        later = self._connection.execute(_NEXT_SINGLE, relation).one_or_none()
        if later is not None and row["valid_until"] is None:
            ended_at = {"valid_until": later.began, "closed_by": later.number}
            self._close(row, ended_at | {"origin": later.origin, "trust": later.trust})
        ended = self._connection.execute(_OPEN_EDGES, relation).all()
        change = {"valid_until": row["began"], "closed_by": row["number"]}
        change |= {name: row[name] for name in ("origin", "trust", "updated")}
        for edge in ended:
            self._close(self._stored.get(edge.id, dict(edge._mapping)), change)
        return tuple(edge.id for edge in ended)

    def _close(self, row: Values, change: Values) -> None:
        """End an edge, which then is at most at the level of what ended it."""
        parameters = {"at": row["number"], **_new_level(change)}
        row |= change | _lower(change, row)
        columns = {name: value for name, value in change.items() if name not in {"origin", "trust"}}
        self._connection.execute(_CHANGE_EDGE.values(columns), parameters)

    def flush(self) -> None:
        """Write the queued rows."""
        if self._new_edges:
            first = allocate(self._connection, "graph_edge", len(self._new_edges))
            for offset, row in enumerate(self._new_edges):
                row["number"] = first + offset
            insert_rows(self._connection, edges, self._new_edges)
        if self._new_evidence:
            rows = [{"edge": row["number"], "document": document} for row, document in self._new_evidence]
            add_evidence(self._connection, rows)
        self._new_edges, self._new_evidence = [], []


def _edge_changes(stored: Values, new: Values) -> Values:
    """Return the changed columns of a stored edge. An edge that another ended stays ended by default."""
    new_values = {name: new[name] for name in ("weight", "properties") if new[name] != stored[name]}
    ends = new["valid_until"]
    if ends != stored["valid_until"] and not (ends is None and stored["closed_by"] is not None):
        new_values |= {"valid_until": ends, "closed_by": None}
        new_values["began"] = began(stored["valid_from"], stored["recorded"], ends)
    if new_values:
        new_values["updated"] = new["updated"]
    return new_values | {name: 1 for name in ("single", "stands") if new[name] > stored[name]}
