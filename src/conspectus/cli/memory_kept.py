"""memory: how long memories are kept, what there is of them, and how they are carried elsewhere."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Annotated

import typer
from rich.console import RenderableType

from conspectus.cli.failures import NOTHING
from conspectus.cli.memory_options import NO_MEMORIES, Preview, Whose, receipt_text, remembering, scope_name
from conspectus.cli.options import Common, spread
from conspectus.cli.output import cell, note, progress, show
from conspectus.cli.reporting import plain_table
from conspectus.cli.session import Session
from conspectus.cli.video_options import show_found
from conspectus.errors import InvalidInput
from conspectus.model.memory import (
    ConversationSummary,
    MemoryStats,
    Remembered,
    Retention,
    RetentionRule,
    Scope,
)
from conspectus.ports import Progress

STANDARD = Path("-")


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


def retention_group() -> typer.Typer:
    """The commands."""
    group = typer.Typer(help="How long memories are kept.", rich_markup_mode=None)
    for name, command in (("list", list_retentions), ("apply", apply_retention)):
        group.command(name)(spread(command))
    return group


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


def _counted(done: Sequence[Remembered]) -> str:
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
