"""The context that services share: the open store, the current user, and their permissions."""

import asyncio
import functools
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from datetime import timedelta
from functools import cached_property, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, TypeVar, cast
from uuid import uuid4
from weakref import WeakValueDictionary

from conspectus.access.directory import Directory
from conspectus.access.keys import Keys
from conspectus.access.policy import require_scope
from conspectus.access.reader import AuthorizedReader, CollectionAccess
from conspectus.access.sessions import Sessions
from conspectus.engine.components import EngineComponents
from conspectus.engine.long_work import LongWork
from conspectus.engine.missing_vectors import MissingVectors
from conspectus.engine.purges import Purges
from conspectus.engine.source_writer import SourceWriter
from conspectus.errors import (
    NotFound,
    ProviderError,
    ProviderUnavailable,
    StorageBusy,
    WriteOutcomeUnknown,
)
from conspectus.ingest.batch_writes import Complete, embed_batch, write
from conspectus.ingest.column_rules import screen_column
from conspectus.ingest.connection_followers import Followers
from conspectus.ingest.document_fields import Preparation
from conspectus.ingest.embedding_backfill import Backfill
from conspectus.ingest.embedding_queue import EmbedQueue
from conspectus.ingest.name_reader import NameReader
from conspectus.ingest.open_indexes import OpenIndexes, When
from conspectus.model.access import LOCAL_OWNER, AccountChange, AuditEntry, Person, ReviewAction, Role
from conspectus.model.ids import LOCAL, CollectionId, UserId
from conspectus.model.index import WriteResult
from conspectus.model.records import (
    Collection,
    Document,
    EmbeddingSpace,
    Erasure,
    NewDocument,
    PreparedDocument,
    Source,
    Written,
)
from conspectus.model.validation import check_methods
from conspectus.ports import Embedder, FeedbackStore, Progress
from conspectus.ports.memories import Memories
from conspectus.ports.streams import Poster
from conspectus.ports.web import Fetcher
from conspectus.retrieval.feedback import MAX_JUDGMENTS, PastFeedback

if TYPE_CHECKING:
    from conspectus.ingest.job_worker import JobWorker
    from conspectus.memory.retention import RetentionWorker
    from conspectus.streams.alert_checker import AlertWorker

logger = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
EMBEDDING_STOPPED = "some chunks are not embedded yet; managers of the collection see the reason"


class Versions:
    """Knows whether collections contain earlier versions of documents, cached per state of a collection."""

    def __init__(self, memories: Memories) -> None:
        self._memories = memories
        self._cache: dict[str, tuple[int, bool]] = {}

    async def are_in(self, collection: Collection) -> bool:
        """Return whether a collection has earlier versions, as of its newest change."""
        cached = self._cache.get(collection.id)
        if cached is not None and cached[0] == collection.sequence:
            return cached[1]
        has_versions = await self._memories.has_versions(collection.id)
        self._cache[collection.id] = (collection.sequence, has_versions)
        return has_versions


class Feedbacks:
    """The feedback of collections, cached per state of a collection and embedding model."""

    def __init__(self, store: FeedbackStore) -> None:
        self._store = store
        self._cache: dict[str, tuple[int, PastFeedback | None]] = {}

    async def on(self, collection: Collection, space: EmbeddingSpace | None) -> PastFeedback | None:
        """Return the feedback on a collection as of its newest change; None if there is none."""
        sequence, past = self._cache.get(collection.id, (None, None))
        if sequence != collection.sequence or (past is not None and past.space != space):
            judgments = await self._store.judgments(collection.id, limit=MAX_JUDGMENTS)
            if past is None or (past.judgments, past.space) != (judgments, space):
                past = PastFeedback(judgments, collection.language, space) if judgments else None
            self._cache[collection.id] = (collection.sequence, past)
        return past


Worker: TypeAlias = "Followers | AlertWorker | RetentionWorker"


