"""Events of streams, and the entities in them."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import groupby
from typing import Annotated, Final

import regex

from conspectus.access.reader import CollectionAccess
from conspectus.deferred import dataclass
from conspectus.engine.context import EngineContext, Service
from conspectus.engine.stream_reader import StreamReader
from conspectus.errors import Conflict, InvalidInput
from conspectus.ingest.captions import caption_id, span_of
from conspectus.ingest.prepare import batches
from conspectus.model.annotations import Example, Length
from conspectus.model.filter import And, Between, Eq, Filter, Overlaps
from conspectus.model.ids import ChunkId, SourceId
from conspectus.model.parameters import MAX_LIST, CollectionName, Name, StreamName
from conspectus.model.records import Document, NewDocument, Period, Source, Written
from conspectus.model.streams import (
    ENTITIES,
    EVENT_TYPE,
    TITLE,
    WHOLE,
    Caption,
    CaptionRange,
    EntitySpan,
    EventSpan,
    NewEvent,
)
from conspectus.ports import Probe
from conspectus.ports.streams import Span
from conspectus.streams.alert_checker import Language
from conspectus.streams.caption_format import format_time
from conspectus.text.clean import clean
from conspectus.text.hashing import content_hash
from conspectus.text.intervals import GAP_SECONDS, runs
from conspectus.text.stream_clocks import StreamClock, clock_of
from conspectus.text.times import canonical


@dataclass(frozen=True, slots=True)
class Report:
    """A report that something (`of`: a type, a name) happened from `start` to `end`, in seconds."""

    of: str
    start: float
    end: float
    document: str
    text: str = ""
    entities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportGroup:
    """Overlapping or close reports of one thing, in the order of time."""

    of: str
    start: float
    end: float
    reports: tuple[Report, ...]

    @property
    def documents(self) -> tuple[str, ...]:
        """The distinct documents of the reports."""
        return _distinct(report.document for report in self.reports)


def group_reports(reports: Iterable[Report], *, gap: float = GAP_SECONDS) -> list[ReportGroup]:
    """Group overlapping or close reports of one thing, in the order of time; input order does not matter."""
    ordered = sorted(
        reports, key=lambda report: (report.of, report.start, report.end, report.document, report.text)
    )
    groups = [
        stretch
        for _, same in groupby(ordered, lambda report: report.of)
        for stretch in _merge_close_reports(list(same), gap)
    ]
    return sorted(groups, key=lambda group: (group.start, group.end, group.of))


def event_spans(stream: SourceId, reports: Iterable[Report], clock: StreamClock) -> list[EventSpan]:
    """Return the events of a stream from reports of types, with distinct descriptions and entities."""
    return [
        EventSpan(
            stream=stream,
            type=group.of,
            start=group.start,
            end=group.end,
            start_text=format_time(group.start, clock),
            end_text=format_time(group.end, clock),
            descriptions=_distinct(report.text for report in group.reports if report.text),
            entities=_distinct(name for report in group.reports for name in report.entities),
            documents=group.documents,
        )
        for group in group_reports(reports)
    ]


def entity_spans(stream: SourceId, reports: Iterable[Report], clock: StreamClock) -> list[EntitySpan]:
    """Return the time ranges of an entity from reports of a name."""
    return [
        EntitySpan(
            stream=stream,
            entity=group.of,
            start=group.start,
            end=group.end,
            start_text=format_time(group.start, clock),
            end_text=format_time(group.end, clock),
            documents=group.documents,
        )
        for group in group_reports(reports)
    ]


def _merge_close_reports(reports: Sequence[Report], gap: float) -> Iterator[ReportGroup]:
    """Return runs of reports of one thing."""
    for run in runs([(report.start, report.end) for report in reports], gap=gap):
        run_reports = tuple(reports[index] for index in run)
        yield ReportGroup(
            run_reports[0].of, run_reports[0].start, max(report.end for report in run_reports), run_reports
        )


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


PREFIX: Final = "event:"
"""The prefix of event keys, which distinguishes them from caption keys of the same stream."""
MAX_TYPE_LENGTH: Final = 1_000


def event_document(new: NewEvent, stream: Source, clock: StreamClock) -> NewDocument:
    """Return the document of an event. Raises InvalidInput for an invalid type or time."""
    if not new.type.strip() or len(new.type) > MAX_TYPE_LENGTH:
        raise InvalidInput("type", f"must have 1 to {MAX_TYPE_LENGTH} characters")
    occurred = clock.period(new.start, new.end)
    title = stream.metadata.get(TITLE)
    entities = {ENTITIES: list(new.entities)} if new.entities else {}
    return NewDocument(
        text=new.description if new.description.strip() else new.type,
        title=title if isinstance(title, str) else "",
        kind="event",
        key=PREFIX + (_content_key(new, occurred) if new.key is None else new.key),
        metadata={**new.metadata, EVENT_TYPE: new.type, **entities},
        occurred=occurred,
    )


def event_id(stream: SourceId, key: str) -> str:
    """Return the id of the event whose document has that key."""
    return caption_id(stream, clean(key))


def _content_key(new: NewEvent, occurred: Period) -> str:
    """Return a key derived from the content, equal for equal events."""
    times = (canonical(occurred.start), canonical(occurred.end))
    return content_hash("\0".join((*times, clean(new.type), clean(new.description))))


LETTER: Final = regex.compile(r"\w")
DENSE: Final = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
"""Scripts written without spaces, in which word boundaries are not visible."""


def fold_name(name: str) -> str:
    """Normalize spellings that differ only in case, spaces or Unicode composition."""
    composed = unicodedata.normalize("NFC", " ".join(name.split())).casefold()
    return unicodedata.normalize("NFC", composed)


def common_names(counts: Mapping[str, int]) -> dict[str, int]:
    """Return names with counts, most frequent first, each in its most frequent spelling."""
    totals: dict[str, int] = {}
    spellings: dict[str, str] = {}
    for name, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        same = fold_name(name)
        if same:
            spellings.setdefault(same, name)
            totals[same] = totals.get(same, 0) + count
    ordered = sorted(totals, key=lambda same: (-totals[same], spellings[same]))
    return {spellings[same]: totals[same] for same in ordered}


def contains_name(name: str) -> Callable[[str], bool]:
    """Return a predicate of texts: whether they contain the name as whole words."""
    folded_name = fold_name(name)
    pattern = r"\s+".join(regex.escape(word) for word in folded_name.split(" "))
    before = r"(?<!\w)" if _is_bounded(folded_name[:1]) else ""
    after = r"(?!\w)" if _is_bounded(folded_name[-1:]) else ""
    bounded_pattern = regex.compile(f"{before}{pattern}{after}")
    return lambda text: bool(folded_name) and bounded_pattern.search(fold_name(text)) is not None


def _is_bounded(character: str) -> bool:
    return LETTER.match(character) is not None and DENSE.match(character) is None


MAX_NAME_LENGTH = 1_000
MAX_CANDIDATES = 10_000
"""If more captions match, all are read instead of using the index, at the same cost."""


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
        *,
        stream: StreamName,
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
        reports = [report for caption in captions for report in _reports(caption)]
        matching_reports = [report for report in reports if type is None or report.of == type]
        spans = event_spans(source.id, matching_reports, clock)
        return [event_span for event_span in spans if _meets(_period(clock, event_span), span)]

    async def count_entities(
        self,
        *,
        stream: StreamName,
        collection: CollectionName = "default",
        range: Annotated[CaptionRange, "Range of captions."] = WHOLE,
    ) -> Mapping[str, int]:
        """Count the captions and events in which each name is an entity or the speaker, most frequent first.

        Spellings that differ only in case are one name, in its most frequent form.
        """
        access, source = await self._reader.source(stream, collection)
        return common_names(await self._authorized.names(access, source, span_of(range, clock_of(source))))

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
        names = await self._authorized.names(access, source, span)
        spellings = [name for name in names if fold_name(name) == fold_name(entity)]
        mentions = await self._authorized.mentions(access, source, span, entities=spellings)
        seen = {str(mention.document): mention.occurred for mention in mentions}
        seen |= {
            document.id: document.occurred
            for document in await self._captions_with_name(access, source, span, entity)
        }
        reports = [
            Report(entity.strip(), clock.seconds(when.start), clock.seconds(when.end), document)
            for document, when in seen.items()
            if when is not None
        ]
        return entity_spans(source.id, reports, clock)

    async def _captions_with_name(
        self, access: CollectionAccess, source: Source, span: Span, entity: str
    ) -> Sequence[Document]:
        """Return the captions whose text contains the name: the index preselects, the texts decide."""
        named, words = contains_name(entity), fold_name(entity)
        ids = await self._chunks_with_words(access, _captions_in(source, span), words)
        if ids is None:
            everything = await self._reader.timeline(access, source, span)
            return [caption.document for caption in everything if named(caption.text)]
        rows = [row for row in await self._authorized.rows(access)(ids) if named(row.chunk.text)]
        return [row.document for row in rows if _meets(row.document.occurred, span)]

    async def _chunks_with_words(
        self, access: CollectionAccess, where: Filter, words: str
    ) -> Sequence[ChunkId] | None:
        """Return the chunks that contain any of the words; None if the index cannot tell for all."""
        if not Language(access.collection.language).telling(words):
            return None
        opened = await self._core.open_indexes.current(access.collection)
        candidates = await opened.index.search(Probe(access.narrowed(where), words, None, MAX_CANDIDATES))
        ids = [ChunkId(int(number)) for number in candidates.ids[candidates.words > 0]]
        return ids if len(ids) < MAX_CANDIDATES else None


def _reports(event: Caption) -> Iterator[Report]:
    """Yield the text of a stored event with its time, if it has one."""
    if event.start is None or event.end is None:
        return
    metadata = event.document.metadata
    entities = metadata.get(ENTITIES)
    yield Report(
        of=str(metadata.get(EVENT_TYPE, "")),
        start=event.start,
        end=event.end,
        document=event.document.id,
        text=event.text,
        entities=tuple(map(str, entities)) if isinstance(entities, list) else (),
    )


def _period(clock: StreamClock, event: EventSpan) -> Period:
    start, end = (clock.origin + timedelta(seconds=seconds) for seconds in (event.start, event.end))
    return Period(start, end)


def _captions_in(source: Source, span: Span) -> Filter:
    """Return the captions that overlap a range. The caller selects those inside, if required."""
    parts: list[Filter] = [Eq("source", source.id), Eq("kind", "caption")]
    if span.start is not None or span.end is not None:
        parts.append(Overlaps(span.start, span.end))
    if span.first is not None or span.last is not None:
        parts.append(Between("sequence", span.first, None if span.last is None else span.last + 1))
    return And(tuple(parts))


def _meets(when: Period | None, span: Span) -> bool:
    """Return whether a time overlaps a range or, if required, is inside it."""
    if when is None:
        return span.start is None and span.end is None
    if not span.contains:
        return when.overlaps(span.start, span.end)
    begins_inside = span.start is None or when.start >= span.start
    return begins_inside and (span.end is None or (when.start < span.end and when.end <= span.end))
