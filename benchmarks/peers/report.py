"""The table of figures with their ratios to ours."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from results import Result

Figures: TypeAlias = Mapping[str, float | str | None]


@dataclass(frozen=True)
class Line:
    """One row of the table; `ratio` where the figure is a cost that can be divided by ours."""

    title: str
    key: str
    form: Callable[[float], str]
    ratio: bool = True


def milliseconds(value: float) -> str:
    """Two digits that matter."""
    return f"{value:.2f} ms" if value < 10 else f"{value:,.1f} ms"


def megabytes(value: float) -> str:
    """Whole ones."""
    return f"{value:,.0f} MB"


def share(value: float) -> str:
    """Three decimals."""
    return f"{value:.3f}"


def kind_lines(title: str, key: str) -> list[Line]:
    """p50 and p95 of one kind of search."""
    return [
        Line(f"{title}, p50", f"{key} p50", milliseconds),
        Line(f"{title}, p95", f"{key} p95", milliseconds),
    ]


LINES = [
    Line("build", "build", lambda value: f"{value:,.1f} s"),
    Line("chunks built a second", "rate", lambda value: f"{value:,.0f}", ratio=False),
    Line("import, open and first answer", "cold", milliseconds),
    Line("open again, first answer included", "open", milliseconds),
    Line("resident memory", "memory", megabytes),
    Line("disk", "disk", megabytes),
    *kind_lines("**hybrid top 10**", "hybrid default"),
    Line("of it inside the index", "hybrid inside", milliseconds, ratio=False),
    Line("source paragraph among the ten", "hybrid sources", share, ratio=False),
    *kind_lines("**vectors top 10**", "vectors default"),
    Line("of it inside the index", "vectors inside", milliseconds, ratio=False),
    Line("recall@10", "vectors default recall", share, ratio=False),
    *kind_lines("**vectors, 1 % filter**", "filtered default"),
    Line("recall@10", "filtered default recall", share, ratio=False),
    Line("one insert until found, p50", "insert", milliseconds),
    Line("**setting nearest our recall**", "vectors effort", str, ratio=False),
    Line("recall@10", "vectors matched recall", share, ratio=False),
    *kind_lines("vectors top 10", "vectors matched"),
    *kind_lines("hybrid top 10", "hybrid matched"),
    Line("**1 % filter, setting nearest our recall**", "filtered effort", str, ratio=False),
    Line("recall@10", "filtered matched recall", share, ratio=False),
    *kind_lines("vectors, 1 % filter", "filtered matched"),
]


def cells(line: Line, figures: Sequence[Figures]) -> Iterator[str]:
    """One row's values, the first being ours."""
    ours = figures[0].get(line.key)
    for position, peer_figures in enumerate(figures):
        value = peer_figures.get(line.key)
        if value is None:
            yield "-"
        elif isinstance(value, str):
            yield value
        elif line.ratio and position and isinstance(ours, float) and ours > 0:
            yield f"{line.form(value)} ({value / ours:.2g}x)"
        else:
            yield line.form(value)


def behind(figures: Mapping[str, Figures]) -> list[str]:
    """Every figure in which another engine is ahead of ours, with its ratio to ours."""
    ours, *others = figures.values()
    names = list(figures)[1:]
    lines = []
    for line in (line for line in LINES if line.ratio):
        mine = ours.get(line.key)
        ahead = [
            f"{name} {value / mine:.2g}x"
            for name, value in zip(
                names, (peer_figures.get(line.key) for peer_figures in others), strict=True
            )
            if isinstance(mine, float) and isinstance(value, float) and value < mine
        ]
        setting = " at the setting nearest our recall" if "matched" in line.key else ""
        lines += [f"{plain(line.title)}{setting}: {', '.join(ahead)}"] if ahead else []
    return lines


def plain(title: str) -> str:
    """A title without Markdown."""
    return title.replace("**", "")


def result(title: str, figures: Mapping[str, Figures]) -> Result:
    """The table, with what is ahead of ours below."""
    rows = [[line.title, *cells(line, list(figures.values()))] for line in LINES]
    ahead = [f"- {line}" for line in behind(figures)] or ["- none, in nothing"]
    below = ("Where another engine is ahead of ours:", "", *ahead)
    return Result.of(title, ["", *figures], rows, below=below, figures=figures)
