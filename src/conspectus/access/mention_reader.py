"""Names in passages, and graphs to walk over, as one person may see them and as far as a filter reaches."""

from collections.abc import Mapping, Sequence

from conspectus.access.policy import bound
from conspectus.access.reader import AuthorizedReader, SourceRef
from conspectus.errors import NotFound
from conspectus.model.filter import EVERYTHING, Filter
from conspectus.model.graph import EntityCount
from conspectus.model.ids import ChunkId, SourceId
from conspectus.ports.graphs import Mentioned, MentionStore, TextPassage


class AuthorizedMentions:
    """The names in the passages of a collection that one person may see and that a filter may leave in."""

    def __init__(self, names: MentionStore, place: SourceRef, where: Filter = EVERYTHING) -> None:
        self._names = names
        self._place = place
        within = bound(place.narrowed(where))
        self._sources = None if within is None else sorted(within)

    async def of(self, chunks: Sequence[ChunkId]) -> Sequence[TextPassage]:
        """The names in passages that were seen."""
        return await self._names.of(chunks)

    async def passages(self, keys: Sequence[str], *, most: int, few: int) -> Mapping[str, Mentioned]:
        """The passages that mention these names, as far as not too many do."""
        home = self._place.collection.id
        return await self._names.passages(self._sources, home, keys, most=most, few=few)

    async def counts(self, *, begins: str, limit: int) -> Sequence[EntityCount]:
        """The names that most passages mention, those whose key begins so."""
        return await self._names.counts(self._sources, self._place.collection.id, begins=begins, limit=limit)

    async def waits(self) -> bool:
        """Whether a passage waits to be looked through, for those who see all of the collection."""
        return self._place.whole and bool(await self._names.unread(self._place.collection.id, limit=1))


async def graphs_seen(
    sight: AuthorizedReader, place: SourceRef, where: Filter, named: Sequence[str] | None
) -> list[SourceId]:
    """The graphs that may be walked: those that are named, or with None all that the filter leaves in.

    Raises NotFound for a name of none that may be seen.
    """
    if named is not None:
        return await _named(sight, place, named)
    within = bound(place.narrowed(where))
    graphs = [each.id for each in await sight.sources(place) if each.kind == "graph"]
    return [each for each in graphs if within is None or each in within]


async def _named(sight: AuthorizedReader, place: SourceRef, names: Sequence[str]) -> list[SourceId]:
    if not names:
        return []
    found = [each for each in await sight.sources_called(place, names) if each.kind == "graph"]
    known = {each.id for each in found} | {each.name for each in found}
    for name in names:
        if name not in known:
            raise NotFound("graph", name)
    return [each.id for each in found]
