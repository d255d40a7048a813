"""memory: list, change, delete, export and import memories, and their retention."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from conspectus.cli.errors import FAILED, NOTHING, show_found
from conspectus.cli.memory import (
    NO_MEMORIES,
    Id,
    Preview,
    Purge,
    Whose,
    instant,
    memories_picture,
    receipt_text,
    remembering,
    said_at,
    scope_name,
)
from conspectus.cli.options import Common
from conspectus.cli.output import cell, note, plain, plain_table, printable, progress, show
from conspectus.cli.session import Session
from conspectus.errors import InvalidInput
from conspectus.model.filter_json import parse_filters
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
from conspectus.ports import Progress

CONDITION = "Only those that match: field=value, or a JSON filter; may be repeated, all must match."
STANDARD = Path("-")


@dataclass(frozen=True, slots=True)
class Part:
    """Which memories of a scope."""

    notes: Annotated[
        bool | None, typer.Option("--notes/--turns", help="Only standing notes, or only turns.")
    ] = None
    entity: Annotated[
        str | None, typer.Option(help="Only those stored with this name, or with a fact about it.")
    ] = None
    where: Annotated[list[str] | None, typer.Option(help=CONDITION)] = None
    newest_first: Annotated[bool, typer.Option("--newest-first", help="Begin with what was said last.")] = (
        False
    )

    def kind(self) -> MemoryClass | None:
        """The class that is asked for."""
        return None if self.notes is None else "note" if self.notes else "turn"


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be changed of a memory."""

    text: Annotated[str | None, typer.Option(help="What it says from now on.")] = None
    role: Annotated[str | None, typer.Option(help="Whose turn it is.")] = None
    speaker: Annotated[str | None, typer.Option(help="Who said it.")] = None
    at: Annotated[str | None, typer.Option(help="When it was said, as an ISO 8601 time.")] = None
    note: Annotated[
        bool | None, typer.Option("--note/--turn", help="Make it a standing note, or a turn.")
    ] = None
    valid_until: Annotated[str | None, typer.Option(help="Until when its fact holds.")] = None

    def given(self) -> dict[str, Any]:
        """What is given of it, as the engine takes it. Raises InvalidInput where that is nothing."""
        named = ("text", "role", "speaker", "at", "valid_until")
        told = {name: value for name in named if (value := getattr(self, name)) is not None}
        if self.note is not None:
            told["kind"] = "note" if self.note else "turn"
        if not told:
            raise InvalidInput("update", "say what is to change: --text, --role, ...")
        return told


@dataclass(frozen=True, slots=True)
class Condemned:
    """Which memories are to go."""

    before: Annotated[str | None, typer.Option(help="Those said before this ISO 8601 time.")] = None
    older_than: Annotated[float | None, typer.Option(help="Those said more than so many days ago.")] = None
    everything: Annotated[bool, typer.Option("--all", help="All of the scope.")] = False
    pinned: Annotated[bool, typer.Option("--pinned", help="Pinned ones, too.")] = False

    def what(self, ids: list[str]) -> MemorySelection:
        """As the engine takes it."""
        return MemorySelection(
            tuple(ids), instant(self.before), self.older_than, self.everything, self.pinned
        )


@dataclass(frozen=True, slots=True)
class Deleting:
    """How they are to go."""

    preview: Preview = False
    purge: Purge = False
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False


def history(
    common: Common,
    whose: Whose,
    part: Part,
    *,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Most memories to list.")] = 100,
    after: Annotated[str | None, typer.Option(help="Go on after a page: its `next`.")] = None,
) -> None:
    """List memories in the order in which they were said."""
    with remembering(common) as session:
        page = session.engine.memories(
            scope=whose.scope(),
            collection=session.collection,
            kind=part.kind(),
            entity=part.entity,
            where=parse_filters(part.where or []),
            after=after,
            limit=limit,
            newest_first=part.newest_first,
        )
    if page.memories or common.json:
        show(page, memories_picture(page.memories), as_json=common.json)
    if page.next and not common.json:
        note(f"there are more: --after {page.next}")
    if not page.memories:
        if not common.json:
            note(NO_MEMORIES)
        raise typer.Exit(NOTHING)


