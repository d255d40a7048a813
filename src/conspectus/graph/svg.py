"""Drawing of a graph as SVG."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from conspectus.deferred import dataclass
from conspectus.graph.layout import Points, compute_positions
from conspectus.graph.xml_text import escape_xml
from conspectus.model.graph import Edge, Node
from conspectus.text.graphemes import graphemes_prefix

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
    drawn, links = _select_drawn(nodes, edges)
    spots = _compute_spots(drawn, links)
    return "".join(
        _svg_lines(name, drawn, links, spots, omitted=(len(nodes) - len(drawn), len(edges) - len(links)))
    )


def _select_drawn(nodes: Sequence[Node], edges: Sequence[Edge]) -> tuple[list[Node], list[Edge]]:
    """Return the nodes with the most edges in descending order, and the edges between them."""
    degrees = Counter(end for edge in edges for end in (edge.source, edge.target))
    ordered = sorted(nodes, key=lambda node: (-degrees[node.id], node.id))[:MAX_NODES]
    there = {node.id for node in ordered}
    return ordered, [edge for edge in edges if edge.source in there and edge.target in there]


def _compute_spots(nodes: Sequence[Node], edges: Sequence[Edge]) -> dict[str, Spot]:
    places = {node.id: position for position, node in enumerate(nodes)}
    pairs = {tuple(sorted((places[edge.source], places[edge.target]))): edge.weight for edge in edges}
    points: Points = compute_positions(
        len(nodes), [(pair[0], pair[1], weight) for pair, weight in pairs.items()]
    )
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
    title = escape_xml(name)
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">\n'
    yield f'<title>{title}</title>\n{STYLE}<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>\n'
    yield from _links(edges, spots)
    colours = _assign_colors(nodes)
    for node in nodes:
        spot = spots[node.id]
        circle = f'cx="{spot.x:.1f}" cy="{spot.y:.1f}" r="{spot.radius:.1f}"'
        label = f"{escape_xml(node.name)} ({escape_xml(node.type)})"
        yield f'<circle {circle} fill="{colours[node.type]}"><title>{label}</title></circle>\n'
    for node in nodes if len(nodes) <= MAX_NAMES else nodes[:MAX_NAMES]:
        spot = spots[node.id]
        yield _text(spot.x, spot.y + spot.radius + 13, _truncate_line(node.name), kind="text")
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
        label = escape_xml(f"{edge.source} {edge.type} {edge.target}, {edge.weight:g}")
        line = f'<path class="link" d="{path}" {strength} marker-end="url(#head)">'
        yield f"{line}<title>{label}</title></path>\n"
        if len(edges) <= MAX_TYPES:
            yield _text(middle[0], middle[1], _truncate_line(edge.type), kind="text small dim")


def _path(start: Spot, end: Spot, bend: int) -> tuple[str, tuple[float, float]]:
    """Return an SVG path between the rims of two circles, and its midpoint."""
    if start == end:
        return _draw_loop(start, bend)
    x, y = end.x - start.x, end.y - start.y
    length = math.hypot(x, y) or 1.0
    x, y = x / length, y / length
    aside = math.copysign(22.0, bend) * ((abs(bend) + 1) // 2) * (1 if bend % 2 else -1)
    begin = (start.x + x * start.radius, start.y + y * start.radius)
    close = (end.x - x * (end.radius + 1), end.y - y * (end.radius + 1))
    middle = ((begin[0] + close[0]) / 2 - y * aside, (begin[1] + close[1]) / 2 + x * aside)
    turn = f"Q{middle[0]:.1f} {middle[1]:.1f} " if aside else "L"
    return f"M{begin[0]:.1f} {begin[1]:.1f}{turn}{close[0]:.1f} {close[1]:.1f}", middle


def _draw_loop(spot: Spot, bend: int) -> tuple[str, tuple[float, float]]:
    """Return an SVG path from a node to itself, above the node."""
    out = 26.0 + 14.0 * abs(bend)
    omitted, right, top = spot.x - out / 2, spot.x + out / 2, spot.y - spot.radius
    rise = top - out
    turns = f"C{omitted:.1f} {rise:.1f} {right:.1f} {rise:.1f}"
    return f"M{spot.x - 4:.1f} {top:.1f}{turns} {spot.x + 4:.1f} {top:.1f}", (spot.x, rise)


def _assign_colors(nodes: Sequence[Node]) -> dict[str, str]:
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
        label = escape_xml("other" if rest else _truncate_line(type))
        yield f'<text class="text small" x="38" y="{y}">{label}</text>\n'
    if any(omitted):
        missing = f"{omitted[0]:,} more nodes and {omitted[1]:,} more edges are not in this picture"
        yield f'<text class="text small" x="20" y="{HEIGHT - 16}">{missing}</text>\n'


def _text(x: float, y: float, text: str, *, kind: str) -> str:
    where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="middle"'
    label = escape_xml(text)
    return f'<text class="{kind} halo" {where}>{label}</text><text class="{kind}" {where}>{label}</text>\n'


def _truncate_line(text: str) -> str:
    """Return a text on one line, truncated with a mark if it is long."""
    line = " ".join(text.split())
    if len(line) <= MAX_LABEL_LENGTH:
        return line
    return graphemes_prefix(line, MAX_LABEL_LENGTH - 1).rstrip() + "…"
