"""Results of benchmarks, a file each in docs/benchmarks/results, with their tables and plots.

A script that is called with --save writes its file. `python benchmarks/results.py` writes the tables of all
files between the marks `<!-- result: NAME -->` and `<!-- end of result -->` of the pages in docs, and the
plots, docs/figures/NAME.svg.
"""

import argparse
import json
import math
import os
import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any, TypeAlias

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = sorted(DOCS.glob("*/*.md"))
FILES = DOCS / "benchmarks" / "results"
FIGURES = DOCS / "figures"
MARKED = re.compile(r"(<!-- result: ([\w-]+) -->\n).*?(<!-- end of result -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Result:
    """What one command measured: a table of texts, lines below it, and the figures as they were measured."""

    command: str
    date: str
    machine: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    below: Sequence[str] = ()
    figures: Any = None

    @classmethod
    def read(cls, name: str) -> "Result | None":
        """A result that was saved, None where there is none."""
        path = FILES / f"{name}.json"
        return cls(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None

    @classmethod
    def of(cls, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], **others: Any) -> "Result":
        """A result of this command, measured now on this machine."""
        arguments = (Path(word).name if word.startswith("/") else word for word in sys.argv[1:])
        words = [Path(sys.argv[0]).name, *(word for word in arguments if word != "--save")]
        machine = f"{len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}"
        date = f"{datetime.now(UTC):%Y-%m-%d}"
        return cls(f"python benchmarks/{' '.join(words)}", date, machine, title, columns, rows, **others)

    def save(self, name: str) -> None:
        """Write the file, and all tables and plots anew."""
        FILES.mkdir(exist_ok=True)
        text = json.dumps(asdict(self), indent=1, ensure_ascii=False)
        (FILES / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
        write_all()

    def shown(self, name: str, *, save: bool) -> None:
        """Print the table, and save the result if that was asked for."""
        print(self.markdown(), flush=True)
        if save:
            self.save(name)

    def markdown(self) -> str:
        """Command, date and machine, the table, and what stands below it."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield from ("", f"`{self.command}`, {self.date}, {self.machine}. {self.title}", "")
        for row in (self.columns, ["---"] * len(self.columns), *self.rows):
            yield f"| {' | '.join(row)} |"
        yield from ("", *self.below, "") if self.below else ("",)


def option_parser(about: str | None) -> argparse.ArgumentParser:
    """The options of a benchmark: whether its result is saved, and what it adds itself."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--save", action="store_true", help="save the result for the documentation")
    return parser


def with_tables(page: str) -> str:
    """A page with tables and plots of its results. Raises FileNotFoundError where a result has no file."""

    def table(match: re.Match[str]) -> str:
        result = _known(match[2])
        plot = PLOTS.get(_kind(match[2]))
        image = f"![{plot.title}](../figures/{match[2]}.svg)\n\n" if plot else ""
        return f"{match[1]}{result.markdown()}{image}{match[3]}"

    return MARKED.sub(table, page)


def plots() -> dict[Path, str]:
    """The file of each plot, and what it has to be."""
    names = (path.stem for path in sorted(FILES.glob("*.json")))
    return {
        FIGURES / f"{name}.svg": plot.drawing(plot.title, _known(name))
        for name in names
        if (plot := PLOTS.get(_kind(name)))
    }


def write_all() -> None:
    """Write the tables into all pages, and the plots."""
    for path in PAGES:
        path.write_text(with_tables(path.read_text(encoding="utf-8")), encoding="utf-8")
    for path, text in plots().items():
        path.write_text(text, encoding="utf-8")


def _known(name: str) -> Result:
    result = Result.read(name)
    if result is None:
        raise FileNotFoundError(FILES / f"{name}.json")
    return result


def _kind(name: str) -> str:
    """The name of a result without its size."""
    return re.sub(r"-\d+$", "", name)


WIDTH, HEIGHT, LEFT, TOP, BOTTOM, APART = 300, 240, 62, 64, 84, 34
STEP, NAMES, LETTER, BAR = 20, 118, 6, 150
"""Of bars: from one to the next, the room for their names, that of a letter, and the longest."""
COLORS = ("#4a84d6", "#d9773c", "#3f9e6b", "#b45cc0", "#c2a02f")
SHAPES = ("M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z", "M-4 -4H4V4H-4Z", "M0 -5L5 4H-5Z", "M0 -5L5 0L0 5L-5 0Z")
UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
STYLE = """<style>
.page{fill:#ffffff}.text{fill:#1d2430;font:13px sans-serif}.title{font-size:15px;font-weight:600}
.dim{fill:#555d69;font-size:11px}.grid{stroke:#d9dde3;stroke-width:1}.frame{stroke:#8a919c;fill:none}
.other{fill:#9aa3b0}
@media (prefers-color-scheme: dark){.page{fill:#15181d}.text{fill:#e8ebf0}.dim{fill:#aab2be}
.grid{stroke:#2c323b}.frame{stroke:#6c7480}.other{fill:#6c7480}}
</style>"""
"""Plots need nothing else, and can be read on light and dark pages."""
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Line:
    """One name's points; its position gives color and shape."""

    name: str
    points: Sequence[Point]
    position: int
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines in one frame, both axes logarithmic."""

    title: str
    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class Bars:
    """Names with what their cells say; the first number of a cell is the length of its bar.

    Ours are colored, or all where none is."""

    title: str
    cells: Sequence[tuple[str, str]]

    @classmethod
    def of_row(cls, result: Result, row: str, title: str = "") -> "Bars":
        """A row of a table, the first that begins so."""
        cells = next(cells_of_row for cells_of_row in result.rows if cells_of_row[0].replace("*", "") == row)
        return cls(title or row, list(zip(result.columns[1:], cells[1:], strict=True)))

    @classmethod
    def of_column(cls, result: Result, column: str, title: str = "") -> "Bars":
        """A column of a table."""
        index = result.columns.index(column)
        return cls(title or column, [(row[0].strip("`*"), row[index]) for row in result.rows])


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
        positive = [value for value in values if value > 0] or [1.0]
        low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
        return cls(low, max(high, low + 1), start, length)

    def at(self, value: float) -> float:
        """The position of a value."""
        return self.start + self.length * (math.log10(value) - self.low) / (self.high - self.low)


def of_lines(title: str, panels: Sequence[Panel], names: Sequence[str]) -> str:
    """Panels side by side, with the names of the lines below."""
    width = max(len(panels) * (WIDTH + LEFT), len(names) * 190) + APART
    height = TOP + HEIGHT + BOTTOM
    parts: list[str] = []
    for panel_number, panel in enumerate(panels):
        parts += _panel(panel, LEFT + panel_number * (WIDTH + LEFT))
    for number, name in enumerate(names):
        x, y = LEFT + number * 190, height - 22
        parts += [_mark(number, x, y - 4), _text(x + 12, y, name, "text")]
    return _whole(title, width, height, parts)


def of_bars(title: str, groups: Sequence[Bars]) -> str:
    """Groups of bars, two beside each other; ours are colored."""
    longest = max(len(name) for group in groups for name, _ in group.cells)
    room = max(NAMES, LETTER * (longest + 2))
    across, rows = room + BAR + 2 * LEFT, [groups[start : start + 2] for start in range(0, len(groups), 2)]
    parts: list[str] = []
    top = float(TOP)
    for row in rows:
        for number, group in enumerate(row):
            parts += _bars(group, APART + number * across, top, room)
        top += STEP * (max(len(group.cells) for group in row) + 2)
    return _whole(title, APART + 2 * across, round(top), parts)


def _whole(title: str, width: int, height: int, parts: Sequence[str]) -> str:
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        STYLE,
        f'<rect class="page" width="{width}" height="{height}"/>',
        _text(APART, 26, title, "text title"),
    ]
    return "\n".join([*head, *parts, "</svg>", ""])


def _bars(group: Bars, left: float, top: float, room: int) -> Iterator[str]:
    yield _text(left, top - 6, group.title, "text")
    numbers = [re.match(r"[\d,]*\.?\d+", cell) for _, cell in group.cells]
    lengths = [float(match[0].replace(",", "")) if match else 0.0 for match in numbers]
    longest = max(lengths) or 1.0
    names = [name for name, _ in group.cells]
    ours = [name for name in names if "conspectus" in name] or names
    for number, ((name, cell), length) in enumerate(zip(group.cells, lengths, strict=True)):
        y, size = top + number * STEP, length / longest * BAR
        kind = f'fill="{COLORS[0]}"' if name in ours else 'class="other"'
        yield _text(left + room - 6, y + 13, name, "text dim", "end")
        yield f'<rect {kind} x="{left + room:.1f}" y="{y + 3:.1f}" width="{size:.1f}" height="{STEP - 6}"/>'
        yield _text(left + room + size + 6, y + 13, cell.partition(" (")[0], "text dim")


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
    yield f'<path d="{path}" fill="none" stroke="{_color(line.position)}" stroke-width="2"{dash}/>'
    for x, y in places:
        yield _mark(line.position, x, y)


def _mark(number: int, x: float, y: float) -> str:
    shape = SHAPES[number % len(SHAPES)]
    return f'<path transform="translate({x:.1f} {y:.1f})" d="{shape}" fill="{_color(number)}"/>'


def _color(number: int) -> str:
    return COLORS[number % len(COLORS)]


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _short(value: float) -> str:
    for size, unit in UNITS:
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g}"


def _stores(title: str, result: Result) -> str:
    names = list(dict.fromkeys(figure["store"] for figure in result.figures))

    def lines(value: Callable[[Mapping[str, Any]], float], *, dashed: bool = False) -> list[Line]:
        return [
            Line(
                name,
                [(figure["chunks"], value(figure)) for figure in result.figures if figure["store"] == name],
                number,
                dashed=dashed,
            )
            for number, name in enumerate(names)
        ]

    panels = [
        Panel(
            "A window: p50, dashed p95 (ms)",
            [*lines(lambda figure: figure["p50"]), *lines(lambda figure: figure["p95"], dashed=True)],
        ),
        Panel(
            "Added, with vectors (s)",
            lines(lambda figure: figure["words_seconds"] + figure["vectors_seconds"]),
        ),
        Panel("On disk (bytes)", lines(lambda figure: figure["disk"])),
    ]
    return of_lines(title, panels, names)


def _latency(title: str, result: Result) -> str:
    if len(result.columns) == 2:
        windows = [
            (row[0].removeprefix("window, "), row[1]) for row in result.rows if row[0].startswith("window")
        ]
        return of_bars(title, [Bars(result.columns[1], windows)])
    names = {"vector given": "given", "query embedded": "embedded"}
    lines = [
        Line(
            name,
            [(int(size), steps["ask"][f"{key} {share}"]) for size, steps in result.figures.items()],
            number,
            dashed=share == "p95",
        )
        for number, (name, key) in enumerate(names.items())
        for share in ("p50", "p95")
    ]
    return of_lines(title, [Panel("A window: p50, dashed p95 (ms)", lines)], list(names))


def _peers(title: str, result: Result) -> str:
    rows = (
        "hybrid top 10, p50",
        "vectors top 10, p50",
        "vectors, 1 % filter, p50",
        "one insert until found, p50",
        "build",
        "import, open and first answer",
        "resident memory",
        "disk",
    )
    return of_bars(title, [Bars.of_row(result, row) for row in rows])


def _startup(title: str, result: Result) -> str:
    groups = [
        Bars.of_column(result, "median", "on the clock, median"),
        Bars.of_column(result, "processor: least", "processor time, least"),
    ]
    return of_bars(title, groups)


Drawing: TypeAlias = Callable[[str, Result], str]


def _columns(*columns: str) -> Drawing:
    """A group of bars for each of these columns."""
    return lambda title, result: of_bars(title, [Bars.of_column(result, column) for column in columns])


def _rows(first: int, last: int) -> Drawing:
    """A group of bars for each row, of these columns."""

    def drawing(title: str, result: Result) -> str:
        names = result.columns[first:last]
        groups = [Bars(row[0], list(zip(names, row[first:last], strict=True))) for row in result.rows]
        return of_bars(title, groups)

    return drawing


@dataclass(frozen=True, slots=True)
class Plot:
    """What the plot of a kind of result shows, and how it is drawn."""

    title: str
    drawing: Drawing


PLOTS: Mapping[str, Plot] = {
    "availability": Plot("Searches while others attack (less is better)", _columns("p50", "p95")),
    "kills": Plot(
        "Servers and databases killed: seconds without a search", _columns("longest without a search")
    ),
    "sources": Plot(
        "Seconds from a revocation at the source to its effect (less is better)",
        _columns("longest until in force, sync included"),
    ),
    "endurance": Plot("Mixed load: the first and the last quarter", _rows(3, 4)),
    "cache": Plot(
        "Windows of a session, with and without the previous one", _columns("unchanged", "without", "with")
    ),
    "chat": Plot("Chats: the first event (less is better)", _columns("first event, p50", "p95")),
    "chats": Plot("Chats taken in", _columns("messages a second", "p95")),
    "conversations": Plot(
        "Evidence found of conversations", _columns("recall@10", "in windows", "session hit@1")
    ),
    "cited": Plot("Evidence in small windows", _rows(2, 6)),
    "console": Plot("The console (less is better)", _columns("median")),
    "documents": Plot("nDCG@10 of sets of documents", _rows(2, 5)),
    "embedding": Plot("Machines that embed one collection", _columns("texts a second")),
    "feedback": Plot("nDCG@10 before and after feedback", _rows(2, 8)),
    "files": Plot("Evidence that an agent was shown", _rows(1, 6)),
    "first-answer": Plot(
        "From nothing to the first answer (less is better)",
        _columns("install", "first answer", "packages", "MB"),
    ),
    "first-hour": Plot("The first hour of a stranger", _columns("takes")),
    "fleet": Plot("Four servers on one PostgreSQL", _columns("requests", "p95")),
    "graph": Plot("Questions to a graph (less is better)", _columns("p50", "p95")),
    "harmless": Plot("Texts that attack nobody", _columns("texts", "changed")),
    "hooks": Plot("Hooks of coding agents (less is better)", _columns("p50", "p95")),
    "ingest": Plot("Taking texts in, and queries meanwhile", _columns("chunks a second", "p95")),
    "injection": Plot("Hostile texts in a prompt", _columns("texts", "got through")),
    "languages-minilm": Plot("XQuAD, recall at 1, included model", _columns("keywords", "vectors", "both")),
    "languages-multilingual": Plot(
        "XQuAD, recall at 1, multilingual model", _columns("keywords", "vectors", "both")
    ),
    "latency": Plot("The time of a window (less is better)", _latency),
    "linked": Plot("Hybrid search without and with the graph", _columns("nDCG@10", "nDCG@10, graph")),
    "live": Plot("A day of captions as it comes (less is better)", _columns("p50", "p95")),
    "memory": Plot("Memories of agents (times: less is better)", _rows(1, 5)),
    "moments": Plot("Moments that are found", _columns("R@1 iou .3", "R@5 iou .3", "miou", "video_hit@10")),
    "names": Plot("Names that are found and linked: F1", _columns("F1")),
    "packing": Plot("Evidence in windows, of the most that fits", _rows(2, 7)),
    "reading": Plot("Files that are read", _columns("in order", "cells")),
    "parts": Plot(
        "What each part is worth",
        _columns("locomo", "gitter_livechat, thread", "irc_disentanglement, thread"),
    ),
    "patterns": Plot("Attack patterns that match", _columns("texts", "matched")),
    "partitions": Plot(
        "Partitions by collection (less is better)", _columns("write", "read in a collection", "read by id")
    ),
    "peers": Plot("The same work in each engine (less is better)", _peers),
    "peers-second": Plot("The same work in each engine, second run (less is better)", _peers),
    "peers-third": Plot("The same work in each engine, third run (less is better)", _peers),
    "purge": Plot("A purge beside a writer (less is better)", _columns("purge", "p95 during a purge")),
    "purge-folder": Plot(
        "A purge beside a writer, in a folder (less is better)", _columns("purge", "p95 during a purge")
    ),
    "purge-large": Plot(
        "A purge from the large collection (less is better)", _columns("purge", "p95 during a purge")
    ),
    "purge-large-folder": Plot(
        "A purge from the large collection, in a folder (less is better)",
        _columns("purge", "p95 during a purge"),
    ),
    "scans": Plot("Pages with a text layer and their scans", _columns("recall@5", "words")),
    "speech": Plot("Speech that is read", _columns("word errors", "times real time")),
    "server": Plot(
        "Answers a second, by the number of clients",
        _columns("search", "search again", "search again, without HTTP", "add"),
    ),
    "similarity": Plot("Similarities: medians", _columns("query and answer", "query and random text")),
    "sizes": Plot("Bytes a chunk in a folder", _columns("bytes a chunk")),
    "sizes-postgresql": Plot("Bytes a chunk in PostgreSQL", _columns("bytes a chunk", "of it indexes")),
    "startup": Plot("What starting costs", _startup),
    "stores": Plot("How the cost of each store grows with its chunks", _stores),
    "threads": Plot("Replies and conversations that are found", _columns("links", "one-to-one")),
    "trust": Plot("Trust in histories of writes and copies", _columns("number")),
    "turns": Plot("nDCG@10 of questions of several turns", _rows(2, 6)),
    "video-milvus": Plot("A day of captions in Milvus Lite (less is better)", _columns("p50", "p95")),
    "video-segments": Plot("A day of captions (less is better)", _columns("p50", "p95")),
    "windows": Plot("Evidence among the ten best, and in windows", _columns("ten best", "in windows")),
    "writers": Plot("Documents that many writers store", _columns("documents a second")),
    "writers-folder": Plot("Documents that many writers store in a folder", _columns("documents a second")),
}

if __name__ == "__main__":
    write_all()
