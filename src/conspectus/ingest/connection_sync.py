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
from collections.abc import AsyncIterator, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from typing import Any, Protocol, TypeVar

from conspectus.deferred import dataclass
from conspectus.errors import (
    Conflict,
    FetchFailed,
    InvalidInput,
    NotFound,
    RequestBudgetSpent,
    UnreadableFile,
)
from conspectus.ingest.batch_writes import BATCH_CHARACTERS, BATCH_DOCUMENTS
from conspectus.model.connections import Connection, ConnectorEntry, Listing, SyncReport
from conspectus.model.ids import DocumentId
from conspectus.model.records import Document, NewDocument, Source, Written
from conspectus.ports import Progress
from conspectus.ports.connectors import Connector, Mirroring

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

    async def source(self, space: str, viewers: frozenset[str] | None) -> Source:
        """The source of the pages of a space with these viewers, made if it is new; None: not mirrored."""

    async def delete_source(self, space: str) -> int:
        """Delete the source with everything in it, if there is one; how many documents went."""

    async def find(self, keys: Sequence[str]) -> Sequence[Document]:
        """The stored pages with these keys, in any namespace."""

    async def read(self, document: Document) -> NewDocument | None:
        """The page as it is stored, to be written elsewhere; None if parts of it are not stored."""

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

    async def has_unmirrored(self) -> bool:
        """Whether pages may be stored that have no viewers."""

    async def hide_unmirrored(self) -> None:
        """Let nobody read pages that have no viewers."""

    async def put_members(
        self, members: Mapping[str, Sequence[str]], *, groups: Container[str] | None
    ) -> None:
        """Replace all members of groups at the remote; with `groups`, those not among them have none."""


async def synchronise(
    connection: Connection, connector: Connector, store: ConnectionStore, *, progress: Progress | None = None
) -> SyncReport:
    """Ingest what changed since the connection's cursor, and say what was done.

    An unreadable cursor counts as none: everything is listed, and what is stored but not listed is deleted.
    Raises FetchFailed if the store cannot be listed or seems out of reach; what was added stays. A sync whose
    budget of requests is spent is cut off, and the next one continues.
    """
    state = _SyncState.parse(connection.cursor)
    mirror = connector if isinstance(connector, Mirroring) else None
    run = _SyncRun(connection, connector, store, progress, state, mirrors=mirror is not None)
    try:
        if mirror is not None:
            if await store.has_unmirrored():
                await run.begin_mirroring()
            await run.sync_access(mirror)
        await run.sync_changes()
    except RequestBudgetSpent:
        return replace(run.report(), is_cut_off=True)
    return run.report()


