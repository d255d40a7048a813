"""eval retrieval, evidence, conversation, turns, moments and similarity."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import RenderableType

from conspectus.cli.options import MaxTokens
from conspectus.cli.output import plain_table, progress, similarity_table
from conspectus.cli.session import Session
from conspectus.evals import run
from conspectus.evals.asked import profile_without
from conspectus.evals.asked import similarity as measure_similarity
from conspectus.evals.evidence import BUDGETS
from conspectus.evals.evidence import evidence as measure_evidence
from conspectus.evals.moments import moments as measure_moments
from conspectus.evals.turns import turns as measure_turns
from conspectus.model.graph import GraphExpansion

if TYPE_CHECKING:
    from conspectus.ports import Progress

T = TypeVar("T")
MaxQueries = Annotated[
    int | None, typer.Option("--limit", "-n", min=1, help="Maximum number of queries per kind.")
]
Directory = Annotated[Path, typer.Argument(metavar="DIR", help="Directory of the evaluation set.")]


def retrieval(
    directory: Directory,
    session: Session,
    *,
    graph: Annotated[
        bool, typer.Option("--graph", help="Compare results with and without the graph.")
    ] = False,
) -> None:
    """Measure ranking: nDCG and recall."""
    figures = _measured(session, lambda bars: run.retrieval(directory, graph=_ask(graph), progress=bars))
    session.show(figures, ways_table(figures) if graph else figures_table(figures))


def evidence(
    directory: Directory,
    session: Session,
    *,
    max_tokens: Annotated[
        list[int] | None, typer.Option(min=0, help="Tokens of the window (o200k_base); repeatable.")
    ] = None,
    limit: MaxQueries = None,
    pages: Annotated[
        str | None, typer.Option(metavar="FIELD", help="Field by which to join documents to pages.")
    ] = None,
) -> None:
    """Measure how often windows contain the answer."""
    measure = partial(measure_evidence, directory, budgets=max_tokens or BUDGETS, limit=limit, pages=pages)
    figures = _measured(session, lambda bars: measure(progress=bars))
    session.show(figures, ways_table(figures))


def conversation(
    directory: Directory,
    session: Session,
    *,
    max_tokens: MaxTokens = 2048,
    profile: Annotated[
        str | None, typer.Option(help="Score profile; queries then have a channel and a time.")
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(metavar="PART", help="Score part to disable; repeatable.")
    ] = None,
    graph: Annotated[bool, typer.Option("--graph", help="Include graph retrieval.")] = False,
) -> None:
    """Measure recall of evidence in conversations."""
    chosen = profile_without(profile or "default", without) if without else profile
    measure = partial(run.conversation, directory, max_tokens=max_tokens, profile=chosen, graph=_ask(graph))
    figures = _measured(session, lambda bars: measure(progress=bars))
    session.show(figures, figures_table(figures))


def turns(directory: Directory, session: Session) -> None:
    """Measure retrieval for queries with a chat history."""
    figures = _measured(session, lambda bars: measure_turns(directory, progress=bars))
    flat = {f"{way} {kind}": report for way, kinds in figures.items() for kind, report in kinds.items()}
    session.show(figures, figures_table(flat))


def moments(directory: Directory, session: Session, *, limit: MaxQueries = None) -> None:
    """Measure search for moments of streams."""
    figures = _measured(session, lambda bars: measure_moments(directory, limit=limit, progress=bars))
    session.show(figures, ways_table(figures))


def similarity(
    directories: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Directories of evaluation sets.")
    ],
    session: Session,
) -> None:
    """Measure similarities, to choose a minimum similarity."""
    session.require_here()
    figures = asyncio.run(measure_similarity(directories))
    session.show(figures, similarity_table(figures))


def _measured(session: Session, measure: Callable[["Progress | None"], Coroutine[Any, Any, T]]) -> T:
    """The figures that are measured on this machine, with progress bars."""
    session.require_here()
    with progress() as bars:
        return asyncio.run(measure(bars))


def figures_table(figures: Mapping[str, object]) -> RenderableType:
    """Nested figures, one per line."""
    table = plain_table("measure", "value")
    for name, value in figures.items():
        inner = value if isinstance(value, Mapping) else {"": value}
        for part, figure in inner.items():
            table.add_row(
                f"{name} {part}".strip(), f"{figure:.1f}" if isinstance(figure, float) else str(figure)
            )
    return table


def ways_table(figures: Mapping[str, Mapping[str, object]]) -> RenderableType:
    """The same figures of several methods, side by side."""
    table = plain_table("measure", *figures)
    for name in dict.fromkeys(name for report in figures.values() for name in report):
        values = (report.get(name, "") for report in figures.values())
        table.add_row(name, *(f"{each:.1f}" if isinstance(each, float) else str(each) for each in values))
    return table


def _ask(graph: bool) -> GraphExpansion | None:
    return GraphExpansion() if graph else None
