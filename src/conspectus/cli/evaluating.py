"""eval retrieval, evidence, conversation, turns, threads, moments, entities, parsing and injection."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from conspectus.cli.options import Common
from conspectus.cli.output import progress, show
from conspectus.cli.session import require_here
from conspectus.cli.tables import (
    figures_table,
    injection_table,
    measures_table,
    parsing_table,
    similarity_table,
    threads_table,
    ways_table,
)
from conspectus.evals import run
from conspectus.evals.asked import profile_without
from conspectus.evals.entities import entities as measure_entities
from conspectus.evals.evidence import BUDGETS
from conspectus.evals.evidence import evidence as measure_evidence
from conspectus.evals.injection import injection as measure_injection
from conspectus.evals.moments import moments as measure_moments
from conspectus.evals.parsing import parsing as measure_parsing
from conspectus.evals.similarity import similarity as measure_similarity
from conspectus.evals.threads import threads as measure_threads
from conspectus.evals.turns import turns as measure_turns
from conspectus.model.graph import GraphAsk

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


def threads(directory: Directory, common: Common) -> None:
    """Measure how well links between messages are found in messages.jsonl, from 0 to 100."""
    require_here(common)
    with progress() as bars:
        figures = measure_threads(directory, progress=bars)
    show(figures, threads_table(figures), as_json=common.json)


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


def entities(directory: Directory, common: Common) -> None:
    """Measure how well names are found and linked in turns.jsonl or docs.jsonl, from 0 to 100."""
    require_here(common)
    with progress() as bars:
        figures = measure_entities(directory, progress=bars)
    show(figures, measures_table(figures), as_json=common.json)


def parsing(directory: Directory, common: Common) -> None:
    """Measure how many words of each X.md are found in the text of the file X, by format, from 0 to 100."""
    require_here(common)
    with progress() as bars:
        figures = measure_parsing(directory, progress=bars)
    show(figures, parsing_table(figures), as_json=common.json)


def injection(
    directory: Directory,
    common: Common,
    *,
    harmless: Annotated[
        list[Path] | None, typer.Option(help="Folder of texts that should stay as they are; repeatable.")
    ] = None,
) -> None:
    """Measure whether hostile texts that were retrieved can be more than text in a chat's prompt."""
    require_here(common)
    with progress() as bars:
        figures = asyncio.run(measure_injection(directory, harmless=harmless or (), progress=bars))
    show(figures, injection_table(figures), as_json=common.json)


def similarity(
    directories: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of evaluation sets.")],
    common: Common,
) -> None:
    """Measure how similar queries are to texts that answer them and to random others, to choose a floor."""
    require_here(common)
    figures = asyncio.run(measure_similarity(directories))
    show(figures, similarity_table(figures), as_json=common.json)


def _ask(graph: bool) -> GraphAsk | None:
    return GraphAsk() if graph else None
