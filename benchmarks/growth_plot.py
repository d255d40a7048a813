"""Lines over sizes as an SVG that needs nothing else: both axes logarithmic, for light and dark pages."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, APART = 300, 240, 62, 64, 84, 34
COLOURS = ("#4a84d6", "#d9773c", "#3f9e6b", "#b45cc0", "#c2a02f")
SHAPES = ("M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z", "M-4 -4H4V4H-4Z", "M0 -5L5 4H-5Z", "M0 -5L5 0L0 5L-5 0Z")
UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
STYLE = """<style>
.page{fill:#ffffff}.text{fill:#1d2430;font:13px sans-serif}.title{font-size:15px;font-weight:600}
.dim{fill:#555d69;font-size:11px}.grid{stroke:#d9dde3;stroke-width:1}.frame{stroke:#8a919c;fill:none}
@media (prefers-color-scheme: dark){.page{fill:#15181d}.text{fill:#e8ebf0}.dim{fill:#aab2be}
.grid{stroke:#2c323b}.frame{stroke:#6c7480}}
</style>"""
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Line:
    """One name's points; its place gives colour and shape."""

    name: str
    points: Sequence[Point]
    place: int
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines in one frame."""

    title: str
    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class Axis:
    """Powers of ten from one to another over a stretch of the page."""

    low: int
    high: int
    start: float
    length: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, length: float) -> "Axis":
        """The shortest axis that includes all values."""
        known = [value for value in values if value > 0] or [1.0]
        low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
        return cls(low, max(high, low + 1), start, length)

    def at(self, value: float) -> float:
        """The position of a value."""
        return self.start + self.length * (math.log10(value) - self.low) / (self.high - self.low)


def picture(title: str, panels: Sequence[Panel], names: Sequence[str]) -> str:
    """The drawing: panels side by side, with the names of the lines below."""
    width = len(panels) * (WIDTH + LEFT) + APART
    height = TOP + HEIGHT + BOTTOM
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">']
    parts += [
        f"<title>{escape(title)}</title>",
        STYLE,
        f'<rect class="page" width="{width}" height="{height}"/>',
    ]
    parts.append(_text(APART, 26, title, "text title"))
    for number, panel in enumerate(panels):
        parts += _panel(panel, LEFT + number * (WIDTH + LEFT))
    for place, name in enumerate(names):
        x, y = LEFT + place * 190, height - 22
        parts += [_mark(place, x, y - 4), _text(x + 12, y, name, "text")]
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel, left: float) -> Iterator[str]:
    points = [point for line in panel.lines for point in line.points]
    across = Axis.over([x for x, _ in points], left, WIDTH)
    up = Axis.over([y for _, y in points], TOP + HEIGHT, -HEIGHT)
    yield _text(left, TOP - 12, panel.title, "text")
    for power in range(across.low, across.high + 1):
        x = across.at(10.0**power)
        yield f'<path class="grid" d="M{x:.1f} {TOP}V{TOP + HEIGHT}"/>'
        yield _text(x, TOP + HEIGHT + 18, _short(10.0**power), "text dim", "middle")
    for power in range(up.low, up.high + 1):
        y = up.at(10.0**power)
        yield f'<path class="grid" d="M{left} {y:.1f}H{left + WIDTH}"/>'
        yield _text(left - 6, y + 4, _short(10.0**power), "text dim", "end")
    yield f'<rect class="frame" x="{left}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}"/>'
    yield _text(left + WIDTH / 2, TOP + HEIGHT + 36, "chunks", "text dim", "middle")
    for line in panel.lines:
        yield from _line(line, across, up)


def _line(line: Line, across: Axis, up: Axis) -> Iterator[str]:
    places = [(across.at(x), up.at(y)) for x, y in sorted(line.points) if y > 0]
    if not places:
        return
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    dash = ' stroke-dasharray="5 4"' if line.dashed else ""
    yield f'<path d="{path}" fill="none" stroke="{_colour(line.place)}" stroke-width="2"{dash}/>'
    for x, y in places:
        yield _mark(line.place, x, y)


def _mark(place: int, x: float, y: float) -> str:
    shape = SHAPES[place % len(SHAPES)]
    return f'<path transform="translate({x:.1f} {y:.1f})" d="{shape}" fill="{_colour(place)}"/>'


def _colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _short(value: float) -> str:
    for size, unit in UNITS:
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g}"
