"""Whether a collection holds earlier versions of anything, so that most searches need not leave them out."""

from conspectus.model.records import Collection
from conspectus.ports.memories import Memories


class Versions:
    """Asks once for each state of a collection."""

    def __init__(self, memories: Memories) -> None:
        self._memories = memories
        self._known: dict[str, tuple[int, bool]] = {}

    async def are_in(self, collection: Collection) -> bool:
        """Whether there are any, as of the collection's newest change."""
        known = self._known.get(collection.id)
        if known is not None and known[0] == collection.sequence:
            return known[1]
        found = await self._memories.has_versions(collection.id)
        self._known[collection.id] = (collection.sequence, found)
        return found
