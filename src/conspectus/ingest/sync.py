"""Bringing an index up to the records: cheap when nothing changed, harmless when repeated."""

from conspectus.ports import Index, Reader

BATCH = 50_000
BULK = 20_000
"""From so many chunks on, building them beside is sooner done than taking them in one by one."""


async def catch_up(index: Index, reader: Reader, sequence: int) -> None:
    """Apply every committed change up to at least `sequence`; nothing to do costs one comparison."""
    while index.applied() < sequence:
        changes = await reader.changes_since(index.applied(), limit=BATCH)
        if not changes:
            return
        if sum(change.last - change.first + 1 for change in changes) >= BULK:
            before = index.applied()
            await index.flush(least=0)
            if index.applied() > before:
                continue
        await index.apply(changes)
