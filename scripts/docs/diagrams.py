"""Draw the diagrams of the concepts: `python -m scripts.docs.diagrams` writes them to docs/figures.

All share one width and one style, light and dark. Blue is who acts, orange a rule that limits, green what
comes out, violet what is stored.
"""

from html import escape
from pathlib import Path
from typing import Final

FIGURES: Final = Path(__file__).resolve().parents[2] / "docs" / "figures"
WIDTH: Final = 880
STYLE: Final = """<style>
.t{fill:#1d2430;font:14px sans-serif}.b{font-weight:600}.d{fill:#555d69;font-size:12px}.m{text-anchor:middle}.e{text-anchor:end}
.box{fill:#f4f6f9;stroke:#8a919c}.a{fill:#dbe8fb;stroke:#4a84d6}.g{fill:#dcf1e4;stroke:#3f9e6b}.o{fill:#fbe6d8;stroke:#d9773c}.p{fill:#f1e1f4;stroke:#b45cc0}.none{fill:none;stroke:#8a919c;stroke-dasharray:4 3}
.l{stroke:#555d69;fill:none;stroke-width:1.5;marker-end:url(#h)}.n{stroke:#8a919c;fill:none}.h{fill:#555d69}.x{stroke:#c2413a;stroke-width:2.5}
@media (prefers-color-scheme:dark){.t{fill:#e8ebf0}.d{fill:#aab2be}.box{fill:#232830;stroke:#6c7480}.a{fill:#1d3355}.g{fill:#173b29}.o{fill:#4a2c17}.p{fill:#3d2243}.none,.n{stroke:#6c7480}.l{stroke:#aab2be}.h{fill:#aab2be}}
</style>
<defs><marker id="h" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="h" d="M0 0L8 4L0 8Z"/></marker></defs>
"""  # noqa: E501
LINE_PIXELS: Final = 18


class Drawing:
    """An SVG picture that grows by boxes, texts and lines; lengths are pixels."""

    def __init__(self, title: str, height: int) -> None:
        head = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img"'
        self._shapes = [f'<svg xmlns="http://www.w3.org/2000/svg" {head}>', f"<title>{escape(title)}</title>"]

    def text(self, words: str, x: float, y: float, style: str = "") -> None:
        """Write words; style `b` is bold, `d` small and dim, `m` centered at x, `e` ending at x."""
        self._shapes.append(
            f'<text class="{f"t {style}".strip()}" x="{x:g}" y="{y:g}">{escape(words)}</text>'
        )

    def bar(self, color: str, x: float, y: float, width: float, height: float = 30, words: str = "") -> None:
        """Draw a rectangle to scale, with dim words in its center."""
        self._shapes.append(
            f'<rect class="{color}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"/>'
        )
        if words:
            self.text(words, x + width / 2, y + height / 2 + 5, "m d")

    def box(self, color: str, x: float, y: float, width: float, height: float, *lines: str) -> None:
        """Draw a rounded box; the first line is bold, the others are dim."""
        self._shapes.append(
            f'<rect class="{color}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5"/>'
        )
        first_y = y + height / 2 + 5 - LINE_PIXELS * (len(lines) - 1) / 2
        for number, line in enumerate(lines):
            self.text(line, x + width / 2, first_y + LINE_PIXELS * number, "m d" if number else "m b")

    def arrow(self, *points: tuple[float, float]) -> None:
        """Draw an arrow along points."""
        self._line("l", points)

    def line(self, *points: tuple[float, float]) -> None:
        """Draw a thin line along points."""
        self._line("n", points)

    def cut(self, *points: tuple[float, float]) -> None:
        """Draw a red line along points."""
        self._line("x", points)

    def svg(self) -> str:
        """Return the picture."""
        first, title, *shapes = self._shapes
        return "\n".join([first, title, STYLE + "\n".join(shapes), "</svg>\n"])

    def _line(self, style: str, points: tuple[tuple[float, float], ...]) -> None:
        path = "L".join(f"{x:g} {y:g}" for x, y in points)
        self._shapes.append(f'<path class="{style}" d="M{path}"/>')


def window() -> Drawing:
    """Candidates become a window within the budget."""
    drawing = Drawing("Candidates on the left; on the right the budget of 1,024 tokens, to scale", 250)
    drawing.text("Candidates, best first", 10, 24, "b")
    candidates = (
        ("g", "Restoring", "0.91", "included"),
        ("g", "Backups", "0.62", "included"),
        ("box", "Restoring (copy)", "0.60", "duplicate"),
        ("g", "Releases", "0.41", "truncated"),
        ("box", "Holidays", "0.12", "below_min_similarity"),
    )
    for number, (color, title, score, status) in enumerate(candidates):
        y = 38 + 40 * number
        drawing.box(color, 10, y, 390, 32)
        drawing.text(str(number + 1), 22, y + 21, "d")
        drawing.text(title, 46, y + 21)
        drawing.text(score, 236, y + 21, "d e")
        drawing.text(status, 252, y + 21, "d")
    drawing.arrow((406, 118), (446, 118))
    drawing.text("Budget: 1,024 tokens", 452, 24, "b")
    parts = (("o", 72, "system"), ("o", 104, "reserved"), ("o", 44, "query"))
    passages = (("g", 92, "[1]"), ("g", 60, "[2]"), ("g", 40, "[3]"), ("none", 6, ""))
    x = 452
    for color, width, words in parts + passages:
        drawing.bar(color, x, 38, width, 64, words)
        x += width
    drawing.text("kept free for the rest of the prompt", 452, 124, "d")
    drawing.text("rendered and counted", 700, 124, "d")
    for number, (title, sentence) in enumerate(
        (
            ("Restoring", "Stop the server first, then copy the folder back."),
            ("Backups", "The backup runs every night at two."),
        )
    ):
        drawing.text(f"[{number + 1}] {title}", 452, 160 + 46 * number)
        drawing.text(sentence, 452, 180 + 46 * number, "d")
    return drawing


