"""status, check, reindex, reembed, migrate, backup and restore."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.progress import ProgressColumn, Task
from rich.table import Table
from rich.text import Text

from conspectus import sync
from conspectus.bootstrap import backup as backups
from conspectus.bootstrap import transfer
from conspectus.cli.errors import DIFFERENT
from conspectus.cli.options import Common
from conspectus.cli.output import cell, note, plain, plain_table, printable, progress, show, similarity_table
from conspectus.cli.session import opened, require_here
from conspectus.model.records import Json
from conspectus.model.reports import CheckReport, Status
from conspectus.ports import Progress
from conspectus.settings import Settings

if TYPE_CHECKING:
    from conspectus.bootstrap.backup import BackupReceipt
    from conspectus.bootstrap.transfer import MoveReceipt

PLACE = "a folder, or the postgresql:// URL of a database."


class _Speed(ProgressColumn):
    """How many are done each second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s")


def status(common: Common) -> None:
    """Show where the data are and how much there is, of all collections or of one."""
    with opened(common) as session:
        report = session.engine.status(collection=common.collection)
    show(report, status_table(report), as_json=common.json)


def check(common: Common) -> None:
    """Compare records and index and name every difference; nothing is repaired."""
    with opened(common) as session:
        report = session.engine.check()
    found: dict[str, Json] = {
        "clean": report.clean,
        "records": plain(report.records),
        "index": plain(report.index),
    }
    show(found, check_table(report), as_json=common.json)
    if not report.clean:
        raise typer.Exit(DIFFERENT)


def reindex(common: Common) -> None:
    """Build the index anew from the records; the old one answers meanwhile."""
    with opened(common) as session, progress() as bars:
        session.engine.reindex(collection=session.collection, progress=bars)
        name = session.collection
    show({"collection": name, "reindexed": True}, f"built the index of {name} anew", as_json=common.json)


def reembed(
    embedder: Annotated[str, typer.Argument(help="minilm, static:PATH or vendor:model@dimensions.")],
    common: Common,
) -> None:
    """Move the collection to another embedder; the old one answers until all is done."""
    with opened(common) as session, progress() as bars:
        count = session.engine.reembed(embedder, collection=session.collection, progress=bars)
        name = session.collection
    show(
        {"collection": name, "embedded": count},
        f"embedded {count} chunks of {name} anew",
        as_json=common.json,
    )


def migrate(
    common: Common,
    *,
    source: Annotated[str, typer.Option("--from", help=f"The store to move: {PLACE}")],
    target: Annotated[str, typer.Option("--to", help=f"Where to, empty: {PLACE}")],
    index: Annotated[
        bool,
        typer.Option("--index/--no-index", help="Build the indexes at the end, or at the first question."),
    ] = True,
) -> None:
    """Move everything of a store to another place; the source goes on meanwhile and stays as it is."""
    require_here(common)
    settings = Settings.from_environment()
    with progress(_Speed()) as bars:
        receipt = transfer.move(source, target, settings=settings, progress=bars)
        if index:
            moment = receipt.moved.moment.isoformat()
            note(f"everything is moved and compared, as it was at {moment}; what is left are the indexes,")
            note("which `conspectus reindex` builds for each collection if this does not end")
        indexed = _build_indexes(target, settings, bars) if index else []
    show(_move_json(receipt, indexed), _move_picture(receipt, indexed), as_json=common.json)


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write; it must not be there.")],
    common: Common,
    *,
    check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing: see whether FILE is a backup that can be restored."),
    ] = False,
) -> None:
    """Write the data to one file while they are used, and check it; indexes are left out."""
    require_here(common)
    settings = Settings.from_environment()
    if check:
        receipt = backups.check_backup(file, settings=settings)
    else:
        with progress(_Speed()) as bars:
            receipt = backups.back_up(common.data or settings.path, file, settings=settings, progress=bars)
    show(_backup_told(receipt), _backup_picture(receipt), as_json=common.json)


