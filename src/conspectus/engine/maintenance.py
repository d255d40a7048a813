"""The maintenance service."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Final

from conspectus.access.policy import includes_role, require_embedder, require_owner, require_scope
from conspectus.engine.context import EngineContext
from conspectus.engine.documents import DocumentService
from conspectus.engine.sensitive_scan import SensitiveScan
from conspectus.engine.service import Service
from conspectus.errors import InvalidInput, PermissionDenied
from conspectus.ingest.maintenance import check, collection_status, move
from conspectus.model.annotations import Example, Range
from conspectus.model.parameters import CollectionName, Name
from conspectus.model.reports import CheckReport, Status
from conspectus.model.sensitive_reports import CATEGORIES, SensitiveCategory, SensitiveReport
from conspectus.ports import Progress

RETRY_SECONDS: Final = 600.0
"""Seconds between two attempts for texts that an embedding model failed for, while others were embedded."""


class MaintenanceService(Service):
    """Status, checks, reindexing and reembedding."""

    def __init__(self, context: EngineContext, documents: DocumentService) -> None:
        super().__init__(context)
        self._documents = documents

    async def status(
        self, *, collection: Annotated[CollectionName, "Name or id of a collection; none: all."] | None = None
    ) -> Status:
        """Return sizes and counts of one collection, or of all that you manage or may read completely.

        Only the owner account gets the path and the size of the store.
        """
        accesses = await self._authorized.collections(collection)
        complete_accesses = [
            access
            for access in accesses
            if access.sees_all or includes_role(access.roles.collection, "manager")
        ]
        if collection and not complete_accesses:
            raise PermissionDenied(
                "read the status of a collection", "the role manager, or viewer on all of it"
            )
        core = self._core
        statuses = [
            await collection_status(core.records, core.open_indexes, access.collection)
            for access in complete_accesses
        ]
        if not self._person.owner:
            return Status("", self._parts.version(), 0, tuple(statuses))
        return Status(self._parts.path, self._parts.version(), await self._parts.size(), tuple(statuses))

    async def scan(
        self,
        *,
        collection: CollectionName = "default",
        categories: Annotated[Sequence[SensitiveCategory], "Categories that are searched for."] = CATEGORIES,
        limit: Annotated[int, Range(0, 1_000), "Maximum number of places in the report.", Example(10)] = 100,
    ) -> SensitiveReport:
        """Search stored texts that you may read for secrets and personal data, and count them.

        Documents, nodes, edges and sources are searched with all their fields. Managers also search
        quarantined documents and the texts of the collection itself, such as jobs, connections and feedback;
        the owner account also searches names of accounts and labels of keys. The report has the first `limit`
        places, but none of the texts. Raises MissingExtra.
        """
        access = await self._authorized.collection(collection)
        return await SensitiveScan(self._context).report(access, categories, limit)

    async def check(self) -> CheckReport:
        """Check the indexes against the records, the database itself, and settings; nothing is repaired."""
        require_owner(self._person, "check the store")
        report = await check(self._core.records, self._core.open_indexes)
        stray_indexes = await self._parts.indexes.stray()
        problems = (
            f"no collection needs the index {name}; reindex any to have it deleted" for name in stray_indexes
        )
        wrong_settings = tuple(await asyncio.to_thread(self._parts.make_files().problems))
        if self._core.sign_ins is not None:
            wrong_settings += tuple(await self._core.sign_ins.find_problems())
        if self._core.browser_sign_ins is not None:
            wrong_settings += tuple(await self._core.browser_sign_ins.find_problems())
        if self._parts.settings.ldap_url:
            wrong_settings += tuple(await (await self._core.group_directory()).find_problems())
        return replace(report, records=(*report.records, *problems), settings=wrong_settings)

    async def reindex(
        self, *, collection: CollectionName = "default", progress: Progress | None = None
    ) -> None:
        """Rebuild the index of a collection from the records; queries use the old index until then.

        Also deletes indexes that processes left when they were killed while they deleted or reembedded a
        collection, and embeds again in the background what the embedding model failed for.
        """
        access = await self._context.collection_with_role(collection, "owner", "rebuild an index")
        opened = await self._core.open_indexes.current(access.collection)
        await self._core.open_indexes.rebuild(opened, progress)
        await self._parts.indexes.sweep()
        await self._context.retry_failed(access.collection, refused=True)
        await self._context.embed(access.collection, wait=False)

    async def reembed(
        self,
        embedder: Annotated[Name, "Embedding model, as in the settings.", Example("minilm")],
        *,
        collection: CollectionName = "default",
        progress: Progress | None = None,
    ) -> int:
        """Move a collection to another embedder; return the number of new vectors.

        The old vectors answer until all new ones and their index are complete. Calling it again continues a
        run that was interrupted.
        """
        access = await self._context.collection_with_role(
            collection, "owner", "move a collection to another embedder"
        )
        require_scope(self._person, "admin", "move a collection to another embedder")
        require_embedder(self._person, embedder, self._parts.settings.embedder)
        new = await self._parts.load_embedder(embedder)
        if new is None:
            raise InvalidInput("embedder", "is required; embeddings cannot be removed from a collection")
        old, core = access.collection, self._core
        await self._context.retry_failed(old, refused=True)
        if old.space == new.space:
            return await self._documents.wait_until_embedded(collection=old.id, progress=progress)
        await self._context.note_change("reembed", old.id, old.id, new.space.model)
        vector_count = await move(core.records, core.open_indexes, old, new, progress=progress)
        await self._parts.indexes.forget(old, old.space)
        await self._context.embed((await self._authorized.collection(old.id)).redacted, wait=True)
        return vector_count

    async def resume(self, *, rest_seconds: float = 0.0) -> None:
        """Embed chunks without vectors, unless an error stopped that less than `rest_seconds` ago.

        Texts whose vectors failed because of an answer or of the service are tried again.
        """
        if not self._context.does_background_work:
            return
        accesses = await self._authorized.collections()
        if not rest_seconds or self._core.backfill.may_retry(RETRY_SECONDS):
            for access in accesses:
                await self._context.retry_failed(access.collection)
        pending = await self._core.records.list_pending_collections()
        for access in accesses:
            if access.collection.names or access.collection.id in pending:
                await self._context.embed(access.collection, wait=False, rest_seconds=rest_seconds)

    async def finish_purges(self) -> None:
        """Finish purges in the background that an earlier process did not complete."""
        if self._context.does_background_work and await self._core.records.list_unfinished_purges():
            self._core.purges.finish()
