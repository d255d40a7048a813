"""Whether collections have earlier versions of documents, cached."""

from conspectus.model.records import Collection
from conspectus.ports.memories import Memories


class VersionCache:
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
