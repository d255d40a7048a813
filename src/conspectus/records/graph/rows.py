"""Conversion between table rows of graphs and the model's dataclasses."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Select, func, select

from conspectus.model.graph import Edge, Node, NodeEvent
from conspectus.model.ids import SourceId
from conspectus.model.records import Source
from conspectus.records.core.rows import (
    SOURCE_COLUMNS,
    columns_of,
    to_json,
    to_metadata,
    to_model,
    to_moment,
    to_number,
    to_source,
)
from conspectus.records.core.statements import IDS, fetch_in_blocks, fetch_scalar, insert_rows
from conspectus.records.tables.core import sources
from conspectus.records.tables.graph import edges, events, evidence, nodes
from conspectus.text.name_keys import relation_key
from conspectus.text.times import from_microseconds, to_microseconds

IN_GRAPH = 0
"""The value of `aside` of nodes and edges in a graph; those that a merge removed have its number."""
EMPTY_LIST = "[]"

NODE_COLUMNS = (
    nodes.c.number,
    nodes.c.graph,
    nodes.c.id,
    nodes.c.type,
    nodes.c.name,
    nodes.c.aliases,
    nodes.c.merged,
    nodes.c.properties,
    nodes.c.recorded,
    nodes.c.updated,
    nodes.c.valid_from,
    nodes.c.valid_until,
    nodes.c.origin,
    nodes.c.trust,
)
_ENDED_BY = edges.alias("ended_by")
_EVIDENCE = (
    select(evidence.c.document)
    .where(evidence.c.edge == edges.c.number)
    .order_by(evidence.c.number)
    .limit(1)
    .correlate(edges)
    .scalar_subquery()
)
EDGES: Select[Any] = select(
    edges.c.number,
    edges.c.graph,
    edges.c.id,
    edges.c.source_id,
    edges.c.target_id,
    edges.c.type,
    edges.c.weight,
    edges.c.properties,
    edges.c.recorded,
    edges.c.updated,
    edges.c.valid_from,
    edges.c.valid_until,
    _EVIDENCE.label("evidence"),
    _ENDED_BY.c.id.label("closed_by"),
    edges.c.origin,
    edges.c.trust,
).outerjoin(_ENDED_BY, _ENDED_BY.c.number == edges.c.closed_by)
_LAST_EVIDENCE = select(func.coalesce(func.max(evidence.c.number), 0))
_SOURCES = select(*SOURCE_COLUMNS).where(sources.c.id.in_(IDS))


def sources_by_id(connection: Connection, ids: Iterable[str]) -> dict[SourceId, Source]:
    """Return the sources of graphs, as far as they exist."""
    graphs = map(to_source, fetch_in_blocks(connection, _SOURCES, dict.fromkeys(ids)))
    return {graph.id: graph for graph in graphs}


def to_node(row: Sequence[Any], graphs: Mapping[SourceId, Source]) -> Node:
    """Convert a row that begins with NODE_COLUMNS."""
    _, graph, name, type, display_name, aliases, merged, properties, recorded, updated, begins, ends = row[
        :12
    ]
    origin, trust = row[12:14]
    names = [] if aliases == EMPTY_LIST else json.loads(aliases)
    if merged != EMPTY_LIST:
        names += [alias for _, alias in json.loads(merged)]
    first = from_microseconds(recorded)
    return Node(
        id=name,
        graph=graphs[graph],
        type=type,
        name=display_name,
        aliases=tuple(dict.fromkeys(names)),
        properties=to_metadata(properties),
        recorded=first,
        updated=first if updated == recorded else from_microseconds(updated),
        valid_from=to_moment(begins),
        valid_until=to_moment(ends),
        origin=origin,
        trust=trust,
    )


def node_values(node: Node, *, passing: bool) -> dict[str, Any]:
    """Return a node as columns, without its number."""
    return {
        "graph": node.graph.id,
        "id": node.id,
        "type": node.type,
        "name": node.name,
        "aliases": json.dumps(node.aliases, ensure_ascii=False),
        "properties": to_json(node.properties),
        "recorded": to_microseconds(node.recorded),
        "updated": to_microseconds(node.updated),
        "valid_from": to_number(node.valid_from),
        "valid_until": to_number(node.valid_until),
        "passing": int(passing),
        "origin": node.origin,
        "trust": node.trust,
    }


def to_edge(row: Sequence[Any], graphs: Mapping[SourceId, Source]) -> Edge:
    """Convert a row of EDGES."""
    _, graph, name, source, target, type, weight, properties, recorded, updated, begins, ends = row[:12]
    return Edge(
        id=name,
        graph=graphs[graph],
        source=source,
        target=target,
        type=type,
        weight=weight,
        properties=to_metadata(properties),
        recorded=from_microseconds(recorded),
        updated=from_microseconds(updated),
        valid_from=to_moment(begins),
        valid_until=to_moment(ends),
        evidence=row[12],
        closed_by=row[13],
        origin=row[14],
        trust=row[15],
    )


def edge_values(edge: Edge, *, single: bool) -> dict[str, Any]:
    """Return an edge as columns, without the numbers of itself and its ends."""
    recorded, begins, ends = (
        to_microseconds(edge.recorded),
        to_number(edge.valid_from),
        to_number(edge.valid_until),
    )
    return {
        "graph": edge.graph.id,
        "id": edge.id,
        "source_id": edge.source,
        "target_id": edge.target,
        "type": edge.type,
        "weight": edge.weight,
        "properties": to_json(edge.properties),
        "recorded": recorded,
        "updated": to_microseconds(edge.updated),
        "valid_from": begins,
        "valid_until": ends,
        "began": began(begins, recorded, ends),
        "single": int(single),
        "stands": int(edge.evidence is None),
        "closed_by": None,
        "origin": edge.origin,
        "trust": edge.trust,
        "type_key": relation_key(edge.type),
    }


def began(begins: int | None, recorded: int, ends: int | None) -> int:
    """Return the start of an edge's validity; an edge that ended in the past started before that."""
    if begins is not None:
        return begins
    return recorded if ends is None else min(recorded, ends)


def add_evidence(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Store evidence of edges, after existing evidence."""
    last: int = fetch_scalar(connection, _LAST_EVIDENCE)
    numbered = [{**row, "number": number} for number, row in enumerate(rows, start=last + 1)]
    insert_rows(connection, evidence, numbered)


def to_event(row: Sequence[Any]) -> NodeEvent:
    """Convert a row of the table of events."""
    columns = dict(zip(events.c.keys(), row, strict=True))
    return to_model(NodeEvent, {name: columns[name] for name in NodeEvent.__dataclass_fields__})


def event_values(graph: SourceId, number: int, event: NodeEvent) -> dict[str, Any]:
    """Return an event as a row."""
    return {**columns_of(event), "number": number, "graph": graph, "undone": 0}
