"""Nodes and edges of the agent API as dictionaries."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from conspectus.errors import InvalidInput
from conspectus.facades.agent.json_values import plain_value, with_iso_times
from conspectus.model.graph import (
    ENTITY,
    RELATED,
    Edge,
    Neighbor,
    NewEdge,
    NewNode,
    Node,
)

CONTENT: Final = "content"
NODE_KEYS: Final = frozenset(
    {
        *("id", "type", "name", "aliases", "properties", "metadata", CONTENT, "weight"),
        *("valid_from", "valid_until", "origin", "trust"),
    }
)
EDGE_KEYS: Final = frozenset(
    {
        *("source_id", "target_id", "source", "target", "id", "type", "weight", "properties", "metadata"),
        *("valid_from", "valid_until", "single", "evidence", "recorded", "closed_by", "origin", "trust"),
    }
)


def new_node(values: Mapping[str, Any]) -> NewNode:
    """Return the node to store. Raises InvalidInput."""
    _require_keys("node", values, NODE_KEYS)
    properties = {**_require_mapping(values, "metadata"), **_require_mapping(values, "properties")}
    properties |= {name: values[name] for name in (CONTENT, "weight") if values.get(name) is not None}
    return NewNode(
        id=_text(values, "id"),
        type=values.get("type") or ENTITY,
        name=values.get("name"),
        aliases=tuple(values.get("aliases") or ()),
        properties=properties,
        valid_from=values.get("valid_from"),
        valid_until=values.get("valid_until"),
        origin=values.get("origin"),
        trust=values.get("trust"),
    )


def new_edge(values: Mapping[str, Any]) -> NewEdge:
    """Return the edge to store. Raises InvalidInput."""
    _require_keys("edge", values, EDGE_KEYS)
    weight = values.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float | np.number):
        raise InvalidInput("edge.weight", "must be a number")
    return NewEdge(
        source=_text(values, "source_id", "source"),
        target=_text(values, "target_id", "target"),
        type=values.get("type") or RELATED,
        weight=float(weight),
        properties={**_require_mapping(values, "metadata"), **_require_mapping(values, "properties")},
        valid_from=values.get("valid_from"),
        valid_until=values.get("valid_until"),
        single=bool(values.get("single", False)),
        evidence=values.get("evidence"),
        origin=values.get("origin"),
        trust=values.get("trust"),
    )


def node_dict(node: Node) -> dict[str, Any]:
    """Convert a node to a dictionary."""
    values: dict[str, Any] = {name: getattr(node, name) for name in ("id", "type", "name")}
    values["properties"] = dict(node.properties)
    if node.aliases:
        values["aliases"] = list(node.aliases)
    values |= _level(node)
    return with_iso_times({**values, "valid_from": node.valid_from, "valid_until": node.valid_until})


def edge_dict(edge: Edge) -> dict[str, Any]:
    """Convert an edge to a dictionary."""
    values: dict[str, Any] = {
        "id": edge.id,
        "source_id": edge.source,
        "target_id": edge.target,
        "type": edge.type,
        "weight": edge.weight,
    }
    if edge.properties:
        values["properties"] = dict(edge.properties)
    later = {"evidence": edge.evidence, "closed_by": edge.closed_by}
    values |= {name: value for name, value in later.items() if value is not None}
    values |= _level(edge)
    return with_iso_times({**values, "valid_from": edge.valid_from, "valid_until": edge.valid_until})


def _level(part: Node | Edge) -> dict[str, str]:
    """Return origin and trust of what is not a person's own."""
    is_own = (part.origin, part.trust) == ("user", "trusted")
    return {} if is_own else {"origin": part.origin, "trust": part.trust}


def neighbor_dict(neighbor: Neighbor) -> dict[str, Any]:
    """Convert a neighbor to a dictionary; `decay` is the product of the weights on its path."""
    last = neighbor.steps[-1]
    return {
        **node_dict(neighbor.node),
        CONTENT: content_of(neighbor.node),
        "relationship": last.type,
        "weight": last.weight,
        "hop": neighbor.hop,
        "decay": neighbor.decay,
        "path": list(neighbor.path),
        "steps": [
            {"source_id": step.source, "type": step.type, "target_id": step.target, "weight": step.weight}
            for step in neighbor.steps
        ],
    }


def content_of(node: Node) -> str:
    """Return the content or description of a node, or else its name."""
    content = node.properties.get(CONTENT) or node.properties.get("description")
    return content if isinstance(content, str) else node.name


def exported_graph(nodes: Iterable[Node], edges: Iterable[Edge]) -> dict[str, Any]:
    """Return a graph as JSON values."""
    return {
        "nodes": [_drop_none(node_dict(node)) for node in nodes],
        "edges": [_drop_none(edge_dict(edge)) for edge in edges],
    }


def _drop_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _require_keys(what: str, values: Mapping[str, Any], words: frozenset[str]) -> None:
    if not isinstance(values, Mapping):
        raise InvalidInput(what, "must be a dictionary")
    for name in values:
        if name not in words:
            reason = f"is not one of {', '.join(sorted(words))}; put it into the properties"
            raise InvalidInput(f"{what}.{name}", reason)


def _text(values: Mapping[str, Any], *names: str) -> str:
    for name in names:
        if isinstance(values.get(name), str):
            return str(values[name])
    raise InvalidInput(names[0], "is missing, or is not text")


def _require_mapping(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = values.get(name) or {}
    if not isinstance(value, Mapping):
        raise InvalidInput(name, "must be a dictionary")
    return {key: plain_value(part) for key, part in value.items()}
