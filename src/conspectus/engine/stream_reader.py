"""Streams with the permissions of one user."""

from dataclasses import fields

from conspectus.access.collection_access import CollectionAccess
from conspectus.engine.service import Service
from conspectus.errors import NotFound
from conspectus.model.captions import LIVE, TITLE, ZONE, Caption
from conspectus.model.pages import pages
from conspectus.model.records import Document, Kind, Source
from conspectus.model.streams import ShownCaption, Stream
from conspectus.ports.streams import Extent, Span
from conspectus.streams.caption_format import format_time
from conspectus.text.stream_clocks import StreamClock, clock_of

CAPTIONS_PER_PAGE = 1_000


class StreamReader(Service, checked=False):
    """Finds streams, and reads their captions by time."""

    async def source(self, stream: str, collection: str) -> tuple[CollectionAccess, Source]:
        """Return a readable stream with its collection. Raises NotFound."""
        access = await self._authorized.collection(collection)
        source = await self._authorized.source(access, stream)
        if source is None or source.kind != "stream":
            raise NotFound("stream", stream)
        return access, source

    async def stream(self, access: CollectionAccess, source: Source) -> Stream:
        """Return the stream of a source."""
        return stream_of(source, await self._authorized.captions.extent(access, source))

    async def timeline(
        self, access: CollectionAccess, source: Source, span: Span, kind: Kind = "caption"
    ) -> list[Caption]:
        """Return all captions of a range in the order of time."""
        clock = clock_of(source)
        return [as_caption(*row, clock) for row in await self.documents(access, source, span, kind)]

    async def documents(
        self, access: CollectionAccess, source: Source, span: Span, kind: Kind
    ) -> list[tuple[Document, str]]:
        """Return the captions of a range as documents with their texts."""
        read_page = self._authorized.captions.timeline
        read = pages(read_page, access, source, span, kind=kind, limit=CAPTIONS_PER_PAGE)
        return [row async for page in read for row in page.documents]


def stream_of(source: Source, extent: Extent) -> Stream:
    """Return the stream of a source; its extent is that of its captions."""
    title, zone = source.metadata.get(TITLE), source.metadata.get(ZONE)
    clock = clock_of(source)
    ends = [
        None if instant is None else format_time(clock.seconds(instant), clock)
        for instant in (extent.first, extent.last)
    ]
    return Stream(
        source=source,
        title=title if isinstance(title, str) else "",
        start_time=clock.origin,
        time_zone=zone if isinstance(zone, str) else "UTC",
        live=source.metadata.get(LIVE) is True,
        captions=extent.captions,
        first=extent.first,
        last=extent.last,
        first_text=ends[0],
        last_text=ends[1],
    )


def as_caption(document: Document, text: str, clock: StreamClock) -> Caption:
    """Return a stored caption or event with times on the clock of its stream."""
    period = document.occurred
    if period is None:
        return Caption(document, text, None, None)
    start, end = clock.seconds(period.start), clock.seconds(period.end)
    return Caption(document, text, start, end, format_time(start, clock), format_time(end, clock))


def with_clock_times(document: Document, clock: StreamClock) -> ShownCaption:
    """Return a caption of a window with times on the clock of its stream."""
    values = {field.name: getattr(document, field.name) for field in fields(document)}
    timed = as_caption(document, "", clock)
    times = {name: getattr(timed, name) for name in ("start", "end", "start_text", "end_text")}
    return ShownCaption(**values, **times)
