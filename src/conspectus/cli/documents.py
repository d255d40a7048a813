"""add, list and delete documents; ls, cat, head, find and grep their files; quarantine."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Final

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from conspectus.cli.command import Arguments, Command
from conspectus.cli.declared import argument
from conspectus.cli.errors import PARTIAL, confirm
from conspectus.cli.options import Purge, Selection, Wait, Yes
from conspectus.cli.output import cell, erasure_text, progress, rows_table, write
from conspectus.cli.session import NewSession, Session
from conspectus.cli.text_input import STDIO, read_text
from conspectus.errors import InvalidInput, NotFound, PermissionDenied, UnreadableFile
from conspectus.model.files import FilePage, FileText, GrepResult, expand_home, path_of
from conspectus.model.filter import EVERYTHING, And, in_documents
from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.quarantine import QuarantinePage
from conspectus.model.records import Receipt, Source, Written
from conspectus.model.relations import DocumentRelation
from conspectus.model.reports import DocumentPreview, FileFailure, FilesPreview, FilesReport, Page
from conspectus.operations.operation import REQUIRED
from conspectus.text.counts import format_count
from conspectus.text.document_names import name_with_key

MAX_FILES: Final = 1_000
"""Default length of lists of files."""
MAX_PREVIEWED: Final = 50
"""Maximum number of documents of a preview, and of chunks of each, in readable form."""
INDENT: Final = (0, 0, 0, 3)
MAX_SHOWN_CHARACTERS: Final = 200
"""The length of the beginning of a chunk in a preview."""
NO_SOURCE: Final = Source(SourceId(""), CollectionId(""), "")


def add(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files and folders; - is stdin.")],
    session: NewSession,
    *,
    source: Annotated[str | None, typer.Option(help="Source to add to (default: one per folder).")] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete documents of deleted or ignored files.")
    ] = False,
    wait: Wait = True,
    preview: Annotated[
        bool, typer.Option("--preview", help="Show the documents and chunks; store nothing.")
    ] = False,
) -> None:
    """Add files and folders. Unchanged files are skipped."""
    files = [path for path in paths if path != str(STDIO)]
    _require_files(files)
    if preview:
        _show_preview(session, files, source)
        return
    text = None if len(files) == len(paths) else _stdin()
    with progress() as bars:
        bars = session.follow_files(bars)
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
            chunks = report.chunks + sum(document.chunks for document in written)
            report = replace(report, added=report.added + len(written), chunks=chunks)
    session.note_quarantined(written)
    session.note_by_name(report.notices)
    session.note_by_name({name: f"skipped, {reason}" for name, reason in report.skipped_files.items()})
    if report.missing:
        missing = format_count(report.missing, "document")
        session.note(f"{missing} of files that are gone or ignored now: --prune deletes")
    session.show(report, files_table(report))
    if report.failures:
        raise typer.Exit(PARTIAL)


def _show_preview(session: Session, files: Sequence[str], source: str | None) -> None:
    """Show what the files would become; no store is opened or created."""
    from conspectus import bootstrap
    from conspectus.ingest.document_fields import Preparation
    from conspectus.ingest.file_preview import preview_files

    if not files:
        raise InvalidInput("preview", "needs a file or a folder; stdin is not previewed")
    settings = session.settings
    preparation = Preparation(NO_SOURCE, settings, bootstrap.local_counter("o200k_base"), bootstrap.now())
    preview = preview_files(bootstrap.local_files(settings), files, preparation, source=source)
    session.note_by_name(preview.notices)
    session.note_by_name({name: f"skipped, {reason}" for name, reason in preview.skipped_files.items()})
    session.show(preview, _make_preview_table(preview))
    if preview.failures:
        raise typer.Exit(PARTIAL)


def delete(
    session: Session,
    selection: Selection,
    *,
    ids: Annotated[
        list[str] | None, argument("engine.documents:DocumentService.delete", "ids", metavar="ID")
    ] = None,
    purge: Purge = False,
    yes: Yes = False,
) -> None:
    """Delete documents by id, filter or source."""
    where = session.build_filter(selection)
    if not ids and where == EVERYTHING:
        raise InvalidInput("delete", "give ids, --filter or --source")
    if ids:
        if not yes:
            _require_documents(session, ids)
        where = And((where, in_documents(ids)))
    count = session.engine.documents.count(collection=session.collection, filter=where)
    confirm(f"Delete {format_count(count, 'document')}, and quarantined ones that match?", yes=yes)
    receipt = session.engine.documents.delete_by_filter(where, collection=session.collection, purge=purge)
    session.show(receipt, receipt_line(receipt), matches=receipt.documents)


def _require_documents(session: Session, ids: Sequence[str]) -> None:
    """Raise NotFound for an id that no document of the collection has, before the question."""
    documents, collection = session.engine.documents, session.collection
    missing = [
        id
        for id in dict.fromkeys(ids)
        if not documents.count(collection=collection, filter=in_documents([id]))
    ]
    after: str | None = None
    while missing:
        try:
            page = documents.list_quarantined(collection=collection, after=after)
        except PermissionDenied:
            raise NotFound("document", missing[0]) from None
        quarantined = {document.id for document in page.documents}
        missing = [id for id in missing if id not in quarantined]
        after = page.next
        if missing and after is None:
            raise NotFound("document", missing[0])


def head(
    path: Annotated[str, argument("engine.files:FileService.read", "path")],
    session: Session,
    *,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="Number of lines.")] = 10,
) -> None:
    """Print the first lines of a file."""
    _show_text(session, session.engine.files.read(_path(session, path), last_line=lines), {})


def _filter_selection(session: Session, arguments: Arguments) -> None:
    arguments["filter"] = session.build_filter(arguments["extra"])


def _complete_path(session: Session, arguments: Arguments) -> None:
    arguments["path"] = _path(session, arguments["path"])


def _path(session: Session, path: str) -> str:
    """Return a whole path; one without a leading slash is in the collection of the command."""
    return path if path.startswith("/") else f"{path_of(session.collection)}/{path}"


def _show_matches(session: Session, matches: GrepResult, _: Arguments) -> None:
    session.note(*matches.notices)
    if session.json or matches.files:
        session.show(matches, Text(matches.text))
    if not matches.files:
        session.end_with_nothing("no line matches")


def _show_files(session: Session, page: FilePage, _: Arguments) -> None:
    if not session.json:
        for file in page.entries:
            write(file.path)
        session.note_next(page)
    else:
        session.show(page, Text())
    if not page.entries:
        session.end_with_nothing()


def _show_text(session: Session, file_text: FileText, _: Arguments) -> None:
    if session.json:
        session.show(file_text, Text())
    else:
        write(file_text.text.removesuffix("\n"))
        session.note(*[] if file_text.next is None else [f"goes on: --start {file_text.next}"])


def _make_quarantine_table(page: QuarantinePage) -> RenderableType:
    rows = (
        (
            document.id,
            document.pattern,
            document.origin,
            cell(name_with_key(document.title, document.key), limit=60),
            cell(document.text, limit=120),
        )
        for document in page.documents
    )
    return rows_table(("id", "pattern", "origin", "title", "text"), rows)


def _make_relations_table(relations: Sequence[DocumentRelation]) -> RenderableType:
    rows = (
        (
            cell(relation.name, limit=60),
            relation.kind,
            cell(relation.other_name, limit=60),
            relation.basis,
            cell(relation.reason or "", limit=60),
        )
        for relation in relations
    )
    return rows_table(("document", "relation", "other", "basis", "without effect"), rows)


def _documents_table(page: Page) -> RenderableType:
    """Return documents, one per line."""
    rows = (
        (
            one.id, one.kind, cell(one.title, limit=60), cell(one.location, limit=60), one.status,
            str(one.chunks), one.recorded,
        )
        for one in page.documents
    )  # fmt: skip
    return rows_table(("id", "kind", "title", "location", "status", "chunks", "recorded"), rows)


def files_table(report: FilesReport) -> RenderableType:
    """Return numbers of files by outcome, and failures by name."""
    names = ("added", "replaced", "updated", "unchanged", "pruned", "skipped")
    outcomes = [f"{getattr(report, name):,} {name}" for name in names]
    counts = Text(", ".join([*outcomes, format_count(report.chunks, "chunk")]))
    captions = format_count(sum(report.streams.values()), "caption")
    streams = f"{format_count(len(report.streams), 'stream')} with {captions}: conspectus streams list"
    return Group(counts, *([Text(streams)] if report.streams else []), *_failure_tables(report.failures))


def _make_preview_table(preview: FilesPreview) -> RenderableType:
    """Return a line for each document, with its chunks below, and the sums."""
    lines: list[RenderableType] = []
    for document in preview.documents[:MAX_PREVIEWED]:
        lines += [cell(name_with_key(document.title, document.key)), *_make_chunk_lines(document)]
    hidden = len(preview.documents) - MAX_PREVIEWED
    lines += [cell(f"and {format_count(hidden, 'more document')}; --json lists all")] if hidden > 0 else []
    numbers = (
        format_count(len(preview.documents), "document"),
        format_count(sum(document.chunk_count for document in preview.documents), "chunk"),
        format_count(sum(document.tokens for document in preview.documents), "token"),
        f"{len(preview.skipped_files):,} skipped",
        f"{len(preview.failures):,} failed",
    )
    sums = Text(f"{', '.join(numbers)}; nothing was stored")
    return Group(*lines, sums, *_failure_tables(preview.failures))


def _make_chunk_lines(document: DocumentPreview) -> Iterator[RenderableType]:
    """Yield the location and the beginning of each chunk."""
    if document.quarantined:
        yield Padding(cell(document.quarantined), INDENT)
    for chunk in document.chunks[:MAX_PREVIEWED]:
        page = "" if chunk.page is None else f"p. {chunk.page}"
        place = ", ".join(filter(None, (page, chunk.heading)))
        span = f"characters {chunk.start:,} to {chunk.end:,}, {format_count(chunk.tokens, 'token')}"
        yield Padding(cell(f"{span}: {place}" if place else span, style="dim"), INDENT)
        yield Padding(cell(chunk.text, limit=MAX_SHOWN_CHARACTERS), INDENT)
    hidden = len(document.chunks) - MAX_PREVIEWED
    if hidden > 0:
        yield Padding(cell(f"and {format_count(hidden, 'more chunk')}"), INDENT)


def _failure_tables(failures: Sequence[FileFailure]) -> list[RenderableType]:
    rows = ((failure.name, failure.reason) for failure in failures)
    return [rows_table(("failed", "reason"), rows)] if failures else []


def receipt_line(receipt: Receipt) -> str:
    """Return the numbers of what was deleted."""
    counts = [
        format_count(receipt.documents, "document"),
        format_count(receipt.chunks, "chunk"),
        format_count(receipt.vectors, "vector"),
    ]
    if receipt.answers:
        counts.append(format_count(receipt.answers, "answer record"))
    return f"deleted {', '.join(counts)}" + erasure_text(
        purged=receipt.purged, is_pending=receipt.erasure_pending
    )


def _require_files(paths: Sequence[str]) -> None:
    """Raise an error for a path that is no file or folder, before a store is created for it."""
    for path in paths:
        if path.startswith(("http://", "https://")):
            raise InvalidInput("paths", f"{path} is the address of a page; use: conspectus ingest {path}")
        if not expand_home(path).exists():
            raise UnreadableFile(path, "does not exist")


def _stdin() -> str:
    text = read_text(STDIO, "stdin")
    if not text.strip():
        raise InvalidInput("stdin", "is empty; pipe a text into the command")
    return text


list_documents = Command(
    "documents:DocumentService.list", "List documents.", _documents_table,
    only="status sort limit after", extra=Selection, prepare=_filter_selection, nothing="no documents",
)  # fmt: skip
list_files = Command(
    "documents:FileService.list", "List files and folders.", arguments={"path": "PATH"},
    defaults={"limit": MAX_FILES}, prepare=_complete_path, show=_show_files,
)  # fmt: skip
find_files = Command(
    "documents:FileService.find", "List the files below a path, by name or filter.",
    arguments={"path": "PATH"}, defaults={"path": REQUIRED, "limit": MAX_FILES}, prepare=_complete_path,
    show=_show_files,
)  # fmt: skip
read_file = Command(
    "documents:FileService.read", "Print a file, or some of its lines.", prepare=_complete_path,
    show=_show_text,
)  # fmt: skip
grep = Command(
    "documents:FileService.grep", "Print the lines of files that match a pattern.",
    arguments={"pattern": "PATTERN", "path": "PATH"},
    only="literal ignore_case context name filter limit max_tokens",
    options={"literal": "--literal -F", "ignore_case": "--ignore-case -i", "context": "--context -C"},
    prepare=_complete_path, show=_show_matches,
)  # fmt: skip


RELATIONS_COMMANDS: Final = {
    "list": Command(
        "documents:DocumentService.list_relations", "List how a document is related to others.",
        _make_relations_table, limit=100, nothing="no relations",
    ),
    "add": Command(
        "documents:DocumentService.relate", "Set that a document supersedes another one.",
        "{result.kind}: {result.name}, {result.other_name}",
    ),
    "delete": Command(
        "documents:DocumentService.unrelate", "Delete a relation that was set.", "deleted",
        document={"document": "document", "related": "related", "kind": "kind"},
    ),
}  # fmt: skip
QUARANTINE_COMMANDS: Final = {
    "list": Command(
        "documents:DocumentService.list_quarantined",
        "List quarantined documents, for managers of the collection.", _make_quarantine_table,
        nothing="nothing is in quarantine",
    ),
    "release": Command(
        "documents:DocumentService.release_quarantined", "Release a quarantined document after review.",
        "released {result.id}",
    ),
}  # fmt: skip
