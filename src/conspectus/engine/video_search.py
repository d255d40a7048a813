"""Search in streams: moments, time ranges, and windows of captions."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from itertools import islice
from math import nan
from time import perf_counter

from conspectus.access.policy import among
from conspectus.access.reader import CollectionAccess
from conspectus.deferred import dataclass
from conspectus.engine.context import EngineContext, Service
from conspectus.engine.searcher import Searcher
from conspectus.engine.stream_reader import StreamReader, as_caption, stream_of, with_clock_times
from conspectus.engine.windows import WindowPlan, window_budget
from conspectus.ingest.captions import span_of
from conspectus.model.captions import Caption
from conspectus.model.filter import (
    EVERYTHING,
    And,
    Between,
    Eq,
    Filter,
    In,
    Not,
    Or,
    Overlaps,
    document_row,
    matches,
    with_min_trust,
)
from conspectus.model.query import Budget, Query, WindowForm
from conspectus.model.records import Document, Source
from conspectus.model.results import Hit, Retrieval
from conspectus.model.streams import Moment, Moments, Stream, StreamQuery, StreamRange, StreamWindow
from conspectus.ports.streams import Extent, Span
from conspectus.retrieval.moments import SHARE_BEFORE, TYPICAL_SECONDS, MomentSpan, ScoredCaption, moments
from conspectus.retrieval.query_checks import check_query
from conspectus.streams.caption_format import format_time
from conspectus.text.analyzer import analyzer_for
from conspectus.text.stream_clocks import StreamClock, clock_of, timecode
from conspectus.text.times import EPOCH, to_microseconds
from conspectus.time_expressions import ClockFace, TimeExpression, describe, find_time, unread_times
from conspectus.time_expressions.clock_face import add_seconds
from conspectus.time_expressions.vocabulary import DAY
from conspectus.window.build import WindowOptions

CAPTIONS_AND_EVENTS = In("kind", ("caption", "event"))
NEARING = frozenset({"before", "until", "by"})
"""For a query for what came before a time, the last candidate is the nearest."""

MAX_SHOWN = 5
"""Maximum number of streams, and of time ranges, in a message."""
SKIPPED_STREAMS = "skipped_streams"
"""The part of a plan that lists the streams without the time that the query names."""

CENTURY = 36_525 * DAY
IN_RANGE = "time_range"
"""The part of a score that carries no further information."""


@dataclass(frozen=True, slots=True)
class ParsedVideoQuery:
    """A searched stream and its time range; `said` if the query names the range."""

    stream: Stream
    clock: StreamClock
    span: Span
    face: ClockFace
    time_expression: TimeExpression | None = None

    @property
    def name(self) -> str:
        """The name of the stream."""
        return self.stream.title or self.stream.source.name

    @property
    def range(self) -> str | None:
        """The range for users; None for the whole stream."""
        if self.time_expression is not None:
            return describe(self.time_expression, self.face)
        if self.span.start is None and self.span.end is None:
            return None
        start, end = (self._format_instant(instant) for instant in (self.span.start, self.span.end))
        return f"{start or 'the beginning'} to {end or 'the end'}"

    def _format_instant(self, moment: datetime | None) -> str | None:
        if moment is None:
            return None
        return moment.isoformat() if self.face.wall else timecode(self.clock.seconds(moment))


@dataclass(frozen=True, slots=True)
class ResolvedStreams:
    """The remaining query and its range; `streams` by source id."""

    query: StreamQuery
    access: CollectionAccess
    text: str
    streams: Mapping[str, ParsedVideoQuery]
    plan: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()

    @property
    def bounded(self) -> bool:
        """Whether only a part of the streams is searched."""
        return any(inside(parsed.span) for parsed in self.streams.values())

    @property
    def filter(self) -> Filter:
        """Return the filter of candidates: captions and events of each stream in its range."""
        narrow = (
            (CAPTIONS_AND_EVENTS,)
            if self.query.filter == EVERYTHING
            else (CAPTIONS_AND_EVENTS, self.query.filter)
        )
        stretches = {name: inside(parsed.span) for name, parsed in self.streams.items()}
        if not any(stretches.values()):
            return And((among(parsed.stream.source.id for parsed in self.streams.values()), *narrow))
        stream_filters = tuple(And((Eq("source", name), *bounds)) for name, bounds in stretches.items())
        return And((Or(stream_filters), *narrow))


def may_name_time(query: str, at: datetime) -> bool:
    """Return whether the query may name a time on any stream's clock: a cheap test for many streams."""
    faces = (
        ClockFace(StreamClock(), False, EPOCH, add_seconds(EPOCH, CENTURY), at, live=True),
        ClockFace(StreamClock(), True, add_seconds(at, -CENTURY), add_seconds(at, CENTURY), at, live=True),
    )
    return any(find_time(query, face) is not None for face in faces)


