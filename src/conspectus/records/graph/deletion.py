"""Deletion of nodes and edges."""

import json
from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, delete, exists, or_, select, update

from conspectus.model.graph import GraphReceipt
from conspectus.model.ids import SourceId
from conspectus.records.core.statements import IDS, execute_in_blocks, fetch_in_blocks, fetch_rows
from conspectus.records.graph.reads import edges_without_other_evidence
from conspectus.records.graph.rows import IN_GRAPH
from conspectus.records.tables.core import documents
from conspectus.records.tables.graph import edges, events, evidence, nodes

_NODES_NAMED = select(nodes.c.number).where(
    nodes.c.graph == bindparam("of"), nodes.c.id.in_(IDS), nodes.c.aside == IN_GRAPH
)
_EDGES_NAMED = select(edges.c.number).where(
    edges.c.graph == bindparam("of"), edges.c.id.in_(IDS), edges.c.aside == IN_GRAPH
)
_TOUCHING = select(edges.c.number).where(
    or_(edges.c.source.in_(IDS), edges.c.target.in_(IDS)), edges.c.aside == IN_GRAPH
)
_ENDS = select(edges.c.source, edges.c.target).where(edges.c.number.in_(IDS))
_HAS_EDGES = exists().where(or_(edges.c.source == nodes.c.number, edges.c.target == nodes.c.number))
_DELETE_UNUSED_NODES = delete(nodes).where(
    nodes.c.number.in_(IDS), nodes.c.passing == 1, nodes.c.aside == IN_GRAPH, ~_HAS_EDGES
)
_DELETE_NODES = delete(nodes).where(nodes.c.number.in_(IDS))
_DELETE_EDGES = delete(edges).where(edges.c.number.in_(IDS))
_MERGES = (
    select(events.c.number, events.c.before)
    .where(events.c.graph == bindparam("of"), events.c.kind == "merge", events.c.undone == 0)
    .order_by(events.c.number.desc())
)
_EVIDENCE_DOCUMENTS = (
    select(documents.c.id)
    .join(evidence, evidence.c.document == documents.c.id)
    .where(documents.c.number.in_(IDS))
    .distinct()
)


def delete_nodes(connection: Connection, graph: SourceId, ids: Sequence[str]) -> GraphReceipt:
    numbers = [row.number for row in fetch_in_blocks(connection, _NODES_NAMED, dict.fromkeys(ids), of=graph)]
    touching_edges = {row.number for row in fetch_in_blocks(connection, _TOUCHING, numbers)}
    deleted = execute_in_blocks(connection, _DELETE_NODES, numbers)
    _delete_merged_nodes(connection, graph, set(ids))
    return GraphReceipt(deleted, len(touching_edges))


def _delete_merged_nodes(connection: Connection, graph: SourceId, ids: set[str]) -> None:
    """Delete what was merged into deleted nodes, recursively."""
    numbers = []
    for number, before in fetch_rows(connection, _MERGES, {"of": graph}):
        keep, *others = json.loads(before)
        if keep in ids:
            ids |= set(others)
            numbers.append(number)
    execute_in_blocks(
        connection, delete(nodes).where(nodes.c.graph == graph, nodes.c.aside.in_(IDS)), numbers
    )
    execute_in_blocks(connection, update(events).where(events.c.number.in_(IDS)).values(undone=1), numbers)


def delete_edges(connection: Connection, graph: SourceId, ids: Sequence[str]) -> GraphReceipt:
    numbers = [row.number for row in fetch_in_blocks(connection, _EDGES_NAMED, dict.fromkeys(ids), of=graph)]
    return GraphReceipt(0, execute_in_blocks(connection, _DELETE_EDGES, numbers))


def forget_edges(connection: Connection, numbers: Sequence[int]) -> None:
    """Delete what graphs contain from these documents alone, before the documents are deleted.

    These are the edges without other evidence, and the nodes of only such edges. Edges that a deleted edge
    ended stay ended: a new edge is needed to make them valid again.
    """
    document_ids = [row.id for row in fetch_in_blocks(connection, _EVIDENCE_DOCUMENTS, numbers)]
    unsupported_edges = edges_without_other_evidence(connection, document_ids)
    ends = {end for row in fetch_in_blocks(connection, _ENDS, unsupported_edges) for end in row}
    execute_in_blocks(connection, _DELETE_EDGES, unsupported_edges)
    execute_in_blocks(connection, _DELETE_UNUSED_NODES, sorted(ends))
