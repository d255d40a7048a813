"""Graphs as JSON, in the words of those who keep nodes and edges as dictionaries."""

import json
from collections.abc import Iterable
from datetime import datetime

from conspectus.model.graph import Edge, Node
from conspectus.model.records import Json
from conspectus.text.times import canonical


def node_fields(node: Node) -> dict[str, Json]:
    """A node as a dictionary."""
    return {
        "id": node.id,
        "type": node.type,
        "name": node.name,
        "aliases": list(node.aliases),
        "properties": dict(node.properties),
        "valid_from": told(node.valid_from),
        "valid_until": told(node.valid_until),
        "recorded": canonical(node.recorded),
        "updated": canonical(node.updated),
    }


def edge_fields(edge: Edge) -> dict[str, Json]:
    """An edge as a dictionary."""
    return {
        "id": edge.id,
        "source_id": edge.source,
        "target_id": edge.target,
        "type": edge.type,
        "weight": edge.weight,
        "properties": dict(edge.properties),
        "valid_from": told(edge.valid_from),
        "valid_until": told(edge.valid_until),
        "recorded": canonical(edge.recorded),
        "updated": canonical(edge.updated),
        "evidence": edge.evidence,
        "closed_by": edge.closed_by,
    }


def to_json(name: str, nodes: Iterable[Node], edges: Iterable[Edge]) -> str:
    """A graph as JSON, a node or an edge on each line."""
    head = json.dumps(name, ensure_ascii=False)
    parts = ",\n".join(_line(node_fields(each)) for each in nodes)
    links = ",\n".join(_line(edge_fields(each)) for each in edges)
    return f'{{"graph": {head},\n"nodes": [\n{parts}\n],\n"edges": [\n{links}\n]}}\n'


def told(moment: datetime | None) -> str | None:
    """A time in writing, None for an open one."""
    return None if moment is None else canonical(moment)


def _line(fields: dict[str, Json]) -> str:
    return json.dumps(fields, ensure_ascii=False, allow_nan=False)