def inside(span: Span) -> tuple[Filter, ...]:
    """Return the filters of a range. What lies inside it does not overlap anything outside."""
    bounds: list[Filter] = []
    if span.start is not None or span.end is not None:
        bounds.append(Overlaps(span.start, span.end))
        if span.contains and span.start is not None:
            bounds.append(Not(Overlaps(None, span.start)))
        if span.contains and span.end is not None:
            bounds.append(Not(Overlaps(span.end, None)))
    if span.first is not None or span.last is not None:
        after = None if span.last is None else span.last + 1
        bounds.append(Between("sequence", span.first, after))
    return tuple(bounds)


def intersect_range(bounds: Span, start: datetime, end: datetime) -> Span:
    """Return the intersection of [start, end) with bounds."""
    first = start if bounds.start is None else max(start, bounds.start)
    last = end if bounds.end is None else min(end, bounds.end)
    return Span(first, max(first, last), bounds.contains, bounds.first, bounds.last)


def ranges(streams: Mapping[str, ParsedVideoQuery]) -> str | None:
    """Return the ranges as text: one if it is the same for all streams, else each; None without streams."""
    names: dict[str | None, list[str]] = {}
    for parsed in sorted(streams.values(), key=lambda parsed: parsed.name):
        names.setdefault(parsed.range, []).append(parsed.name)
    if len(names) < 2:
        return next(iter(names), None)
    lines = [
        f"{named(stream_names)}: {range_ or 'all'}"
        for range_, stream_names in islice(names.items(), MAX_SHOWN)
    ]
    more = len(names) - len(lines)
    return "; ".join([*lines, f"and {more} other stretches"] if more else lines)


def with_time_expression(streams: Mapping[str, ParsedVideoQuery]) -> dict[str, ParsedVideoQuery]:
    """Return the streams whose clocks contain the time in the query; all if none does.

    "Yesterday" is no time of a recording, whose clock has no date.
    """
    timed = {name: parsed for name, parsed in streams.items() if parsed.time_expression is not None}
    return timed or dict(streams)


def named(names: Sequence[str]) -> str:
    """Return the first few names, and the number of others."""
    more = len(names) - MAX_SHOWN
    return ", ".join([*names[:MAX_SHOWN], f"{more} more"] if more > 0 else names)


