"""The context that services share: the open store, the current user, and their permissions."""

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeAlias, TypeVar, cast
from urllib.parse import unquote
from uuid import uuid4
from weakref import WeakValueDictionary

from conspectus.access.keys import Keys
from conspectus.access.policy import require_embedder, require_scope
from conspectus.access.reader import AuthorizedReader, SourceRef
from conspectus.engine.components import EngineComponents
from conspectus.errors import (
    Conflict,
    ConspectusError,
    InvalidInput,
    NotFound,
    ProviderError,
    ProviderUnavailable,
    StorageBusy,
    WriteOutcomeUnknown,
)
from conspectus.ingest.background_workers import Backfill, Followers, NameReader
from conspectus.ingest.embedding_queue import EmbedQueue
from conspectus.ingest.maintenance import purge
from conspectus.ingest.open_indexes import OpenIndexes, When
from conspectus.ingest.prepare import (
    Complete,
    Preparation,
    embedded,
    named,
    refuse_attacks,
    storable,
    strings_in,
    write,
)
from conspectus.model.access import LOCAL_OWNER, AuditAction, AuditEntry, Person
from conspectus.model.ids import LOCAL, CollectionId, SourceId, UserId, is_stable_id, is_uuid
from conspectus.model.index import WriteResult
from conspectus.model.query import EVERYWHERE
from conspectus.model.records import (
    SOURCE_KINDS,
    Collection,
    Document,
    EmbeddingSpace,
    Metadata,
    NewDocument,
    PreparedDocument,
    Source,
    SourceKind,
    Written,
)
from conspectus.model.validation import check_methods
from conspectus.ports import Embedder, FeedbackStore, Progress
from conspectus.ports.memories import Memories
from conspectus.ports.streams import Poster
from conspectus.ports.web import Fetcher
from conspectus.retrieval.feedback import MAX_JUDGMENTS, PastFeedback
from conspectus.text.hashing import stable_id

if TYPE_CHECKING:
    from conspectus.ingest.job_execution import JobWorker
    from conspectus.memory.retention import RetentionWorker
    from conspectus.streams.alert_checker import AlertWorker

logger = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
PURGING: Final = "purging"
STOPPED = "some chunks could not be embedded; managers of the collection see the reason"


class Versions:
    """Whether collections contain earlier versions, cached per state of a collection."""

    def __init__(self, memories: Memories) -> None:
        self._memories = memories
        self._known: dict[str, tuple[int, bool]] = {}

    async def are_in(self, collection: Collection) -> bool:
        """Return whether there are any, as of the collection's newest change."""
        known = self._known.get(collection.id)
        if known is not None and known[0] == collection.sequence:
            return known[1]
        found = await self._memories.has_versions(collection.id)
        self._known[collection.id] = (collection.sequence, found)
        return found


class Feedbacks:
    """The feedback of collections, cached per state of a collection and embedding model."""

    def __init__(self, store: FeedbackStore) -> None:
        self._store = store
        self._known: dict[str, tuple[int, PastFeedback | None]] = {}

    async def on(self, collection: Collection, space: EmbeddingSpace | None) -> PastFeedback | None:
        """Return the feedback on a collection as of its newest change; None if there is none."""
        sequence, past = self._known.get(collection.id, (None, None))
        if sequence != collection.sequence or (past is not None and past.space != space):
            found = await self._store.judgments(collection.id, limit=MAX_JUDGMENTS)
            if past is None or (past.judgments, past.space) != (found, space):
                past = PastFeedback(found, collection.language, space) if found else None
            self._known[collection.id] = (collection.sequence, past)
        return past


Worker: TypeAlias = "Followers | AlertWorker | RetentionWorker"