class EngineCore:
    """One open store, shared by the engines of all users."""

    def __init__(self, parts: EngineComponents) -> None:
        self.parts = parts
        self.records = parts.records
        self.keys = Keys(parts.accounts, parts.clock)
        self.sessions = Sessions(
            parts.accounts,
            parts.clock,
            lifetime=timedelta(hours=parts.settings.session_hours),
            max_idle=timedelta(minutes=parts.settings.session_idle_minutes),
        )
        self.versions = Versions(parts.memories)
        self.feedback = Feedbacks(parts.feedback)
        self.missing_vectors = MissingVectors(parts.records)
        self.open_indexes = OpenIndexes(parts.records, parts.open_index, parts.texts)
        turn, portions = parts.embedding.turn, parts.embedding.portions
        self.backfill = Backfill(parts.records, turn, portions, follow=self.open_indexes.follow)
        self.names = NameReader(parts.names.rows, parts.names.turn, parts.names.make_extractor)
        self.long_work = LongWork()
        self.summary_turns = asyncio.Semaphore(max(1, parts.settings.summary_concurrency))
        self.summary_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.chat_states: dict[tuple[UserId, str], str] = {}
        """The state of the last window of a chat session, by user and session; it contains no text."""
        self._fetcher: Fetcher | None = None
        self._workers: dict[type[Worker], Worker] = {}
        self._poster: Poster | None = None
        self.purges = Purges(parts, self.open_indexes)

    @cached_property
    def jobs(self) -> "JobWorker":
        """The job queue, run in this process or in others."""
        from conspectus.ingest.job_worker import JobWorker

        work = self.parts.work
        return JobWorker(
            work.job_store, work.files, turn=work.turn, open_jobs=work.open_jobs, clock=self.parts.clock
        )

    def ensure_running(self, kind: type[Worker], make: Callable[[], Worker]) -> None:
        """Run a background worker until the store is closed, one of each kind.

        Raises the error that ended it.
        """
        if kind not in self._workers:
            self._workers[kind] = make()
        self._workers[kind].start()

    def poster(self) -> Poster:
        """Return the client that sends webhooks, created on first use."""
        if self._poster is None:
            self._poster = self.parts.alerts.make_poster()
        return self._poster

    def fetcher(self) -> Fetcher:
        """Return the client that fetches pages, created on first use."""
        if self._fetcher is None:
            self._fetcher = self.parts.work.make_fetcher()
        return self._fetcher

    async def close(self) -> None:
        """Stop background work and close every store. Unfinished work continues when the store is next
        opened.
        """
        await self.long_work.close()
        for worker in self._workers.values():
            await worker.close()
        await self.purges.close()
        if self._poster is not None:
            await self._poster.close()
        if "jobs" in vars(self):
            await self.jobs.close(grace=self.parts.settings.job_grace_seconds)
        if self._fetcher is not None:
            await self._fetcher.close()
        await self.names.close()
        await self.backfill.close()
        await self.open_indexes.wait_until_idle()
        await self.parts.release()
        await self.open_indexes.close()
        await self.records.close()


