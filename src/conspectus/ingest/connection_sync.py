"""One run that syncs a collection with a wiki or another store of documents.

Each space is a source, each page a document of it. Pages that are stored with the listed revision are not
fetched. All others are fetched and written, and only changed text is embedded. The cursor is kept when all of
its batch is written, and every step may be repeated, so a run that is killed anywhere is simply run again. A
page that fails keeps its old text, is named in the report and is tried again by the next run: its entry is
stored with the connector's cursor. A page that the remote refuses is deleted, and tried again likewise.

A document's id is made from its source and key. So a page that moves inside its space keeps its id; one that
moves to another space is added there and then deleted here, in the same run.
"""

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import asdict, field, replace
from typing import Protocol, TypeVar

from conspectus.deferred import dataclass
from conspectus.errors import Conflict, FetchFailed, InvalidInput, NotFound, UnreadableFile
from conspectus.ingest.batch_writes import BATCH_CHARACTERS, BATCH_DOCUMENTS
from conspectus.model.connections import Connection, ConnectorEntry, Listing, SyncReport
from conspectus.model.ids import DocumentId
from conspectus.model.records import Document, NewDocument, Source, Written
from conspectus.ports import Progress
from conspectus.ports.connectors import Connector

T = TypeVar("T")

PAGE_FAULTS = (InvalidInput, UnreadableFile, FetchFailed, Conflict)
"""Errors of one page that must not stop the others."""
MAX_MESSAGE_CHARACTERS = 500
NOT_A_PAGE = "a connection reads Markdown only; add the file itself"
MAX_NAMED_SKIPS = 100
MAX_FAULTS_IN_A_ROW = 10
"""After so many temporary failures or refusals in a row, they are taken to concern all pages."""


class ConnectionStore(Protocol):
    """The part of the store that a run needs: all pages of one connection, and nothing else."""

    async def spaces(self) -> Sequence[str]:
        """The spaces that have a source."""

    async def source(self, space: str) -> Source:
        """The source of a space, made if it is new."""

    async def delete_source(self, space: str) -> int:
        """Delete the source with everything in it, if there is one; how many documents went."""

    async def find(self, keys: Sequence[str]) -> Sequence[Document]:
        """The stored pages with these keys, in any namespace."""

    def iterate_stored_pages(self) -> AsyncIterator[Document]:
        """Every stored page."""

    async def write(self, source: Source, documents: Sequence[NewDocument]) -> Sequence[Written]:
        """Write documents into a source, all or none of them."""

    async def delete(self, documents: Sequence[DocumentId]) -> None:
        """Delete these pages. The pages below them stay: those only lose their parent."""

    async def show_again(self) -> None:
        """Show the pages that were hidden while the connection had no access."""

    async def save_cursor(self, cursor: str) -> None:
        """Store the cursor of the connection."""


async def synchronise(
    connection: Connection, connector: Connector, store: ConnectionStore, *, progress: Progress | None = None
) -> SyncReport:
    """Ingest what changed since the connection's cursor, and say what was done.

    An unreadable cursor counts as none: everything is listed, and what is stored but not listed is deleted.
    Raises FetchFailed if the store cannot be listed or seems out of reach; what was added stays.
    """
    cursor, retry = _split_cursor(connection.cursor)
    run = _SyncRun(connection, connector, store, progress, retry)
    await run.sync_changes(cursor)
    return run.report()


@dataclass(frozen=True, slots=True)
class _StoredPages:
    """The stored pages of entries and of their parents: in their source, and in others."""

    source: Source
    here: dict[str, Document]
    elsewhere: dict[str, list[Document]]

    @classmethod
    async def of(
        cls, store: ConnectionStore, source: Source, entries: Sequence[ConnectorEntry]
    ) -> "_StoredPages":
        parents = {page.parent for page in entries if page.parent is not None}
        stored = await store.find(sorted({page.key for page in entries} | parents))
        elsewhere: dict[str, list[Document]] = {}
        for document in stored:
            if document.source != source.id:
                elsewhere.setdefault(document.key, []).append(document)
        return cls(
            source, {document.key: document for document in stored if document.source == source.id}, elsewhere
        )

    def has(self, entry: ConnectorEntry) -> bool:
        """Return whether the page is stored in the listed revision."""
        stored = self.here.get(entry.key)
        return stored is not None and stored.metadata.get("revision") == entry.revision