class EngineCore:
    """One open store, shared by the engines of all users."""

    def __init__(self, parts: EngineComponents) -> None:
        self.parts = parts
        self.records = parts.records
        self.keys = Keys(parts.accounts, parts.clock)
        self.versions = Versions(parts.memories)
        self.feedback = Feedbacks(parts.feedback)
        self.open_indexes = OpenIndexes(parts.records, parts.open_index)
        turn, portions = parts.embedding.turn, parts.embedding.portions
        self.backfill = Backfill(parts.records, turn, portions, follow=self.open_indexes.follow)
        self.names = NameReader(parts.names.rows, parts.names.turn, parts.names.make_extractor)
        self.summary_turns = asyncio.Semaphore(max(1, parts.settings.summary_concurrency))
        self.summary_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.chat_states: dict[tuple[UserId, str], str] = {}
        """The last windows of sessions of chats, by user: what a window was made of, and no text."""
        self._fetcher: Fetcher | None = None
        self._workers: dict[type[Worker], Worker] = {}
        self._poster: Poster | None = None
        self._finishing: asyncio.Task[None] | None = None

    @cached_property
    def jobs(self) -> "JobWorker":
        """The job queue, run in this process or in others."""
        from conspectus.ingest.job_execution import JobWorker

        work = self.parts.work
        return JobWorker(
            work.job_store, work.files, turn=work.turn, open_jobs=work.open_jobs, clock=self.parts.clock
        )

    def ensure_running(self, kind: type[Worker], make: Callable[[], Worker]) -> None:
        """Run background work until the store is closed. Work of a kind that is already running is not
        started.

        Raises the error that ended it.
        """
        if kind not in self._workers:
            self._workers[kind] = make()
        self._workers[kind].start()

    @asynccontextmanager
    async def purging(self, *collections: CollectionId) -> AsyncIterator[None]:
        """Erase from disk what the block deletes from the collections. After an interruption, the next purge
        does.

        Raises StorageBusy if a reader still uses it.
        """
        for each in collections:
            await self.records.begin_purge(each)
        yield
        async with self.parts.turns(PURGING):
            await self._purge()

    def finish_purges(self) -> None:
        """Finish the purges of processes that ended, in the background."""
        self._finishing = asyncio.create_task(self._finish_purges())

    async def _finish_purges(self) -> None:
        try:
            async with self.parts.turns(PURGING) as mine:
                if mine and await self.records.unfinished_purges():
                    await self._purge()
        except ConspectusError as fault:
            logger.warning("purge_recovery_failed code=%(code)s", {"code": fault.code})

    async def _purge(self) -> None:
        await purge(self.records, self.open_indexes, sweep=self.parts.indexes.sweep)

    def poster(self) -> Poster:
        """The client that sends webhooks, created on first use."""
        if self._poster is None:
            self._poster = self.parts.alerts.make_poster()
        return self._poster

    def fetcher(self) -> Fetcher:
        """The client that fetches pages, created on first use."""
        if self._fetcher is None:
            self._fetcher = self.parts.work.make_fetcher()
        return self._fetcher

    async def close(self) -> None:
        """Stop background work and close every store. Unfinished work continues when the store is next
        opened.
        """
        for each in self._workers.values():
            await each.close()
        if self._finishing is not None:
            await asyncio.wait({self._finishing})
        if self._poster is not None:
            await self._poster.close()
        if "jobs" in vars(self):
            await self.jobs.close(grace=self.parts.settings.job_grace_seconds)
        if self._fetcher is not None:
            await self._fetcher.close()
        await self.names.close()
        await self.backfill.close()
        await self.open_indexes.followed()
        await self.parts.release()
        await self.open_indexes.close()
        await self.records.close()


