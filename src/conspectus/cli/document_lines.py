"""export and import documents: documents, messages, tasks and events as JSON Lines."""

import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from conspectus.cli.lines import read_lines, write_pages
from conspectus.cli.options import Selection
from conspectus.cli.output import note, progress
from conspectus.cli.session import NewSession, Session
from conspectus.cli.text_input import STDIO
from conspectus.errors import InvalidInput
from conspectus.text.counts import format_count


def export(
    session: Session,
    selection: Selection,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write; - is stdout.")] = STDIO,
) -> None:
    """Export documents, messages, tasks and events as JSON Lines."""
    where, target = session.build_filter(selection), sys.stdout
    pages = partial(session.engine.documents.export, collection=session.collection, filter=where)
    with progress() as bars, ExitStack() as files:
        if output != STDIO:
            target = files.enter_context(output.open("w", encoding="utf-8", newline="\n"))
        count, left_out = write_pages(pages, target, bars)
    if output != STDIO:
        summary = {"documents": count, "file": output, "left_out": left_out}
        session.show(summary, f"wrote {format_count(count, 'document')}")
    for name, number in left_out.items():
        note(f"left out: {name} ({number:,}), which have an export of their own")
    if not count:
        session.end_with_nothing("no documents")


def import_documents(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Export file; - is stdin.")],
    session: NewSession,
) -> None:
    """Import an export of documents, messages, tasks and events."""
    if file != STDIO and not file.is_file():
        raise InvalidInput("file", f"{str(file)!r} is not a file")
    with progress() as bars, ExitStack() as files:
        source = sys.stdin.buffer if file == STDIO else files.enter_context(file.open("rb"))
        written = session.engine.documents.import_lines(
            read_lines(source), collection=session.collection, progress=bars
        )
    outcomes: list[str] = [document.outcome for document in written]
    names = ("added", "replaced", "updated", "unchanged")
    counts = ", ".join(f"{outcomes.count(name):,} {name}" for name in names)
    session.note_quarantined(written)
    session.show(written, counts, matches=written)
