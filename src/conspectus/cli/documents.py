"""add, list and delete, and ls, cat, head, find and grep."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import field, fields, replace
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from conspectus.cli.errors import PARTIAL, confirm
from conspectus.cli.options import After, PageLimit, Purge, Selection, Wait, Yes
from conspectus.cli.options import Filter as FilterOption
from conspectus.cli.output import cell, erasure_text, progress, rows_table, write
from conspectus.cli.session import NewSession, Session
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.files import FilePage, FileText, path_of
from conspectus.model.filter import EVERYTHING, And, In
from conspectus.model.filter_json import parse_filters
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
        engine, collection = session.engine, session.collection
        report = FilesReport()
        written: Sequence[Written] = ()
        if files:
            report = engine.documents.add_files(
                files, source=source, collection=collection, prune=prune, wait=wait, progress=bars
            )
        if text is not None:
            written = engine.add(
                text, source=source or "stdin", collection=collection, wait=wait, progress=bars
            )
            chunks = report.chunks + sum(one.chunks for one in written)
            report = replace(report, added=report.added + len(written), chunks=chunks)
    session.note_quarantined(written)
    session.note_by_name(report.notices)
    session.note_by_name({name: f"skipped, {reason}" for name, reason in report.skipped_files.items()})
    session.show(report, files_table(report))
    if report.failures:
        raise typer.Exit(PARTIAL)


def list_documents(
    session: Session,
    selection: Selection,
    *,
    status: Annotated[Status | None, typer.Option(help="pending, embedded or error.")] = None,
    limit: PageLimit = 100,
    after: After = None,
) -> None:
    """List documents in the order they were added."""
    where = session.where(selection)
    page = session.engine.documents.list(
        collection=session.collection, filter=where, status=status, after=after, limit=limit
    )
    session.show_page(page, documents_table(page.documents))


def delete(
    session: Session,
    selection: Selection,
    *,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of documents.")] = None,
    purge: Purge = False,
    yes: Yes = False,
) -> None:
    """Delete documents by id, filter or source."""
    where = session.where(selection)
    if not ids and where == EVERYTHING:
        raise InvalidInput("delete", "give ids, --filter or --source")
    where = And((where, In("document", tuple(ids)))) if ids else where
    count = session.engine.documents.count(collection=session.collection, filter=where)
    confirm(f"Delete {count} documents, and quarantined ones that match?", yes=yes)
    receipt = session.engine.documents.delete_by_filter(where, collection=session.collection, purge=purge)
    session.show(receipt, receipt_line(receipt), matches=receipt.documents)


FilePath = Annotated[
    str,
    typer.Argument(metavar="PATH", help="/COLLECTION/SOURCE/KEY; without the first slash, in --collection."),
]
MaxTokens = Annotated[int | None, typer.Option(help="Maximum number of tokens.")]
Glob = Annotated[str | None, typer.Option("--name", help="Glob of the file's name, or with / of its key.")]


@dataclass(frozen=True, slots=True)
class FilterChoice:
    """The filters of a command."""

    filter: FilterOption = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class GrepChoice:
    """What is searched for, and how much is shown."""

    literal: Annotated[bool, typer.Option("--literal", "-F", help="The pattern is a text.")] = False
    ignore_case: Annotated[bool, typer.Option("--ignore-case", "-i", help="Ignore upper and lower case.")] = (
        False
    )
    context: Annotated[int, typer.Option("--context", "-C", min=0, max=20, help="Lines around a match.")] = 0
    name: Glob = None
    filter: FilterOption = field(default_factory=list)
    limit: PageLimit = 100
    max_tokens: MaxTokens = None

    def fields(self) -> dict[str, Any]:
        """Return keyword arguments of the engine. Raises InvalidInput."""
        return {option.name: getattr(self, option.name) for option in fields(self)} | {
            "filter": parse_filters(self.filter)
        }


def list_files(
    session: Session, path: FilePath = "/", *, limit: PageLimit = 1_000, after: After = None
) -> None:
    """List files and folders."""
    _show_files(session, session.engine.files.list(_path(session, path), after=after, limit=limit))


def find_files(
    path: FilePath,
    session: Session,
    *,
    name: Glob = None,
    choice: FilterChoice,
    limit: PageLimit = 1_000,
    after: After = None,
) -> None:
    """List the files below a path, by name or filter."""
    page = session.engine.files.find(
        _path(session, path), name=name, filter=parse_filters(choice.filter), after=after, limit=limit
    )
    _show_files(session, page)


def read_file(
    path: FilePath,
    session: Session,
    *,
    first_line: Annotated[int, typer.Option(min=1, help="First line.")] = 1,
    last_line: Annotated[int | None, typer.Option(min=1, help="Last line.")] = None,
    start: Annotated[int, typer.Option(min=0, help="First character.")] = 0,
    max_tokens: MaxTokens = None,
) -> None:
    """Print a file, or some of its lines."""
    file_text = session.engine.files.read(
        _path(session, path), first_line=first_line, last_line=last_line, start=start, max_tokens=max_tokens
    )
    _show_text(session, file_text)


def head(
    path: FilePath,
    session: Session,
    *,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="Number of lines.")] = 10,
) -> None:
    """Print the first lines of a file."""
    _show_text(session, session.engine.files.read(_path(session, path), last_line=lines))


def grep(
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="Regular expression (syntax of RE2).")],
    session: Session,
    *,
    path: FilePath = "/",
    looked: GrepChoice,
) -> None:
    """Print the lines of files that match a pattern."""
    matches = session.engine.files.grep(pattern, _path(session, path), **looked.fields())
    session.note(*matches.notices)
    if session.json or matches.files:
        session.show(matches, Text(matches.text))
    if not matches.files:
        session.end_with_nothing("no line matches")


def _path(session: Session, path: str) -> str:
    """Return a whole path; one without a leading slash is in the collection of the command."""
    return path if path.startswith("/") else f"{path_of(session.collection)}/{path}"


def _show_files(session: Session, page: FilePage) -> None:
    if not session.json:
        for file in page.entries:
            write(file.path)
        session.note_next(page)
    else:
        session.show(page, Text())
    if not page.entries:
        session.end_with_nothing()


def _show_text(session: Session, file_text: FileText) -> None:
    if session.json:
        session.show(file_text, Text())
    else:
        write(file_text.text.removesuffix("\n"))
        session.note(*[] if file_text.next is None else [f"goes on: --start {file_text.next}"])


def list_quarantined(session: Session, *, limit: PageLimit = 100, after: After = None) -> None:
    """List quarantined documents, for managers of the collection."""
    page = session.engine.documents.list_quarantined(collection=session.collection, after=after, limit=limit)
    rows = (
        (one.id, one.pattern, one.origin, cell(one.title or one.key, limit=40), cell(one.text, limit=120))
        for one in page.documents
    )
    session.show_page(page, rows_table(("id", "pattern", "origin", "title", "text"), rows))


def release_quarantined(
    document: Annotated[str, typer.Argument(metavar="ID", help="Id of the document.")], session: Session
) -> None:
    """Release a quarantined document after review."""
    written = session.engine.documents.release_quarantined(document)
    session.show(written, f"released {written.id}")


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
        lines.append(
            rows_table(("failed", "reason"), ((failure.name, failure.reason) for failure in report.failures))
        )
    return Group(*lines)


def receipt_line(receipt: Receipt) -> str:
    """The deleted documents."""
    gone = f"deleted {receipt.documents} documents, {receipt.chunks} chunks, {receipt.vectors} vectors"
    return gone + erasure_text(purged=receipt.purged, is_pending=receipt.erasure_pending)


def _stdin() -> str:
    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput("stdin", f"is not UTF-8: {error.reason} at byte {error.start}") from None
    if not text.strip():
        raise InvalidInput("stdin", "is empty")
    return text