class EngineContext:
    """The store with the permissions of one user."""

    def __init__(self, core: EngineCore, person: Person) -> None:
        self.core = core
        self.parts = core.parts
        self.person = person
        self.authorized = AuthorizedReader(person, core.records, core.parts.accounts)
        self.writer = SourceWriter(core, person, self.authorized)

    def as_person(self, person: Person) -> "EngineContext":
        """Return the context of another user."""
        return EngineContext(self.core, person)

    async def person_of(self, owner: UserId) -> Person:
        """Return the person of an account, with the current rights. Raises NotFound."""
        if owner == LOCAL:
            return LOCAL_OWNER
        user = await self.parts.accounts.user(owner)
        if user is None or user.disabled or user.id != owner:
            raise NotFound("user", owner)
        return Person(user.name, user.owner, user.id)

    async def place(self, collection: str, needed: Any, action: str) -> SourceRef:
        """Return a collection that the user has a role in and may write to. Raises NotFound or
        PermissionDenied.
        """
        place = await self.authorized.place(collection)
        require_scope(self.person, "write", "write")
        place.require(needed, action)
        return place

    async def extract_entities(self, collection: str, on: bool = True) -> Collection:
        """Enable or disable entity extraction. Raises NotFound or PermissionDenied."""
        place = await self.place(collection, "manager", "keep the names in a collection")
        await self.parts.names.rows.enable(place.collection.id, on)
        if on and self.does_background_work:
            self.core.names.wake(place.collection.id)
        return (await self.authorized.place_of(place.collection.id)).redacted

    def may_edit(self, place: SourceRef, document: Document, action: str) -> None:
        """Raise PermissionDenied for a document that the user may not change."""
        require_scope(self.person, "write", "write")
        place.require("editor", action, source=document.source)

    async def note_review(self, action: AuditAction, found: Sequence[tuple[Document, SourceRef]]) -> None:
        """Add what happens to quarantined documents to the audit log."""
        named: dict[CollectionId, list[str]] = {}
        for each, place in found:
            if each.kind == "quarantined":
                named.setdefault(place.collection.id, []).append(each.id)
        for home, ids in named.items():
            actor, now = self.person.id, self.parts.clock()
            entry = AuditEntry(str(uuid4()), actor, actor, home, " ".join(ids), now, action)
            await self.parts.accounts.add_audit(entry)

    def purging(self, purge: bool, *collections: CollectionId) -> AbstractAsyncContextManager[None]:
        """A block that deletes. With `purge`, the text is erased from disk at its end."""
        return self.core.purging(*collections) if purge else nullcontext()

    async def write(
        self,
        batch: Sequence[NewDocument],
        source: Source,
        *,
        if_match: str | None = None,
        index: When = "now",
        complete: Complete | None = None,
    ) -> Sequence[Written]:
        """Write documents; a few short ones are made `complete`, see `completion`.

        If the index is updated `after` others, the caller calls `catch_up` at the end.
        """
        by = self.preparation(source)
        done = await write(self.core.records, batch, by, if_match=if_match, complete=complete)
        self._wrote(source, done)
        collection = await self.core.open_indexes.catch_up(source.collection, done.update, index)
        has_names = collection is not None and collection.names and not done.has_mentions
        if has_names and self.does_background_work:
            self.core.names.wake(source.collection)
        return done.written

    def _wrote(self, source: Source, done: WriteResult) -> None:
        self.core.backfill.wrote(source.collection, has_work=done.lacks_vectors)
        self.core.names.wrote(source.collection, has_work=False if done.has_mentions else None)

    def completion(self, collection: Collection, embedder: Embedder | None) -> Complete:
        """Return what gives documents their vectors and mentions, as far as models in this process make them.

        A model provider may fail: texts are stored first, and the workers report the error.
        """
        steps: list[Complete] = []
        if embedder is not None and not isinstance(embedder, EmbedQueue):
            steps.append(partial(embedded, embedder))
        if collection.names and self.parts.settings.entity_extractor != "chat":
            steps.append(self.core.names.mentioned)

        async def complete(batch: list[PreparedDocument]) -> list[PreparedDocument]:
            for step in steps:
                batch = await step(batch)
            return batch

        return complete

    async def release(self, document: NewDocument, source: Source, *, if_match: str) -> Written:
        """Write a quarantined document that a manager has reviewed."""
        by = replace(self.preparation(source), reviewed=True)
        done = await write(self.core.records, [document], by, if_match=if_match)
        self._wrote(source, done)
        await self.core.open_indexes.catch_up(source.collection, done.update)
        return done.written[0]

    def preparation(self, source: Source) -> Preparation:
        """Return the settings and functions that prepare documents of a source."""
        parts = self.parts
        count, now = parts.counter("o200k_base"), parts.clock()
        return Preparation(source, parts.settings, count, now, origin=self.person.origin)

    async def embedder(self, collection: Collection) -> Embedder | None:
        """Return the embedder of a collection, if it has one that is available here."""
        space = collection.space
        return None if space is None else await self.parts.embedder_for(space)

    @property
    def does_background_work(self) -> bool:
        """Return whether this process runs background work itself."""
        return self.parts.settings.run_background_jobs != "off"

    def begin_embedding(self, collection: Collection, embedder: Embedder | None) -> None:
        """Start embedding pending chunks in the background."""
        if embedder is not None and self.does_background_work:
            self.core.backfill.wake(collection, embedder)

    async def embed_in(self, place: SourceRef, *, wait: bool, progress: Progress | None = None) -> None:
        """Embed pending chunks. Errors only contain what the user may read."""
        try:
            await self.embed(place.collection, wait=wait, progress=progress if place.sees_all else None)
        except ProviderError as fault:
            if place.sees_all:
                raise
            raise ProviderUnavailable(fault.provider, STOPPED) from fault

    async def embed(
        self,
        collection: Collection,
        *,
        wait: bool,
        progress: Progress | None = None,
        rested: float = 0.0,
    ) -> None:
        """Embed and extract entities, unless that failed less than `rested` seconds ago.

        The documents are stored by then, so a busy store is an error only for callers that wait:
        WriteOutcomeUnknown, as some chunks may not be embedded.
        """
        try:
            await self._embed_stored(collection, wait=wait, progress=progress, rested=rested)
        except StorageBusy as fault:
            if wait:
                raise WriteOutcomeUnknown(f"stored, but not all of it is embedded yet: {fault}") from fault

    async def _embed_stored(
        self, collection: Collection, *, wait: bool, progress: Progress | None, rested: float
    ) -> None:
        if not wait and not self.does_background_work:
            return
        if collection.names:
            await self._find_names(collection, wait=wait, progress=progress)
        space, waits = collection.space, self.core.backfill.knows_of_work(collection.id)
        if space is None or waits is False:
            return
        if not wait:
            gave_up = self.core.backfill.of(collection.id).gave_up_within(rested)
            if gave_up or not (waits or await self.core.records.count_unembedded(collection.id, space)):
                return
        embedder = await self.embedder(collection)
        if embedder is not None and wait:
            await self.core.backfill.wait_until_done(collection, embedder, progress)
        elif embedder is not None:
            self.core.backfill.wake(collection, embedder)

    async def _find_names(self, collection: Collection, *, wait: bool, progress: Progress | None) -> None:
        if self.core.names.knows_of_work(collection.id) is False:
            return
        self.core.names.wake(collection.id)
        if wait:
            await self.core.names.wait_until_done(collection.id, progress)


