"""eval retrieval, evidence, conversation, turns, threads, moments, entities, parsing and injection."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from conspectus.cli.options import Common
from conspectus.cli.output import cell, plain_table, progress, show, similarity_table
from conspectus.cli.session import require_here
from conspectus.evals import run
from conspectus.evals.asked import profile_without
from conspectus.evals.entities import entities as measure_entities
from conspectus.evals.evidence import BUDGETS
from conspectus.evals.evidence import evidence as measure_evidence
from conspectus.evals.injection import InjectionReport
from conspectus.evals.injection import injection as measure_injection
from conspectus.evals.moments import moments as measure_moments
from conspectus.evals.parsing import FormatReport
from conspectus.evals.parsing import parsing as measure_parsing
from conspectus.evals.similarity import similarity as measure_similarity
from conspectus.evals.threads import ThreadsReport
from conspectus.evals.threads import threads as measure_threads
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


def measures_table(figures: Mapping[str, Mapping[str, object]]) -> RenderableType:
    """A row for each way, with the measures side by side."""
    measures = dict.fromkeys(name for report in figures.values() for name in report)
    table = plain_table("way", *measures)
    for way, report in figures.items():
        values = (report.get(name, "") for name in measures)
        table.add_row(way, *(f"{each:.1f}" if isinstance(each, float) else str(each) for each in values))
    return table


def threads_table(report: ThreadsReport) -> RenderableType:
    """The figures of the linker beside those of answering the message before."""
    table = plain_table("measure", "linked", "message before")
    before: Mapping[str, object] = {**report["message_before"]}
    for name, value in report["linked"].items():
        ours, theirs = ({"": each} if isinstance(each, float) else each for each in (value, before[name]))
        if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
            for part, figure in ours.items():
                table.add_row(f"{name} {part}".strip(), f"{figure:.1f}", f"{theirs[part]:.1f}")
    counts = f"{report['judged']} of {report['messages']} messages judged, {report['channels']} channels"
    return Group(table, Text(counts))


def parsing_table(reports: Mapping[str, FormatReport]) -> RenderableType:
    """What was found in the files of each format, and the files that could not be read."""
    table = plain_table("format", "files", "mean", "worst", "worst file", "failed")
    failed = plain_table("failed", "reason")
    for name, each in reports.items():
        figures = (str(each["files"]), f"{each['mean']:.1f}", f"{each['worst']:.1f}")
        table.add_row(name, *figures, cell(each["worst_file"], limit=60), str(len(each["failures"])))
        for file, reason in each["failures"].items():
            failed.add_row(cell(file, limit=60), cell(reason))
    return Group(table, failed) if failed.row_count else table


def injection_table(report: InjectionReport) -> RenderableType:
    """What got through of each kind of attack, and how many harmless texts were changed."""
    table = plain_table("attacks", "texts", "got through")
    for name, each in report["kinds"].items():
        table.add_row(name, str(each["attacks"]), str(each["failed"]))
    examples = plain_table("got through")
    for example in report["examples"]:
        examples.add_row(cell(example, limit=240))
    harmless = plain_table("harmless", "texts", "changed")
    for name, texts in report["harmless"].items():
        harmless.add_row(name, str(texts["texts"]), str(texts["changed"]))
    return Group(table, *(each for each in (examples, harmless) if each.row_count))


def _ask(graph: bool) -> GraphExpansion | None:
    return GraphExpansion() if graph else None
