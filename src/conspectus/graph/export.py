"""Graph export as JSON."""

import json
from collections.abc import Iterable
from datetime import datetime

from conspectus.model.graph import Edge, Node
from conspectus.model.records import Json
from conspectus.text.times import canonical


def node_fields(node: Node) -> dict[str, Json]:
    """Return a node as a dictionary."""
    return {
        "id": node.id,
        "type": node.type,
        "name": node.name,
        "aliases": list(node.aliases),
        "properties": dict(node.properties),
        "valid_from": format_time(node.valid_from),
        "valid_until": format_time(node.valid_until),
        "recorded": canonical(node.recorded),
        "updated": canonical(node.updated),
        "origin": node.origin,
        "trust": node.trust,
    }


def edge_fields(edge: Edge) -> dict[str, Json]:
    """Return an edge as a dictionary."""
    return {
        "id": edge.id,
        "source_id": edge.source,
        "target_id": edge.target,
        "type": edge.type,
        "weight": edge.weight,
        "properties": dict(edge.properties),
        "valid_from": format_time(edge.valid_from),
        "valid_until": format_time(edge.valid_until),
        "recorded": canonical(edge.recorded),
        "updated": canonical(edge.updated),
        "evidence": edge.evidence,
        "closed_by": edge.closed_by,
        "origin": edge.origin,
        "trust": edge.trust,
    }


def to_json(name: str, nodes: Iterable[Node], edges: Iterable[Edge]) -> str:
    """Return a graph as JSON with one node or edge per line."""
    head = json.dumps(name, ensure_ascii=False)
    parts = ",\n".join(_line(node_fields(node)) for node in nodes)
    links = ",\n".join(_line(edge_fields(edge)) for edge in edges)
    return f'{{"graph": {head},\n"nodes": [\n{parts}\n],\n"edges": [\n{links}\n]}}\n'


def format_time(moment: datetime | None) -> str | None:
    """Format a time; None if it is open."""
    return None if moment is None else canonical(moment)


def _line(fields: dict[str, Json]) -> str:
    return json.dumps(fields, ensure_ascii=False, allow_nan=False)
