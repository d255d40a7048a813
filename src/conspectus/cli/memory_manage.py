"""memory: list, change, delete, export and import memories, and their retention."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from conspectus.cli.errors import confirm
from conspectus.cli.jobs import Wait, job_picture, report
from conspectus.cli.memory import (
    MAX_LINE_LENGTH,
    NO_MEMORIES,
    Author,
    Id,
    InScope,
    Kind,
    Role,
    memories_picture,
    receipt_text,
    scope_name,
)
from conspectus.cli.options import After, DryRun, Filter, Limit, PageLimit, Purge, Yes, instant
from conspectus.cli.output import (
    cell,
    moment,
    note,
    plain,
    printable,
    progress,
    rows_table,
    valid,
)
from conspectus.cli.session import MemorySession, NewMemorySession, Session
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.filter_json import parse_filters
from conspectus.model.memory import (
    Memory,
    MemoryExport,
    MemoryKind,
    MemoryReceipt,
    MemorySelection,
    Retention,
)

if TYPE_CHECKING:
    from conspectus.ports import Progress

STDIO = Path("-")


@dataclass(frozen=True, slots=True)
class Part:
    """Conditions on the memories of a scope."""

    kind: Annotated[
        MemoryKind | None, typer.Option(help="Kind: turn, note, or that of an extracted fact.")
    ] = None
    entity: Annotated[str | None, typer.Option(help="Entity that the memory mentions.")] = None
    filter: Filter = field(default_factory=list)
    newest_first: Annotated[bool, typer.Option("--newest-first", help="Newest first.")] = False


@dataclass(frozen=True, slots=True)
class Changes:
    """New values of fields."""

    text: Annotated[str | None, typer.Option(help="Text.")] = None
    role: Role = None
    author: Author = None
    at: Annotated[str | None, typer.Option(help="Time in ISO 8601.")] = None
    kind: Kind = None
    valid_until: Annotated[str | None, typer.Option(help="ISO 8601 time until which the fact is true.")] = (
        None
    )

    def arguments(self) -> dict[str, Any]:
        """Return keyword arguments of the engine. Raises InvalidInput without any."""
        values = {
            "text": self.text, "role": self.role, "speaker": self.author, "at": self.at, "kind": self.kind,
            "valid_until": self.valid_until,
        }  # fmt: skip
        changes = {name: value for name, value in values.items() if value is not None}
        if not changes:
            raise InvalidInput("update", "give at least one field: --text, --role, ...")
        return changes


@dataclass(frozen=True, slots=True)
class Deleted:
    """Which memories to delete."""

    before: Annotated[str | None, typer.Option(help="Memories before this ISO 8601 time.")] = None
    older_than: Annotated[float | None, typer.Option(help="Memories older than this number of days.")] = None
    everything: Annotated[bool, typer.Option("--all", help="All memories of the scope.")] = False
    pinned: Annotated[bool, typer.Option("--pinned", help="Pinned memories as well.")] = False

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


def list_memories(
    session: MemorySession, scope: InScope, part: Part, *, limit: PageLimit = 100, after: After = None
) -> None:
    """List memories by time."""
    page = session.engine.memory.list(
        **scope.arguments(session),
        kind=part.kind,
        entity=part.entity,
        filter=parse_filters(part.filter),
        after=after,
        limit=limit,
        newest_first=part.newest_first,
    )
    if page.memories or session.json:
        session.show(page, memories_picture(page.memories))
    session.note_next(page)
    if not page.memories:
        session.end_with_nothing(NO_MEMORIES)


def get_memory(memory: Id, session: MemorySession, scope: InScope) -> None:
    """Show a memory with its metadata."""
    stored = session.engine.memory.get(memory, **scope.arguments(session))
    session.show(stored, _memory_picture(stored))


def versions(memory: Id, session: MemorySession, scope: InScope, *, limit: Limit = 100) -> None:
    """List the versions of a memory, oldest first."""
    memory_versions = session.engine.memory.list_versions(memory, **scope.arguments(session))[-limit:]
    rows = (
        (version.known_from, moment(version.known_until), cell(version.text, limit=MAX_LINE_LENGTH))
        for version in memory_versions
    )
    session.show(memory_versions, rows_table(("known from", "until", "text"), rows))


def update(memory: Id, session: MemorySession, scope: InScope, changes: Changes) -> None:
    """Change a memory. The old version is kept."""
    _change(memory, session, scope, changes.arguments())


def pin(memory: Id, session: MemorySession, scope: InScope) -> None:
    """Exclude a memory from retention."""
    _change(memory, session, scope, {"pinned": True})


def unpin(memory: Id, session: MemorySession, scope: InScope) -> None:
    """Include a memory in retention again."""
    _change(memory, session, scope, {"pinned": False})


def delete(
    session: MemorySession,
    scope: InScope,
    deleted: Deleted,
    deleting: Deleting,
    *,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[MEMORY]...", help="Ids of memories.")] = None,
) -> None:
    """Delete memories by id, by age, or all of a scope."""
    selection = deleted.what(ids or [])
    receipt = _delete(session, scope, selection, deleting)
    session.show(receipt, receipt_text(receipt), matches=receipt.memories)


def conversations(session: MemorySession, scope: InScope, *, limit: Limit = 100) -> None:
    """List the conversations of a scope."""
    stored = session.engine.memory.list_conversations(**scope.arguments(session))[:limit]
    rows = (
        (
            conversation.scope.agent or "-",
            conversation.scope.conversation or "-",
            conversation.memories,
            *map(moment, (conversation.first, conversation.last)),
        )
        for conversation in stored
    )
    columns = ("agent", "conversation", "memories", "first", "last")
    session.show_or_exit(stored, rows_table(columns, rows), "no conversations")


def stats(session: MemorySession, scope: InScope) -> None:
    """Show statistics of a scope."""
    statistics = session.engine.memory.stats(**scope.arguments(session))
    names = (
        "memories", "notes", "pinned", "facts", "versions", "conversations", "entities", "tokens", "pending",
    )  # fmt: skip
    rows = [(name, getattr(statistics, name)) for name in names]
    table = rows_table(
        ("", ""), [*rows, ("first", moment(statistics.first)), ("last", moment(statistics.last))]
    )
    table.show_header = False
    session.show(statistics, table)


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
        count, left_out = _export(partial(memories.export, **scope.arguments(session)), target, bars)
    if output != STDIO:
        summary = {"memories": count, "file": output, "left_out": left_out}
        session.show(summary, f"wrote {count:,} memories")
    for name, number in left_out.items():
        note(f"left out: {number:,} {name}")
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
            _lines(source), collection=session.collection, scope=scope, progress=bars
        )
    outcomes: list[str] = [memory.outcome for memory in done]
    names = ("added", "replaced", "updated", "unchanged")
    counts = ", ".join(f"{outcomes.count(name):,} {name}" for name in names)
    session.note_quarantined(done)
    session.show(done, counts, matches=done)


def extract(
    session: MemorySession,
    scope: InScope,
    *,
    max_tokens: Annotated[
        int | None, typer.Option(help="Maximum tokens of the run (default: CONSPECTUS_MAX_FACT_TOKENS).")
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Derive facts again from stored answers, without a call.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="All scopes of the collection.")] = False,
    wait: Wait = True,
) -> None:
    """Extract facts from new memories with the chat model."""
    job = session.engine.memory.extract(
        scope=None if every else scope.scope(),
        collection=session.collection,
        max_tokens=max_tokens,
        replay=replay,
    )
    report(session, [job], wait=wait, picture=lambda jobs: job_picture(jobs[0]))


def set_retention(
    session: NewMemorySession,
    scope: InScope,
    *,
    days: Annotated[float | None, typer.Option(help="Maximum age of turns in days.")] = None,
    max_count: Annotated[int | None, typer.Option(help="Maximum number of turns per conversation.")] = None,
    off: Annotated[bool, typer.Option("--off", help="Remove the retention rule.")] = False,
) -> None:
    """Set the retention rule of a scope."""
    if off is (days is not None or max_count is not None):
        raise InvalidInput("retention", "give --days, --max-count or both, or --off")
    retention = None if off else Retention(days, max_count)
    if retention is None:
        session.engine.retention.delete(**scope.arguments(session))
    else:
        session.engine.retention.set(retention, **scope.arguments(session))
    rule = {"scope": scope.scope(), "retention": retention}
    session.show(rule, "no retention rule" if off else f"keeps {_bounds(Retention(days, max_count))}")


def list_retentions(session: MemorySession, *, limit: Limit = 100) -> None:
    """List retention rules with their last runs."""
    rules = session.engine.retention.list(collection=session.collection)[:limit]
    rows = ((scope_name(rule.scope), _bounds(rule.retention), moment(rule.last_run)) for rule in rules)
    session.show_or_exit(rules, rows_table(("scope", "keeps", "last run"), rows), "no retention rules")


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
        noun = "memory" if would.memories == 1 else "memories"
        confirm(f"Delete {would.memories:,} {noun} of {scope_name(scope)}?", yes=False)
    return engine.memory.forget(selection, scope=scope, collection=collection, purge=deleting.purge)


def _change(memory: str, session: MemorySession, scope: InScope, changes: dict[str, Any]) -> None:
    written = session.engine.memory.update(memory, **scope.arguments(session), **changes)
    session.note_quarantined([written])
    session.show(written, f"{written.outcome} {written.id}")


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
        "metadata": json.dumps(plain(memory.metadata), ensure_ascii=False) if memory.metadata else None,
    }
    table = rows_table(("", ""), ((cell(name, style="bold"), fact) for name, fact in values.items() if fact))
    table.show_header = False
    return Group(table, "", Text(printable(memory.text)))


def _export(
    pages: Callable[..., MemoryExport], target: IO[str], report: "Progress | None"
) -> tuple[int, Mapping[str, int]]:
    """Write all pages; return the number of memories, and what is left out."""
    after, count = None, 0
    while True:
        page = pages(after=after)
        target.writelines(f"{line}\n" for line in page.lines)
        count += len(page.lines)
        if report is not None:
            report("exporting", count, 0)
        after = page.next
        if after is None:
            return count, page.left_out


def _lines(source: IO[bytes]) -> Iterator[str]:
    """The lines as text. Raises InvalidInput with the number of one that is not UTF-8."""
    for number, raw in enumerate(source, 1):
        try:
            yield raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidInput(f"line {number}", f"is not UTF-8: {error.reason}") from None


def _bounds(retention: Retention) -> str:
    days = [] if retention.days is None else [f"turns of the last {retention.days:g} days"]
    maximum = [] if retention.max_count is None else [f"at most {retention.max_count:,} in each conversation"]
    return ", ".join([*days, *maximum]) or "everything"