def scores() -> Drawing:
    """Three hits with the parts of their scores to scale."""
    drawing = Drawing("The score of a hit is the sum of its named parts", 240)
    drawing.text("“what did Mia answer about the staging port?”", 10, 24, "b")
    colors = {"keyword": "a", "vector": "g", "speaker": "o", "thread": "p"}
    hits = (
        ("Mia: it is 8443", {"keyword": 0.30, "vector": 0.42, "speaker": 0.08, "thread": 0.20}),
        ("Port list", {"keyword": 0.34, "vector": 0.36}),
        ("Where is staging?", {"keyword": 0.18, "vector": 0.24, "thread": 0.20}),
    )
    for number, (title, parts) in enumerate(hits):
        x, y = 160.0, 44 + 44 * number
        drawing.text(title, 10, y + 21)
        for part, score in parts.items():
            drawing.bar(colors[part], x, y, 560 * score, 30, f"{score:.2f}"[1:])
            x += 560 * score
        drawing.text(f"= {sum(parts.values()):.2f}", x + 10, y + 20, "b")
    x = 160
    for part, color in colors.items():
        drawing.bar(color, x, 184, 14, 14)
        drawing.text(part, x + 20, 196, "d")
        x += 100
    drawing.text("Words and meaning weigh most; every other part has a bound.", 160, 224, "d")
    return drawing


def permissions() -> Drawing:
    """Grants decide which sources a search can see."""
    drawing = Drawing("Grants decide which sources a search can see, before candidates are chosen", 220)
    rows = (
        ("ann", "owner", "of the collection", "all sources"),
        ("bob", "viewer", "of source “wiki”", "wiki"),
        ("group ops", "editor", "of source “ops”", "ops"),
    )
    for number, (principal, role, where, sources) in enumerate(rows):
        y = 20 + 72 * number
        drawing.box("a", 10, y, 120, 44, principal)
        drawing.box("o", 200, y, 150, 44, role, where)
        drawing.box("p", 420, y, 120, 44, sources)
        drawing.arrow((130, y + 22), (196, y + 22))
        drawing.arrow((350, y + 22), (416, y + 22))
        drawing.arrow((540, y + 22), (606, 70 + 22 * (number + 1)))
    drawing.arrow((70, 136), (70, 160))
    drawing.text("member", 80, 153, "d")
    drawing.box("box", 610, 70, 120, 90, "Filter", "visible sources,", "inside the index")
    drawing.arrow((730, 115), (766, 115))
    drawing.box("g", 770, 70, 100, 90, "Candidates", "nothing hidden")
    return drawing


def trust() -> Drawing:
    """The origin of a text bounds its level; a level never rises on the way into a window."""
    drawing = Drawing("The origin of a text bounds its trust level, which never rises", 270)
    origins = (
        ("user", "a person"),
        ("agent, import", "a model, files, wikis"),
        ("tool, web", "outputs, fetched pages"),
    )
    levels = ("trusted", "standard", "untrusted")
    uses = ("notes in every window", "found by queries", "marked “(untrusted)”")
    for number, (origin, level, use) in enumerate(zip(origins, levels, uses, strict=True)):
        y = 14 + 62 * number
        drawing.box("a", 10, y, 180, 46, *origin)
        drawing.arrow((190, y + 23), (246, y + 23))
        drawing.box("p", 250, y, 130, 46, level)
        drawing.arrow((380, y + 23), (606, y + 23))
        drawing.box("g", 610, y, 260, 46, "Window", use)
    for number in range(len(levels) - 1):
        drawing.arrow((315, 60 + 62 * number), (315, 73 + 62 * number))
    drawing.text("an edit or a copy", 395, 70, "d")
    drawing.text("can only lower it", 395, 86, "d")
    drawing.box("o", 250, 210, 130, 46, "Quarantine", "until released")
    drawing.arrow((315, 184), (315, 206))
    drawing.cut((395, 233), (590, 233))
    drawing.text("no search, window or list", 610, 238, "d")
    drawing.text("attack pattern", 240, 202, "d e")
    return drawing


def as_of() -> Drawing:
    """Valid time beside transaction time."""
    drawing = Drawing("Valid time says when a fact is true; as_of says what was known at an instant", 250)
    drawing.text("When it is true (valid time)", 10, 24, "b")
    drawing.line((150, 92), (850, 92))
    drawing.box("a", 170, 40, 330, 34, "Ann lives in Köln")
    drawing.box("g", 500, 40, 350, 34, "Ann lives in Oslo")
    for month, x in (("March", 170), ("June", 500), ("July", 640)):
        drawing.line((x, 86), (x, 98))
        drawing.text(month, x, 114, "d m")
    drawing.text("When it was stored (transaction time)", 10, 150, "b")
    drawing.line((150, 218), (850, 218))
    drawing.box("a", 200, 166, 440, 34, "Köln is stored")
    drawing.box("g", 640, 166, 210, 34, "Oslo is stored")
    for x, label_x, answer in (
        (330, 330, "as_of April: only Köln is known"),
        (560, 560, "as_of late June: still Köln"),
        (820, 770, "as_of now: Köln ended in June"),
    ):
        drawing.cut((x, 160), (x, 230))
        drawing.text(answer, label_x, 245, "d m")
    return drawing


DIAGRAMS: Final = {
    "window": window,
    "scores": scores,
    "permissions": permissions,
    "trust_levels": trust,
    "as_of": as_of,
}


def main() -> None:
    """Write each diagram."""
    for name, draw in DIAGRAMS.items():
        (FIGURES / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
