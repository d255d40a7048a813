"""Deleting memories with their versions and facts."""

from collections.abc import AsyncIterator, Sequence

from conspectus.access.memory_reader import MemorySources
from conspectus.access.policy import includes_role
from conspectus.engine.context import EngineContext
from conspectus.engine.memory_reads import MemoryReader
from conspectus.engine.service import Service
from conspectus.memory.retention import add_receipts, selection_filter
from conspectus.memory.scopes import end_of_prefix, graph_name, scope_of
from conspectus.model.ids import DocumentId
from conspectus.model.memory import MemoryReceipt, MemorySelection
from conspectus.model.records import Document

MAX_DELETED_MEMORIES = 500
"""Number of memories deleted in one transaction."""


class MemoryDeletion(Service, checked=False):
    """Deletes memories with their versions and facts."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context)
        self._reader = MemoryReader(context)

    async def delete(
        self, memory_sources: MemorySources, selection: MemorySelection, *, dry_run: bool
    ) -> MemoryReceipt:
        """Delete the selected memories page by page; a dry run counts all of them together."""
        access, pinned = memory_sources.access, selection.pinned or bool(selection.ids)
        receipt = MemoryReceipt(0)
        selected_ids: list[DocumentId] = []
        async for page in self._iterate_selected_pages(memory_sources, selection):
            for document in page:
                self._context.require_editor(access, document, "forget memories")
            ids = [document.id for document in page]
            selected_ids += ids
            if not dry_run:
                await self._context.note_review(
                    "delete_quarantined", [(document, access) for document in page]
                )
                receipt = add_receipts(
                    receipt, await delete_selected(self._context, ids, pinned=pinned, dry_run=False)
                )
        if dry_run:
            return await delete_selected(self._context, selected_ids, pinned=pinned, dry_run=True)
        return receipt

    async def delete_empty_sources(self, memory_sources: MemorySources) -> None:
        """Delete the empty sources and graphs of a scope: their names contain that of the user.

        Granted ones stay, as do those of a user who could not create them again.
        """
        access, memories = memory_sources.access, self._context.parts.memories
        if not includes_role(access.roles.collection, "manager"):
            return
        deleted = set(await memories.delete_empty(memory_sources.ids))
        names = {
            graph_name(scope_of(source.name)) for source in memory_sources.sources if source.id in deleted
        }
        if not names:
            return
        graphs = await self._reader.stored.graphs(
            access,
            begins=min(names),
            below=end_of_prefix(max(names)),
            holds=lambda source: source.name in names,
        )
        await memories.delete_empty(graphs)

    async def _iterate_selected_pages(
        self, memory_sources: MemorySources, selection: MemorySelection
    ) -> AsyncIterator[Sequence[Document]]:
        """Yield pages of the selected memories, also of quarantined ones."""
        stored = self._reader.stored
        if selection.ids:
            ids = list(dict.fromkeys(selection.ids))
            yield await stored.documents(memory_sources, ids, quarantined=True)
            return
        where = selection_filter(selection, self._parts.clock())
        async for rows in memory_sources.pages(where, size=MAX_DELETED_MEMORIES):
            yield [document for document, _ in rows]
        async for page in stored.read_quarantined(memory_sources, where):
            yield page


async def delete_selected(
    context: EngineContext, memories: Sequence[DocumentId], *, pinned: bool, dry_run: bool
) -> MemoryReceipt:
    """Delete memories in batches, or count all of them together."""
    memory_store, now = context.parts.memories, context.parts.clock()
    if dry_run:
        return await memory_store.forget(memories, pinned=pinned, now=now, dry_run=True)
    total = MemoryReceipt(0)
    for start in range(0, len(memories), MAX_DELETED_MEMORIES):
        batch = memories[start : start + MAX_DELETED_MEMORIES]
        total = add_receipts(total, await memory_store.forget(batch, pinned=pinned, now=now))
    return total