@dataclass(slots=True)
class _SyncState:
    """Where the next run goes on: the cursors of pages and of permissions, and the pages that failed."""

    cursor: str | None = None
    access: str | None = None
    retry: dict[str, ConnectorEntry] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str | None) -> "_SyncState":
        """Return the state that a connection has stored; an unreadable one counts as none."""
        try:
            envelope = json.loads(text or "")
            pages = {fields["key"]: _entry_of(fields) for fields in envelope["retry"]}
            return cls(envelope["cursor"], envelope.get("access"), pages)
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls()

    def format(self) -> str:
        """Return the state as it is stored."""
        retry = [asdict(page) for page in self.retry.values()]
        return json.dumps({"cursor": self.cursor, "access": self.access, "retry": retry})


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
    state: _SyncState
    mirrors: bool
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

    async def begin_mirroring(self) -> None:
        """List everything again and hide it until its viewers are known, also if this run is killed."""
        self.state.cursor = self.state.access = None
        await self._save_state()
        await self.store.hide_unmirrored()

    async def sync_access(self, connector: Mirroring) -> None:
        """Apply what changed of permissions: members of groups at once, and viewers of stored pages.

        A page with other viewers is deleted where it is and written to the source of its viewers. Until it is
        there, its entry is stored for the next run.
        """
        groups: set[str] = set()
        async for listing in connector.access(self.state.access):
            groups |= listing.members.keys()
            await self.store.put_members(listing.members, groups=groups if listing.complete else None)
            for keys in _split_by_size(list(listing.viewers), BATCH_DOCUMENTS):
                await self._change_viewers({key: listing.viewers[key] for key in keys})
            self.state.access = listing.cursor
            await self._save_state()

    async def _change_viewers(self, viewers: Mapping[str, tuple[str, ...]]) -> None:
        """Move stored pages to the sources of their viewers. A page that failed before stays to be tried."""
        failed = {
            key: replace(page, viewers=viewers[key])
            for key, page in self.state.retry.items()
            if key in viewers
        }
        moves: dict[str, ConnectorEntry] = {}
        for document in await self.store.find(list(viewers)):
            space, revision = str(document.metadata["space"]), str(document.metadata["revision"])
            page = ConnectorEntry(
                document.key, space, revision, document.title, viewers=viewers[document.key]
            )
            moves[page.key] = page
        self.state.retry |= moves | failed
        await self._save_state()
        await self._sync_pages(moves.values())
        self.state.retry |= failed

    async def sync_changes(self) -> None:
        """Sync all changes since the cursor, then the pages that failed before.

        If pages are stored but the cursor is lost, only a complete listing tells which of them are deleted.
        Until then, no cursor is saved.
        """
        has_lost_cursor = self.state.cursor is None
        is_first, cursor = True, self.state.cursor
        async for listing in self.connector.changes(self.state.cursor):
            if is_first:
                await self.store.show_again()
                has_lost_cursor = has_lost_cursor and bool(await self.store.spaces())
                is_first = False
            await self._apply_listing(listing)
            if listing.complete:
                await self._delete_unlisted()
            if listing.complete or not has_lost_cursor:
                self.state.cursor = listing.cursor
                await self._save_state()
            cursor = listing.cursor
        await self._sync_pages([page for key, page in self.state.retry.items() if key not in self.listed])
        self.state.cursor = cursor
        await self._save_state()

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
            by_source: dict[tuple[str, frozenset[str] | None], list[ConnectorEntry]] = {}
            for page in ready:
                by_source.setdefault((page.space, self._viewers_of(page)), []).append(page)
            for (space, viewers), pages in by_source.items():
                source = await self.store.source(space, viewers)
                for batch in _split_by_size(pages, BATCH_DOCUMENTS):
                    await self._sync_batch(source, batch)

    def _viewers_of(self, page: ConnectorEntry) -> frozenset[str] | None:
        """Return the viewers of a page; None where the connector mirrors no permissions."""
        return frozenset(page.viewers or ()) if self.mirrors else None

    async def _sync_batch(self, source: Source, entries: Sequence[ConnectorEntry]) -> None:
        stored = await _StoredPages.of(self.store, source, entries)
        changed = [page for page in entries if not stored.has(page)]
        await self._mark_stored(stored, [page for page in entries if stored.has(page)], "unchanged")
        batch: list[tuple[ConnectorEntry, NewDocument]] = []
        size = 0
        for entry in changed:
            page = await self._move(entry, stored) if self.mirrors else None
            if page is None:
                page = await self._fetch(entry)
            if page is None:
                continue
            batch.append((entry, self._document(entry, page, stored)))
            size += len(page.text)
            if size >= BATCH_CHARACTERS:
                await self._write(stored, batch)
                batch, size = [], 0
        await self._write(stored, batch)

    async def _move(self, entry: ConnectorEntry, stored: _StoredPages) -> NewDocument | None:
        """Delete a page where its former viewers read it, and return it if its text is the listed one."""
        documents = stored.elsewhere.pop(entry.key, [])
        page: NewDocument | None = None
        for document in documents:
            if document.metadata.get("revision") == entry.revision and page is None:
                page = await self.store.read(document)
        await self._delete([document.id for document in documents], is_move=True)
        return page

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
        moved_parent = page.parent if self.mirrors else None
        return replace(
            page,
            key=entry.key,
            title=page.title or entry.title,
            parent=moved_parent if parent is None else parent.id,
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
            self.state.retry.pop(entry.key, None)
        if self.progress is not None and entries:
            self.progress("syncing", self.counts.total() - self.counts["deleted"], 0)

    def _note_failure(self, entry: ConnectorEntry, fault: Exception) -> None:
        if self.mirrors:  # Whoever runs the sync may not be a viewer of the page.
            self.failures.append(("a page", getattr(fault, "code", "")))
        else:
            name = f"{entry.title} ({entry.key})" if entry.title else entry.key
            self.failures.append((name, str(fault)[:MAX_MESSAGE_CHARACTERS]))
        self.state.retry[entry.key] = entry

    async def _remove(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.state.retry.pop(key, None)
        for batch in _split_by_size(keys, BATCH_DOCUMENTS):
            await self._delete([document.id for document in await self.store.find(batch)])

    async def _remove_space(self, space: str) -> None:
        self.counts["deleted"] += await self.store.delete_source(space)
        self.state.retry = {key: page for key, page in self.state.retry.items() if page.space != space}

    async def _delete(self, documents: Sequence[DocumentId], *, is_move: bool = False) -> None:
        for batch in _split_by_size(documents, BATCH_DOCUMENTS):
            await self.store.delete(batch)
            self.counts["moved" if is_move else "deleted"] += len(batch)

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
        self.state.retry = {key: page for key, page in self.state.retry.items() if key in self.listed}

    async def _save_state(self) -> None:
        await self.store.save_cursor(self.state.format())


def _entry_of(fields: Mapping[str, Any]) -> ConnectorEntry:
    entry = ConnectorEntry(**fields)
    return entry if entry.viewers is None else replace(entry, viewers=tuple(entry.viewers))


def _split_by_size(sequence: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(sequence), size):
        yield sequence[start : start + size]
