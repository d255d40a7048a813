"""add, list and delete."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from conspectus.cli.errors import NOTHING, PARTIAL, confirm, note_next
from conspectus.cli.options import After, Common, PageLimit, Purge, Selection, Wait, Yes
from conspectus.cli.output import cell, note, plain_table, progress, rows_table, show
from conspectus.cli.session import Session, opened
from conspectus.errors import InvalidInput
from conspectus.model.filter import EVERYTHING, And, Filter, In
from conspectus.model.records import Document, Receipt, Written
from conspectus.model.reports import FilesReport

STDIN = "-"
NOTICES = 10


def add(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files and folders; - is stdin.")],
    common: Common,
    *,
    source: Annotated[str | None, typer.Option(help="Source to add to (default: one per folder).")] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete documents of deleted or ignored files.")
    ] = False,
    wait: Wait = True,
) -> None:
    """Add files and folders. Unchanged files are skipped."""
    files = [path for path in paths if path != STDIN]
    text = _stdin() if STDIN in paths else None
    with opened(common, new=True) as session, progress() as bars:
        engine, place = session.engine, session.collection
        report = FilesReport()
        if files:
            report = engine.documents.add_files(
                files, source=source, collection=place, prune=prune, wait=wait, progress=bars
            )
        if text is not None:
            written = engine.add(text, source=source or "stdin", collection=place, wait=wait, progress=bars)
            report = _counted(report, written)
    for name, notice in islice(report.notices.items(), 0 if common.json else NOTICES):
        note(f"{name}: {notice}")
    if len(report.notices) > NOTICES and not common.json:
        note(f"and {len(report.notices) - NOTICES} more notices; --json lists all")
    show(report, files_table(report), as_json=common.json)
    if report.failures:
        raise typer.Exit(PARTIAL)


def list_documents(common: Common, chosen: Selection, *, limit: PageLimit = 100, after: After = None) -> None:
    """List documents in the order they were added."""
    with opened(common) as session:
        where = session.where(chosen)
        page = session.engine.documents.list(
            collection=session.collection, filter=where, after=after, limit=limit
        )
    show(page, documents_table(page.documents), as_json=common.json)
    note_next(page.next, as_json=common.json)


def delete(
    common: Common,
    chosen: Selection,
    *,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of documents.")] = None,
    purge: Purge = False,
    yes: Yes = False,
) -> None:
    """Delete documents by id, filter or source."""
    with opened(common) as session:
        where = _chosen(session, ids or [], chosen)
        count = session.engine.documents.count(collection=session.collection, filter=where)
        confirm(f"Delete {count} documents?", yes=yes or not count)
        receipt = session.engine.documents.delete_by_filter(where, collection=session.collection, purge=purge)
    show(receipt, receipt_line(receipt), as_json=common.json)
    if not receipt.documents:
        raise typer.Exit(NOTHING)


def documents_table(documents: Iterable[Document]) -> RenderableType:
    """Documents, one per line."""
    rows = (
        (
            one.id, one.kind, cell(one.title, limit=60), cell(one.location, limit=60), one.status,
            str(one.chunks), f"{one.recorded:%Y-%m-%d %H:%M:%S}",
        )
        for one in documents
    )  # fmt: skip
    return rows_table(("id", "kind", "title", "location", "status", "chunks", "recorded"), rows)


def files_table(report: FilesReport) -> RenderableType:
    """Numbers of files by outcome, and failures by name."""
    names = ("added", "replaced", "updated", "unchanged", "pruned", "skipped", "chunks")
    lines: list[RenderableType] = [Text(", ".join(f"{getattr(report, name)} {name}" for name in names))]
    if report.failures:
        table = plain_table("failed", "reason")
        for each in report.failures:
            table.add_row(cell(each.name), cell(each.reason))
        lines.append(table)
    return Group(*lines)


def receipt_line(receipt: Receipt) -> str:
    """What was deleted."""
    gone = f"deleted {receipt.documents} documents, {receipt.chunks} chunks, {receipt.vectors} vectors"
    return gone + ("; erased from disk" if receipt.purged else "")


def _chosen(session: Session, ids: list[str], chosen: Selection) -> Filter:
    where = session.where(chosen)
    if not ids and where == EVERYTHING:
        raise InvalidInput("delete", "give ids, --filter or --source")
    return And((where, In("document", tuple(ids)))) if ids else where


def _stdin() -> str:
    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput("stdin", f"is not UTF-8: {error.reason} at byte {error.start}") from None
    if not text.strip():
        raise InvalidInput("stdin", "is empty")
    return text


def _counted(report: FilesReport, written: Sequence[Written]) -> FilesReport:
    return replace(
        report, added=report.added + len(written), chunks=report.chunks + sum(one.chunks for one in written)
    )
