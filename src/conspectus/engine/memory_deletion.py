"""How memories go, and what there is of them."""

from collections.abc import Sequence

from conspectus.access.memory_reader import MemorySources
from conspectus.engine.context import EngineContext
from conspectus.engine.memory_reads import MemoryReader
from conspectus.memory.retention import added, meant
from conspectus.model.filter import Filter
from conspectus.model.ids import DocumentId
from conspectus.model.memory import (
    MemoryReceipt,
    MemorySelection,
)

BATCH = 500
"""So many memories go in one transaction."""


class MemoryDeletion:
    """Deletes memories, with their versions and all that hangs on them."""

    def __init__(self, context: EngineContext, reader: MemoryReader) -> None:
        self._context = context
        self._parts = context.parts
        self._reader = reader

    async def delete(self, homes: MemorySources, what: MemorySelection, *, preview: bool) -> MemoryReceipt:
        """Delete what is selected, or say what would go."""
        if not what.ids:
            where = meant(what, self._parts.clock())
            return await self._forget_where(homes, where, pinned=what.pinned, preview=preview)
        found = await self._reader.stored.documents(homes, list(dict.fromkeys(what.ids)))
        for each in found:
            self._context.may_edit(homes.place, each, "forget memories")
        return await let_go(self._context, [each.id for each in found], pinned=True, preview=preview)

    async def _forget_where(
        self, homes: MemorySources, where: Filter, *, pinned: bool, preview: bool
    ) -> MemoryReceipt:
        """Delete what matches, page by page; a preview weighs all of it together."""
        receipt, seen = MemoryReceipt(0), []
        after: str | None = None
        while True:
            rows, after = await homes.page(where, after=after, limit=BATCH)
            for document, _ in rows:
                self._context.may_edit(homes.place, document, "forget memories")
            ids = [document.id for document, _ in rows]
            if preview:
                seen += ids
            else:
                receipt = added(receipt, await let_go(self._context, ids, pinned=pinned, preview=False))
            if after is None:
                return await let_go(self._context, seen, pinned=pinned, preview=True) if preview else receipt


async def let_go(
    context: EngineContext, memories: Sequence[DocumentId], *, pinned: bool, preview: bool
) -> MemoryReceipt:
    """Delete memories in batches, or weigh all of them together."""
    kept, now = context.parts.memories, context.parts.clock()
    if preview:
        return await kept.forget(memories, pinned=pinned, now=now, preview=True)
    total = MemoryReceipt(0)
    for start in range(0, len(memories), BATCH):
        batch = memories[start : start + BATCH]
        total = added(total, await kept.forget(batch, pinned=pinned, now=now))
    return total
