"""Names that passages mention."""

from typing import Final

from conspectus.access.mention_reader import AuthorizedMentions
from conspectus.access.policy import among, require_scope
from conspectus.access.reader import SourceRef
from conspectus.engine.graph import Graphing
from conspectus.engine.graph_scope import STOPPED
from conspectus.errors import InvalidInput, NotFound, ProviderError, ProviderUnavailable
from conspectus.graph.name_keys import key_of
from conspectus.model.filter import EVERYTHING, Filter
from conspectus.model.graph import EntityCount
from conspectus.model.records import Collection
from conspectus.ports import Progress

MOST: Final = 1_000


class EntityExtractionService(Graphing):
    """Who and what passages are about."""

    async def keep_names(self, on: bool = True, *, collection: str = "default") -> Collection:
        """Have passages looked through for names, from the first on and in the background, or no more.

        Switched off, the names that were found are forgotten. Raises NotFound or NotAllowed.
        """
        require_scope(self._person, "write", "write")
        place = await self._sight.place(collection)
        place.require("manager", "keep the names in a collection")
        await self._parts.names.rows.keep(place.collection.id, on)
        if on and self._does_background_work:
            self._core.names.wake(place.collection.id)
        return (await self._sight.place_of(place.collection.id)).shown

    async def settle_names(self, *, collection: str = "default", progress: Progress | None = None) -> int:
        """Wait until all passages are looked through for names; returns how many were meanwhile.

        Who sees only some sources may wait too, and is told 0. Raises what stopped it.
        """
        place = await self._sight.place(collection)
        return await self._settle_names(place, progress) if place.collection.names else 0

    async def names(
        self, *, collection: str = "default", begins: str = "", limit: int = 100, source: str | None = None
    ) -> list[EntityCount]:
        """The names that most passages mention, of all that can be seen or of one source.

        Raises NotFound, or InvalidInput for a limit.
        """
        if not 0 <= limit <= MOST:
            raise InvalidInput("limit", f"must be from 0 to {MOST}")
        place = await self._sight.place(collection)
        where: Filter = EVERYTHING
        if source is not None:
            found = await self._sight.source(place, source)
            if found is None:
                raise NotFound("source", source)
            where = among([found.id])
        seen = AuthorizedMentions(self._parts.names.rows, place, where)
        return list(await seen.counts(begins=key_of(begins), limit=limit))

    async def _settle_names(self, place: SourceRef, progress: Progress | None) -> int:
        if place.whole:
            return await self._core.names.settle(place.collection.id, progress)
        try:
            await self._core.names.settle(place.collection.id)
        except ProviderError as fault:
            raise ProviderUnavailable(fault.provider, STOPPED) from fault
        return 0
