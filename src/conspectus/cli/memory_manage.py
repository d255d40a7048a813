"""memory: list, change, delete, export and import memories, and their retention."""

import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from conspectus.cli.command import Arguments, Command
from conspectus.cli.declared import argument, option
from conspectus.cli.errors import confirm
from conspectus.cli.jobs import Waiting, job_picture, report
from conspectus.cli.lines import read_lines, write_pages
from conspectus.cli.memory import (
    MAX_LINE_LENGTH,
    NO_MEMORIES,
    memories_picture,
    receipt_text,
    scope_name,
)
from conspectus.cli.options import DryRun, InScope, Limit, Purge, Yes, instant
from conspectus.cli.output import (
    cell,
    moment,
    note,
    printable,
    progress,
    rows_table,
    to_json_value,
    valid,
)
from conspectus.cli.session import MemorySession, NewMemorySession, Opening, Session
from conspectus.cli.text_input import STDIO
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.jobs import Job
from conspectus.model.memory import (
    MEMORY,
    ConversationSummary,
    Memory,
    MemoryPage,
    MemoryReceipt,
    MemorySelection,
    MemoryStats,
    MemoryWritten,
    Retention,
    RetentionRule,
)
from conspectus.text.counts import format_count

CHANGES: Final = "text role speaker at kind valid_until"
"""Fields of a memory that a command changes."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """Which memories to delete."""

    before: Annotated[str | None, option(MemorySelection, "before")] = None
    older_than: Annotated[float | None, option(MemorySelection, "older_than_days")] = None
    everything: Annotated[bool, option(MemorySelection, "everything", "--all")] = False
    pinned: Annotated[bool, option(MemorySelection, "pinned", "--pinned")] = False

    def what(self, ids: list[str]) -> MemorySelection:
        """Return the selection."""
        return MemorySelection(
            tuple(ids), instant(self.before), self.older_than, self.everything, self.pinned
        )


@dataclass(frozen=True, slots=True)
class Deleting:
    """How to delete."""

    dry_run: DryRun = False
    purge: Purge = False
    yes: Yes = False


@dataclass(frozen=True, slots=True)
class Newest:
    """How many versions are listed."""

    limit: Limit = 100


@dataclass(frozen=True, slots=True)
class Extraction(Waiting):
    """Which scopes are read, and whether the command ends with the job."""

    every: Annotated[bool, typer.Option("--all", help="All scopes of the collection.")] = False


def _show_memories(session: Session, page: MemoryPage, _: Arguments) -> None:
    if page.memories or session.json:
        session.show(page, memories_picture(page.memories))
    session.note_next(page)
    if not page.memories:
        session.end_with_nothing(NO_MEMORIES)


def _show_versions(session: Session, versions: Sequence[Memory], arguments: Arguments) -> None:
    newest = versions[-arguments["extra"].limit :]
    rows = (
        (version.known_from, moment(version.known_until), cell(version.text, limit=MAX_LINE_LENGTH))
        for version in newest
    )
    session.show(newest, rows_table(("known from", "until", "text"), rows))


def _only_changes(_: Session, arguments: Arguments) -> None:
    changes = [name for name in CHANGES.split() if arguments[name] is not None]
    if not changes:
        raise InvalidInput("update", "give at least one field: --text, --role, ...")


def _show_change(session: Session, written: MemoryWritten, _: Arguments) -> None:
    session.note_quarantined([written])
    session.show(written, f"{written.outcome} {written.id}")


def _conversations_table(conversations: Sequence[ConversationSummary]) -> RenderableType:
    rows = (
        (
            conversation.scope.agent or "-",
            conversation.scope.conversation or "-",
            conversation.memories,
            *map(moment, (conversation.first, conversation.last)),
        )
        for conversation in conversations
    )
    return rows_table(("agent", "conversation", "memories", "first", "last"), rows)


def _stats_table(statistics: MemoryStats) -> RenderableType:
    names = (
        "memories", "notes", "pinned", "facts", "versions", "conversations", "entities", "tokens", "pending",
    )  # fmt: skip
    rows = [(name, getattr(statistics, name)) for name in names]
    table = rows_table(
        ("", ""), [*rows, ("first", moment(statistics.first)), ("last", moment(statistics.last))]
    )
    table.show_header = False
    return table


def delete(
    session: MemorySession,
    scope: InScope,
    deleted: Deleted,
    deleting: Deleting,
    *,
    ids: Annotated[list[str] | None, argument(MemorySelection, "ids", metavar="MEMORY")] = None,
) -> None:
    """Delete memories by id, by age, or all of a scope."""
    selection = deleted.what(ids or [])
    receipt = _delete(session, scope, selection, deleting)
    session.show(receipt, receipt_text(receipt), matches=receipt.memories)


def export(
    session: MemorySession,
    scope: InScope,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write; - is stdout.")] = STDIO,
) -> None:
    """Export the memories of a scope as JSON Lines."""
    memories, target = session.engine.memory, sys.stdout
    with progress() as bars, ExitStack() as files:
        if output != STDIO:
            target = files.enter_context(output.open("w", encoding="utf-8", newline="\n"))
        pages = partial(memories.export, **scope.arguments(session.collection))
        count, left_out = write_pages(pages, target, bars)
    if output != STDIO:
        summary = {"memories": count, "file": output, "left_out": left_out}
        session.show(summary, f"wrote {format_count(count, 'memory')}")
    for name, number in left_out.items():
        note(f"left out: {name} ({number:,})")
    if not count:
        note(NO_MEMORIES)
        session.end_with_nothing()


def import_lines(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Export file; - is stdin.")],
    session: NewMemorySession,
    scope_options: InScope,
) -> None:
    """Import an export, into its scopes or the given scope."""
    if file != STDIO and not file.is_file():
        raise InvalidInput("file", f"{str(file)!r} is not a file")
    scope = None if scope_options == InScope() else scope_options.scope()
    with progress() as bars, ExitStack() as files:
        source = sys.stdin.buffer if file == STDIO else files.enter_context(file.open("rb"))
        done = session.engine.memory.import_lines(
            read_lines(source), collection=session.collection, scope=scope, progress=bars
        )
    outcomes: list[str] = [memory.outcome for memory in done]
    names = ("added", "replaced", "updated", "unchanged")
    counts = ", ".join(f"{outcomes.count(name):,} {name}" for name in names)
    session.note_quarantined(done)
    session.show(done, counts, matches=done)


def _every_scope(_: Session, arguments: Arguments) -> None:
    if arguments["extra"].every:
        arguments["scope"] = None


def _show_extraction(session: Session, job: Job, arguments: Arguments) -> None:
    report(session, [job], wait=arguments["extra"].wait, picture=lambda jobs: job_picture(jobs[0]))


def set_retention(
    session: NewMemorySession,
    scope: InScope,
    *,
    days: Annotated[float | None, option(Retention, "days")] = None,
    max_count: Annotated[int | None, option(Retention, "max_count")] = None,
    off: Annotated[bool, typer.Option("--off", help="Remove the retention rule.")] = False,
) -> None:
    """Set the retention rule of a scope."""
    if off is (days is not None or max_count is not None):
        raise InvalidInput("retention", "give --days, --max-count or both, or --off")
    retention = None if off else Retention(days, max_count)
    if retention is None:
        session.engine.retention.delete(**scope.arguments(session.collection))
    else:
        session.engine.retention.set(retention, **scope.arguments(session.collection))
    rule = {"scope": scope.scope(), "retention": retention}
    session.show(rule, "no retention rule" if off else f"keeps {_bounds(Retention(days, max_count))}")


def _rules_table(rules: Sequence[RetentionRule]) -> RenderableType:
    rows = ((scope_name(rule.scope), _bounds(rule.retention), moment(rule.last_run)) for rule in rules)
    return rows_table(("scope", "keeps", "last run"), rows)


def apply_retention(
    session: MemorySession,
    scope: InScope,
    *,
    dry_run: DryRun = False,
    every: Annotated[bool, typer.Option("--all", help="All rules of the collection.")] = False,
    job: Annotated[bool, typer.Option("--job", help="Apply all rules in a background job.")] = False,
) -> None:
    """Apply the retention rule of a scope now."""
    if job:
        started = session.engine.retention.start_job(collection=session.collection)
        session.show(started, f"job {started.id}")
        return
    receipt = session.engine.retention.apply(
        collection=session.collection, scope=None if every else scope.scope(), dry_run=dry_run
    )
    session.show(receipt, receipt_text(receipt))


def _delete(
    session: Session, scope_options: InScope, selection: MemorySelection, deleting: Deleting
) -> MemoryReceipt:
    """Delete after confirmation; without memories to delete there is no prompt."""
    engine, collection = session.engine, session.collection
    scope = scope_options.scope()
    if deleting.dry_run or not deleting.yes:
        would = engine.memory.forget(selection, scope=scope, collection=collection, dry_run=True)
        if deleting.dry_run or not would.memories:
            return would
        confirm(f"Delete {format_count(would.memories, 'memory')} of {scope_name(scope)}?", yes=False)
    return engine.memory.forget(selection, scope=scope, collection=collection, purge=deleting.purge)


def _memory_picture(memory: Memory) -> RenderableType:
    document, fact = memory.document, memory.fact
    values = {
        "id": memory.id,
        "key": document.key,
        "scope": scope_name(memory.scope),
        "kind": memory.kind + (", pinned" if memory.pinned else ""),
        "time": moment(document.occurred),
        "role": document.role,
        "author": document.author,
        "known from": memory.known_from,
        "fact": None if fact is None else f"{fact.subject} | {fact.predicate} | {fact.object}",
        "valid": valid(memory.valid_from, memory.valid_until),
        "ended by": memory.closed_by,
        "ended": memory.closes,
        "near duplicates": memory.near,
        "from": None if memory.cites is None else memory.cites.memory,
        "quote": None if memory.cites is None else memory.cites.quote,
        "entities": memory.entities,
        "metadata": json.dumps(to_json_value(memory.metadata), ensure_ascii=False)
        if memory.metadata
        else None,
    }
    table = rows_table(("", ""), ((cell(name, style="bold"), fact) for name, fact in values.items() if fact))
    table.show_header = False
    return Group(table, "", Text(printable(memory.text)))


def _bounds(retention: Retention) -> str:
    days = [] if retention.days is None else [f"turns of the last {format_count(retention.days, 'day')}"]
    maximum = [] if retention.max_count is None else [f"at most {retention.max_count:,} in each conversation"]
    return ", ".join([*days, *maximum]) or "everything"


UPDATE: Final = "memory:MemoryService.update"
OF_MEMORIES: Final = Opening(usual=MEMORY)


MEMORY_COMMANDS: Final = {
    "list": Command(
        "memory:MemoryService.list", "List memories by time.",
        only="kind entity filter newest_first limit after", show=_show_memories,
        opening=OF_MEMORIES,
    ),
    "get": Command(
        "memory:MemoryService.get", "Show a memory with its metadata.", _memory_picture, opening=OF_MEMORIES,
    ),
    "versions": Command(
        "memory:MemoryService.list_versions", "List the versions of a memory, oldest first.", extra=Newest,
        show=_show_versions, opening=OF_MEMORIES,
    ),
    "update": Command(
        UPDATE, "Change a memory. The old version is kept.", only=CHANGES, options={"speaker": "--author"},
        prepare=_only_changes, show=_show_change, opening=OF_MEMORIES,
    ),
    "pin": Command(
        UPDATE, "Exclude a memory from retention.", only="", fixed={"pinned": True}, show=_show_change,
        opening=OF_MEMORIES,
    ),
    "unpin": Command(
        UPDATE, "Include a memory in retention again.", only="", fixed={"pinned": False}, show=_show_change,
        opening=OF_MEMORIES,
    ),
    "delete": delete,
    "conversations": Command(
        "memory:MemoryService.list_conversations", "List the conversations of a scope.", _conversations_table,
        limit=100, nothing="no conversations", opening=OF_MEMORIES,
    ),
    "stats": Command(
        "memory:MemoryService.stats", "Show statistics of a scope.", _stats_table, opening=OF_MEMORIES,
    ),
    "export": export, "import": import_lines,
    "extract": Command(
        "memory:MemoryService.extract", "Extract facts from new memories with the chat model.",
        extra=Extraction, prepare=_every_scope, show=_show_extraction, opening=OF_MEMORIES,
    ),
}  # fmt: skip

MEMORY_RETENTION_COMMANDS: Final = {
    "set": set_retention,
    "list": Command(
        "memory:RetentionService.list", "List retention rules with their last runs.", _rules_table, limit=100,
        nothing="no retention rules", opening=OF_MEMORIES,
    ),
    "apply": apply_retention,
}  # fmt: skip
