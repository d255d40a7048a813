"""The context that services share: the open store as one user may use it."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TypeVar
from uuid import uuid4

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.directory import Directory
from conspectus.access.policy import includes_role, require_scope, role_on
from conspectus.access.reader import AuthorizedReader
from conspectus.engine.core import EngineCore
from conspectus.engine.source_writer import SourceWriter
from conspectus.errors import NotFound, ProviderError, ProviderUnavailable, StorageBusy, WriteOutcomeUnknown
from conspectus.ingest.batch_writes import Complete, embed_batch, write
from conspectus.ingest.column_rules import screen_column
from conspectus.ingest.document_fields import Preparation
from conspectus.ingest.embedding_queue import EmbedQueue
from conspectus.ingest.open_indexes import IndexTiming
from conspectus.model.access import LOCAL_OWNER, AccountChange, AuditEntry, Person, ReviewAction, Role
from conspectus.model.ids import LOCAL, CollectionId, UserId
from conspectus.model.index import WriteResult
from conspectus.model.records import (
    Collection,
    Document,
    Erasure,
    NewDocument,
    PreparedDocument,
    Source,
    Written,
)
from conspectus.model.relations import EVERY_SOURCE
from conspectus.ports import Embedder, Progress

T = TypeVar("T")
EMBEDDING_STOPPED = "some chunks are not embedded yet; managers of the collection see the reason"


class EngineContext:
    """The store with the permissions of one user."""

    def __init__(self, core: EngineCore, person: Person) -> None:
        self.core = core
        self.parts = core.parts
        self.person = person
        self.authorized = AuthorizedReader(
            person,
            core.records,
            core.parts.accounts,
            core.parts.clock,
            core.readable_sources,
            core.remote_checks,
        )
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
        index: IndexTiming = "now",
        complete: Complete | None = None,
    ) -> Sequence[Written]:
        """Write documents. With `complete`, a few short ones get vectors and mentions, see `completion`.

        If the index is updated `after` others, the caller calls `catch_up` at the end.
        """
        preparation = self.preparation(source)
        outcome = await write(
            self.core.records,
            batch,
            preparation,
            if_match=if_match,
            complete=complete,
            list_editable=partial(self.list_editable, source.collection),
        )
        self._note_pending_work(source, outcome)
        collection = await self.core.open_indexes.catch_up(source.collection, outcome.update, index)
        extracts_entities = collection is not None and collection.names
        if extracts_entities and not outcome.has_mentions and self.does_background_work:
            self.core.names.wake(source.collection)
        return outcome.written

    async def list_editable(self, collection: CollectionId) -> tuple[str, ...]:
        """Return the ids of the sources of a collection that the user may edit; `*` if all of them."""
        access = await self.authorized.find(collection)
        if access is None:
            return ()
        if includes_role(role_on(access.roles, None), "editor"):
            return (EVERY_SOURCE,)
        sources = access.roles.sources
        return tuple(source for source in sources if includes_role(role_on(access.roles, source), "editor"))

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
        language = self.core.open_indexes.language_of(
            source.collection, None if default == "none" else default
        )
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
