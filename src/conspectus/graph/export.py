"""Graph export as JSON and GraphML."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

from conspectus.graph.xml_text import escaped
from conspectus.model.graph import Edge, Node
from conspectus.model.records import Json
from conspectus.text.late_patterns import regex_pattern
from conspectus.text.times import canonical

HEAD: Final = """\
<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
"""
NODE_KEYS: Final = ("label", "type", "aliases", "properties", "valid_from", "valid_until", "origin", "trust")
EDGE_KEYS: Final = (
    *("type", "weight", "properties", "valid_from", "valid_until", "evidence", "origin", "trust"),
)
_UNSURE: Final = regex_pattern(r"[\\\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def identified(name: str) -> str:
    """Escape an id for XML, without collisions.

    A backslash becomes two. A character that XML forbids becomes a backslash, `u` and four digits.
    """
    return escaped(_UNSURE.sub(lambda match: "\\\\" if match[0] == "\\" else f"\\u{ord(match[0]):04x}", name))


def to_graphml(name: str, nodes: Iterable[Node], edges: Iterable[Edge]) -> str:
    """Return a graph as GraphML. Properties and aliases are JSON strings."""
    return "".join(_lines(name, nodes, edges))


def _lines(name: str, nodes: Iterable[Node], edges: Iterable[Edge]) -> Iterator[str]:
    yield HEAD
    for domain, keys in (("node", NODE_KEYS), ("edge", EDGE_KEYS)):
        for key in keys:
            kind = "double" if key == "weight" else "string"
            yield f'<key id="{domain}_{key}" for="{domain}" attr.name="{key}" attr.type="{kind}"/>\n'
    yield f'<graph id="{identified(name)}" edgedefault="directed">\n'
    for node in nodes:
        yield f'<node id="{identified(node.id)}">{_data("node", _node(node))}</node>\n'
    for edge in edges:
        ends = f'source="{identified(edge.source)}" target="{identified(edge.target)}"'
        yield f'<edge id="{edge.id}" {ends}>{_data("edge", _edge(edge))}</edge>\n'
    yield "</graph>\n</graphml>\n"


def _node(node: Node) -> dict[str, str | None]:
    return {
        "label": node.name,
        "type": node.type,
        "aliases": _json(list(node.aliases)) if node.aliases else None,
        "properties": _json(dict(node.properties)) if node.properties else None,
        "valid_from": format_time(node.valid_from),
        "valid_until": format_time(node.valid_until),
        "origin": node.origin,
        "trust": node.trust,
    }


def _edge(edge: Edge) -> dict[str, str | None]:
    return {
        "type": edge.type,
        "weight": repr(edge.weight),
        "properties": _json(dict(edge.properties)) if edge.properties else None,
        "valid_from": format_time(edge.valid_from),
        "valid_until": format_time(edge.valid_until),
        "evidence": edge.evidence,
        "origin": edge.origin,
        "trust": edge.trust,
    }


def _data(domain: str, fields: Mapping[str, str | None]) -> str:
    return "".join(
        f'<data key="{domain}_{key}">{escaped(value)}</data>'
        for key, value in fields.items()
        if value is not None
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


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
