"""Graph export as JSON and GraphML."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

import regex

from conspectus.model.graph import Edge, Node
from conspectus.model.records import Json
from conspectus.text.times import canonical

HEAD: Final = """\
<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
"""
NODE_KEYS: Final = ("label", "type", "aliases", "properties", "valid_from", "valid_until")
EDGE_KEYS: Final = ("type", "weight", "properties", "valid_from", "valid_until", "evidence")
_ESCAPES: Final = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "\t": "&#9;",
    "\n": "&#10;",
    "\r": "&#13;",
}
_ESCAPED: Final = regex.compile(r'[&<>"\t\n\r]')
_IMPOSSIBLE: Final = regex.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_UNSURE: Final = regex.compile(r"[\\\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def escaped(text: str) -> str:
    """A text as it may stand in XML; characters that cannot stand there at all become U+FFFD."""
    possible = _IMPOSSIBLE.sub("\ufffd", text)
    return _ESCAPED.sub(lambda found: _ESCAPES[found[0]], possible)


def identified(name: str) -> str:
    """An id as it may stand in XML, still another one for every id.

    A backslash becomes two, and a character that cannot stand in XML a backslash, `u` and four digits.
    """
    return escaped(_UNSURE.sub(lambda found: _spelt(found[0]), name))


def to_graphml(name: str, nodes: Iterable[Node], edges: Iterable[Edge]) -> str:
    """A graph as one document; properties and aliases are JSON texts."""
    return "".join(_lines(name, nodes, edges))


def _lines(name: str, nodes: Iterable[Node], edges: Iterable[Edge]) -> Iterator[str]:
    yield HEAD
    for place, keys in (("node", NODE_KEYS), ("edge", EDGE_KEYS)):
        for key in keys:
            kind = "double" if key == "weight" else "string"
            yield f'<key id="{place}_{key}" for="{place}" attr.name="{key}" attr.type="{kind}"/>\n'
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
        "valid_from": told(node.valid_from),
        "valid_until": told(node.valid_until),
    }


def _edge(edge: Edge) -> dict[str, str | None]:
    return {
        "type": edge.type,
        "weight": repr(edge.weight),
        "properties": _json(dict(edge.properties)) if edge.properties else None,
        "valid_from": told(edge.valid_from),
        "valid_until": told(edge.valid_until),
        "evidence": edge.evidence,
    }


def _data(place: str, fields: Mapping[str, str | None]) -> str:
    return "".join(
        f'<data key="{place}_{key}">{escaped(value)}</data>'
        for key, value in fields.items()
        if value is not None
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _spelt(character: str) -> str:
    return "\\\\" if character == "\\" else f"\\u{ord(character):04x}"


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
