"""Events of streams, and the entities in them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Annotated

from conspectus.access.collection_access import CollectionAccess
from conspectus.engine.context import EngineContext
from conspectus.engine.entity_names import common_names, contains_name, fold_name
from conspectus.engine.event_documents import event_document, event_id, event_reports
from conspectus.engine.event_spans import Report, entity_spans, event_spans
from conspectus.engine.service import Service
from conspectus.engine.stream_reader import StreamReader
from conspectus.errors import Conflict, InvalidInput
from conspectus.ingest.batch_writes import batches
from conspectus.ingest.captions import span_of
from conspectus.model.annotations import Example, Length
from conspectus.model.captions import WHOLE, CaptionRange
from conspectus.model.filter import And, Between, Eq, Filter, Overlaps
from conspectus.model.ids import ChunkId
from conspectus.model.parameters import MAX_LIST, CollectionName, Name, StreamName
from conspectus.model.records import Document, Period, Source, Written
from conspectus.model.stream_events import EntitySpan, EventSpan, NewEvent
from conspectus.ports import Probe
from conspectus.ports.streams import Span
from conspectus.streams.alert_queries import Language
from conspectus.text.stream_clocks import StreamClock, clock_of

MAX_NAME_LENGTH = 1_000
MAX_CANDIDATES = 10_000
"""If more captions match, all captions of the range are read, which costs no more than the index."""


class EventService(Service):
    """Events of streams, and the entities in them."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context)
        self._reader = StreamReader(context)

    async def add(
        self,
        events: Annotated[NewEvent | Iterable[NewEvent], Length(0, MAX_LIST), "Events to write."],
        *,
        stream: StreamName,
        collection: CollectionName = "default",
    ) -> Sequence[Written]:
        """Add events to a stream, which is created if it is new.

        An event without a key is identified by its content and time, so adding it twice has no effect; an
        event with a stored key replaces that event. Raises InvalidInput, TooLarge or Conflict; the batch at
        fault is not written.
        """
        new_events = [events] if isinstance(events, NewEvent) else events
        target, access = await self._writer.writable(stream, collection, kind="stream")
        if target.kind != "stream":
            raise Conflict("stream", stream, f"is the name of a source of the kind {target.kind}")
        clock = clock_of(target)
        written: list[Written] = []
        for documents in batches(event_document(event, target, clock) for event in new_events):
            ids = [event_id(target.id, document.key or "") for document in documents]
            for stored_document in await self._authorized.inside(access, ids):
                if stored_document.kind != "event":
                    raise Conflict("event", stored_document.key, f"is the key of a {stored_document.kind}")
            written += await self._context.write(documents, target)
        await self._context.embed_in(access, wait=False)
        return written

    async def list(
        self,
        stream: StreamName,
        *,
        collection: CollectionName = "default",
        range: Annotated[CaptionRange, "Range of captions."] = WHOLE,
        type: Annotated[Name, "Only events of this type.", Example("arrival")] | None = None,
    ) -> Sequence[EventSpan]:
        """List events in the order of time; events of one type that overlap or are close are one.

        Events that overlap the range are returned whole.
        """
        access, source = await self._reader.source(stream, collection)
        clock = clock_of(source)
        span = span_of(range, clock)
        captions = await self._reader.timeline(access, source, replace(span, start=None, end=None), "event")
        reports = [report for caption in captions for report in event_reports(caption)]
        matching_reports = [report for report in reports if type is None or report.subject == type]
        spans = event_spans(source.id, matching_reports, clock)
        return [event_span for event_span in spans if _is_in_range(_period(clock, event_span), span)]

    async def count_entities(
        self,
        stream: StreamName,
        *,
        collection: CollectionName = "default",
        range: Annotated[CaptionRange, "Range of captions."] = WHOLE,
    ) -> Mapping[str, int]:
        """Count the captions and events in which each name is an entity or the speaker, most frequent first.

        Spellings that differ only in case are one name, in its most frequent form.
        """
        access, source = await self._reader.source(stream, collection)
        return common_names(
            await self._authorized.captions.names(access, source, span_of(range, clock_of(source)))
        )

    async def entity_timeline(
        self,
        entity: Annotated[Name, "Name of an entity.", Example("backup")],
        *,
        stream: StreamName,
        collection: CollectionName = "default",
        range: Annotated[CaptionRange, "Range of captions."] = WHOLE,
    ) -> Sequence[EntitySpan]:
        """List when an entity appears: as an entity or speaker of a caption, or named in its text.

        Case is ignored, and a name is a whole word. Ranges that overlap or are close are one.
        """
        if not entity.strip() or len(entity) > MAX_NAME_LENGTH:
            raise InvalidInput("entity", f"must be a name of 1 to {MAX_NAME_LENGTH} characters")
        access, source = await self._reader.source(stream, collection)
        clock = clock_of(source)
        span = span_of(range, clock)
        names = await self._authorized.captions.names(access, source, span)
        spellings = [name for name in names if fold_name(name) == fold_name(entity)]
        mentions = await self._authorized.captions.mentions(access, source, span, entities=spellings)
        periods = {str(mention.document): mention.occurred for mention in mentions}
        periods |= {
            document.id: document.occurred
            for document in await self._captions_with_name(access, source, span, entity)
        }
        reports = [
            Report(entity.strip(), clock.seconds(period.start), clock.seconds(period.end), document)
            for document, period in periods.items()
            if period is not None
        ]
        return entity_spans(source.id, reports, clock)

    async def _captions_with_name(
        self, access: CollectionAccess, source: Source, span: Span, entity: str
    ) -> Sequence[Document]:
        """Return the captions whose text contains the name: the index preselects, the texts decide."""
        has_name = contains_name(entity)
        ids = await self._chunks_with_words(access, _captions_in(source, span), fold_name(entity))
        if ids is None:
            captions = await self._reader.timeline(access, source, span)
            return [caption.document for caption in captions if has_name(caption.text)]
        rows = [row for row in await self._authorized.rows(access)(ids) if has_name(row.chunk.text)]
        return [row.document for row in rows if _is_in_range(row.document.occurred, span)]

    async def _chunks_with_words(
        self, access: CollectionAccess, where: Filter, words: str
    ) -> Sequence[ChunkId] | None:
        """Return the chunks that contain any of the words.

        Returns None if the index has none of the words, such as stop words, or too many chunks match.
        """
        if not Language(access.collection.language).content_terms(words):
            return None
        opened = await self._core.open_indexes.current(access.collection)
        candidates = await opened.index.search(
            Probe(access.restrict_filter(where), words, None, MAX_CANDIDATES)
        )
        ids = [ChunkId(int(number)) for number in candidates.ids[candidates.words > 0]]
        return ids if len(ids) < MAX_CANDIDATES else None


def _period(clock: StreamClock, event: EventSpan) -> Period:
    start, end = (clock.origin + timedelta(seconds=seconds) for seconds in (event.start, event.end))
    return Period(start, end)


def _captions_in(source: Source, span: Span) -> Filter:
    """Return the filter of the captions that overlap a range; those inside it are selected by the caller."""
    parts: list[Filter] = [Eq("source", source.id), Eq("kind", "caption")]
    if span.start is not None or span.end is not None:
        parts.append(Overlaps(span.start, span.end))
    if span.first is not None or span.last is not None:
        parts.append(Between("sequence", span.first, None if span.last is None else span.last + 1))
    return And(tuple(parts))


def _is_in_range(when: Period | None, span: Span) -> bool:
    """Return whether a period overlaps a range or, if the range `contains`, is inside it."""
    if when is None:
        return span.start is None and span.end is None
    if not span.contains:
        return when.overlaps(span.start, span.end)
    begins_inside = span.start is None or when.start >= span.start
    return begins_inside and (span.end is None or (when.start < span.end and when.end <= span.end))
