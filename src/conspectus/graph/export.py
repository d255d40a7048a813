"""Graph export as JSON, GraphML and SVG."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass
from conspectus.model.graph import Edge, Node
from conspectus.model.records import Json
from conspectus.text.clean import graphemes_prefix
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
_ESCAPES: Final = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "\t": "&#9;",
    "\n": "&#10;",
    "\r": "&#13;",
}
_ESCAPED: Final = regex_pattern(r'[&<>"\t\n\r]')
_IMPOSSIBLE: Final = regex_pattern(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_UNSURE: Final = regex_pattern(r"[\\\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def escaped(text: str) -> str:
    """Escape a text for XML. Characters that XML forbids become U+FFFD."""
    possible = _IMPOSSIBLE.sub("\ufffd", text)
    return _ESCAPED.sub(lambda match: _ESCAPES[match[0]], possible)


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


Points = NDArray[np.float64]

ROUNDS: Final = 300
GOLDEN_ANGLE: Final = math.pi * (3 - math.sqrt(5))
GRAVITY: Final = 0.12
"""Strength of the pull to the center, which keeps separate components on the page."""
REACH: Final = 6.0
"""Range of the repulsion between nodes, as a multiple of the ideal distance of linked nodes."""


def placed(count: int, links: Sequence[tuple[int, int, float]]) -> Points:
    """Return positions in the unit square. The layout is deterministic.

    Nodes repel nearby nodes, and links attract by their weight, less for nodes with many links. The maximum
    step shrinks to zero over the rounds. Nodes start on a spiral, the first ones in the center.
    """
    turns = np.arange(count) * GOLDEN_ANGLE
    points = np.sqrt(np.arange(count) + 0.5)[:, None] * np.column_stack([np.cos(turns), np.sin(turns)])
    points /= math.sqrt(max(count, 1))
    near = np.array([(a, b) for a, b, _ in links if a != b], dtype=np.int64).reshape(-1, 2)
    pull = np.array([weight for a, b, weight in links if a != b])
    if len(near):
        pull /= np.sqrt(np.bincount(near.ravel(), minlength=count)[near].min(axis=1))
    ideal = 1.6 / math.sqrt(max(count, 1))
    for turn in range(ROUNDS):
        farthest = 0.15 * (1 - turn / ROUNDS)
        points = _moved(points, near, pull, ideal=ideal, farthest=farthest)
    return _fitted(points)


def _moved(points: Points, near: NDArray[np.int64], pull: Points, *, ideal: float, farthest: float) -> Points:
    apart = points[:, None, :] - points[None, :, :]
    square = np.maximum((apart**2).sum(axis=2), 1e-6)
    repelled = np.where(square < (REACH * ideal) ** 2, ideal**2 / square, 0.0)
    force = (apart * repelled[:, :, None]).sum(axis=1) - GRAVITY * points
    if len(near):
        along = points[near[:, 1]] - points[near[:, 0]]
        drawn = along * (np.sqrt((along**2).sum(axis=1)) / ideal * pull)[:, None]
        np.add.at(force, near[:, 0], drawn)
        np.add.at(force, near[:, 1], -drawn)
    length = np.maximum(np.sqrt((force**2).sum(axis=1)), 1e-9)
    moved: Points = points + force * (np.minimum(length, farthest) / length)[:, None]
    return moved


def _fitted(points: Points) -> Points:
    """Center the points in the unit square and scale them to fill it."""
    if not len(points):
        return points
    low, high = points.min(axis=0), points.max(axis=0)
    size = np.maximum(high - low, 1e-9)
    fitted: Points = np.where(high - low < 1e-6, 0.5, (points - low) / size)
    return fitted


MAX_NODES: Final = 300
MAX_NAMES: Final = 60
MAX_TYPES: Final = 40
"""Maximum numbers of drawn nodes, of labeled nodes and of links with a label."""
MAX_LABEL_LENGTH: Final = 28
WIDTH: Final = 1200
HEIGHT: Final = 800
MARGIN: Final = 110
COLOURS: Final = ("#4a84d6", "#d9773c", "#3f9e6b", "#b45cc0", "#c2a02f", "#d0566a", "#3c9fb0", "#8a8f98")
STYLE: Final = """\
<style>
.page{fill:#ffffff}.text{fill:#1d2430;font:13px sans-serif}.small{font-size:11px}
.halo{stroke:#ffffff;fill:#ffffff;stroke-width:3px;stroke-linejoin:round}
.link{fill:none;stroke:#68707d}.head{fill:#68707d}.dim{fill:#555d69}
@media (prefers-color-scheme: dark){
.page{fill:#15181d}.text{fill:#e8ebf0}.halo{stroke:#15181d;fill:#15181d}
.link{stroke:#98a1ae}.head{fill:#98a1ae}.dim{fill:#aab2be}}
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9"
 markerUnits="userSpaceOnUse" orient="auto">
<path class="head" d="M0 0L8 4L0 8z"/></marker></defs>
"""


@dataclass(frozen=True, slots=True)
class Spot:
    """The position and size of a node in the drawing."""

    x: float
    y: float
    radius: float


def to_svg(name: str, nodes: Sequence[Node], edges: Sequence[Edge]) -> str:
    """Draw the nodes with the most edges, and state how many are left out."""
    drawn, links = _drawn(nodes, edges)
    spots = _spots(drawn, links)
    return "".join(
        _svg_lines(name, drawn, links, spots, omitted=(len(nodes) - len(drawn), len(edges) - len(links)))
    )


def _drawn(nodes: Sequence[Node], edges: Sequence[Edge]) -> tuple[list[Node], list[Edge]]:
    """Return the nodes with the most edges in descending order, and the edges between them."""
    degrees = Counter(end for edge in edges for end in (edge.source, edge.target))
    ordered = sorted(nodes, key=lambda node: (-degrees[node.id], node.id))[:MAX_NODES]
    there = {node.id for node in ordered}
    return ordered, [edge for edge in edges if edge.source in there and edge.target in there]


def _spots(nodes: Sequence[Node], edges: Sequence[Edge]) -> dict[str, Spot]:
    places = {node.id: position for position, node in enumerate(nodes)}
    pairs = {tuple(sorted((places[edge.source], places[edge.target]))): edge.weight for edge in edges}
    points: Points = placed(len(nodes), [(pair[0], pair[1], weight) for pair, weight in pairs.items()])
    degrees = Counter(end for edge in edges for end in {edge.source, edge.target})
    return {
        node.id: Spot(
            MARGIN + float(x) * (WIDTH - 2 * MARGIN),
            MARGIN + float(y) * (HEIGHT - 2 * MARGIN),
            min(7 + 2.2 * math.sqrt(degrees[node.id]), 24) * (1 if len(nodes) <= MAX_NAMES else 0.55),
        )
        for node, (x, y) in zip(nodes, points, strict=True)
    }


def _svg_lines(
    name: str,
    nodes: Sequence[Node],
    edges: Sequence[Edge],
    spots: dict[str, Spot],
    *,
    omitted: tuple[int, int],
) -> Iterator[str]:
    title = escaped(name)
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">\n'
    yield f'<title>{title}</title>\n{STYLE}<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>\n'
    yield from _links(edges, spots)
    colours = _colours(nodes)
    for node in nodes:
        spot = spots[node.id]
        circle = f'cx="{spot.x:.1f}" cy="{spot.y:.1f}" r="{spot.radius:.1f}"'
        label = f"{escaped(node.name)} ({escaped(node.type)})"
        yield f'<circle {circle} fill="{colours[node.type]}"><title>{label}</title></circle>\n'
    for node in nodes if len(nodes) <= MAX_NAMES else nodes[:MAX_NAMES]:
        spot = spots[node.id]
        yield _text(spot.x, spot.y + spot.radius + 13, _short(node.name), kind="text")
    yield from _legend(title, colours, omitted)
    yield "</svg>\n"


def _links(edges: Sequence[Edge], spots: dict[str, Spot]) -> Iterator[str]:
    """Draw edges as arrows. Edges between the same nodes are drawn side by side."""
    beside: Counter[frozenset[str]] = Counter()
    for edge in edges:
        ends = frozenset((edge.source, edge.target))
        side = 1 if edge.source <= edge.target else -1
        path, middle = _path(spots[edge.source], spots[edge.target], beside[ends] * side)
        beside[ends] += 1
        strength = f'stroke-width="{0.8 + 1.8 * edge.weight:.1f}" opacity="{0.35 + 0.5 * edge.weight:.2f}"'
        label = escaped(f"{edge.source} {edge.type} {edge.target}, {edge.weight:g}")
        line = f'<path class="link" d="{path}" {strength} marker-end="url(#head)">'
        yield f"{line}<title>{label}</title></path>\n"
        if len(edges) <= MAX_TYPES:
            yield _text(middle[0], middle[1], _short(edge.type), kind="text small dim")


def _path(start: Spot, end: Spot, bend: int) -> tuple[str, tuple[float, float]]:
    """Return an SVG path between the rims of two circles, and its midpoint."""
    if start == end:
        return _loop(start, bend)
    x, y = end.x - start.x, end.y - start.y
    length = math.hypot(x, y) or 1.0
    x, y = x / length, y / length
    aside = math.copysign(22.0, bend) * ((abs(bend) + 1) // 2) * (1 if bend % 2 else -1)
    begin = (start.x + x * start.radius, start.y + y * start.radius)
    close = (end.x - x * (end.radius + 1), end.y - y * (end.radius + 1))
    middle = ((begin[0] + close[0]) / 2 - y * aside, (begin[1] + close[1]) / 2 + x * aside)
    turn = f"Q{middle[0]:.1f} {middle[1]:.1f} " if aside else "L"
    return f"M{begin[0]:.1f} {begin[1]:.1f}{turn}{close[0]:.1f} {close[1]:.1f}", middle


def _loop(spot: Spot, bend: int) -> tuple[str, tuple[float, float]]:
    """Return an SVG path from a node to itself, above the node."""
    out = 26.0 + 14.0 * abs(bend)
    omitted, right, top = spot.x - out / 2, spot.x + out / 2, spot.y - spot.radius
    rise = top - out
    turns = f"C{omitted:.1f} {rise:.1f} {right:.1f} {rise:.1f}"
    return f"M{spot.x - 4:.1f} {top:.1f}{turns} {spot.x + 4:.1f} {top:.1f}", (spot.x, rise)


def _colours(nodes: Sequence[Node]) -> dict[str, str]:
    """Return a color for each type. The rarest types share the last color."""
    counts = Counter(node.type for node in nodes)
    ordered = sorted(counts, key=lambda type: (-counts[type], type))
    return {type: COLOURS[min(rank, len(COLOURS) - 1)] for rank, type in enumerate(ordered)}


def _legend(title: str, colours: dict[str, str], omitted: tuple[int, int]) -> Iterator[str]:
    yield f'<text class="text" x="20" y="28" font-weight="bold">{title}</text>\n'
    for rank, (type, colour) in enumerate(list(colours.items())[: len(COLOURS)]):
        y = 50 + 20 * rank
        rest = rank == len(COLOURS) - 1 and len(colours) > len(COLOURS)
        yield f'<circle cx="26" cy="{y - 4}" r="6" fill="{colour}"/>'
        yield f'<text class="text small" x="38" y="{y}">{escaped("other" if rest else _short(type))}</text>\n'
    if any(omitted):
        missing = f"{omitted[0]:,} more nodes and {omitted[1]:,} more edges are not in this picture"
        yield f'<text class="text small" x="20" y="{HEIGHT - 16}">{missing}</text>\n'


def _text(x: float, y: float, text: str, *, kind: str) -> str:
    where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="middle"'
    label = escaped(text)
    return f'<text class="{kind} halo" {where}>{label}</text><text class="{kind}" {where}>{label}</text>\n'


def _short(text: str) -> str:
    """Return a text on one line, truncated with a mark if it is long."""
    line = " ".join(text.split())
    return (
        line if len(line) <= MAX_LABEL_LENGTH else graphemes_prefix(line, MAX_LABEL_LENGTH - 1).rstrip() + "…"
    )
