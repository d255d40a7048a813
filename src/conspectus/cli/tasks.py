"""tasks: add, change, search, import and delete tasks and their attachments."""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from conspectus.cli.command import Arguments, Command
from conspectus.cli.declared import argument, option
from conspectus.cli.errors import INVALID, PARTIAL, confirm
from conspectus.cli.options import Wait, Yes
from conspectus.cli.output import cell, facts_table, format_value, progress, rows_table
from conspectus.cli.session import NewSession, Session
from conspectus.cli.task_rows import TaskRow, read_tasks
from conspectus.deferred import dataclass
from conspectus.engine.tasks import MAX_BATCH_TASKS
from conspectus.errors import InvalidInput, UnreadableFile
from conspectus.model.tasks import (
    Attachment,
    StoredAttachment,
    StoredTask,
    Task,
    TaskPage,
    TaskResult,
    TaskWritten,
)
from conspectus.settings import Settings
from conspectus.text.counts import format_count

if TYPE_CHECKING:
    from conspectus.sync.channels import BlockingTasks

COLLECTION = "tasks"
STDIN = "-"
KINDS: Mapping[str, str] = {".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv"}
MAX_FAILURES_SHOWN = 20
MAX_TEXT_LENGTH = 160
"""Characters of a text in a table."""
TaskName = Annotated[str, argument(Task, "id", metavar="ID")]
Title = Annotated[str, argument(Task, "title")]


@dataclass(frozen=True, slots=True)
class Fields:
    """Fields of a task other than its title."""

    description: Annotated[str | None, option(Task, "description")] = None
    tag: Annotated[list[str], option(Task, "tags")] = field(default_factory=list)
    status: Annotated[str | None, option(Task, "status")] = None
    priority: Annotated[str | None, option(Task, "priority")] = None

    def field_values(self) -> dict[str, Any]:
        """Return the fields that were given."""
        values = {"description": self.description, "status": self.status, "priority": self.priority}
        field_values: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
        if self.priority == "none":
            field_values["priority"] = None
        return field_values | ({"tags": tuple(self.tag)} if self.tag else {})


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """Counts of rows by outcome. `skipped` are valid rows in a batch with an invalid one."""

    outcomes: Mapping[str, int]
    skipped: int
    failures: tuple[TaskRow, ...]


def add(task: TaskName, title: Title, session: NewSession, fields: Fields, *, wait: Wait = True) -> None:
    """Add a task, or replace the task with this id."""
    written = _tasks(session).put(Task(task, title, **fields.field_values()), wait=wait)
    session.show(written, _outcome(written))


def update(
    task: TaskName,
    session: Session,
    fields: Fields,
    *,
    title: Annotated[str | None, option(Task, "title")] = None,
    wait: Wait = True,
) -> None:
    """Change fields of a task."""
    changes = fields.field_values() | ({} if title is None else {"title": title})
    if not changes:
        raise InvalidInput("update", "give at least one field")
    written = _tasks(session).update(task, wait=wait, **changes)
    session.show(written, _outcome(written))


def attach(
    task: TaskName,
    path: Annotated[str, typer.Argument(metavar="FILE", help="Text file; - is stdin.")],
    session: Session,
    *,
    name: Annotated[str | None, typer.Option(help="Id of the attachment (default: file name).")] = None,
    wait: Wait = True,
) -> None:
    """Add or replace an attachment of a task."""
    text = _text(path)
    attachment_id = name or Path(path).name
    new = Attachment(attachment_id, text, "" if path == STDIN else Path(path).name)
    written = _tasks(session).attach(task, new, wait=wait)
    session.show(written, _outcome(written))


def _show_page(session: Session, page: TaskPage, _: Arguments) -> None:
    rows = (
        (
            task.id, task.status, task.priority or "-", cell(task.title, limit=80),
            cell(format_value(task.tags), limit=40), task.has_attachments, f"{task.updated:%Y-%m-%d %H:%M}",
        )
        for task in page.tasks
    )  # fmt: skip
    columns = ("id", "status", "priority", "title", "tags", "attached", "updated")
    session.show_or_exit(page, rows_table(columns, rows), "no tasks", matches=page.tasks)
    session.note_next(page)


def _show_hits(session: Session, hits: Sequence[TaskResult], _: Arguments) -> None:
    rows = (
        (
            str(number), f"{hit.similarity:.2%}", hit.task_id, hit.attachment_id, hit.status,
            hit.priority, cell(hit.document, limit=MAX_TEXT_LENGTH),
        )
        for number, hit in enumerate(hits, 1)
    )  # fmt: skip
    columns = ("#", "similarity", "task", "attachment", "status", "priority", "text")
    session.show_or_exit(hits, rows_table(columns, rows), "no match")


def get_task(task: TaskName, session: Session) -> None:
    """Show a task with its attachments."""
    tasks = _tasks(session)
    stored = tasks.get(task)
    attachments = tasks.attachments(task)
    session.show({"task": stored, "attachments": attachments}, _picture(stored, attachments))


