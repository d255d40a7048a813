"""eval: init, compare, retrieval, evidence, conversation, turns, moments, similarity and trust."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import typer
from rich.console import RenderableType

from conspectus.cli.errors import FAILED
from conspectus.cli.options import MaxTokens, Selection
from conspectus.cli.output import make_plain_table, note, progress, similarity_table
from conspectus.cli.session import Session
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.evals.compare import BY_QUESTION, WINDOWS, compare_reports, too_low
from conspectus.evals.conversation import conversation as measure_conversation
from conspectus.evals.conversation_queries import profile_without
from conspectus.evals.evidence import BUDGETS
from conspectus.evals.evidence import evidence as measure_evidence
from conspectus.evals.evidence_sets import questions_about, write_evidence_set
from conspectus.evals.moments import moments as measure_moments
from conspectus.evals.retrieval import retrieval as measure_retrieval
from conspectus.evals.similarity import similarity as measure_similarity
from conspectus.evals.trust import has_failed as broken
from conspectus.evals.trust import trust as measure_trust
from conspectus.evals.turns import turns as measure_turns
from conspectus.model.filter import Filter
from conspectus.model.graph import GraphExpansion
from conspectus.model.records import NewDocument

T = TypeVar("T")
SCALARS = (str, int, float)
MaxQueries = Annotated[
    int | None, typer.Option("--limit", "-n", min=1, help="Maximum number of queries per kind.")
]
Directory = Annotated[Path, typer.Argument(metavar="DIR", help="Directory of the evaluation set.")]


FailUnder = Annotated[
    list[str] | None,
    typer.Option(metavar="MEASURE=VALUE", help="Fail if a measure is below this value; repeatable."),
]


@dataclass(frozen=True, slots=True)
class Scored:
    """The score profile."""

    profile: Annotated[
        str | None, typer.Option(help="Score profile; queries then have a channel and a time.")
    ] = None
    without: Annotated[
        list[str] | None, typer.Option(metavar="PART", help="Score part to disable; repeatable.")
    ] = None

    def profile_name(self) -> str | None:
        """Return the profile without the disabled parts."""
        return profile_without(self.profile or "default", self.without) if self.without else self.profile


@dataclass(frozen=True, slots=True)
class BuiltWindows:
    """The windows that are measured."""

    max_tokens: Annotated[
        list[int] | None, typer.Option(min=0, help="Tokens of the window (o200k_base); repeatable.")
    ] = None
    windows: Annotated[
        bool, typer.Option("--windows", help="Keep the windows in the report, for the console.")
    ] = False


def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Directory to write the set to.")],
    session: Session,
    selection: Selection,
    *,
    limit: MaxQueries = 100,
) -> None:
    """Make an evaluation set from the stored documents."""
    evaluation_set = questions_about(list(_iterate_stored(session, session.build_filter(selection))), limit)
    write_evidence_set(evaluation_set, directory)
    summary = {
        "directory": str(directory),
        "documents": len(evaluation_set.documents),
        "queries": len(evaluation_set.questions),
    }
    session.show(summary, figures_table(summary))


def compare(
    first: Annotated[Path, typer.Argument(metavar="FIRST", help="Output of eval with --json.")],
    second: Annotated[Path, typer.Argument(metavar="SECOND", help="The same with other settings.")],
    session: Session,
) -> None:
    """Compare two evaluations, with confidence intervals."""
    differences = compare_reports(_report(first), _report(second))
    table = make_plain_table("measure", "first", "second", "difference", "95 % interval", "queries")
    for name, difference in differences.items():
        interval = f"{difference['low']:+.1f} to {difference['high']:+.1f}"
        means = (
            f"{difference['first']:.1f}",
            f"{difference['second']:.1f}",
            f"{difference['difference']:+.1f}",
        )
        table.add_row(name, *means, interval, str(difference["questions"]))
    session.show(differences, table)


def retrieval(
    directory: Directory,
    session: Session,
    *,
    fail_under: FailUnder = None,
    graph: Annotated[
        bool, typer.Option("--graph", help="Compare results with and without the graph.")
    ] = False,
) -> None:
    """Measure ranking: nDCG and recall."""
    figures = _measure(
        session, partial(measure_retrieval, directory, graph=GraphExpansion() if graph else None)
    )
    session.show(figures, ways_table(figures) if graph else figures_table(figures))
    _require(figures, fail_under)


def evidence(
    directory: Directory,
    session: Session,
    *,
    built: BuiltWindows,
    limit: MaxQueries = None,
    pages: Annotated[
        str | None, typer.Option(metavar="FIELD", help="Field by which to join documents to pages.")
    ] = None,
    fail_under: FailUnder = None,
) -> None:
    """Measure how often windows contain the answer."""
    budgets = built.max_tokens or BUDGETS
    measure = partial(
        measure_evidence, directory, budgets=budgets, limit=limit, pages=pages, windows=built.windows
    )
    figures = _measure(session, measure)
    session.show(figures, ways_table(figures))
    _require(figures, fail_under)


def conversation(
    directory: Directory,
    session: Session,
    *,
    max_tokens: MaxTokens = 2048,
    scored: Scored,
    graph: Annotated[bool, typer.Option("--graph", help="Include graph retrieval.")] = False,
    fail_under: FailUnder = None,
) -> None:
    """Measure recall of evidence in conversations."""
    measure = partial(
        measure_conversation,
        directory,
        max_tokens=max_tokens,
        profile=scored.profile_name(),
        graph=GraphExpansion() if graph else None,
    )
    figures = _measure(session, measure)
    session.show(figures, figures_table(figures))
    _require(figures, fail_under)


def turns(directory: Directory, session: Session) -> None:
    """Measure retrieval for queries with a chat history."""
    figures = _measure(session, partial(measure_turns, directory))
    flat = {f"{way} {kind}": report for way, kinds in figures.items() for kind, report in kinds.items()}
    session.show(figures, figures_table(flat))


def moments(directory: Directory, session: Session, *, limit: MaxQueries = None) -> None:
    """Measure search for moments of streams."""
    figures = _measure(session, partial(measure_moments, directory, limit=limit))
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


def trust(
    session: Session,
    *,
    histories: Annotated[int, typer.Option(min=1, help="Number of generated histories.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the histories.")] = 0,
) -> None:
    """Check trust levels on generated attack histories."""
    figures = _measure(session, partial(measure_trust, histories=histories, seed=seed))
    session.show(figures, figures_table(figures))
    if broken(figures):
        raise typer.Exit(FAILED)


def _iterate_stored(session: Session, where: Filter) -> Iterator[NewDocument]:
    """Yield all matching documents with their text; their keys are the ids."""
    after: str | None = None
    while True:
        documents = session.engine.documents
        page = documents.list(collection=session.collection, filter=where, after=after, limit=1_000)
        texts = documents.get_texts([document.id for document in page.documents])
        for document in page.documents:
            if text := texts.get(document.id):
                facts = {
                    name: value for name, value in document.metadata.items() if isinstance(value, SCALARS)
                }
                yield NewDocument(
                    text, title=document.title, key=document.id, metadata=facts, syntax=document.syntax
                )
        after = page.next
        if after is None:
            return


def _report(path: Path) -> Mapping[str, object]:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(path.name, f"is not JSON ({error})") from error
    if not isinstance(report, dict):
        raise InvalidInput(path.name, "is not the output of eval with --json")
    return report


def _require(figures: Mapping[str, object], minimums: Sequence[str] | None) -> None:
    """Exit with code 1 if a measure is below its minimum."""
    below = too_low(figures, minimums or ())
    for warning in below:
        note(warning)
    if below:
        raise typer.Exit(FAILED)


def _measure(session: Session, measure: Callable[..., Coroutine[Any, Any, T]]) -> T:
    """Return the results of an evaluation, with progress bars."""
    session.require_here()
    with progress() as bars:
        return asyncio.run(measure(progress=bars))


def figures_table(figures: Mapping[str, object]) -> RenderableType:
    """Return nested results, one per line."""
    table = make_plain_table("measure", "value")
    for name, value in figures.items():
        inner = value if isinstance(value, Mapping) else {"": value}
        for part, figure in () if name == BY_QUESTION else inner.items():
            if part == BY_QUESTION:
                continue
            table.add_row(
                f"{name} {part}".strip(), f"{figure:.1f}" if isinstance(figure, float) else str(figure)
            )
    return table


def ways_table(figures: Mapping[str, Mapping[str, object]]) -> RenderableType:
    """Return the results of several methods side by side."""
    table = make_plain_table("measure", *figures)
    for name in dict.fromkeys(
        name for report in figures.values() for name in report if name not in {BY_QUESTION, WINDOWS}
    ):
        values = (report.get(name, "") for report in figures.values())
        table.add_row(
            name, *(f"{figure:.1f}" if isinstance(figure, float) else str(figure) for figure in values)
        )
    return table


EVAL_COMMANDS: Final = {
    "init": init, "compare": compare, "retrieval": retrieval, "evidence": evidence,
    "conversation": conversation, "turns": turns, "moments": moments, "similarity": similarity,
    "trust": trust,
}  # fmt: skip
