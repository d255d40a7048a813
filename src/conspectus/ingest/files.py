"""Files and folders into a collection: new and changed ones written, vanished ones pruned on request."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from conspectus.errors import ConspectusError, InvalidInput, UnsupportedContent
from conspectus.ingest.pipeline import BATCH_CHARACTERS, BATCH_DOCUMENTS
from conspectus.model.filter import And, Eq, Filter, In
from conspectus.model.ids import DocumentId
from conspectus.model.records import Document, NewDocument, Source, Written
from conspectus.model.reports import FileFailure, FilesReport, Page
from conspectus.ports import Files, FoundFile, Progress

Write = Callable[[Sequence[NewDocument], Source], Awaitable[Sequence[Written]]]
"""Writes documents into a source."""


class Pages(Protocol):
    """Lists the stored documents that match, page by page."""

    def __call__(self, *, where: Filter, after: str | None) -> Awaitable[Page]: ...


@dataclass(frozen=True, slots=True)
class KnownFile:
    """What is stored already: how to list it and how to delete from it."""

    pages: Pages
    delete: Callable[[Sequence[DocumentId]], Awaitable[object]]


@dataclass(slots=True)
class Root:
    """One path that the user named: the source it goes to, and what was seen below it."""

    path: Path
    source: Source
    prefix: str
    names: set[str] = field(default_factory=set)
    parsed: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)

    def lost(self, name: str) -> bool:
        """Whether a file below this folder is gone, and not only unreadable."""
        if not name.startswith(self.prefix) or name in self.names or not self.path.is_dir():
            return False
        return not any(name == each or name.startswith(f"{each}/") for each in self.failed)


@dataclass(slots=True)
class Intake:
    """One run over files, with what it has counted so far."""

    files: Files
    write: Write
    progress: Progress | None
    report: FilesReport = field(default_factory=FilesReport)
    buffer: list[NewDocument] = field(default_factory=list)
    buffered: int = 0

    async def take(self, root: Root, found: FoundFile) -> None:
        """Parse one file and buffer its documents; the run goes on after a file that fails or is skipped."""
        name = root.prefix + found.name
        root.names.add(name)
        try:
            parsed = await asyncio.to_thread(self.files.parse, found)
        except ConspectusError as fault:
            root.failed.add(name)
            if isinstance(fault, UnsupportedContent) and not found.is_named:
                self.count("skipped")
            else:
                self.fail(str(found.path), fault)
            return
        if parsed.notice is not None:
            self.report = replace(self.report, notices={**self.report.notices, name: parsed.notice})
        root.parsed.add(name)
        for document in parsed.documents:
            await self._add(root, name, document)

    def tell(self, done: int, total: int) -> None:
        """Report progress to whoever wants to know."""
        if self.progress is not None:
            self.progress("reading", done, total)

    async def flush(self, root: Root) -> None:
        """Write what is buffered as one batch."""
        waiting, self.buffer, self.buffered = self.buffer, [], 0
        try:
            await self._write(waiting, root)
        except InvalidInput:
            for document in waiting:
                try:
                    await self._write([document], root)
                except InvalidInput as fault:
                    self.fail(f"{document.metadata['path']}: {document.key}", fault)

    def fail(self, name: str, fault: ConspectusError) -> None:
        """Add what could not be taken in to the report."""
        failure = FileFailure(name=name, code=fault.code, reason=str(fault))
        self.report = replace(self.report, failures=(*self.report.failures, failure))

    def count(self, outcome: str, chunks: int = 0) -> None:
        """Add one document to the report."""
        number = getattr(self.report, outcome) + 1
        self.report = replace(self.report, chunks=self.report.chunks + chunks, **{outcome: number})

    async def _write(self, documents: Sequence[NewDocument], root: Root) -> None:
        for each in await self.write(documents, root.source) if documents else ():
            self.count(each.outcome, each.chunks)

    async def _add(self, root: Root, name: str, document: NewDocument) -> None:
        key = root.prefix + (document.key or name.removeprefix(root.prefix))
        root.keys.add(key)
        thread = None if document.thread is None else root.prefix + document.thread
        metadata = {**document.metadata, "path": name}
        self.buffer.append(replace(document, key=key, thread=thread, metadata=metadata))
        self.buffered += len(document.text)
        if len(self.buffer) >= BATCH_DOCUMENTS or self.buffered >= BATCH_CHARACTERS:
            await self.flush(root)


def placed(path: str | Path, source: str | None) -> tuple[Path, str, str]:
    """A path made absolute, the source it goes to, and the prefix of its keys there.

    Without a given source, the folder is the source; in a given one the folder's name keeps keys apart.
    """
    whole = Path(path).expanduser().absolute()
    folder = whole if whole.is_dir() else whole.parent
    if source is None:
        return whole, folder.as_posix(), ""
    return whole, source, f"{folder.name}/" if whole.is_dir() else ""


async def take_in(intake: Intake, roots: Sequence[Root], kept: KnownFile, *, prune: bool) -> FilesReport:
    """Take in every file below the roots, then delete what their files no longer hold.

    With `prune`, the documents of files that are gone are deleted too. A path that does not exist raises
    UnreadableFile before anything is written.
    """
    found = [(root, each) for root in roots for each in intake.files.discover([root.path])]
    for done, (root, each) in enumerate(found):
        intake.tell(done, len(found))
        await intake.take(root, each)
        if done + 1 == len(found) or found[done + 1][0].source != root.source:
            await intake.flush(root)
    intake.tell(len(found), len(found))
    for source in dict.fromkeys(root.source.id for root in roots):
        mine = [root for root in roots if root.source.id == source]
        gone = [each.id async for each in _gone(kept, mine, prune=prune)]
        for start in range(0, len(gone), BATCH_DOCUMENTS):
            await kept.delete(gone[start : start + BATCH_DOCUMENTS])
        for _ in gone:
            intake.count("pruned")
    return intake.report


async def _gone(kept: KnownFile, roots: Sequence[Root], *, prune: bool) -> AsyncIterator[Document]:
    """The stored documents of one source that are no longer in their files, or whose files are gone."""
    keys: dict[str, set[str]] = {}
    for root in roots:
        for name in root.parsed:
            keys.setdefault(name, set()).update(root.keys)
    whole = Eq("source", roots[0].source.id)
    names = sorted(keys)
    parts = range(0, len(names), BATCH_DOCUMENTS)
    of_files = [And((whole, In(("path",), tuple(names[at : at + BATCH_DOCUMENTS])))) for at in parts]
    for where in [whole] if prune else of_files:
        async for document in _documents(kept, where):
            path = document.metadata.get("path")
            if not isinstance(path, str):
                continue
            if path in keys:
                stale = document.key not in keys[path]
            else:
                stale = prune and any(root.lost(path) for root in roots)
            if stale:
                yield document


async def _documents(kept: KnownFile, where: Filter) -> AsyncIterator[Document]:
    cursor: str | None = None
    while True:
        page = await kept.pages(where=where, after=cursor)
        for document in page.documents:
            yield document
        cursor = page.next
        if cursor is None:
            return
