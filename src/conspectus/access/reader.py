"""Records as one person may read them. The engine reads records only through these classes.

What a person may not read raises NotFound, with the message and the reads of what does not exist.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from conspectus.access.caption_reader import AuthorizedCaptions
from conspectus.access.collection_access import CollectionAccess
from conspectus.access.policy import (
    access_of,
    among,
    bound,
    can_see,
    choose_scopes,
    includes_role,
    require_scope,
)
from conspectus.access.readable_sources import ReadableSources
from conspectus.access.remote_gate import RemoteGate
from conspectus.errors import NotFound
from conspectus.model.access import Access, Grant, Person, Scope, User
from conspectus.model.answers import AnswerAccess
from conspectus.model.connections import Connection
from conspectus.model.filter import And, Eq, Filter, Not, document_row, matches
from conspectus.model.ids import NOBODY, ChunkId, CollectionId, DocumentId, SourceId, UserId
from conspectus.model.quarantine import as_given
from conspectus.model.records import (
    Collection,
    Document,
    DocumentSort,
    Source,
    Status,
    StoredChunk,
    StoredThread,
)
from conspectus.model.relations import RelationRows
from conspectus.model.sensitive_reports import ColumnText, Reach
from conspectus.ports import Clock, Records
from conspectus.ports.accounts import Accounts
from conspectus.ports.remote_checks import RemoteChecks

QUARANTINED = Eq("kind", "quarantined")
MAX_CHECKED = 1_000
"""Maximum number of pending texts that are checked for a readable one, and of documents of a page."""
MAX_EMPTY_PAGES = 10
"""Maximum number of pages in a row without a document that its remote lets the person open."""


class AuthorizedReader:
    """Everything that one person may read."""

    def __init__(
        self,
        person: Person,
        records: Records,
        accounts: Accounts,
        clock: Clock,
        readable: ReadableSources | None = None,
        checks: RemoteChecks | None = None,
    ) -> None:
        self.person = person
        self._everything = records
        self._records = records if person.syncs else records.visible_to(person.id)
        self._accounts = accounts
        self._clock = clock
        self._readable = readable or ReadableSources(records, accounts, clock)
        self.gate = RemoteGate(person, checks)
        self.captions = AuthorizedCaptions(self._records)

    def qualify_name(self, name: str) -> str:
        """Return the full name of a collection that this person creates."""
        prefix = f"{self.person.name}/"
        return name if self.person.owner or name.startswith(prefix) else prefix + name

    async def collections(self, collection: str | None = None) -> list[CollectionAccess]:
        """Return the collections that the person may read at least in part, by name, or only that one.

        Raises NotFound for one that cannot be read.
        """
        if collection:
            return [await self.collection(collection)]
        require_scope(self.person, "read", "read")
        grants = await self._grants()
        collections = await self._records.collections()
        accesses = [
            CollectionAccess(collection, await self._roles(collection, grants)) for collection in collections
        ]
        return [access for access in accesses if can_see(access.roles)]

    async def find(self, name: str) -> CollectionAccess | None:
        """Return the collection with that id or name, the person's own first; None if none is readable.

        Names are chosen, ids are not: no collection can be named like another's id.
        """
        require_scope(self.person, "read", "read")
        grants = await self._grants()
        qualified_name = self.qualify_name(name)
        by_name = await self._records.collection(name)
        qualified = by_name if qualified_name == name else await self._records.collection(qualified_name)
        is_id = by_name is not None and by_name.id == name
        for collection in (by_name, qualified) if is_id else (qualified, by_name):
            if collection is not None and can_see(roles := await self._roles(collection, grants)):
                return CollectionAccess(collection, roles)
        return None

    async def find_with_source(self, name: str, source: str) -> tuple[CollectionAccess | None, Source | None]:
        """Return a collection as `find` does, with its source, in one read. Each write begins with this."""
        require_scope(self.person, "read", "read")
        grants = await self._grants()
        qualified_name = self.qualify_name(name)
        names = tuple(dict.fromkeys((name, qualified_name)))
        pairs = await self._records.find_with_sources(names, source)
        pairs = sorted(pairs, key=lambda pair: (pair[0].id != name, pair[0].name != qualified_name))
        for collection, sources in pairs:
            if can_see(roles := await self._roles(collection, grants)):
                access = CollectionAccess(collection, roles)
                readable = access.visible(sources)
                return access, max(readable, key=lambda candidate: candidate.id == source, default=None)
        return None, None

    async def collection(self, name: str) -> CollectionAccess:
        """Return the collection with that id or name. Raises NotFound."""
        access = await self.find(name)
        if access is None:
            raise NotFound("collection", name)
        return access

    async def answer_access(self, since: datetime) -> AnswerAccess:
        """Return what the person may read now, for answer records that were made after an instant."""
        accesses = await self.collections()
        return AnswerAccess(
            self.person.id,
            tuple(access.collection.id for access in accesses if access.sees_all),
            tuple(
                source
                for access in accesses
                if not access.sees_all
                for source in sorted(access.roles.sources)
            ),
            since,
        )

    async def has_prefix(self, prefix: str) -> bool:
        """Return whether any collection, readable or not, has a name with that prefix."""
        collections = await self._everything.collections()
        return any(collection.name.startswith(prefix) for collection in collections)

    async def choose_scopes(self, user: User) -> tuple[Scope, ...]:
        """Return the scopes of a key for all that a user may do."""
        grants = await self._accounts.grants_of(user.id)
        collections = await self._everything.collections()
        owns_collection = any(collection.owner == user.id for collection in collections)
        return choose_scopes(user, owns_collection=owns_collection, grants=grants)

    async def exists(self, collection: str) -> bool:
        """Return whether any collection, readable or not, has that id."""
        stored = await self._everything.collection(collection)
        return stored is not None and stored.id == collection

    async def sources(self, access: CollectionAccess) -> list[Source]:
        """Return the readable sources of a collection, by name."""
        return access.visible(await self._records.sources(access.collection.id))

    async def connection_sources(self, connection: Connection) -> list[SourceId]:
        """Return the ids of the sources of a connection, hidden ones included, for a sync that shows them."""
        sources = await self._everything.sources(connection.collection)
        return [source.id for source in sources if source.metadata.get("wiki") == connection.id]

    async def list_hidden_sources(self, collection: CollectionId) -> list[SourceId]:
        """Return the ids of the sources of a collection that only managers read now."""
        hidden, now = await self._accounts.list_hidden_sources(collection), self._clock()
        return [source for source, hidden_from in hidden.items() if hidden_from <= now]

    async def list_unreadable_sources(self, collection: Collection, user: UserId) -> list[SourceId]:
        """Return the mirrored sources that a user is no viewer of."""
        syncs = self.person.syncs if user == self.person.id else None
        return await self._readable.list_unreadable_by(user, collection, syncs=syncs)

    async def list_missing_viewers(
        self, collection: Collection, user: UserId
    ) -> Mapping[SourceId, tuple[str, ...]]:
        """Return the viewers, as the remote names them, of the mirrored sources that a user may not read."""
        if not collection.mirrors:
            return {}
        unreadable = await self._accounts.list_unreadable_sources(collection.id, user)
        viewers: dict[SourceId, tuple[str, ...]] = {}
        for remote in set(unreadable.values()):
            mirrored = await self._accounts.list_mirrored_sources(remote)
            viewers |= {source: tuple(sorted(names)) for source, names in mirrored.items()}
        return {source: viewers[source] for source in unreadable if source in viewers}

    async def are_mirrored(self, documents: Sequence[str]) -> bool:
        """Return whether any of these documents is in a mirrored source, or cannot be read any more."""
        pairs = await self.documents(documents)
        for document, access in pairs:
            # Nobody is a viewer, so these are all mirrored sources.
            mirrored = await self.list_unreadable_sources(access.collection, NOBODY)
            if document.source in mirrored:
                return True
        return len(pairs) < len(set(documents))

    async def source(self, access: CollectionAccess, name: str) -> Source | None:
        """Return the source with that id or name; None if none is readable."""
        sources = await self.sources_by_name(access, [name])
        return max(sources, key=lambda source: source.id == name, default=None)

    async def require_source(self, access: CollectionAccess, name: str) -> Source:
        """Return the source with that id or name. Raises NotFound."""
        source = await self.source(access, name)
        if source is None:
            raise NotFound("source", name)
        return source

    async def sources_by_name(self, access: CollectionAccess, names: Sequence[str]) -> list[Source]:
        """Return the readable sources with one of these ids or names, by name."""
        return access.visible(await self._records.sources(access.collection.id, names=names))

    async def documents(
        self, ids: Sequence[str], *, quarantined: bool = False
    ) -> list[tuple[Document, CollectionAccess]]:
        """Return the readable documents in the order of `ids`, with their collections."""
        require_scope(self.person, "read", "read")
        documents = await self._records.documents([DocumentId(name) for name in ids])
        grants = await self._grants()
        collection_ids = {document.collection for document in documents}
        collections = {
            collection.id: collection
            for collection in await self._records.collections()
            if collection.id in collection_ids
        }
        accesses = {
            name: CollectionAccess(collection, await self._roles(collection, grants))
            for name, collection in collections.items()
        }
        pairs = [
            (document, accesses[document.collection])
            for document in documents
            if document.collection in accesses
        ]
        readable = [
            (document, access)
            for document, access in pairs
            if can_see(access.roles) and access.can_see_document(document, quarantined=quarantined)
        ]
        openable = await self.gate.list_openable([document for document, _ in readable])
        return [(document, access) for document, access in readable if document.id in openable]

    async def inside(
        self, access: CollectionAccess, ids: Sequence[str], *, quarantined: bool = False
    ) -> list[Document]:
        """Return the readable documents of a collection in the order of `ids`, or quarantined ones too."""
        documents = await self._records.documents([DocumentId(name) for name in ids])
        return await self.gate.keep_openable(
            [
                document
                for document in documents
                if document.collection == access.collection.id
                and access.can_see_document(document, quarantined=quarantined)
            ]
        )

    async def has_statements(self, access: CollectionAccess) -> bool:
        """Return whether any document of a collection, readable or not, states anything about another."""
        return await self._records.has_statements(access.collection.id)

    async def read_relations(
        self, access: CollectionAccess, ids: Sequence[DocumentId] | None = None
    ) -> tuple[RelationRows, Mapping[DocumentId, Document]]:
        """Return the statements by and about documents (None: all), and the readable documents in them.

        Names and statements of other documents are left out.
        """
        rows = await self._records.read_relations(access.collection.id, ids)
        named = {id for documents in rows.named.values() for id in documents}
        for stored in rows.statements:
            named |= {stored.document, DocumentId(stored.statement.target)}
        documents = {document.id: document for document in await self.inside(access, sorted(named))}
        statements = tuple(stored for stored in rows.statements if stored.document in documents)
        readable = {
            name: tuple(id for id in ids_of_name if id in documents)
            for name, ids_of_name in rows.named.items()
        }
        return RelationRows(statements, readable), documents

    async def document(self, document: str) -> tuple[Document, CollectionAccess]:
        """Return a document with its collection. Raises NotFound."""
        pairs = await self.documents([document])
        if not pairs:
            raise NotFound("document", document)
        return pairs[0]

    async def text(self, document: Document) -> str:
        """Return the text of a document that was read before."""
        return await self._records.text(document.id)

    async def texts(self, documents: Sequence[Document]) -> Mapping[DocumentId, str]:
        """Return the texts of documents that were read before and still exist."""
        return await self._records.texts([document.id for document in documents])

    async def chunks(self, document: Document) -> Sequence[StoredChunk]:
        """Return the chunks of a document that was read before, by position."""
        return await self._records.document_chunks(document.id)

    async def passages(self, ids: Sequence[int]) -> list[StoredChunk]:
        """Return the readable chunks in the order of `ids`."""
        rows = await self._records.hydrate([ChunkId(chunk) for chunk in ids])
        pairs = await self.documents(list(dict.fromkeys(str(row.document.id) for row in rows)))
        readable = {document.id for document, _ in pairs}
        return [row for row in rows if row.document.id in readable]

    async def editable(self, chunks: Sequence[int], action: str) -> list[StoredChunk]:
        """Return chunks of sources that the person may edit. Raises NotFound or PermissionDenied."""
        rows = {int(row.chunk.id): row for row in await self.passages(chunks)}
        ids = dict.fromkeys(str(row.document.id) for row in rows.values())
        accesses = {document.id: access for document, access in await self.documents(list(ids))}
        for chunk in chunks:
            access = accesses.get(rows[chunk].document.id) if chunk in rows else None
            if access is None:
                raise NotFound("chunk", str(chunk))
            access.require("editor", action, source=rows[chunk].document.source)
        return [rows[chunk] for chunk in chunks]

    async def thread(self, document: Document, *, limit: int) -> tuple[list[StoredChunk], int]:
        """Return the first chunks of the messages in a document's thread, and their total number.

        Of more than `limit`, it returns both ends and the messages around the document.
        """
        if document.thread is None:
            return list(await self.chunks(document))[:1], 1
        thread = await self.read_thread_of(document, (document.id,), limit)
        return list(thread.chunks), thread.total

    async def read_thread_of(
        self, document: Document, around: Sequence[DocumentId], limit: int
    ) -> StoredThread:
        """Return the thread of a document that was read before.

        A thread is in one source, so all of it is readable, except what its remote does not let open now.
        """
        if document.thread is None:
            return StoredThread()
        thread = await self._records.thread(document.source, document.thread, limit=limit, around=around)
        rows = await self.gate.keep_openable_rows(thread.chunks)
        if len(rows) == len(thread.chunks):
            return thread
        return replace(thread, chunks=tuple(rows), total=thread.total - len(thread.chunks) + len(rows))

    async def read_thread(
        self, access: CollectionAccess, channels: frozenset[SourceId], thread: str, *, limit: int
    ) -> list[StoredChunk]:
        """Return the first chunks of the messages in a thread of readable channels.

        Of more than `limit`, it returns both ends.
        """
        readable = [source for source in await self.sources(access) if source.id in channels]
        threads = [await self._records.thread(source.id, thread, limit=limit) for source in readable]
        return await self.gate.keep_openable_rows([row for stored in threads for row in stored.chunks])

    async def beginnings(self, ids: Sequence[str]) -> list[StoredChunk]:
        """Return the first chunk of each readable document that has text, in the order of `ids`."""
        readable = [document.id for document, _ in await self.documents(ids)]
        return list(await self._records.beginnings(readable)) if readable else []

    async def latest(
        self,
        access: CollectionAccess,
        source: Source,
        *,
        limit: int,
        until: datetime | None = None,
        before: str | None = None,
    ) -> list[StoredChunk]:
        """Return the first chunks of the newest documents of a readable source, newest first."""
        access.require_visible(source)
        end = None if before is None else (await self.document(before))[0]
        if end is not None and end.source != source.id:
            raise NotFound("document", end.id)
        rows = await self._records.latest(source.id, limit=limit, until=until, before=end)
        return await self.gate.keep_openable_rows(rows)

    async def newest_change(self, access: CollectionAccess) -> int:
        """Return the number of the newest change of a collection, from which reading can continue."""
        return await self._records.reader(access.collection.id, None).last_sequence()

    async def list_written_since(
        self, access: CollectionAccess, source: Source, sequence: int, *, limit: int
    ) -> tuple[int, list[tuple[int, Document]]]:
        """Return the documents of a source that were written after a change, each with its cursor.

        The first value is the cursor after all of them. Documents of one change have the same cursor, so an
        interrupted reader repeats the whole change.
        """
        access.require_visible(source)
        reader = self._records.reader(access.collection.id, None)
        documents: list[tuple[int, Document]] = []
        for change in await reader.changes_since(sequence, limit=limit):
            if change.operation == "put" and change.first <= change.last:
                rows = await reader.chunks(change.first, change.last)
                by_id = {row.document.id: row.document for row in rows if row.document.source == source.id}
                documents += [(sequence, document) for document in by_id.values()]
            sequence = change.sequence
            if documents and documents[-1][0] < sequence:
                documents[-1] = (sequence, documents[-1][1])
        openable = await self.gate.list_openable([document for _, document in documents])
        return sequence, [pair for pair in documents if pair[1].id in openable]

    def rows(
        self, access: CollectionAccess
    ) -> Callable[[Sequence[ChunkId]], Awaitable[Sequence[StoredChunk]]]:
        """Return a function that reads the readable ones of the chunks that an index found.

        No remote is asked for them.
        """

        async def read(ids: Sequence[ChunkId]) -> Sequence[StoredChunk]:
            rows = await self._records.hydrate(ids)
            rows = [row for row in rows if row.document.collection == access.collection.id]
            return rows if access.sees_all else [row for row in rows if access.can_see_document(row.document)]

        return read

    async def list(
        self,
        access: CollectionAccess,
        where: Filter,
        *,
        after: str | None,
        limit: int,
        status: Status | None = None,
        sort: DocumentSort = "added",
    ) -> tuple[Sequence[Document], str | None]:
        """Return a page of readable documents that match, and the cursor of the next page."""
        allowed = And((Not(QUARANTINED), access.restrict_filter(where)))
        if access.roles.verified:
            limit = min(limit, self.gate.max_documents)
        documents: list[Document] = []
        for _ in range(MAX_EMPTY_PAGES):
            page, after = await self._records.list(
                access.collection.id, allowed, after=after, limit=limit, status=status, sort=sort
            )
            documents = await self.gate.keep_openable(page)
            if documents or after is None:
                break
        return documents, after

    async def list_by_key(
        self, access: CollectionAccess, source: Source, *, start: str = "", end: str | None = None, limit: int
    ) -> Sequence[Document]:
        """Return the first documents of a readable source with start ≤ key < end, by key.

        No remote is asked for them.
        """
        access.require_visible(source)
        documents = await self._records.list_by_key(source.id, start=start, end=end, limit=limit)
        return [document for document in documents if document.kind != "quarantined"]

    async def list_quarantined(
        self, access: CollectionAccess, *, after: str | None, limit: int
    ) -> tuple[Sequence[Document], str | None]:
        """Return a page of the quarantined documents that the person may read, if they were released."""
        allowed = access.restrict_filter(QUARANTINED)
        page, after = await self._records.list(access.collection.id, allowed, after=after, limit=limit)
        return await self.gate.keep_openable(page), after

    async def column_texts(self, access: CollectionAccess) -> AsyncIterator[Sequence[ColumnText]]:
        """Yield pages of the texts that people wrote, except in documents, by table.

        They are those of readable sources, for managers also those of the collection, and for the owner
        account also names of accounts and labels of keys.
        """
        within = None if access.sees_all else [source.id for source in await self.sources(access)]
        reaches: list[Reach] = ["source"]
        if includes_role(access.roles.collection, "manager"):
            reaches.append("collection")
        if self.person.owner:
            reaches.append("store")
        for reach in reaches:
            after: str | None = None
            while True:
                texts, after = await self._everything.column_texts(
                    access.collection.id, reach=reach, sources=within, after=after, limit=MAX_CHECKED
                )
                yield texts
                if after is None:
                    break

    async def iterate_matching(
        self, access: CollectionAccess, where: Filter
    ) -> AsyncIterator[Sequence[Document]]:
        """Yield pages of the documents that match, quarantined ones by what was given, for deletions."""
        async for page in self._pages(access, And((Not(QUARANTINED), where))):
            yield page
        async for page in self.read_quarantined(access, where):
            yield page

    async def read_quarantined(
        self, access: CollectionAccess, where: Filter
    ) -> AsyncIterator[Sequence[Document]]:
        """Yield pages of the quarantined documents of which what was given matches."""
        named = bound(where)
        within = QUARANTINED if named is None else And((QUARANTINED, among(named)))
        async for page in self._pages(access, within):
            yield [document for document in page if matches(where, document_row(as_given(document)))]

    async def _pages(self, access: CollectionAccess, where: Filter) -> AsyncIterator[Sequence[Document]]:
        after: str | None = None
        while True:
            page, after = await self._records.list(
                access.collection.id, access.restrict_filter(where), after=after, limit=MAX_CHECKED
            )
            yield page
            if after is None:
                return

    async def count(self, access: CollectionAccess, where: Filter, *, status: Status | None = None) -> int:
        """Return the number of readable documents that match.

        If remotes are asked for more of them than a page has, they count as at the last sync.
        """
        allowed = And((Not(QUARANTINED), access.restrict_filter(where)))
        if not access.roles.verified:
            return await self._records.count(access.collection.id, allowed, status=status)
        checked = And((Not(access.restrict_to_unverified()), allowed))
        maximum = self.gate.max_documents
        page, after = await self._records.list(access.collection.id, checked, limit=maximum, status=status)
        if after is not None:
            return await self._records.count(access.collection.id, allowed, status=status)
        unchecked = And((access.restrict_to_unverified(), allowed))
        count = await self._records.count(access.collection.id, unchecked, status=status)
        return count + len(await self.gate.keep_openable(page))

    async def _grants(self) -> Sequence[Grant]:
        """Read grants for each request, so that a revoked one ends with the next request."""
        return () if self.person.owner else await self._accounts.grants_of(self.person.id)

    async def _roles(self, collection: Collection, grants: Sequence[Grant]) -> Access:
        roles = access_of(self.person, collection, grants)
        if not can_see(roles):
            return roles
        access = await self._readable.restrict(self.person, collection, roles)
        self.gate.note_access(collection.id, access)
        return access
