"""Graph export as GraphML, written by networkx."""

import io
import json
from collections.abc import Iterable
from typing import Final

from conspectus.errors import optional
from conspectus.graph.export import format_time
from conspectus.graph.xml_text import replace_forbidden
from conspectus.model.graph import Edge, Node
from conspectus.text.late_patterns import regex_pattern

EXTRA: Final = "graphml"
_AMBIGUOUS: Final = regex_pattern(r"[\\\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def to_graphml(name: str, nodes: Iterable[Node], edges: Iterable[Edge]) -> str:
    """Return a graph as GraphML. Properties and aliases are JSON strings.

    Characters that XML forbids become U+FFFD in texts, and escapes in ids. Raises MissingExtra.
    """
    networkx = optional("networkx", EXTRA, "networkx")
    graph = networkx.MultiDiGraph(id=xml_id(name))
    for node in nodes:
        graph.add_node(xml_id(node.id), **_texts(_node_attributes(node)))
    for edge in edges:
        ends = xml_id(edge.source), xml_id(edge.target)
        graph.add_edge(*ends, key=xml_id(edge.id), weight=edge.weight, **_texts(_edge_attributes(edge)))
    buffer = io.BytesIO()
    networkx.write_graphml_lxml(graph, buffer)
    return buffer.getvalue().decode()


def xml_id(name: str) -> str:
    """Return an id that XML allows, without collisions.

    A backslash becomes two. A character that XML forbids becomes a backslash, `u` and four digits.
    """
    return _AMBIGUOUS.sub(lambda match: "\\\\" if match[0] == "\\" else f"\\u{ord(match[0]):04x}", name)


def _node_attributes(node: Node) -> dict[str, str | None]:
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


def _edge_attributes(edge: Edge) -> dict[str, str | None]:
    return {
        "type": edge.type,
        "properties": _json(dict(edge.properties)) if edge.properties else None,
        "valid_from": format_time(edge.valid_from),
        "valid_until": format_time(edge.valid_until),
        "evidence": edge.evidence,
        "origin": edge.origin,
        "trust": edge.trust,
    }


def _texts(attributes: dict[str, str | None]) -> dict[str, str]:
    return {name: replace_forbidden(text) for name, text in attributes.items() if text is not None}


def _json(content: object) -> str:
    return json.dumps(content, ensure_ascii=False)
