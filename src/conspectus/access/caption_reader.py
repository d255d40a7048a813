"""Captions and events of streams as one person may read them."""

from collections.abc import Mapping, Sequence

from conspectus.access.collection_access import CollectionAccess
from conspectus.errors import NotFound
from conspectus.model.records import Document, Kind, Source
from conspectus.ports import Records
from conspectus.ports.streams import EntityOccurrence, Extent, Span, Spot, TimelinePage


class AuthorizedCaptions:
    """Reads captions by their times, of sources that a person may read."""

    def __init__(self, records: Records) -> None:
        self._records = records

    async def timeline(
        self,
        access: CollectionAccess,
        source: Source,
        span: Span,
        *,
        kind: Kind = "caption",
        after: str | None = None,
        limit: int,
    ) -> TimelinePage:
        """Return captions or events of a readable source, in the order of time."""
        _require_stream(access, source)
        return await self._records.timeline(source.id, span, kind=kind, after=after, limit=limit)

    async def names(self, access: CollectionAccess, source: Source, span: Span) -> Mapping[str, int]:
        """Return the number of captions and events for each name in a readable source."""
        _require_stream(access, source)
        return await self._records.names(source.id, span)

    async def mentions(
        self, access: CollectionAccess, source: Source, span: Span, *, entities: Sequence[str]
    ) -> Sequence[EntityOccurrence]:
        """Return the occurrences of these entities in a readable source."""
        _require_stream(access, source)
        return await self._records.mentions(source.id, span, names=entities)

    async def stretches(
        self,
        access: CollectionAccess,
        source: Source,
        spans: Sequence[Span],
        *,
        limit: int,
        last: bool = False,
    ) -> Sequence[tuple[Document, str]]:
        """Return the captions in any of the spans of a readable source, in the order of time."""
        _require_stream(access, source)
        return await self._records.stretches(source.id, spans, limit=limit, last=last)

    async def list_caption_positions(
        self, access: CollectionAccess, source: Source, spans: Sequence[Span]
    ) -> Sequence[Spot]:
        """Return the positions of the captions in any of the spans of a readable source."""
        _require_stream(access, source)
        return await self._records.list_positions(source.id, spans)

    async def extent(self, access: CollectionAccess, source: Source, *, counted: bool = True) -> Extent:
        """Return the number of captions of a readable source, and their first and last times."""
        access.require_visible(source)
        return await self._records.extent(source.id, counted=counted)


def _require_stream(access: CollectionAccess, source: Source) -> None:
    """Raise NotFound for a source that is not visible, and for one whose remote is asked: it is none."""
    access.require_visible(source)
    if source.id in access.roles.verified:
        raise NotFound("stream", source.name)
