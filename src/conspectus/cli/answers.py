"""answers: list, read and delete answer records."""

from collections.abc import Iterator
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from conspectus.cli.command import Command
from conspectus.cli.output import cell, facts_table, rows_table
from conspectus.model.answers import AnswerPage, AnswerRecord

MAX_QUESTION_LENGTH: Final = 60
"""Characters of a question in a list."""


def _answers_table(page: AnswerPage) -> RenderableType:
    rows = (
        (
            summary.id, summary.kind, summary.created, summary.user_name or summary.user,
            summary.collection or "-", str(summary.passages),
            cell(summary.question, limit=MAX_QUESTION_LENGTH),
        )
        for summary in page.answers
    )  # fmt: skip
    return rows_table(("id", "kind", "created", "user", "collection", "passages", "question"), rows)


def _answer_picture(record: AnswerRecord) -> RenderableType:
    return Group(*_sections(record))


def _sections(record: AnswerRecord) -> Iterator[RenderableType]:
    """Yield the facts of a record, its window, its answer, and its candidates."""
    summary, options = record.summary, record.options
    facts = {
        "id": summary.id,
        "kind": summary.kind,
        "question": summary.question,
        "user": summary.user_name or summary.user,
        "created": summary.created,
        "collection": summary.collection or "-",
        "outcome": summary.outcome,
        "tokens": f"{summary.tokens:,} of {options.max_tokens:,}",
        "as of": options.as_of or "now",
        "model": summary.model or "-",
        "failure": summary.failure or "-",
        "left out": ", ".join(record.left_out) or "-",
        "changed since": ", ".join(record.changed) or "-",
    }
    yield facts_table(facts)
    yield Text(f"\n{record.text}\n")
    if record.answer:
        yield Text(f"answer: {record.answer}\n")
    rows = (
        (
            str(candidate.rank), f"{candidate.score:.3f}", candidate.status,
            candidate.title or candidate.key or candidate.document, f"{candidate.start}-{candidate.end}",
        )
        for candidate in record.candidates
    )  # fmt: skip
    yield rows_table(("rank", "score", "status", "document", "characters"), rows)


ANSWERS_COMMANDS: Final = {
    "list": Command(
        "answers:AnswerService.list", "List the answer records that you may read, newest first.",
        _answers_table, defaults={"limit": 20}, nothing="no answer records", any_collection=True,
    ),
    "show": Command("answers:AnswerService.get", "Show what a person was given.", _answer_picture),
    "delete": Command(
        "answers:AnswerService.delete", "Delete an answer record.", "deleted {answer}",
        document={"deleted": "answer"},
    ),
}  # fmt: skip