class EngineContext:
    """The store with the permissions of one user."""

    def __init__(self, core: EngineCore, person: Person) -> None:
        self.core = core
        self.parts = core.parts
        self.person = person
        self.authorized = AuthorizedReader(person, core.records, core.parts.accounts, core.parts.clock)
        self.writer = SourceWriter(core.parts, person, self.authorized)
        is_open = core.parts.settings.user_directory == "open"
        self.directory = Directory(person, core.parts.accounts, is_open=is_open)

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

    async def collection_with_role(self, collection: str, role: Role, action: str) -> CollectionAccess:
        """Return a collection that the user may write to with at least this role.

        `action` names in errors what the role is needed for. Raises NotFound or PermissionDenied.
        """
        access = await self.authorized.collection(collection)
        require_scope(self.person, "write", "write")
        access.require(role, action)
        return access

    async def set_entity_extraction(self, collection: str, *, enabled: bool) -> Collection:
        """Enable or disable entity extraction. Raises NotFound or PermissionDenied."""
        access = await self.collection_with_role(collection, "manager", "enable or disable entity extraction")
        await self.parts.names.rows.enable(access.collection.id, enabled)
        if enabled and self.does_background_work:
            self.core.names.wake(access.collection.id)
        return (await self.authorized.collection(access.collection.id)).redacted

    def require_editor(self, access: CollectionAccess, document: Document, action: str) -> None:
        """Raise PermissionDenied for a document that the user may not change."""
        require_scope(self.person, "write", "write")
        access.require("editor", action, source=document.source)

    def change(
        self,
        action: str,
        subject: str,
        name: str = "",
        *,
        collection: CollectionId | None = None,
        detail: str = "",
    ) -> AccountChange:
        """Return a change by the user for the audit log. Only accounts have a `name`; others may be purged.

        `action` is the name of the operation, and `subject` the id of what it changes.
        """
        person = self.person
        return AccountChange(
            id=str(uuid4()),
            actor=person.id,
            actor_name=person.name,
            key=person.key,
            action=action,
            subject=subject,
            subject_name=name,
            collection=collection,
            detail=detail,
            created=self.parts.clock(),
        )

    async def note_change(
        self, action: str, subject: str, collection: CollectionId, detail: str = ""
    ) -> None:
        """Add a change of a setting to the audit log."""
        change = self.change(action, subject, collection=collection, detail=detail)
        await self.parts.accounts.add_change(change)

    async def note_review(
        self, action: ReviewAction, documents: Sequence[tuple[Document, CollectionAccess]]
    ) -> None:
        """Add an action on quarantined documents to the audit log, an entry for each collection."""
        ids_by_collection: dict[CollectionId, list[str]] = {}
        for document, access in documents:
            if document.kind == "quarantined":
                ids_by_collection.setdefault(access.collection.id, []).append(document.id)
        for collection, ids in ids_by_collection.items():
            actor, now = self.person.id, self.parts.clock()
            review = AuditEntry(str(uuid4()), actor, actor, collection, " ".join(ids), now, action)
            await self.parts.accounts.add_audit(review)

    def open_deletion(self, purge: bool, *collections: CollectionId) -> AbstractAsyncContextManager[Erasure]:
        """Return a block for deletions. With `purge`, their texts are erased from disk at its end."""
        return self.core.purges.open_deletion(*collections) if purge else nullcontext(Erasure())

    async def write(
        self,
        batch: Sequence[NewDocument],
        source: Source,
        *,
        if_match: str | None = None,
        index: When = "now",
        complete: Complete | None = None,
    ) -> Sequence[Written]:
        """Write documents. With `complete`, a few short ones get vectors and mentions, see `completion`.

        If the index is updated `after` others, the caller calls `catch_up` at the end.
        """
        preparation = self.preparation(source)
        outcome = await write(self.core.records, batch, preparation, if_match=if_match, complete=complete)
        self._note_pending_work(source, outcome)
        collection = await self.core.open_indexes.catch_up(source.collection, outcome.update, index)
        extracts_entities = collection is not None and collection.names
        if extracts_entities and not outcome.has_mentions and self.does_background_work:
            self.core.names.wake(source.collection)
        return outcome.written

    def _note_pending_work(self, source: Source, outcome: WriteResult) -> None:
        """Tell the background workers whether a write left chunks without vectors or mentions.

        `None` means that only the records can tell.
        """
        self.core.backfill.wrote(source.collection, has_work=outcome.lacks_vectors)
        self.core.names.wrote(source.collection, has_work=False if outcome.has_mentions else None)

    def completion(self, collection: Collection, embedder: Embedder | None) -> Complete:
        """Return a function that adds vectors and mentions to documents before they are written.

        It calls only models of this process. A model provider may fail: for it, texts are stored first, and
        the workers report the error.
        """
        steps: list[Complete] = []
        if embedder is not None and not isinstance(embedder, EmbedQueue):
            steps.append(partial(embed_batch, embedder))
        if collection.names and self.parts.settings.entity_extractor != "chat":
            steps.append(self.core.names.with_mentions)

        async def complete(batch: list[PreparedDocument]) -> list[PreparedDocument]:
            for step in steps:
                batch = await step(batch)
            return batch

        return complete

    async def release(self, document: NewDocument, source: Source, *, if_match: str) -> Written:
        """Write a quarantined document that a manager has reviewed."""
        preparation = replace(self.preparation(source), reviewed=True)
        outcome = await write(self.core.records, [document], preparation, if_match=if_match)
        self._note_pending_work(source, outcome)
        await self.core.open_indexes.catch_up(source.collection, outcome.update)
        return outcome.written[0]

    def screen_value(
        self, column: str, value: T, collection: CollectionId | None = None, *, field: str = ""
    ) -> T:
        """Return a value for the column `table.column`, with secrets and personal data masked.

        The rules of the collection apply, or the general ones without a collection. Raises InvalidInput for
        a value that the rules refuse.
        """
        return screen_column(
            self.parts.settings.sensitive,
            column,
            value,
            collection,
            origin=self.person.origin,
            field=field,
        )

    def preparation(self, source: Source) -> Preparation:
        """Return the settings and functions that prepare documents of a source."""
        parts = self.parts
        default = parts.settings.default_language
        language = self.core.open_indexes.language(source.collection, None if default == "none" else default)
        return Preparation(
            source,
            parts.settings,
            parts.counter("o200k_base"),
            parts.clock(),
            origin=self.person.origin,
            analyse=parts.texts.analyzer(language),
        )

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

    async def embed_in(
        self, access: CollectionAccess, *, wait: bool, progress: Progress | None = None
    ) -> None:
        """Embed pending chunks. Errors only contain what the user may read."""
        try:
            await self.embed(access.collection, wait=wait, progress=progress if access.sees_all else None)
        except ProviderError as fault:
            if access.sees_all:
                raise
            raise ProviderUnavailable(fault.provider, EMBEDDING_STOPPED) from fault

    async def embed(
        self,
        collection: Collection,
        *,
        wait: bool,
        progress: Progress | None = None,
        rest_seconds: float = 0.0,
    ) -> None:
        """Embed and extract entities, unless that failed less than `rest_seconds` ago.

        The documents are stored by then, so a busy store is an error only for callers that wait:
        WriteOutcomeUnknown, as some chunks may not be embedded.
        """
        try:
            await self._embed_stored(collection, wait=wait, progress=progress, rest_seconds=rest_seconds)
        except StorageBusy as fault:
            if wait:
                raise WriteOutcomeUnknown(f"stored, but not all of it is embedded yet: {fault}") from fault

    async def retry_failed(self, collection: Collection, *, refused: bool = False) -> None:
        """Mark failed documents to be embedded again; those whose text was refused only if asked for."""
        records = self.core.records
        if collection.space is not None and await records.has_failed(collection.id, refused=refused):
            await records.retry_failed(collection.id, refused=refused)
            self.core.backfill.wrote(collection.id, has_work=None)

    async def _embed_stored(
        self, collection: Collection, *, wait: bool, progress: Progress | None, rest_seconds: float
    ) -> None:
        if not wait and not self.does_background_work:
            return
        if collection.names:
            await self._extract_entities(collection, wait=wait, progress=progress, rest_seconds=rest_seconds)
        space = collection.space
        # None if other processes may have written: then only the records can tell.
        has_work = self.core.backfill.knows_of_work(collection.id)
        if space is None or has_work is False:
            return
        if not wait and self.core.backfill.of(collection.id).has_failed_within(rest_seconds):
            return
        if not (wait or has_work or await self.core.records.count_unembedded(collection.id, space)):
            return
        embedder = await self.embedder(collection)
        if embedder is not None and wait:
            await self.core.backfill.wait_until_done(collection, embedder, progress)
        elif embedder is not None:
            self.core.backfill.wake(collection, embedder)

    async def _extract_entities(
        self, collection: Collection, *, wait: bool, progress: Progress | None, rest_seconds: float
    ) -> None:
        names = self.core.names
        if not wait and names.of(collection.id).has_failed_within(rest_seconds):
            return
        if names.knows_of_work(collection.id) is False:
            return
        if not wait and not await self.parts.names.rows.has_unread(collection.id):
            return
        names.wake(collection.id)
        if wait:
            await names.wait_until_done(collection.id, progress)


class Service:
    """A part of the engine on one store with the permissions of one user.

    Public methods raise InvalidInput for an argument of another type than is annotated, or out of the
    annotated range, unless the class is not `checked`: then only other services call it.
    """

    def __init_subclass__(cls, *, checked: bool = True, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if checked:
            check_methods(cls, settings=attrgetter("_parts.settings"))

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._core = context.core
        self._parts = context.parts
        self._person = context.person
        self._authorized = context.authorized
        self._directory = context.directory
        self._writer = context.writer


def delegate_to(service: str, method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Return a method of the engine that calls the same method of one of its services."""
    name = method.__name__

    @functools.wraps(method)
    def call(engine: Any, *args: P.args, **named: P.kwargs) -> T:
        return cast(T, getattr(getattr(engine, service), name)(*args, **named))

    return cast(Callable[Concatenate[Any, P], T], call)
