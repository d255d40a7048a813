"""How memories go, and what there is of them."""

from dataclasses import replace

from conspectus.access.memory_reader import MemorySources
from conspectus.access.policy import require_scope
from conspectus.engine.retention import BATCH, Keeping
from conspectus.memory.retention import added, checked_forgetting, meant
from conspectus.memory.scopes import scope_of
from conspectus.model.filter import Filter
from conspectus.model.memory import (
    MEMORY,
    ConversationSummary,
    MemoryReceipt,
    MemorySelection,
    MemoryStats,
    Scope,
)


class MemoryDeletion(Keeping):
    """Memories on their way out."""

    async def forget(
        self,
        what: MemorySelection,
        *,
        scope: Scope,
        collection: str = MEMORY,
        preview: bool = False,
        purge: bool = False,
    ) -> MemoryReceipt:
        """Delete memories of a scope with their versions and all that hangs on them, and say what went.

        Unknown ids and those of other scopes count 0. Pinned memories go only by their ids, or with
        `what.pinned`. They are out of every answer when this returns; `purge` also waits until no file holds
        them. A `preview` deletes nothing. Raises InvalidInput, NotFound for the collection, NotAllowed.
        """
        checked_forgetting(what)
        require_scope(self._person, "write", "forget memories")
        homes = await self._homes(scope, collection)
        erased = purge and not preview
        async with self._purging(erased, homes.place.collection.id):
            receipt = await self._forgotten(homes, what, preview=preview)
        return replace(receipt, purged=erased)

    async def conversations(self, *, scope: Scope, collection: str = MEMORY) -> list[ConversationSummary]:
        """The conversations of a scope that have memories, the one that was last spoken in first."""
        homes = await self._homes(scope, collection)
        found = [
            ConversationSummary(scope_of(homes.by_id[each.source].name), each.memories, each.first, each.last)
            for each in await homes.spans()
        ]
        return sorted(found, key=lambda each: -each.last.timestamp() if each.last is not None else 0.0)

    async def memory_stats(self, *, scope: Scope, collection: str = MEMORY) -> MemoryStats:
        """A scope in numbers."""
        homes = await self._homes(scope, collection)
        totals = await homes.totals()
        return MemoryStats(
            memories=totals.memories,
            notes=totals.notes,
            pinned=totals.pinned,
            facts=totals.facts,
            versions=totals.versions,
            conversations=len(await homes.spans()),
            entities=await homes.names(),
            tokens=totals.tokens,
            pending=totals.pending,
            first=totals.first,
            last=totals.last,
        )

    async def _forgotten(
        self, homes: MemorySources, what: MemorySelection, *, preview: bool
    ) -> MemoryReceipt:
        if not what.ids:
            where = meant(what, self._parts.clock())
            return await self._forget_where(homes, where, pinned=what.pinned, preview=preview)
        found = await self._memory_sight.documents(homes, list(dict.fromkeys(what.ids)))
        for each in found:
            self._may_edit(homes.place, each, "forget memories")
        return await self._let_go([each.id for each in found], pinned=True, preview=preview)

    async def _forget_where(
        self, homes: MemorySources, where: Filter, *, pinned: bool, preview: bool
    ) -> MemoryReceipt:
        """Delete what matches, page by page; a preview weighs all of it together."""
        receipt, seen = MemoryReceipt(0), []
        after: str | None = None
        while True:
            rows, after = await homes.page(where, after=after, limit=BATCH)
            for document, _ in rows:
                self._may_edit(homes.place, document, "forget memories")
            ids = [document.id for document, _ in rows]
            if preview:
                seen += ids
            else:
                receipt = added(receipt, await self._let_go(ids, pinned=pinned, preview=False))
            if after is None:
                return await self._let_go(seen, pinned=pinned, preview=True) if preview else receipt