def delete(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of tasks.")],
    session: Session,
    *,
    yes: Yes = False,
) -> None:
    """Delete tasks with their attachments."""
    confirm(f"Delete {format_count(len(ids), 'task')}?", yes=yes)
    tasks = _tasks(session)
    receipts = {name: tasks.delete(name) for name in ids}
    gone = sum(receipt.documents for receipt in receipts.values())
    session.show(receipts, f"deleted, tasks and attachments together: {gone}", matches=gone)


def import_tasks(
    path: Annotated[str, typer.Argument(metavar="FILE", help="JSON, JSON Lines or CSV; - is stdin.")],
    session: NewSession,
    *,
    kind: Annotated[
        str | None, typer.Option("--format", help="json, jsonl or csv (default: by file name).")
    ] = None,
    wait: Wait = True,
) -> None:
    """Import tasks from a file."""
    rows = list(read_tasks(_text(path), kind or KINDS.get(Path(path).suffix.lower(), "")))
    report = _import_rows(session, rows, wait=wait)
    session.show(report, _report(report))
    if report.failures:
        raise typer.Exit(PARTIAL if report.outcomes else INVALID)


def _tasks(session: Session) -> "BlockingTasks":
    return session.engine.tasks.using(collection=session.common.collection or COLLECTION)


def _import_rows(session: Session, rows: Sequence[TaskRow], *, wait: bool) -> ImportCounts:
    tasks, collection = _tasks(session), session.common.collection or COLLECTION
    outcomes: Counter[str] = Counter()
    skipped = 0
    with progress() as bars:
        for start in range(0, len(rows), MAX_BATCH_TASKS):
            batch = [row.task for row in rows[start : start + MAX_BATCH_TASKS] if row.task is not None]
            if len(batch) < len(rows[start : start + MAX_BATCH_TASKS]):
                skipped += len(batch)
                continue
            written = tasks.put_many(batch, wait=False)
            outcomes.update(task.outcome for task in written)
            if bars is not None:
                bars("tasks", start + len(batch), len(rows))
        if outcomes and wait:
            session.engine.documents.wait_until_embedded(collection=collection, progress=bars)
    return ImportCounts(dict(outcomes), skipped, tuple(row for row in rows if row.task is None))


def _text(path: str) -> str:
    """Return the content of a text file. Raises UnreadableFile."""
    maximum = Settings.from_environment().max_file_bytes
    try:
        data = sys.stdin.buffer.read(maximum + 1) if path == STDIN else Path(path).read_bytes()
        if len(data) > maximum:
            raise UnreadableFile(path, f"has more than {maximum} bytes")
        return data.decode("utf-8-sig")
    except OSError as fault:
        raise UnreadableFile(path, fault.strerror or "cannot be read") from None
    except UnicodeDecodeError as fault:
        raise UnreadableFile(path, f"is not UTF-8 at byte {fault.start}") from None


def _outcome(written: TaskWritten) -> RenderableType:
    return cell(f"{written.outcome} {written.id}")


def _picture(task: StoredTask, attachments: Iterable[StoredAttachment]) -> RenderableType:
    facts = {
        "id": task.id, "title": task.title, "status": task.status, "priority": task.priority or "none",
        "tags": format_value(task.tags), "description": task.description,
        **{name: str(value) for name, value in task.metadata.items()},
        "created": format_value(task.created), "updated": format_value(task.updated),
    }  # fmt: skip
    table = facts_table(facts)
    for attachment in attachments:
        table.add_row(
            "attachment",
            cell(f"{attachment.id}: {attachment.title} {attachment.text}", limit=MAX_TEXT_LENGTH),
        )
    return table


def _report(report: ImportCounts) -> RenderableType:
    counts = (
        ", ".join(f"{number} {outcome}" for outcome, number in report.outcomes.items()) or "nothing stored"
    )
    if not report.failures:
        return Text(counts)
    table = rows_table(
        ("line", "problem"), ((str(row.line), row.problem) for row in report.failures[:MAX_FAILURES_SHOWN])
    )
    more = len(report.failures) - MAX_FAILURES_SHOWN
    rest = [Text(f"and {more} more; --json lists all")] if more > 0 else []
    return Group(
        Text(f"{counts}; {report.skipped} valid rows in batches with an invalid row were skipped"),
        table,
        *rest,
    )


TASKS_COMMANDS: Final = {
    "add": add, "update": update, "attach": attach,
    "list": Command(
        "engine.tasks:TaskService.list", "List tasks in the order they were added.", service=_tasks,
        show=_show_page,
    ),
    "search": Command(
        "engine.tasks:TaskService.search", "Search tasks and attachments with vector search.", service=_tasks,
        show=_show_hits,
    ),
    "get": get_task, "delete": delete, "import": import_tasks,
}  # fmt: skip