def merge_ranges(spans: Sequence[Span]) -> list[Span]:
    """Merge the same time in overlapping ranges; all have the same other bounds, and both ends."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start or EPOCH, span.end or EPOCH)):
        start, end = span.start, span.end
        if merged and start and end and merged[-1].end and start <= merged[-1].end:
            merged[-1] = replace(merged[-1], end=max(merged[-1].end, end))
        else:
            merged.append(span)
    return merged


def score_captions(query: ResolvedStreams, hits: Sequence[Hit]) -> dict[str, ScoredCaption]:
    """Return hits with times as scored captions, by document. Neighbors are scored separately."""
    analyser = analyzer_for(query.access.collection.language)
    terms = frozenset(analyser.terms(query.text))
    captions: dict[str, ScoredCaption] = {}
    for hit in hits:
        period, source = hit.document.occurred, hit.document.source
        if period is not None and hit.document.id not in captions:
            clock = query.streams[source].clock
            captions[hit.document.id] = ScoredCaption(
                stream=source,
                start=clock.seconds(period.start),
                end=clock.seconds(period.end),
                score=hit.parts["keyword"] + hit.parts["vector"],
                similarity=nan if hit.similarity is None else hit.similarity,
                words=terms.intersection(analyser.terms(hit.chunk.text)) if hit.bm25 else frozenset(),
            )
    return captions


def caption_of(query: ResolvedStreams, document: Document, text: str) -> Caption:
    """Return a document of one of the streams, on its clock."""
    return as_caption(document, text, query.streams[document.source].clock)


def moment_of(query: ResolvedStreams, stretch: MomentSpan, captions: Sequence[Caption | None]) -> Moment:
    """Return a moment with those of its captions that exist."""
    parsed = query.streams[stretch.stream]
    return Moment(
        stream=parsed.stream.source,
        start=stretch.start,
        end=stretch.end,
        start_text=format_time(stretch.start, parsed.clock),
        end_text=format_time(stretch.end, parsed.clock),
        captions=tuple(caption for caption in captions if caption is not None),
        score=stretch.score,
        parts=stretch.parts,
    )


def whole_ranges(query: ResolvedStreams, hits: Sequence[Hit]) -> list[Moment]:
    """Return the content of the ranges, as one moment per stream, in the order of time."""
    by_stream: dict[str, list[Caption]] = {}
    for hit in hits:
        by_stream.setdefault(hit.document.source, []).append(caption_of(query, hit.document, hit.chunk.text))
    moments = []
    for name, captions in by_stream.items():
        captions.sort(key=lambda caption: (caption.start or 0.0, caption.end or 0.0, caption.document.id))
        first = min(caption.start or 0.0 for caption in captions)
        last = max(caption.end or 0.0 for caption in captions)
        stretch = MomentSpan(name, first, last, (), 1.0, {IN_RANGE: 1.0})
        moments.append(moment_of(query, stretch, captions))
    return moments


UNKNOWN = Extent(0, None, None)
"""The end of a stream is read only if a time has to be resolved."""
MAX_UNCHECKED_STREAMS = 2
"""With more streams, the query is first checked for a time at all."""
MIN_CAPTIONS = 100
"""Minimum number of captions read."""
HITS_PER_MOMENT = 3
"""Number of hits per requested moment whose surrounding captions are read."""
TOKENS_PER_CAPTION = 20
"""Tokens of a window per requested caption."""
UNREAD_TIME = (
    "{!r} looks like a time, but was not read as one of these streams; write it as 2025-03-10 or 'last week',"
    " or give a range"
)
AROUND = "adjacent"
"""The part of the score of a caption that was added with its moment."""


class VideoSearch(Service, checked=False):
    """Searches streams."""

    def __init__(self, context: EngineContext, searcher: Searcher) -> None:
        super().__init__(context)
        self._searcher = searcher
        self._reader = StreamReader(context)

    async def search(self, query: StreamQuery) -> Moments:
        """Return the moments of streams that answer a query, best first."""
        resolved = await self._resolve(query)
        retrieval = await self._find_candidates(resolved, max(MIN_CAPTIONS, 10 * query.limit))
        start = perf_counter()
        if resolved.text:
            best = await self._find_moments(resolved, retrieval.hits, query.limit)
        else:
            best = whole_ranges(resolved, retrieval.hits)[: query.limit]
        took = {"merge_moments": (perf_counter() - start) * 1_000}
        return Moments(
            outcome="found" if best else "no_match",
            moments=tuple(best),
            plan={**retrieval.plan, **resolved.plan},
            notices=retrieval.notices,
            timings={**retrieval.timings, **took},
            ranges=tuple(
                StreamRange(source, parsed.span.start, parsed.span.end)
                for source, parsed in resolved.streams.items()
                if parsed.span.start is not None or parsed.span.end is not None
            ),
            confidence=retrieval.confidence,
        )

    async def window(self, query: StreamQuery, max_tokens: int | Budget, form: WindowForm) -> StreamWindow:
        """Build the window of a query to streams. It never exceeds the budget."""
        budget = window_budget(max_tokens, self._parts.settings)
        resolved = await self._resolve(query)
        labels = {name: parsed.name for name, parsed in resolved.streams.items()}
        zones = {name: parsed.clock.zone for name, parsed in resolved.streams.items()}

        async def search(limit: int) -> Retrieval:
            return await self._with_moments(resolved, await self._find_candidates(resolved, limit), limit)

        index_query = Query(resolved.text, query.collection, resolved.filter)
        before = await self._searcher.previous(form.previous, index_query)
        options = WindowOptions(labels if len(labels) > 1 else {}, zones, previous=before)
        how = WindowPlan(tokens_per_hit=TOKENS_PER_CAPTION, options=options)
        window = await self._searcher.fill_window(search, budget, form, how)
        cited = list(dict.fromkeys(citation.document for citation in window.citations))
        documents = await self._authorized.inside(resolved.access, cited)
        captions = tuple(
            with_clock_times(document, resolved.streams[document.source].clock) for document in documents
        )
        streams = {caption.source: resolved.streams[caption.source].stream.source for caption in captions}
        return StreamWindow(captions, tuple(streams.values()), resolved.plan, window)

    async def _resolve(self, query: StreamQuery) -> ResolvedStreams:
        """Resolve the query: the streams, the range of each, and the remaining query."""
        check_query(
            query.query,
            {
                "limit": query.limit,
                "min_similarity": query.min_similarity,
                "min_confidence": query.min_confidence,
            },
            self._parts.settings,
        )
        query = replace(query, filter=with_min_trust(query.filter, query.min_trust))
        access = await self._authorized.collection(query.collection)
        if query.streams:
            names = dict.fromkeys(query.streams)
            sources = [(await self._reader.source(name, query.collection))[1] for name in names]
        else:
            sources = [source for source in await self._authorized.sources(access) if source.kind == "stream"]
        at = query.at or self._parts.clock()
        is_timed = query.read_times
        if len(sources) > MAX_UNCHECKED_STREAMS and query.read_times and not may_name_time(query.query, at):
            query = replace(query, read_times=False)
        every = {str(source.id): await self._parse_query(query, access, source, at) for source in sources}
        streams = with_time_expression(every)
        rest = (
            parsed.time_expression.rest for parsed in streams.values() if parsed.time_expression is not None
        )
        time_range = ranges(streams)
        plan = {} if time_range is None else {"time_range": time_range}
        without = sorted(parsed.name for source, parsed in every.items() if source not in streams)
        if without:
            plan[SKIPPED_STREAMS] = f"{named(without)} (no such time on the clock)"
        text = next(rest, query.query).strip()
        notices = tuple(map(UNREAD_TIME.format, unread_times(text))) if is_timed else ()
        return ResolvedStreams(query, access, text, streams, plan, notices)

    async def _parse_query(
        self, query: StreamQuery, access: CollectionAccess, source: Source, at: datetime
    ) -> ParsedVideoQuery:
        clock = clock_of(source)
        span = span_of(query.range, clock)
        timed = query.read_times or span.start is not None or span.end is not None
        extent = await self._authorized.extent(access, source, counted=False) if timed else UNKNOWN
        stream = stream_of(source, extent)
        face = ClockFace(clock, stream.wall, stream.first, stream.last, at, stream.live)
        if query.read_times and span.start is None and span.end is None:
            time_expression = find_time(query.query, face)
            if time_expression is not None:
                return ParsedVideoQuery(
                    stream,
                    clock,
                    replace(span, start=time_expression.start, end=time_expression.end),
                    face,
                    time_expression,
                )
        return ParsedVideoQuery(stream, clock, span, face)

    async def _find_candidates(self, resolved: ResolvedStreams, limit: int) -> Retrieval:
        """Return the hits, and which times of the query were not read."""
        retrieval = await self._find_hits(resolved, limit)
        return replace(retrieval, notices=(*retrieval.notices, *resolved.notices))

    async def _find_hits(self, resolved: ResolvedStreams, limit: int) -> Retrieval:
        """Return the hits; without a query, the captions in the range."""
        query = resolved.query
        maximum = min(limit, self._parts.settings.max_limit)
        if not resolved.streams or not (resolved.text or resolved.bounded):
            return Retrieval("no_match", ())
        if not resolved.text:
            return await self._read_ranges(resolved, maximum)
        index_query = Query(
            resolved.text,
            query.collection,
            resolved.filter,
            limit=maximum,
            min_similarity=query.min_similarity,
            min_confidence=query.min_confidence,
        )
        retrieval = await self._searcher.search_collection(
            check_query(index_query, {}, self._parts.settings), resolved.access, alone=True
        )
        return await self._searcher.finish(index_query, retrieval)

    async def _read_ranges(self, query: ResolvedStreams, limit: int) -> Retrieval:
        """Return the captions in the ranges, nearest to the time of the query first."""
        ranked: list[tuple[float, Hit]] = []
        for parsed in query.streams.values():
            last = parsed.time_expression is not None and parsed.time_expression.relation in NEARING
            source = parsed.stream.source
            rows = await self._authorized.stretches(
                query.access, source, [parsed.span], limit=limit, last=last
            )
            documents = [document for document, _ in rows if _matches(query, document)]
            for rank, hit in enumerate(await self._read_hits([document.id for document in documents])):
                far = len(documents) - rank if last else rank
                ranked.append((-far, replace(hit, score=1.0 / (1 + far), parts={IN_RANGE: 1.0 / (1 + far)})))
        hits = [hit for _, hit in sorted(ranked, key=lambda ranked_hit: -ranked_hit[0])][:limit]
        return Retrieval("found" if hits else "no_match", tuple(hits), plan={"retrievers": "time"})

    async def _read_hits(self, documents: Sequence[str]) -> list[Hit]:
        rows = await self._authorized.beginnings(documents)
        return [Hit(row.chunk, row.document, 0.0, {}, None, None) for row in rows]

    async def _with_moments(self, query: ResolvedStreams, retrieval: Retrieval, limit: int) -> Retrieval:
        """Group hits into moments, each with the captions between its hits."""
        if not query.text:
            return retrieval
        by_document: dict[str, Hit] = {}
        for hit in retrieval.hits:
            by_document.setdefault(hit.document.id, hit)
        brought: dict[str, Hit] = {}
        for moment in await self._find_moments(query, retrieval.hits, max(limit // 5, 1)):
            names = [caption.document.id for caption in moment.captions]
            best = max(
                (by_document[name] for name in names if name in by_document), key=lambda hit: hit.score
            )
            brought = {name: best for name in names if name not in by_document} | brought
        beside = [
            replace(hit, score=best.score, parts={AROUND: best.score}, along_with=best.chunk.id)
            for hit in await self._read_hits(list(brought))
            for best in (brought[hit.document.id],)
        ]
        return replace(retrieval, hits=(*retrieval.hits, *beside))

    async def _find_moments(self, query: ResolvedStreams, hits: Sequence[Hit], limit: int) -> list[Moment]:
        """Return the best time ranges around hits, with the other captions in them."""
        seen = score_captions(query, hits)
        for name, spans in self._spans_around(query, hits[: HITS_PER_MOMENT * max(limit, 1)]).items():
            parsed = query.streams[name]
            origin = to_microseconds(parsed.clock.origin)
            for spot in await self._authorized.list_caption_positions(
                query.access, parsed.stream.source, spans
            ):
                if spot.document not in seen:
                    times = (spot.start - origin) / 1_000_000, (spot.end - origin) / 1_000_000
                    seen[spot.document] = ScoredCaption(name, *times, nan)
        names = list(seen)
        best = moments(list(seen.values()), limit=limit)
        member_ids = dict.fromkeys(names[position] for span in best for position in span.members)
        captions = {
            str(hit.document.id): caption_of(query, hit.document, hit.chunk.text)
            for hit in hits
            if hit.document.chunks == 1 and hit.document.id in member_ids
        }
        others = await self._authorized.inside(
            query.access, [name for name in member_ids if name not in captions]
        )
        documents = [document for document in others if _matches(query, document)]
        texts = await self._authorized.texts(documents)
        captions |= {
            document.id: caption_of(query, document, texts[document.id])
            for document in documents
            if document.id in texts
        }
        return [
            moment_of(query, span, [captions.get(names[position]) for position in span.members])
            for span in best
        ]

    def _spans_around(self, query: ResolvedStreams, hits: Sequence[Hit]) -> dict[str, list[Span]]:
        """Return the captions around hits in the ranges, by stream."""
        near = timedelta(seconds=TYPICAL_SECONDS * (1.0 - SHARE_BEFORE))
        spans_by_stream: dict[str, list[Span]] = {}
        for hit in hits:
            period = hit.document.occurred
            if period is not None:
                bounds = query.streams[hit.document.source].span
                spans_by_stream.setdefault(hit.document.source, []).append(
                    intersect_range(bounds, period.start - near, period.end + near)
                )
        return {name: merge_ranges(spans) for name, spans in spans_by_stream.items()}


def _matches(query: ResolvedStreams, document: Document) -> bool:
    return matches(query.query.filter, document_row(document))
