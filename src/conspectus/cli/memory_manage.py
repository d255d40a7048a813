"""memory: list, change, delete, export and import memories, and their retention."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from conspectus.cli.errors import NOTHING, confirm, note_next, show_found
from conspectus.cli.memory import (
    NO_MEMORIES,
    Author,
    Id,
    InScope,
    Kind,
    Role,
    memories_picture,
    receipt_text,
    remembering,
    said_at,
    scope_name,
)
from conspectus.cli.options import After, Common, DryRun, Filter, Limit, PageLimit, Purge, Yes, instant
from conspectus.cli.output import cell, note, plain, plain_table, printable, progress, show
from conspectus.cli.session import Session
from conspectus.errors import InvalidInput
from conspectus.model.filter import parse_filters
from conspectus.model.graph import Fact
from conspectus.model.memory import (
    ConversationSummary,
    Memory,
    MemoryClass,
    MemoryReceipt,
    MemorySelection,
    MemoryStats,
    MemoryWritten,
    Retention,
    RetentionRule,
    Scope,
)

if TYPE_CHECKING:
    from conspectus.ports import Progress

STDIO = Path("-")


@dataclass(frozen=True, slots=True)
class Part:
    """Conditions on the memories of a scope."""

    kind: Kind = None
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
    kind: Annotated[MemoryClass | None, typer.Option(help="turn or note.")] = None
    valid_until: Annotated[str | None, typer.Option(help="ISO 8601 time until which the fact is true.")] = (
        None
    )

    def given(self) -> dict[str, Any]:
        """Keyword arguments of the engine. Raises InvalidInput without any."""
        told = {
            "text": self.text, "role": self.role, "speaker": self.author, "at": self.at, "kind": self.kind,
            "valid_until": self.valid_until,
        }  # fmt: skip
        given = {name: value for name, value in told.items() if value is not None}
        if not given:
            raise InvalidInput("update", "give at least one field: --text, --role, ...")
        return given


@dataclass(frozen=True, slots=True)
class Deleted:
    """Which memories to delete."""

    before: Annotated[str | None, typer.Option(help="Memories before this ISO 8601 time.")] = None
    older_than: Annotated[float | None, typer.Option(help="Memories older than this number of days.")] = None
    everything: Annotated[bool, typer.Option("--all", help="All memories of the scope.")] = False
    pinned: Annotated[bool, typer.Option("--pinned", help="Pinned memories as well.")] = False

    def what(self, ids: list[str]) -> MemorySelection:
        """As the engine takes it."""
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
    common: Common, whose: InScope, part: Part, *, limit: PageLimit = 100, after: After = None
) -> None:
    """List memories by time."""
    with remembering(common) as session:
        page = session.engine.memory.list(
            **whose.place(session),
            kind=part.kind,
            entity=part.entity,
            where=parse_filters(part.filter),
            after=after,
            limit=limit,
            newest_first=part.newest_first,
        )
    if page.memories or common.json:
        show(page, memories_picture(page.memories), as_json=common.json)
    note_next(page.next, as_json=common.json)
    if not page.memories:
        if not common.json:
            note(NO_MEMORIES)
        raise typer.Exit(NOTHING)


def get_memory(memory: Id, common: Common, whose: InScope) -> None:
    """Show a memory with its metadata."""
    with remembering(common) as session:
        found = session.engine.memory.get(memory, **whose.place(session))
    show(found, _memory_picture(found), as_json=common.json)


def versions(memory: Id, common: Common, whose: InScope, *, limit: Limit = 100) -> None:
    """List the versions of a memory, oldest first."""
    with remembering(common) as session:
        found = session.engine.memory.versions(memory, **whose.place(session))[-limit:]
    table = plain_table("known from", "until", "text")
    for each in found:
        until = "-" if each.known_until is None else f"{each.known_until:%Y-%m-%d %H:%M:%S}"
        table.add_row(f"{each.known_from:%Y-%m-%d %H:%M:%S}", until, cell(each.text, limit=200))
    show(found, table, as_json=common.json)


def update(memory: Id, common: Common, whose: InScope, changes: Changes) -> None:
    """Change a memory. The old version is kept."""
    _change(memory, common, whose, changes.given())


def pin(memory: Id, common: Common, whose: InScope) -> None:
    """Exclude a memory from retention."""
    _change(memory, common, whose, {"pinned": True})


def unpin(memory: Id, common: Common, whose: InScope) -> None:
    """Include a memory in retention again."""
    _change(memory, common, whose, {"pinned": False})


def delete(
    common: Common,
    whose: InScope,
    chosen: Deleted,
    deleting: Deleting,
    *,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[MEMORY]...", help="Ids of memories.")] = None,
) -> None:
    """Delete memories by id, by age, or all of a scope."""
    what = chosen.what(ids or [])
    with remembering(common) as session:
        receipt = _delete(session, whose, what, deleting)
    show(receipt, receipt_text(receipt), as_json=common.json)
    if not receipt.memories:
        raise typer.Exit(NOTHING)


def conversations(common: Common, whose: InScope, *, limit: Limit = 100) -> None:
    """List the conversations of a scope."""
    with remembering(common) as session:
        found = session.engine.memory.conversations(**whose.place(session))[:limit]
    show_found(found, _conversations_table(found), "no conversations", as_json=common.json)


def stats(common: Common, whose: InScope) -> None:
    """Show statistics of a scope."""
    with remembering(common) as session:
        found = session.engine.memory.stats(**whose.place(session))
    show(found, _stats_table(found), as_json=common.json)


def export(
    common: Common,
    whose: InScope,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write; - is stdout.")] = STDIO,
) -> None:
    """Export the memories of a scope as JSON Lines."""
    with remembering(common) as session, progress() as bars, ExitStack() as files:
        target = sys.stdout
        if output != STDIO:
            target = files.enter_context(output.open("w", encoding="utf-8", newline="\n"))
        count = _export(session, whose.scope(), target, bars)
    if output != STDIO:
        show({"memories": count, "file": output}, f"wrote {count:,} memories", as_json=common.json)
    if not count:
        note(NO_MEMORIES)
        raise typer.Exit(NOTHING)


def import_lines(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Export file; - is stdin.")],
    common: Common,
    whose: InScope,
) -> None:
    """Import an export, into its scopes or the given scope."""
    if file != STDIO and not file.is_file():
        raise InvalidInput("file", f"{str(file)!r} is not a file")
    scope = None if whose == InScope() else whose.scope()
    with remembering(common, new=True) as session, progress() as bars, ExitStack() as files:
        source = sys.stdin.buffer if file == STDIO else files.enter_context(file.open("rb"))
        done = session.engine.memory.import_lines(
            _lines(source), collection=session.collection, scope=scope, progress=bars
        )
    show(done, _counted(done), as_json=common.json)
    if not done:
        raise typer.Exit(NOTHING)


def set_retention(
    common: Common,
    whose: InScope,
    *,
    days: Annotated[float | None, typer.Option(help="Maximum age of turns in days.")] = None,
    max_count: Annotated[int | None, typer.Option(help="Maximum number of turns per conversation.")] = None,
    off: Annotated[bool, typer.Option("--off", help="Remove the retention rule.")] = False,
) -> None:
    """Set the retention rule of a scope."""
    if off is (days is not None or max_count is not None):
        raise InvalidInput("retention", "give --days, --max-count or both, or --off")
    retention = None if off else Retention(days, max_count)
    with remembering(common, new=True) as session:
        if retention is None:
            session.engine.retention.delete(**whose.place(session))
        else:
            session.engine.retention.set(retention, **whose.place(session))
    kept = {"scope": whose.scope(), "retention": retention}
    show(
        kept,
        "no retention rule" if off else f"keeps {_bounds(Retention(days, max_count))}",
        as_json=common.json,
    )


def list_retentions(common: Common, *, limit: Limit = 100) -> None:
    """List retention rules with their last runs."""
    with remembering(common) as session:
        found = session.engine.retention.list(collection=session.collection)[:limit]
    show_found(found, _retentions_table(found), "no retention rules", as_json=common.json)


def apply_retention(
    common: Common,
    whose: InScope,
    *,
    dry_run: DryRun = False,
    every: Annotated[bool, typer.Option("--all", help="All rules of the collection.")] = False,
    job: Annotated[bool, typer.Option("--job", help="Apply all rules in a background job.")] = False,
) -> None:
    """Apply the retention rule of a scope now."""
    with remembering(common) as session:
        if job:
            started = session.engine.retention.start_job(collection=session.collection)
            show(started, f"job {started.id}", as_json=common.json)
            return
        receipt = session.engine.retention.apply(
            collection=session.collection, scope=None if every else whose.scope(), preview=dry_run
        )
    show(receipt, receipt_text(receipt), as_json=common.json)


def _delete(session: Session, whose: InScope, what: MemorySelection, deleting: Deleting) -> MemoryReceipt:
    """Delete once confirmed; without memories to delete there is no prompt."""
    engine, place = session.engine, session.collection
    scope = whose.scope()
    if deleting.dry_run or not deleting.yes:
        would = engine.memory.forget(what, scope=scope, collection=place, preview=True)
        if deleting.dry_run or not would.memories:
            return would
        noun = "memory" if would.memories == 1 else "memories"
        confirm(f"Delete {would.memories:,} {noun} of {scope_name(scope)}?", yes=False)
    return engine.memory.forget(what, scope=scope, collection=place, purge=deleting.purge)


def _change(memory: str, common: Common, whose: InScope, changes: dict[str, Any]) -> None:
    with remembering(common) as session:
        written = session.engine.memory.update(memory, **whose.place(session), **changes)
    show(written, f"{written.outcome} {written.id}", as_json=common.json)


def _memory_picture(memory: Memory) -> RenderableType:
    table = plain_table("", "")
    table.show_header = False
    document = memory.document
    told = {
        "id": memory.id,
        "key": document.key,
        "scope": scope_name(memory.scope),
        "kind": memory.kind + (", pinned" if memory.pinned else ""),
        "time": said_at(memory),
        "role": document.role,
        "author": document.author,
        "known from": f"{memory.known_from:%Y-%m-%d %H:%M:%S}",
        "fact": None if memory.fact is None else _fact_line(memory.fact),
        "valid": _valid(memory),
        "ended by": memory.closed_by,
        "ended": ", ".join(memory.closes),
        "near duplicates": ", ".join(memory.near),
        "entities": ", ".join(memory.entities),
        "metadata": json.dumps(plain(memory.metadata), ensure_ascii=False) if memory.metadata else None,
    }
    for name, value in told.items():
        if value:
            table.add_row(cell(name, style="bold"), cell(value))
    return Group(table, "", Text(printable(memory.text)))


def _fact_line(fact: Fact) -> str:
    return f"{fact.subject} | {fact.predicate} | {fact.object}"


def _valid(memory: Memory) -> str | None:
    ends = (memory.valid_from, memory.valid_until)
    if ends == (None, None):
        return None
    return " to ".join("-" if end is None else f"{end:%Y-%m-%d %H:%M:%S}" for end in ends)


def _export(session: Session, scope: Scope, target: IO[str], report: "Progress | None") -> int:
    after, count = None, 0
    while True:
        page = session.engine.memory.export(scope=scope, collection=session.collection, after=after)
        target.writelines(f"{line}\n" for line in page.lines)
        count += len(page.lines)
        if report is not None:
            report("exporting", count, 0)
        after = page.next
        if after is None:
            return count


def _lines(source: IO[bytes]) -> Iterator[str]:
    """The lines as text. Raises InvalidInput with the number of one that is not UTF-8."""
    for number, raw in enumerate(source, 1):
        try:
            yield raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidInput(f"line {number}", f"is not UTF-8: {error.reason}") from None


def _counted(done: Sequence[MemoryWritten]) -> str:
    outcomes = [each.outcome for each in done]
    return ", ".join(
        f"{outcomes.count(name):,} {name}" for name in ("added", "replaced", "updated", "unchanged")
    )


def _conversations_table(found: Iterable[ConversationSummary]) -> RenderableType:
    table = plain_table("agent", "conversation", "memories", "first", "last")
    for each in found:
        names = [cell(name or "-") for name in (each.scope.agent, each.scope.conversation)]
        ends = ["-" if end is None else f"{end:%Y-%m-%d %H:%M:%S}" for end in (each.first, each.last)]
        table.add_row(*names, f"{each.memories:,}", *ends)
    return table


def _stats_table(found: MemoryStats) -> RenderableType:
    table = plain_table("", "")
    table.show_header = False
    names = (
        "memories",
        "notes",
        "pinned",
        "facts",
        "versions",
        "conversations",
        "entities",
        "tokens",
        "pending",
    )
    for name in names:
        table.add_row(name, f"{getattr(found, name):,}")
    for name, end in (("first", found.first), ("last", found.last)):
        table.add_row(name, "-" if end is None else f"{end:%Y-%m-%d %H:%M:%S}")
    return table


def _retentions_table(found: Iterable[RetentionRule]) -> RenderableType:
    table = plain_table("scope", "keeps", "last run")
    for each in found:
        ran = "-" if each.ran is None else f"{each.ran:%Y-%m-%d %H:%M:%S}"
        table.add_row(cell(scope_name(each.scope)), _bounds(each.retention), ran)
    return table


def _bounds(retention: Retention) -> str:
    days = [] if retention.days is None else [f"turns of the last {retention.days:g} days"]
    most = [] if retention.most is None else [f"at most {retention.most:,} in each conversation"]
    return ", ".join([*days, *most]) or "everything"
