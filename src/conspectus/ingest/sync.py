"""Bringing an index up to the records: cheap when nothing changed, harmless when repeated."""

from conspectus.ports import Index, Reader

BATCH = 5_000


async def catch_up(index: Index, reader: Reader, sequence: int) -> None:
    """Apply every committed change up to at least `sequence`; nothing to do costs one comparison."""
    while index.applied() < sequence:
        changes = await reader.changes_since(index.applied(), limit=BATCH)
        if not changes:
            return
        await index.apply(changes)
