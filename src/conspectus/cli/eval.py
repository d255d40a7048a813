"""eval retrieval, evidence, conversation, turns, moments and similarity."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from conspectus.cli.options import Common
from conspectus.cli.output import plain_table, progress, show, similarity_table
from conspectus.cli.session import require_here
from conspectus.evals import run
from conspectus.evals.asked import profile_without
from conspectus.evals.evidence import BUDGETS
from conspectus.evals.evidence import evidence as measure_evidence
from conspectus.evals.moments import moments as measure_moments
from conspectus.evals.similarity import similarity as measure_similarity
from conspectus.evals.turns import turns as measure_turns
from conspectus.model.graph import GraphExpansion

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the evaluation set.")]


def retrieval(
    directory: Directory,
    common: Common,
    *,
    graph: Annotated[
        bool, typer.Option("--graph", help="Compare with and without names in passages.")
    ] = False,
) -> None:
    """Measure ranking on corpus.jsonl, queries.jsonl and qrels.tsv, from 0 to 100."""
    require_here(common)
    with progress() as bars:
        figures = asyncio.run(run.retrieval(directory, graph=_ask(graph), progress=bars))
    show(figures, ways_table(figures) if graph else figures_table(figures), as_json=common.json)


def evidence(
    directory: Directory,
    common: Common,
    *,
    budget: Annotated[
        list[int] | None,
        typer.Option(min=0, help="Tokens of the window, counted with o200k_base; repeatable."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Most questions of each kind.")] = None,
    pages: Annotated[
        str | None, typer.Option(metavar="FIELD", help="Join documents that share this field into one page.")
    ] = None,
) -> None:
    """Measure how often the sentence that answers is inside windows of several sizes, from 0 to 100."""
    require_here(common)
    with progress() as bars:
        measuring = measure_evidence(
            directory, budgets=budget or BUDGETS, limit=limit, pages=pages, progress=bars
        )
        figures = asyncio.run(measuring)
    show(figures, ways_table(figures), as_json=common.json)


def conversation(
    directory: Directory,
    common: Common,
    *,
    budget: Annotated[int, typer.Option(min=0, help="Tokens of the window, counted with o200k_base.")] = 2048,
    profile: Annotated[
        str | None, typer.Option(help="Ask in the channel, at its time, and weigh parts of scores so.")
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(metavar="PART", help="Switch a part off; may be repeated.")
    ] = None,
    graph: Annotated[bool, typer.Option("--graph", help="Let the names in turns have a say.")] = False,
) -> None:
    """Measure how much of the evidence for questions about conversations is found, from 0 to 100."""
    require_here(common)
    chosen = profile_without(profile or "default", without) if without else profile
    with progress() as bars:
        asking = run.conversation(directory, budget=budget, profile=chosen, graph=_ask(graph), progress=bars)
        figures = asyncio.run(asking)
    show(figures, figures_table(figures), as_json=common.json)


def turns(directory: Directory, common: Common) -> None:
    """Measure what questions with a history in queries.jsonl find, by how they are asked, from 0 to 100."""
    require_here(common)
    with progress() as bars:
        figures = asyncio.run(measure_turns(directory, progress=bars))
    flat = {f"{way} {kind}": report for way, kinds in figures.items() for kind, report in kinds.items()}
    show(figures, figures_table(flat), as_json=common.json)


def moments(
    directory: Directory,
    common: Common,
    *,
    limit: Annotated[int | None, typer.Option(min=1, help="Ask so many of the questions at most.")] = None,
) -> None:
    """Measure how well the stretch of a video that answers a question is found, from 0 to 100."""
    require_here(common)
    with progress() as bars:
        figures = asyncio.run(measure_moments(directory, limit=limit, progress=bars))
    show(figures, ways_table(figures), as_json=common.json)


def similarity(
    directories: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of evaluation sets.")],
    common: Common,
) -> None:
    """Measure how similar queries are to texts that answer them and to random others, to choose a floor."""
    require_here(common)
    figures = asyncio.run(measure_similarity(directories))
    show(figures, similarity_table(figures), as_json=common.json)


def figures_table(figures: Mapping[str, object]) -> RenderableType:
    """Nested figures, one a line."""
    table = plain_table("measure", "value")
    for name, value in figures.items():
        inner = value if isinstance(value, Mapping) else {"": value}
        for part, figure in inner.items():
            table.add_row(
                f"{name} {part}".strip(), f"{figure:.1f}" if isinstance(figure, float) else str(figure)
            )
    return table


def ways_table(figures: Mapping[str, Mapping[str, object]]) -> RenderableType:
    """The same figures of several ways, side by side."""
    table = plain_table("measure", *figures)
    for name in dict.fromkeys(name for report in figures.values() for name in report):
        values = (report.get(name, "") for report in figures.values())
        table.add_row(name, *(f"{each:.1f}" if isinstance(each, float) else str(each) for each in values))
    return table


def _ask(graph: bool) -> GraphExpansion | None:
    return GraphExpansion() if graph else None