def show_memory(memory: Id, common: Common, whose: Whose) -> None:
    """Show a memory with all that is known of it."""
    with remembering(common) as session:
        found = session.engine.memory(memory, scope=whose.scope(), collection=session.collection)
    show(found, _memory_picture(found), as_json=common.json)


def versions(memory: Id, common: Common, whose: Whose) -> None:
    """Show what a memory said before, oldest first, and what it says now."""
    with remembering(common) as session:
        found = session.engine.memory_versions(memory, scope=whose.scope(), collection=session.collection)
    table = plain_table("known from", "until", "text")
    for each in found:
        until = "-" if each.known_until is None else f"{each.known_until:%Y-%m-%d %H:%M:%S}"
        table.add_row(f"{each.known_from:%Y-%m-%d %H:%M:%S}", until, cell(each.text, limit=200))
    show(found, table, as_json=common.json)


def update(memory: Id, common: Common, whose: Whose, changes: Changes) -> None:
    """Change a memory; it keeps its id, and what it was is kept as a version."""
    _change(memory, common, whose, changes.given())


def pin(
    memory: Id,
    common: Common,
    whose: Whose,
    *,
    off: Annotated[bool, typer.Option("--off", help="Let it go like others again.")] = False,
) -> None:
    """Keep a memory whatever the retention says."""
    _change(memory, common, whose, {"pinned": not off})


def forget(
    common: Common,
    whose: Whose,
    condemned: Condemned,
    deleting: Deleting,
    *,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[MEMORY]...", help="Ids of memories.")] = None,
) -> None:
    """Delete memories by id, by age, or all of a scope."""
    what = condemned.what(ids or [])
    with remembering(common) as session:
        receipt = _forget(session, whose, what, deleting)
    show(receipt, receipt_text(receipt), as_json=common.json)
    if not receipt.memories:
        raise typer.Exit(NOTHING)


def conversations(common: Common, whose: Whose) -> None:
    """List the conversations of a scope in numbers."""
    with remembering(common) as session:
        found = session.engine.conversations(scope=whose.scope(), collection=session.collection)
    show_found(found, _conversations_table(found), "there are no conversations", as_json=common.json)


def stats(common: Common, whose: Whose) -> None:
    """Show a scope in numbers."""
    with remembering(common) as session:
        found = session.engine.memory_stats(scope=whose.scope(), collection=session.collection)
    show(found, _stats_table(found), as_json=common.json)


def export(
    common: Common,
    whose: Whose,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write; - is stdout.")] = STANDARD,
) -> None:
    """Write the memories of a scope as JSON lines, complete with times, versions and entities."""
    with remembering(common) as session, progress() as bars, ExitStack() as files:
        target = sys.stdout
        if output != STANDARD:
            target = files.enter_context(output.open("w", encoding="utf-8", newline="\n"))
        count = _export(session, whose.scope(), target, bars)
    if output != STANDARD:
        show({"memories": count, "file": output}, f"wrote {count:,} memories", as_json=common.json)
    if not count:
        note(NO_MEMORIES)
        raise typer.Exit(NOTHING)


def import_lines(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An export; - is stdin.")],
    common: Common,
    whose: Whose,
) -> None:
    """Take in an export, where it says, or into the scope that is named; again changes nothing."""
    if file != STANDARD and not file.is_file():
        raise InvalidInput("file", f"{str(file)!r} is no file")
    scope = None if whose == Whose() else whose.scope()
    with remembering(common, new=True) as session, progress() as bars, ExitStack() as files:
        source = sys.stdin.buffer if file == STANDARD else files.enter_context(file.open("rb"))
        done = session.engine.import_memories(
            _lines(source), collection=session.collection, scope=scope, progress=bars
        )
    show(done, _counted(done), as_json=common.json)
    if not done:
        raise typer.Exit(NOTHING)


