"""Taking nodes and edges out of graphs, also those that only a deleted document spoke for."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import BindParameter, Connection, bindparam, delete, exists, or_, select, update

from conspectus.model.graph import GraphReceipt
from conspectus.model.ids import SourceId
from conspectus.records.core.rows import blocks
from conspectus.records.graph.reads import resting_edges
from conspectus.records.graph.rows import HERE
from conspectus.records.tables.core import documents
from conspectus.records.tables.graph import graph_edges as edges
from conspectus.records.tables.graph import graph_events as events
from conspectus.records.tables.graph import graph_evidence as evidence
from conspectus.records.tables.graph import graph_nodes as nodes

_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_NODES = select(nodes.c.number).where(
    nodes.c.graph == bindparam("of"), nodes.c.id.in_(_IDS), nodes.c.aside == HERE
)
_EDGES = select(edges.c.number).where(
    edges.c.graph == bindparam("of"), edges.c.id.in_(_IDS), edges.c.aside == HERE
)
_TOUCHING = select(edges.c.number).where(
    or_(edges.c.source.in_(_IDS), edges.c.target.in_(_IDS)), edges.c.aside == HERE
)
_ENDS = select(edges.c.source, edges.c.target).where(edges.c.number.in_(_IDS))
_LEFT = exists().where(or_(edges.c.source == nodes.c.number, edges.c.target == nodes.c.number))
_LOOSE = delete(nodes).where(nodes.c.number.in_(_IDS), nodes.c.passing == 1, nodes.c.aside == HERE, ~_LEFT)
_FORGET_NODES = delete(nodes).where(nodes.c.number.in_(_IDS))
_FORGET_EDGES = delete(edges).where(edges.c.number.in_(_IDS))
_MERGES = (
    select(events.c.number, events.c.before)
    .where(events.c.graph == bindparam("of"), events.c.kind == "merge", events.c.undone == 0)
    .order_by(events.c.number.desc())
)
_DOCUMENTS = (
    select(documents.c.id)
    .join(evidence, evidence.c.document == documents.c.id)
    .where(documents.c.number.in_(_IDS))
    .distinct()
)


def delete_nodes(connection: Connection, graph: SourceId, ids: Sequence[str]) -> GraphReceipt:
    """Delete nodes with their edges; unknown ids count 0."""
    gone, touched = 0, set()
    for block in blocks(list(dict.fromkeys(ids))):
        numbers = connection.execute(_NODES, {"of": graph, "ids": block}).scalars().all()
        touched |= set(connection.execute(_TOUCHING, {"ids": numbers}).scalars())
        gone += connection.execute(_FORGET_NODES, {"ids": numbers}).rowcount
    _forget_merged(connection, graph, set(ids))
    return GraphReceipt(gone, len(touched))


def _forget_merged(connection: Connection, graph: SourceId, ids: set[str]) -> None:
    """Delete also what was merged into nodes that are deleted, and into that before."""
    numbers = []
    for number, before in connection.execute(_MERGES, {"of": graph}):
        keep, *others = json.loads(before)
        if keep in ids:
            ids |= set(others)
            numbers.append(number)
    for block in blocks(numbers):
        connection.execute(delete(nodes).where(nodes.c.graph == graph, nodes.c.aside.in_(block)))
        connection.execute(update(events).where(events.c.number.in_(block)).values(undone=1))


def delete_edges(connection: Connection, graph: SourceId, ids: Sequence[str]) -> GraphReceipt:
    """Delete edges by id; unknown ids count 0."""
    gone = 0
    for block in blocks(list(dict.fromkeys(ids))):
        numbers = connection.execute(_EDGES, {"of": graph, "ids": block}).scalars().all()
        gone += connection.execute(_FORGET_EDGES, {"ids": numbers}).rowcount
    return GraphReceipt(0, gone)


def forget_edges(connection: Connection, numbers: Sequence[int]) -> None:
    """Delete what graphs know from these documents alone, before the documents go.

    Those are the edges without other evidence, and the nodes that only such edges led to. What a deleted edge
    had ended stays ended: nobody said that it holds again, and to say so is one more edge.
    """
    going: list[str] = []
    for block in blocks(numbers):
        going += connection.execute(_DOCUMENTS, {"ids": block}).scalars()
    for block in blocks(resting_edges(connection, going)):
        ends = {end for row in connection.execute(_ENDS, {"ids": block}) for end in row}
        connection.execute(_FORGET_EDGES, {"ids": block})
        for some in blocks(sorted(ends)):
            connection.execute(_LOOSE, {"ids": some})
