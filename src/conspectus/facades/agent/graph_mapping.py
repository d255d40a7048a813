"""Nodes and edges as dictionaries: how they are written, and how they are shown."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from conspectus.errors import InvalidInput
from conspectus.model.graph import ENTITY, RELATED, Edge, Neighbor, NewEdge, NewNode, Node
from conspectus.text.times import canonical

CONTENT: Final = "content"
NODE_WORDS: Final = frozenset(
    {
        "id",
        "type",
        "name",
        "aliases",
        "properties",
        "metadata",
        CONTENT,
        "weight",
        "valid_from",
        "valid_until",
    }
)
EDGE_WORDS: Final = frozenset(
    {
        *("source_id", "target_id", "source", "target", "id", "type", "weight", "properties", "metadata"),
        *("valid_from", "valid_until", "single", "evidence", "recorded", "closed_by"),
    }
)


def new_node(told: Mapping[str, Any]) -> NewNode:
    """A node to be stored. Raises InvalidInput."""
    _known("node", told, NODE_WORDS)
    properties = {**_mapping(told, "metadata"), **_mapping(told, "properties")}
    properties |= {name: told[name] for name in (CONTENT, "weight") if told.get(name) is not None}
    return NewNode(
        id=_text(told, "id"),
        type=told.get("type") or ENTITY,
        name=told.get("name"),
        aliases=tuple(told.get("aliases") or ()),
        properties=properties,
        valid_from=told.get("valid_from"),
        valid_until=told.get("valid_until"),
    )


def new_edge(told: Mapping[str, Any]) -> NewEdge:
    """An edge to be stored. Raises InvalidInput."""
    _known("edge", told, EDGE_WORDS)
    weight = told.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise InvalidInput("edge.weight", "must be a number")
    return NewEdge(
        source=_text(told, "source_id", "source"),
        target=_text(told, "target_id", "target"),
        type=told.get("type") or RELATED,
        weight=float(weight),
        properties={**_mapping(told, "metadata"), **_mapping(told, "properties")},
        valid_from=told.get("valid_from"),
        valid_until=told.get("valid_until"),
        single=bool(told.get("single", False)),
        evidence=told.get("evidence"),
    )


def shown_node(node: Node) -> dict[str, Any]:
    """A node as a dictionary of its own."""
    told: dict[str, Any] = {
        "id": node.id,
        "type": node.type,
        "name": node.name,
        "properties": dict(node.properties),
    }
    if node.aliases:
        told["aliases"] = list(node.aliases)
    return told | _span(node.valid_from, node.valid_until)


def shown_edge(edge: Edge) -> dict[str, Any]:
    """An edge as a dictionary of its own."""
    told: dict[str, Any] = {
        "id": edge.id,
        "source_id": edge.source,
        "target_id": edge.target,
        "type": edge.type,
        "weight": edge.weight,
    }
    if edge.properties:
        told["properties"] = dict(edge.properties)
    if edge.evidence is not None:
        told["evidence"] = edge.evidence
    if edge.closed_by is not None:
        told["closed_by"] = edge.closed_by
    return told | _span(edge.valid_from, edge.valid_until)


def shown_neighbour(neighbour: Neighbor) -> dict[str, Any]:
    """A node that was reached, with the way there: `decay` is the product of the weights on it."""
    last = neighbour.steps[-1]
    return {
        **shown_node(neighbour.node),
        CONTENT: content_of(neighbour.node),
        "relationship": last.type,
        "weight": last.weight,
        "hop": neighbour.hop,
        "decay": neighbour.decay,
        "path": list(neighbour.path),
        "steps": [
            {"source_id": each.source, "type": each.type, "target_id": each.target, "weight": each.weight}
            for each in neighbour.steps
        ],
    }


def content_of(node: Node) -> str:
    """What a node says: its content, or else its name."""
    said = node.properties.get(CONTENT) or node.properties.get("description")
    return said if isinstance(said, str) else node.name


def carried(nodes: Iterable[Node], edges: Iterable[Edge]) -> dict[str, Any]:
    """A graph as JSON can hold it."""
    return {
        "nodes": [_timeless(shown_node(each)) for each in nodes],
        "edges": [_timeless(shown_edge(each)) for each in edges],
    }


def _timeless(told: dict[str, Any]) -> dict[str, Any]:
    return {
        name: canonical(value) if isinstance(value, datetime) else value
        for name, value in told.items()
        if value is not None
    }


def _span(begins: datetime | None, ends: datetime | None) -> dict[str, Any]:
    return {"valid_from": begins, "valid_until": ends}


def _known(what: str, told: Mapping[str, Any], words: frozenset[str]) -> None:
    if not isinstance(told, Mapping):
        raise InvalidInput(what, "must be a dictionary")
    for each in told:
        if each not in words:
            reason = f"is none of {', '.join(sorted(words))}; put it into the properties"
            raise InvalidInput(f"{what}.{each}", reason)


def _text(told: Mapping[str, Any], *names: str) -> str:
    for each in names:
        if isinstance(told.get(each), str):
            return str(told[each])
    raise InvalidInput(names[0], "is missing, or is no text")


def _mapping(told: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = told.get(name) or {}
    if not isinstance(value, Mapping):
        raise InvalidInput(name, "must be a dictionary")
    return value