@dataclass(slots=True)
class _SyncRun:
    connection: Connection
    connector: Connector
    store: ConnectionStore
    progress: Progress | None
    retry: dict[str, ConnectorEntry]
    listed: set[str] = field(default_factory=set)
    spaces: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, str]] = field(default_factory=list)
    not_pages: tuple[str, ...] = ()
    failures_in_a_row: int = 0

    def report(self) -> SyncReport:
        return SyncReport(
            added=self.counts["added"],
            replaced=self.counts["replaced"] + self.counts["updated"],
            unchanged=self.counts["unchanged"],
            deleted=self.counts["deleted"],
            failures=tuple(self.failures),
            skipped=len(self.not_pages),
            skipped_files=dict.fromkeys(self.not_pages[:MAX_NAMED_SKIPS], NOT_A_PAGE),
        )

    async def sync_changes(self, cursor: str | None) -> None:
        """Sync all changes since the cursor, then the pages that failed before.

        If pages are stored but the cursor is lost, only a complete listing tells which of them are deleted.
        Until then, no cursor is saved.
        """
        has_lost_cursor = cursor is None
        is_first = True
        async for listing in self.connector.changes(cursor):
            if is_first:
                await self.store.show_again()
                has_lost_cursor = has_lost_cursor and bool(await self.store.spaces())
                is_first = False
            await self._apply_listing(listing)
            cursor = listing.cursor
            if listing.complete:
                await self._delete_unlisted()
            if listing.complete or not has_lost_cursor:
                await self._save_cursor(cursor)
        await self._sync_pages([page for key, page in self.retry.items() if key not in self.listed])
        await self._save_cursor(cursor)

    async def _apply_listing(self, listing: Listing) -> None:
        """Sync the pages of a listing. A page that is both listed and deleted exists."""
        keys = {page.key for page in listing.entries}
        spaces = {page.space for page in listing.entries}
        gone, spaces_gone = set(listing.gone) - keys, set(listing.spaces_gone) - spaces
        self.listed |= keys
        self.listed -= gone
        self.spaces |= spaces
        self.spaces -= spaces_gone
        self.not_pages += listing.not_pages
        await self._sync_pages(listing.entries)
        await self._remove(sorted(gone))
        for space in sorted(spaces_gone):
            await self._remove_space(space)

    async def _sync_pages(self, entries: Iterable[ConnectorEntry]) -> None:
        """Sync pages space by space, parents before children. Pages of a circle lose their parents."""
        rooted = (replace(page, parent=None) if page.parent == page.key else page for page in entries)
        waiting = {page.key: page for page in rooted}
        while waiting:
            ready = [page for page in waiting.values() if page.parent not in waiting]
            if not ready:
                ready = [replace(page, parent=None) for page in waiting.values()]
            for page in ready:
                del waiting[page.key]
            for space in dict.fromkeys(page.space for page in ready):
                source = await self.store.source(space)
                for batch in _split_by_size([page for page in ready if page.space == space], BATCH_DOCUMENTS):
                    await self._sync_batch(source, batch)

    async def _sync_batch(self, source: Source, entries: Sequence[ConnectorEntry]) -> None:
        stored = await _StoredPages.of(self.store, source, entries)
        changed = [page for page in entries if not stored.has(page)]
        await self._mark_stored(stored, [page for page in entries if stored.has(page)], "unchanged")
        batch: list[tuple[ConnectorEntry, NewDocument]] = []
        size = 0
        for entry in changed:
            page = await self._fetch(entry)
            if page is None:
                continue
            batch.append((entry, self._document(entry, page, stored)))
            size += len(page.text)
            if size >= BATCH_CHARACTERS:
                await self._write(stored, batch)
                batch, size = [], 0
        await self._write(stored, batch)

    async def _fetch(self, entry: ConnectorEntry) -> NewDocument | None:
        """Return the page, or None if it failed or was deleted. A deleted page is no failure."""
        try:
            page = await self.connector.fetch(entry)
        except NotFound:
            await self._remove([entry.key])
            return None
        except PAGE_FAULTS as fault:
            refused = isinstance(fault, FetchFailed) and fault.refused
            passing = isinstance(fault, FetchFailed) and fault.passing
            self.failures_in_a_row = self.failures_in_a_row + 1 if passing or refused else 0
            if self.failures_in_a_row >= MAX_FAULTS_IN_A_ROW:
                raise
            if refused:
                await self._remove([entry.key])
            self._note_failure(entry, fault)
            return None
        self.failures_in_a_row = 0
        return page

    def _document(self, entry: ConnectorEntry, page: NewDocument, stored: _StoredPages) -> NewDocument:
        sync_metadata = {"wiki": self.connection.id, "space": entry.space, "revision": entry.revision}
        parent = None if entry.parent is None else stored.here.get(entry.parent)
        return replace(
            page,
            key=entry.key,
            title=page.title or entry.title,
            parent=None if parent is None else parent.id,
            metadata={**page.metadata, **sync_metadata},
        )

    async def _write(self, stored: _StoredPages, batch: Sequence[tuple[ConnectorEntry, NewDocument]]) -> None:
        if not batch:
            return
        try:
            written = await self.store.write(stored.source, [document for _, document in batch])
        except (*PAGE_FAULTS, NotFound) as fault:
            if len(batch) == 1:
                self._note_failure(batch[0][0], fault)
                return
            for page in batch:
                await self._write(stored, [page])
            return
        for (entry, _), result in zip(batch, written, strict=True):
            await self._mark_stored(stored, [entry], result.outcome)

    async def _mark_stored(
        self, stored: _StoredPages, entries: Sequence[ConnectorEntry], outcome: str
    ) -> None:
        """Count pages that are stored as listed, and delete what they were in another space."""
        moved = [document.id for entry in entries for document in stored.elsewhere.get(entry.key, ())]
        await self._delete(moved)
        self.counts[outcome] += len(entries)
        for entry in entries:
            self.retry.pop(entry.key, None)
        if self.progress is not None and entries:
            self.progress("syncing", self.counts.total() - self.counts["deleted"], 0)

    def _note_failure(self, entry: ConnectorEntry, fault: Exception) -> None:
        name = f"{entry.title} ({entry.key})" if entry.title else entry.key
        self.failures.append((name, str(fault)[:MAX_MESSAGE_CHARACTERS]))
        self.retry[entry.key] = entry

    async def _remove(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.retry.pop(key, None)
        for batch in _split_by_size(keys, BATCH_DOCUMENTS):
            await self._delete([document.id for document in await self.store.find(batch)])

    async def _remove_space(self, space: str) -> None:
        self.counts["deleted"] += await self.store.delete_source(space)
        self.retry = {key: page for key, page in self.retry.items() if page.space != space}

    async def _delete(self, documents: Sequence[DocumentId]) -> None:
        for batch in _split_by_size(documents, BATCH_DOCUMENTS):
            await self.store.delete(batch)
            self.counts["deleted"] += len(batch)

    async def _delete_unlisted(self) -> None:
        """Delete stored pages that a complete listing does not have."""
        for space in await self.store.spaces():
            if space not in self.spaces:
                await self._remove_space(space)
        await self._delete(
            [
                document.id
                async for document in self.store.iterate_stored_pages()
                if document.key not in self.listed
            ]
        )
        self.retry = {key: page for key, page in self.retry.items() if key in self.listed}

    async def _save_cursor(self, cursor: str | None) -> None:
        retry = [asdict(page) for page in self.retry.values()]
        await self.store.save_cursor(json.dumps({"cursor": cursor, "retry": retry}))


def _split_cursor(cursor: str | None) -> tuple[str | None, dict[str, ConnectorEntry]]:
    """Return the connector's cursor, and the pages that failed before."""
    if cursor is None:
        return None, {}
    try:
        envelope = json.loads(cursor)
        return envelope["cursor"], {fields["key"]: ConnectorEntry(**fields) for fields in envelope["retry"]}
    except (ValueError, KeyError, TypeError):
        return None, {}


def _split_by_size(sequence: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(sequence), size):
        yield sequence[start : start + size]
