"""Notices that vector search is incomplete, while texts of a collection have no vectors."""

import time
from typing import Final

from conspectus.deferred import dataclass
from conspectus.model.filter import EVERYTHING, Filter
from conspectus.model.ids import CollectionId
from conspectus.model.records import Collection
from conspectus.ports import Records

PENDING: Final = "vector search is incomplete: some texts are not embedded yet"
FAILED: Final = "vector search is incomplete: some texts could not be embedded; `status` counts them"
FAILED_SECONDS: Final = 10.0
"""Seconds between two checks for failed texts in one collection, each of which scans an index."""


@dataclass(slots=True)
class _Coverage:
    """Whether a collection has texts without vectors, as of a change.

    `checked` is the time of the last check for failed texts.
    """

    sequence: int
    is_pending: bool
    has_failed: bool
    checked: float


class MissingVectors:
    """Notices about texts without vectors, cached per state of a collection."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._cache: dict[CollectionId, _Coverage] = {}

    async def notice(self, collection: Collection) -> str | None:
        """Return the notice for a search of the whole collection, if one is needed."""
        coverage = self._cache.get(collection.id)
        if coverage is None or coverage.sequence != collection.sequence:
            coverage = await self._read(collection, coverage)
            self._cache[collection.id] = coverage
        if coverage.is_pending:
            return PENDING
        return FAILED if coverage.has_failed else None

    async def notice_among(self, collection: Collection, where: Filter) -> str | None:
        """Return the notice for a search of the matching documents, if one is needed."""
        notice = await self.notice(collection)
        if notice is None or where == EVERYTHING:
            return notice
        if await self._records.has_pending(collection.id, where):
            return PENDING
        has_failed = self._cache[collection.id].has_failed
        if has_failed and await self._records.has_failed(collection.id, where, refused=True):
            return FAILED
        return None

    async def _read(self, collection: Collection, cached: _Coverage | None) -> _Coverage:
        now, sequence = time.monotonic(), collection.sequence
        is_pending = await self._records.has_pending(collection.id)
        if cached is not None and now - cached.checked < FAILED_SECONDS:
            return _Coverage(sequence, is_pending, cached.has_failed, cached.checked)
        has_failed = await self._records.has_failed(collection.id, refused=True)
        return _Coverage(sequence, is_pending, has_failed, now)
