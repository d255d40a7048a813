"""add, list and delete."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from conspectus.cli.errors import PARTIAL, confirm
from conspectus.cli.options import After, PageLimit, Purge, Selection, Wait, Yes
from conspectus.cli.output import cell, progress, rows_table
from conspectus.cli.session import NewSession, Session
from conspectus.errors import InvalidInput
from conspectus.model.filter import EVERYTHING, And, Filter, In
from conspectus.model.records import Document, Receipt, Status, Written
from conspectus.model.reports import FilesReport

STDIN = "-"


def add(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files and folders; - is stdin.")],
    session: NewSession,
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
    with progress() as bars:
        engine, place = session.engine, session.collection
        report = FilesReport()
        if files:
            report = engine.documents.add_files(
                files, source=source, collection=place, prune=prune, wait=wait, progress=bars
            )
        if text is not None:
            written = engine.add(text, source=source or "stdin", collection=place, wait=wait, progress=bars)
            report = _counted(report, written)
    session.note_first([f"{name}: {notice}" for name, notice in report.notices.items()])
    session.show(report, files_table(report))
    if report.failures:
        raise typer.Exit(PARTIAL)


def list_documents(
    session: Session,
    chosen: Selection,
    *,
    status: Annotated[Status | None, typer.Option(help="pending, embedded or error.")] = None,
    limit: PageLimit = 100,
    after: After = None,
) -> None:
    """List documents in the order they were added."""
    where = session.where(chosen)
    page = session.engine.documents.list(
        collection=session.collection, filter=where, status=status, after=after, limit=limit
    )
    session.show_page(page, documents_table(page.documents))


def delete(
    session: Session,
    chosen: Selection,
    *,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of documents.")] = None,
    purge: Purge = False,
    yes: Yes = False,
) -> None:
    """Delete documents by id, filter or source."""
    where = _chosen(session, ids or [], chosen)
    count = session.engine.documents.count(collection=session.collection, filter=where)
    confirm(f"Delete {count} documents?", yes=yes or not count)
    receipt = session.engine.documents.delete_by_filter(where, collection=session.collection, purge=purge)
    session.show(receipt, receipt_line(receipt), found=receipt.documents)


def documents_table(documents: Iterable[Document]) -> RenderableType:
    """Documents, one per line."""
    rows = (
        (
            one.id, one.kind, cell(one.title, limit=60), cell(one.location, limit=60), one.status,
            str(one.chunks), one.recorded,
        )
        for one in documents
    )  # fmt: skip
    return rows_table(("id", "kind", "title", "location", "status", "chunks", "recorded"), rows)


def files_table(report: FilesReport) -> RenderableType:
    """Numbers of files by outcome, and failures by name."""
    names = ("added", "replaced", "updated", "unchanged", "pruned", "skipped", "chunks")
    lines: list[RenderableType] = [Text(", ".join(f"{getattr(report, name)} {name}" for name in names))]
    if report.failures:
        lines.append(rows_table(("failed", "reason"), ((each.name, each.reason) for each in report.failures)))
    return Group(*lines)


def receipt_line(receipt: Receipt) -> str:
    """The deleted documents."""
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
