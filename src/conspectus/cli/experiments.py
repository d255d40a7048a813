"""experiments: question sets, runs that measure windows, and the defaults that a run gives a collection."""

import json
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Group, RenderableType

from conspectus.cli.command import Arguments, Command
from conspectus.cli.errors import FAILED
from conspectus.cli.jobs import wait_until_ended
from conspectus.cli.output import cell, facts_table, note, progress, rows_table
from conspectus.cli.session import Session
from conspectus.evals.evidence_sets import read_spanned_questions
from conspectus.model.experiments import (
    NewEvidence,
    NewQuestion,
    QuestionSet,
    QuestionSetContent,
    QuestionSetPage,
    Run,
    RunPage,
    RunResult,
)
from conspectus.model.records import Collection

MAX_QUERY_LENGTH: Final = 60
"""Characters of a question in a list."""
_RUN_COLUMNS: Final = (
    "id", "name", "created", "questions", "evidence in the window", "tokens", "milliseconds", "job",
)  # fmt: skip


def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the set.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A queries.jsonl, as `eval init` writes it.")],
    session: Session,
) -> None:
    """Create a set from a file; its documents are named by key or id."""
    questions = [
        NewQuestion(
            question.text,
            tuple(NewEvidence(document, *span) for document, span in question.spans),
            question.id,
        )
        for question in read_spanned_questions(file)
    ]
    question_set = session.engine.experiments.create_set(name, questions, collection=session.collection)
    session.show(question_set, _set_facts(question_set))


def _set_facts(question_set: QuestionSet) -> RenderableType:
    return facts_table(
        {
            "id": question_set.id,
            "name": question_set.name,
            "collection": question_set.collection,
            "created": question_set.created,
            "questions": question_set.questions,
        }
    )


def _sets_table(page: QuestionSetPage) -> RenderableType:
    rows = (
        (question_set.id, question_set.name, question_set.created, str(question_set.questions))
        for question_set in page.sets
    )
    return rows_table(("id", "name", "created", "questions"), rows)


def _set_picture(content: QuestionSetContent) -> RenderableType:
    rows = (
        (
            cell(question.key, limit=MAX_QUERY_LENGTH),
            cell(question.query, limit=MAX_QUERY_LENGTH),
            str(len(question.evidence)),
            "yes" if question.changed else "no",
        )
        for question in content.questions
    )
    return Group(_set_facts(content.set), rows_table(("key", "question", "evidence", "changed"), rows))


def _runs_table(page: RunPage) -> RenderableType:
    return rows_table(_RUN_COLUMNS, map(_run_row, page.runs))


def _run_row(run: Run) -> tuple[object, ...]:
    figures = "; ".join(
        f"{figure.max_tokens}: {figure.mean:.1f} % ({figure.low:.1f} to {figure.high:.1f})"
        for figure in run.figures
    )
    progress = (run.created, str(run.questions), figures or "not finished")
    return (run.id, cell(run.name), *progress, f"{run.tokens:,}", f"{run.milliseconds:,.0f}", run.job)


def _show_run(session: Session, run: Run, _: Arguments) -> None:
    """Print a run when its job has ended, which goes on where it stopped if it is retried."""
    with progress() as bars:
        job = wait_until_ended(session, session.engine.jobs.get(run.job), bars)
    result = session.engine.experiments.get_run(run.id)
    session.show(result, _run_picture(result))
    if job.state != "succeeded":
        note(f"job {job.id} {job.state}: {job.error or 'no error'}")
        raise typer.Exit(FAILED)


def _run_picture(result: RunResult) -> RenderableType:
    rows = (
        (
            question.question,
            cell(question.query, limit=MAX_QUERY_LENGTH),
            *(f"{100 * share:.0f} %" for share in question.shares),
        )
        for question in result.questions
    )
    budgets = (str(max_tokens) for max_tokens in result.run.max_tokens)
    return Group(
        rows_table(_RUN_COLUMNS, [_run_row(result.run)]), rows_table(("id", "question", *budgets), rows)
    )


def _defaults_picture(collection: Collection) -> RenderableType:
    defaults = collection.retrieval
    facts = {
        "collection": collection.name,
        "version": "built-in" if defaults is None else defaults.version,
        "options": "-" if defaults is None else json.dumps(defaults.options),
    }
    return facts_table(facts)


EXPERIMENTS_COMMANDS: Final = {
    "create": create,
    "list": Command(
        "experiments:ExperimentService.list_sets", "List question sets, newest first.", _sets_table,
        defaults={"limit": 20}, nothing="no question sets",
    ),
    "show": Command("experiments:ExperimentService.get_set", "Show a set with its questions.", _set_picture),
    "delete": Command(
        "experiments:ExperimentService.delete_set", "Delete a set with its runs.", "deleted {question_set}",
        document={"deleted": "question_set"},
    ),
    "run": Command(
        "experiments:ExperimentService.start_run", "Ask the questions of a set, and measure windows.",
        show=_show_run,
        only="name max_tokens retrievers min_similarity min_confidence rerank limit thread_messages current"
        " filter min_trust as_of", options={"rerank": "--rerank/--no-rerank"},
    ),
    "runs": Command(
        "experiments:ExperimentService.list_runs", "List runs, newest first.", _runs_table,
        defaults={"limit": 20}, nothing="no runs",
    ),
    "result": Command(
        "experiments:ExperimentService.get_run", "Show a run with the share of each question.", _run_picture
    ),
    "delete-run": Command(
        "experiments:ExperimentService.delete_run", "Delete a run.", "deleted {run}",
        document={"deleted": "run"},
    ),
    "use": Command(
        "experiments:ExperimentService.use_run", "Make the options of a run the defaults of its collection.",
        _defaults_picture,
    ),
    "undo": Command(
        "collections:ExperimentService.undo_defaults", "Restore the defaults before a version.",
        _defaults_picture,
    ),
}  # fmt: skip
