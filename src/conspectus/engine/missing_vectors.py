"""Whether vector search covers a collection: a notice while texts of it have no vectors."""

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
"""Seconds for which it is known whether texts failed, which takes a scan of an index."""


@dataclass(slots=True)
class _Coverage:
    """What is known of a collection as of a change."""

    sequence: int
    is_pending: bool
    has_failed: bool
    checked: float


class MissingVectors:
    """Finds collections with texts without vectors, and remembers them until their next change."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._known: dict[CollectionId, _Coverage] = {}

    async def notice(self, collection: Collection) -> str | None:
        """Return what a search of the collection must say, if anything."""
        coverage = self._known.get(collection.id)
        if coverage is None or coverage.sequence != collection.sequence:
            coverage = await self._read(collection, coverage)
            self._known[collection.id] = coverage
        if coverage.is_pending:
            return PENDING
        return FAILED if coverage.has_failed else None

    async def notice_among(self, collection: Collection, where: Filter) -> str | None:
        """Return what a search of the matching documents must say, if anything."""
        notice = await self.notice(collection)
        if notice is None or where == EVERYTHING:
            return notice
        if await self._records.has_pending(collection.id, where):
            return PENDING
        has_failed = self._known[collection.id].has_failed
        if has_failed and await self._records.has_failed(collection.id, where, refused=True):
            return FAILED
        return None

    async def _read(self, collection: Collection, before: _Coverage | None) -> _Coverage:
        now, sequence = time.monotonic(), collection.sequence
        is_pending = await self._records.has_pending(collection.id)
        if before is not None and now - before.checked < FAILED_SECONDS:
            return _Coverage(sequence, is_pending, before.has_failed, before.checked)
        has_failed = await self._records.has_failed(collection.id, refused=True)
        return _Coverage(sequence, is_pending, has_failed, now)
