"""add, list and delete."""

import sys
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from conspectus.cli.errors import FAILED, NOTHING, PARTIAL
from conspectus.cli.options import Common, Selection
from conspectus.cli.output import cell, note, plain_table, progress, show
from conspectus.cli.session import Session, opened
from conspectus.errors import InvalidInput
from conspectus.model.filter import EVERYTHING, And, Filter, In
from conspectus.model.records import Document, Written
from conspectus.model.reports import FilesReport

STDIN = "-"
NOTICES = 10


def add(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Files and folders. - reads text from stdin.")
    ],
    common: Common,
    *,
    source: Annotated[
        str | None, typer.Option(help="Source to add to. Default: one for each folder.")
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete documents of files that are gone or ignored.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for embeddings.")] = True,
) -> None:
    """Add files and folders; what changed is replaced."""
    files = [path for path in paths if path != STDIN]
    text = _stdin() if STDIN in paths else None
    with opened(common, new=True) as session, progress() as bars:
        engine, place = session.engine, session.collection
        report = FilesReport()
        if files:
            report = engine.add_files(
                files, source=source, collection=place, prune=prune, wait=wait, progress=bars
            )
        if text is not None:
            written = engine.add(text, source=source or "stdin", collection=place, wait=wait, progress=bars)
            report = _counted(report, written)
    for name, notice in islice(report.notices.items(), 0 if common.json else NOTICES):
        note(f"{name}: {notice}")
    if len(report.notices) > NOTICES and not common.json:
        note(f"and {len(report.notices) - NOTICES} more notices, all of them with --json")
    show(report, files_table(report), as_json=common.json)
    if report.failures:
        raise typer.Exit(PARTIAL)


def list_documents(
    common: Common,
    chosen: Selection,
    *,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Most documents to list.")] = 100,
    after: Annotated[str | None, typer.Option(help="Go on after a page: its `next`.")] = None,
) -> None:
    """List documents in order of recording."""
    with opened(common) as session:
        where = session.where(chosen)
        page = session.engine.list(collection=session.collection, where=where, after=after, limit=limit)
    show(page, documents_table(page.documents), as_json=common.json)
    if page.next and not common.json:
        note(f"there are more: --after {page.next}")


def delete(
    common: Common,
    chosen: Selection,
    *,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of documents.")] = None,
    purge: Annotated[bool, typer.Option("--purge", help="Return only when no file holds the texts.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete documents by id, by filter or by source, with everything that belongs to them."""
    with opened(common) as session:
        where = _condemned(session, ids or [], chosen)
        count = session.engine.count(collection=session.collection, where=where)
        if count and not yes and not typer.confirm(f"Delete {count} documents?", err=True):
            note("nothing was deleted")
            raise typer.Exit(FAILED)
        receipt = session.engine.delete_where(where, collection=session.collection, purge=purge)
    gone = f"deleted {receipt.documents} documents, {receipt.chunks} chunks, {receipt.vectors} vectors"
    show(receipt, gone + ("; no file holds them any more" if receipt.purged else ""), as_json=common.json)
    if not receipt.documents:
        raise typer.Exit(NOTHING)


def documents_table(documents: Iterable[Document]) -> RenderableType:
    """Documents, one a line."""
    table = plain_table("id", "kind", "title", "location", "status", "chunks", "recorded")
    for each in documents:
        table.add_row(
            cell(each.id),
            each.kind,
            cell(each.title, limit=60),
            cell(each.location, limit=60),
            each.status,
            str(each.chunks),
            f"{each.recorded:%Y-%m-%d %H:%M:%S}",
        )
    return table


def files_table(report: FilesReport) -> RenderableType:
    """What became of the files, failures by name."""
    names = ("added", "replaced", "updated", "unchanged", "pruned", "skipped", "chunks")
    lines: list[RenderableType] = [Text(", ".join(f"{getattr(report, name)} {name}" for name in names))]
    if report.failures:
        table = plain_table("failed", "reason")
        for each in report.failures:
            table.add_row(cell(each.name), cell(each.reason))
        lines.append(table)
    return Group(*lines)


def _condemned(session: Session, ids: list[str], chosen: Selection) -> Filter:
    where = session.where(chosen)
    if not ids and where == EVERYTHING:
        raise InvalidInput("delete", "say which: ids, --where or --source")
    return And((where, In("document", tuple(ids)))) if ids else where


def _stdin() -> str:
    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput("stdin", f"is not UTF-8: {error.reason} at byte {error.start}") from None
    if not text.strip():
        raise InvalidInput("stdin", "is empty")
    return text


def _counted(report: FilesReport, written: list[Written]) -> FilesReport:
    return replace(
        report, added=report.added + len(written), chunks=report.chunks + sum(one.chunks for one in written)
    )