class Service:
    """A part of the engine on one store with the permissions of one user.

    Public methods raise InvalidInput for an argument of another type than is annotated, unless the class is
    not `checked`: then only other services call it.
    """

    def __init_subclass__(cls, *, checked: bool = True, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if checked:
            check_methods(cls)

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._core = context.core
        self._parts = context.parts
        self._person = context.person
        self._authorized = context.authorized
        self._writer = context.writer


def short(service: str, method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Return the same method of a service of the engine."""
    name = method.__name__

    @functools.wraps(method)
    def call(engine: Any, *args: P.args, **named: P.kwargs) -> T:
        return cast(T, getattr(getattr(engine, service), name)(*args, **named))

    return cast(Callable[Concatenate[Any, P], T], call)


KNOWN_BY = ("wiki", "space")
"""Metadata by which a connection identifies the sources that it writes to."""

NO_ID: Final = "has the form of an id; choose another name"


class SourceWriter:
    """Creates collections and sources, and finds those that the user may write to."""

    def __init__(self, core: EngineCore, person: Person, authorized: AuthorizedReader) -> None:
        self._core = core
        self._parts = core.parts
        self._person = person
        self._authorized = authorized

    async def collection(
        self, name: str, *, words_only: bool = False, language: str | None = None
    ) -> Collection:
        """Return the collection of that name; create it with the embedder of the settings if it is new.

        Raises NotFound for an unknown name that has the form of an id, which cannot be a name.
        """
        found = await self._authorized.find(name)
        if found is not None:
            return found.redacted
        if is_uuid(name):
            raise NotFound("collection", name)
        embedder = "none" if words_only else None
        return await self.make_collection(name, embedder=embedder, language=language, description="")

    async def writable(
        self, source: str, collection: str, kind: SourceKind = "manual"
    ) -> tuple[Source, SourceRef]:
        """Return a source to write to. It is created if the user may do so."""
        found, place = await self.source(source, collection, None, kind)
        require_scope(self._person, "write", "write")
        place.require("editor", "add documents", source=found.id)
        return found, place

    async def source(
        self, name: str, collection: str, metadata: Mapping[str, Any] | None, kind: SourceKind
    ) -> tuple[Source, SourceRef]:
        """Return the source of that name with its collection. Both are created if they are new."""
        if kind not in SOURCE_KINDS:
            raise InvalidInput("kind", f"must be one of {', '.join(SOURCE_KINDS)}")
        place, found = await self._authorized.find_with_source(collection, name)
        if place is None:
            collection_id = await self.collection(collection)
            place = await self._authorized.place(collection_id.id)
            found = await self._authorized.source(place, name)
        if found is not None and metadata is None:
            return found, place
        return await self._put_source(place, found, name, metadata=metadata or {}, kind=kind), place

    async def _put_source(
        self,
        place: SourceRef,
        found: Source | None,
        name: str,
        *,
        metadata: Mapping[str, Any],
        kind: SourceKind,
    ) -> Source:
        """Create a source, or update the metadata of an existing one."""
        require_scope(self._person, "write", "write")
        stored = self.storable(metadata)
        refuse_attacks(self._person.origin, "source", unquote(name), *strings_in(stored))
        if found is not None and found.metadata == stored:
            return found
        if found is not None:
            place.require("manager", "change a source", source=found.id)
            require_same_connection(place, found, stored)
            return await self._core.records.change_source(found.id, metadata=stored)
        if is_stable_id(name):
            raise NotFound("source", name)
        place.require("manager", "make a source")
        collection_id = place.collection.id
        source_id = stable_id("source", collection_id, name)
        if await self._authorized.source(place, source_id) is not None:
            source_id = stable_id("source", collection_id, name, self._parts.clock().isoformat())
        return await self._core.records.put_source(
            Source(SourceId(source_id), collection_id, named("source", name), stored, kind)
        )

    async def make_collection(
        self, name: str, *, embedder: str | None, language: str | None, description: str
    ) -> Collection:
        """Create a collection. Raises InvalidInput, Conflict or PermissionDenied."""
        require_scope(self._person, "write", "write")
        refuse_attacks(self._person.origin, "collection", name, description)
        usual = self._parts.settings.embedder
        require_embedder(self._person, embedder or usual, usual)
        made = await self._parts.load_embedder(embedder or usual)
        chosen = self._parts.settings.default_language if language is None else language
        whole = self._authorized.qualified_name(named("collection", name))
        now, plain = self._parts.clock(), stable_id("collection", whole)
        # A collection that was renamed may have the id that follows from the name.
        taken = await self._authorized.exists(plain)
        new = Collection(
            id=CollectionId(stable_id("collection", whole, now.isoformat()) if taken else plain),
            name=await self.free_name(whole),
            space=made.space if made else None,
            language=None if chosen == "none" else chosen,
            created=now,
            owner=self._person.id,
            description=description,
        )
        return await self._core.records.create_collection(new)

    async def free_name(self, name: str, renamed: Collection | None = None) -> str:
        """Return a collection's full name, unless it is reserved. Raises InvalidInput or Conflict."""
        if name == EVERYWHERE:
            raise InvalidInput("collection", f"{name!r} is reserved for all collections")
        if is_uuid(name):
            raise InvalidInput("collection", NO_ID)
        whole = named("collection", name)
        if renamed is not None and renamed.owner != LOCAL:
            prefix = renamed.name.partition("/")[0]
            whole = whole if whole.startswith(f"{prefix}/") else f"{prefix}/{whole}"
        elif self._person.owner:
            await self._not_anothers(whole)
        return whole

    async def _not_anothers(self, name: str) -> None:
        """Check that a name of the owner account's collections is not the prefix or id of another's."""
        prefix, slash, _ = name.partition("/")
        user = await self._parts.accounts.user(prefix) if slash else None
        if user is not None and user.name == prefix and not user.owner:
            raise Conflict(
                "collection", name, "begins with the name of another account; only that account can create it"
            )
        found = await self._authorized.find(name)
        if found is not None and found.collection.id == name:
            raise Conflict("collection", name, "is the id of another collection; choose another name")

    def storable(self, metadata: Mapping[str, Any]) -> Metadata:
        """Return storable metadata. Raises InvalidInput or TooLarge."""
        return storable(metadata, self._parts.settings)


def require_same_connection(place: SourceRef, source: Source, new: Metadata | None) -> None:
    """Raise PermissionDenied if a source manager would change metadata that a connection uses."""
    changed = new is not None and any(new.get(key) != source.metadata.get(key) for key in KNOWN_BY)
    if changed:
        place.require("manager", "change metadata that a connection uses")