def restore(
    file: Annotated[Path, typer.Argument(help="The backup.")],
    common: Common,
    *,
    target: Annotated[Path, typer.Option("--to", help="The folder of the data; new or empty.")],
) -> None:
    """Make a backup the data of a folder, once all of it is found to be what was backed up."""
    require_here(common)
    receipt = backups.restore(file, target, settings=Settings.from_environment())
    told = {**_backup_told(receipt), "to": str(target)}
    show(told, _backup_picture(receipt, f"Restored to {target}."), as_json=common.json)


def status_table(status: Status) -> RenderableType:
    """Collections in numbers."""
    table = plain_table(
        "collection",
        "sources",
        "documents",
        "chunks",
        "vectors",
        "pending",
        "errors",
        "lag",
        "segments",
        "space",
    )
    for each in status.collections:
        numbers = (
            each.sources,
            each.documents,
            each.chunks,
            each.vectors,
            each.pending,
            each.errors,
            each.lag,
        )
        table.add_row(
            cell(each.name), *map(str, numbers), str(each.index.segments), cell(each.space or "words only")
        )
    similarities = {each.space or "": each.similarity for each in status.collections if each.similarity}
    stored = (status.path, f"{status.bytes:,} bytes") if status.path else ()
    parts = [table, similarity_table(similarities)] if similarities else [table]
    return Group(Text(", ".join((*stored, f"version {status.version}"))), *parts)


def check_table(report: CheckReport) -> RenderableType:
    """Every difference that was found."""
    if report.clean:
        return Text("records and index agree")
    table = plain_table("where", "chunk", "problem", "detail")
    for problem in report.records:
        table.add_row("records", "", "damaged", cell(problem))
    for name, found in report.index.items():
        for each in found:
            table.add_row(cell(name), str(each.chunk), each.problem, cell(each.detail))
    return table


def _backup_told(receipt: "BackupReceipt") -> dict[str, Json]:
    found = receipt.manifest
    return {
        "file": receipt.file,
        "bytes": receipt.bytes,
        "unpacked": receipt.unpacked,
        "moment": found.moment,
        "program": found.program,
        "version": found.version,
        "tables": {name: plain(each) for name, each in found.tables.items()},
        "files": len(found.members),
    }


def _backup_picture(receipt: "BackupReceipt", done: str = "") -> RenderableType:
    found = receipt.manifest
    table = Table("table", "rows", "hash", box=None)
    for name, each in found.tables.items():
        table.add_row(cell(name), f"{each.rows:,}", cell(each.hash))
    held = f"{receipt.file}: {receipt.bytes:,} bytes, sound; the data as they were at {found.moment}. {done}"
    return Group(table, "", Text(printable(held.strip())))


def _build_indexes(target: str, settings: Settings, bars: Progress | None) -> list[str]:
    with sync.open(target, settings=settings) as engine:
        names = [each.name for each in engine.collections()]
        for name in names:
            engine.reindex(collection=name, progress=bars)
    return names


def _move_json(receipt: "MoveReceipt", indexed: list[str]) -> dict[str, Json]:
    moved = receipt.moved
    tables: list[Json] = [
        {
            "table": each.table,
            "rows": each.source.rows,
            "source_hash": str(each.source),
            "target_hash": str(each.target),
        }
        for each in moved.tables
    ]
    return {
        "from": receipt.source,
        "to": receipt.target,
        "moment": plain(moved.moment),
        "sequence": moved.sequence,
        "held_seconds": round(moved.held_seconds, 3),
        "rounds": moved.rounds,
        "written": moved.written,
        "resumed": moved.resumed,
        "tables": tables,
        "indexed": plain(indexed),
    }


def _move_picture(receipt: "MoveReceipt", indexed: list[str]) -> RenderableType:
    moved = receipt.moved
    table = Table("table", "rows", "hash in the source", "hash in the target", box=None)
    for each in moved.tables:
        table.add_row(cell(each.table), f"{each.source.rows:,}", str(each.source), str(each.target))
    moment = f"{moved.moment.isoformat()} (change {moved.sequence})"
    lines = [
        f"{receipt.target} is what {receipt.source} was at {moment}.",
        f"Writers waited {moved.held_seconds:.2f} s. Indexes built: {', '.join(indexed) or 'none'}.",
    ]
    return Group(table, "", *(Text(printable(line)) for line in lines))