def retain(
    common: Common,
    whose: Whose,
    *,
    days: Annotated[float | None, typer.Option(help="Delete turns that are older.")] = None,
    most: Annotated[
        int | None, typer.Option(help="Keep so many of the last turns of each conversation.")
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Let the scope have no retention any more.")] = False,
) -> None:
    """Keep a retention for a scope, in place of the one that it has."""
    if off is (days is not None or most is not None):
        raise InvalidInput("retention", "give --days, --most or both, or --off")
    retention = None if off else Retention(days, most)
    with remembering(common, new=True) as session:
        session.engine.retain(retention, scope=whose.scope(), collection=session.collection)
    kept = {"scope": whose.scope(), "retention": retention}
    show(kept, "no retention" if off else f"keeps {_bounds(Retention(days, most))}", as_json=common.json)


def list_retentions(common: Common) -> None:
    """List the retentions of the collection, with when each was last carried out."""
    with remembering(common) as session:
        found = session.engine.retentions(collection=session.collection)
    show_found(found, _retentions_table(found), "there are no retentions", as_json=common.json)


def apply_retention(
    common: Common,
    whose: Whose,
    *,
    preview: Preview = False,
    every: Annotated[
        bool, typer.Option("--all", help="All retentions of the collection, whatever the scope.")
    ] = False,
    job: Annotated[
        bool, typer.Option("--job", help="Have all be carried out by a job of the server.")
    ] = False,
) -> None:
    """Carry out the retention of a scope now, or all of the collection."""
    with remembering(common) as session:
        if job:
            started = session.engine.start_retention(collection=session.collection)
            show(started, f"job {started.id}", as_json=common.json)
            return
        receipt = session.engine.apply_retention(
            collection=session.collection, scope=None if every else whose.scope(), preview=preview
        )
    show(receipt, receipt_text(receipt), as_json=common.json)


def _forget(session: Session, whose: Whose, what: MemorySelection, deleting: Deleting) -> MemoryReceipt:
    """Delete after a question, unless it is answered already or there is nothing to ask."""
    engine, place = session.engine, session.collection
    scope = whose.scope()
    if deleting.preview or not deleting.yes:
        would = engine.forget(what, scope=scope, collection=place, preview=True)
        noun = "memory" if would.memories == 1 else "memories"
        asked = f"Delete {would.memories:,} {noun} of {scope_name(scope)}?"
        if deleting.preview or not would.memories:
            return would
        if not typer.confirm(asked, err=True):
            note("nothing was deleted")
            raise typer.Exit(FAILED)
    return engine.forget(what, scope=scope, collection=place, purge=deleting.purge)


def _change(memory: str, common: Common, whose: Whose, changes: dict[str, Any]) -> None:
    with remembering(common) as session:
        written = session.engine.update_memory(
            memory, scope=whose.scope(), collection=session.collection, **changes
        )
    show(written, f"{written.outcome} {written.id}", as_json=common.json)


def _memory_picture(memory: Memory) -> RenderableType:
    table = plain_table("", "")
    table.show_header = False
    document = memory.document
    told = {
        "id": memory.id,
        "key": document.key,
        "of": scope_name(memory.scope),
        "class": memory.kind + (", pinned" if memory.pinned else ""),
        "said": said_at(memory),
        "role": document.role,
        "speaker": document.author,
        "known from": f"{memory.known_from:%Y-%m-%d %H:%M:%S}",
        "fact": None if memory.fact is None else _fact_line(memory.fact),
        "valid": _valid(memory),
        "ended by": memory.closed_by,
        "ended": ", ".join(memory.closes),
        "nearly the same": ", ".join(memory.near),
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


def _export(session: Session, scope: Scope, target: IO[str], report: Progress | None) -> int:
    after, count = None, 0
    while True:
        page = session.engine.export_memories(scope=scope, collection=session.collection, after=after)
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
    table = plain_table("whose", "keeps", "last carried out")
    for each in found:
        ran = "-" if each.ran is None else f"{each.ran:%Y-%m-%d %H:%M:%S}"
        table.add_row(cell(scope_name(each.scope)), _bounds(each.retention), ran)
    return table


def _bounds(retention: Retention) -> str:
    days = [] if retention.days is None else [f"turns of the last {retention.days:g} days"]
    most = [] if retention.most is None else [f"at most {retention.most:,} in each conversation"]
    return ", ".join([*days, *most]) or "everything"
