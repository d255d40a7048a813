"""Search in streams: moments, time ranges, and windows of captions."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import nan
from time import perf_counter

from conspectus.access.collection_access import CollectionAccess
from conspectus.engine.context import EngineContext
from conspectus.engine.searcher import Searcher
from conspectus.engine.service import Service
from conspectus.engine.stream_reader import StreamReader, as_caption, stream_of, with_clock_times
from conspectus.engine.video_query import (
    ResolvedStreams,
    SearchedStream,
    describe_ranges,
    intersect_range,
    list_first_names,
    may_name_time,
    merge_ranges,
    select_timed_streams,
)
from conspectus.engine.windows import WindowPlan, window_budget
from conspectus.ingest.captions import span_of
from conspectus.model.captions import Caption
from conspectus.model.filter import (
    document_row,
    matches,
    with_min_trust,
)
from conspectus.model.query import Budget, Query, WindowForm
from conspectus.model.records import Document, Source
from conspectus.model.results import Hit, Retrieval
from conspectus.model.streams import Moment, Moments, StreamQuery, StreamRange, StreamWindow
from conspectus.ports.streams import Extent, Span
from conspectus.retrieval.filler_captions import is_filler_caption
from conspectus.retrieval.first_mention import FIRST_MENTION_PART, first_mention_question
from conspectus.retrieval.moments import (
    SHARE_BEFORE,
    TYPICAL_SECONDS,
    MomentSpan,
    ScoredCaption,
    find_moments,
)
from conspectus.retrieval.query_checks import check_query
from conspectus.streams.caption_format import format_time
from conspectus.text.analyzer import analyzer_for
from conspectus.text.stream_clocks import clock_of
from conspectus.text.times import to_microseconds
from conspectus.time_expressions import ClockFace, describe_unread_times, find_time
from conspectus.window.build import WindowOptions

BACKWARD_RELATIONS = frozenset({"before", "until", "by"})
"""Relations to a time, after which the last caption of the range is the nearest to that time."""
SKIPPED_STREAMS = "skipped_streams"
"""The part of a plan that lists the streams without the time that the query names."""
IN_RANGE = "time_range"
"""The part of the score of a caption that is returned because it is in the range."""
UNREAD_EXTENT = Extent(0, None, None)
"""Stands for the extent of a stream, which is read only if a time has to be resolved."""
MAX_UNCHECKED_STREAMS = 2
"""With more streams, the query is first checked for any time, as the extent of each would be read."""
MIN_CAPTIONS = 100
"""Minimum number of captions read."""
HITS_PER_MOMENT = 3
"""Number of hits per requested moment whose surrounding captions are read."""
TOKENS_PER_CAPTION = 20
"""Tokens of a window for each caption that is retrieved first."""
WITH_MOMENT = "adjacent"
"""The part of the score of a caption that was added with its moment."""


class VideoSearch(Service, checked=False):
    """Searches streams for moments, and builds windows of captions."""

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
        merge_timing = {"merge_moments": (perf_counter() - start) * 1_000}
        return Moments(
            outcome="found" if best else "no_match",
            moments=tuple(best),
            plan={**retrieval.plan, **resolved.plan},
            notices=retrieval.notices,
            timings={**retrieval.timings, **merge_timing},
            ranges=tuple(
                StreamRange(source, searched.span.start, searched.span.end)
                for source, searched in resolved.streams.items()
                if searched.span.start is not None or searched.span.end is not None
            ),
            confidence=retrieval.confidence,
        )

    async def window(self, query: StreamQuery, max_tokens: int | Budget, form: WindowForm) -> StreamWindow:
        """Build the window of a query to streams. It never exceeds the budget."""
        budget = window_budget(max_tokens, self._parts.settings)
        resolved = await self._resolve(query)
        labels = {name: searched.name for name, searched in resolved.streams.items()}
        zones = {name: searched.clock.zone for name, searched in resolved.streams.items()}

        async def search(limit: int) -> Retrieval:
            return await self._with_moments(resolved, await self._find_candidates(resolved, limit), limit)

        index_query = Query(resolved.text, query.collection, resolved.filter)
        previous = await self._searcher.previous(form.previous, index_query)
        options = WindowOptions(labels if len(labels) > 1 else {}, zones, previous=previous)
        window_plan = WindowPlan(tokens_per_hit=TOKENS_PER_CAPTION, options=options)
        window = await self._searcher.fill_window(search, budget, form, window_plan)
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
        reads_times = query.read_times
        if len(sources) > MAX_UNCHECKED_STREAMS and query.read_times and not may_name_time(query.query, at):
            query = replace(query, read_times=False)
        all_streams = {
            str(source.id): await self._parse_query(query, access, source, at) for source in sources
        }
        streams = select_timed_streams(all_streams)
        texts_without_time = (
            searched.time_expression.rest
            for searched in streams.values()
            if searched.time_expression is not None
        )
        time_range = describe_ranges(streams)
        plan = {} if time_range is None else {"time_range": time_range}
        skipped = sorted(searched.name for source, searched in all_streams.items() if source not in streams)
        if skipped:
            plan[SKIPPED_STREAMS] = f"{list_first_names(skipped)} (no such time on the clock)"
        text = next(texts_without_time, query.query).strip()
        notices = describe_unread_times(text) if reads_times else ()
        return ResolvedStreams(query, access, text, streams, plan, notices)

    async def _parse_query(
        self, query: StreamQuery, access: CollectionAccess, source: Source, at: datetime
    ) -> SearchedStream:
        clock = clock_of(source)
        span = span_of(query.range, clock)
        is_timed = query.read_times or span.start is not None or span.end is not None
        extent = UNREAD_EXTENT
        if is_timed:
            extent = await self._authorized.captions.extent(access, source, counted=False)
        stream = stream_of(source, extent)
        face = ClockFace(clock, stream.wall, stream.first, stream.last, at, stream.live)
        if query.read_times and span.start is None and span.end is None:
            time_expression = find_time(query.query, face)
            if time_expression is not None:
                return SearchedStream(
                    stream,
                    clock,
                    replace(span, start=time_expression.start, end=time_expression.end),
                    face,
                    time_expression,
                )
        return SearchedStream(stream, clock, span, face)

    async def _find_candidates(self, resolved: ResolvedStreams, limit: int) -> Retrieval:
        """Return the hits, with notices about times of the query that were not read."""
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
        for searched in query.streams.values():
            last = (
                searched.time_expression is not None
                and searched.time_expression.relation in BACKWARD_RELATIONS
            )
            source = searched.stream.source
            rows = await self._authorized.captions.stretches(
                query.access, source, [searched.span], limit=limit, last=last
            )
            documents = [document for document, _ in rows if _matches(query, document)]
            for rank, hit in enumerate(await self._read_hits([document.id for document in documents])):
                distance = len(documents) - rank if last else rank
                score = 1.0 / (1 + distance)
                ranked.append((distance, replace(hit, score=score, parts={IN_RANGE: score})))
        hits = [hit for _, hit in sorted(ranked, key=lambda ranked_hit: ranked_hit[0])][:limit]
        return Retrieval("found" if hits else "no_match", tuple(hits), plan={"retrievers": "time"})

    async def _read_hits(self, documents: Sequence[str]) -> list[Hit]:
        rows = await self._authorized.beginnings(documents)
        return [Hit(row.chunk, row.document, 0.0, {}, None, None) for row in rows]

    async def _with_moments(self, query: ResolvedStreams, retrieval: Retrieval, limit: int) -> Retrieval:
        """Group hits into moments, each with the captions between its hits, without fillers."""
        if not query.text:
            return retrieval
        by_document: dict[str, Hit] = {}
        for hit in retrieval.hits:
            by_document.setdefault(hit.document.id, hit)
        best_hits: dict[str, Hit] = {}
        for moment in await self._find_moments(query, retrieval.hits, max(limit // 5, 1)):
            ids = [caption.document.id for caption in moment.captions]
            best = max((by_document[id] for id in ids if id in by_document), key=lambda hit: hit.score)
            # A caption of several moments stays with the first and best one.
            best_hits = {id: best for id in ids if id not in by_document} | best_hits
        added: list[Hit] = []
        for hit in await self._read_hits(list(best_hits)):
            if is_filler_caption(hit.chunk.text):
                continue
            best = best_hits[hit.document.id]
            added.append(
                replace(hit, score=best.score, parts={WITH_MOMENT: best.score}, along_with=best.chunk.id)
            )
        hits = [hit for hit in retrieval.hits if hit.bm25 or not is_filler_caption(hit.chunk.text)]
        return replace(retrieval, hits=(*hits, *added) if hits else retrieval.hits)

    async def _find_moments(self, query: ResolvedStreams, hits: Sequence[Hit], limit: int) -> list[Moment]:
        """Return the best time ranges around hits, with the other captions in them."""
        scored = score_captions(query, hits)
        for name, spans in self._spans_around(query, hits[: HITS_PER_MOMENT * max(limit, 1)]).items():
            searched = query.streams[name]
            origin = to_microseconds(searched.clock.origin)
            for position_row in await self._authorized.captions.list_caption_positions(
                query.access, searched.stream.source, spans
            ):
                if position_row.document not in scored:
                    times = (position_row.start - origin) / 1_000_000, (position_row.end - origin) / 1_000_000
                    scored[position_row.document] = ScoredCaption(name, *times, nan)
        document_ids = list(scored)
        best = find_moments(list(scored.values()), limit=limit)
        member_ids = dict.fromkeys(document_ids[position] for span in best for position in span.members)
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
            moment_of(query, span, [captions.get(document_ids[position]) for position in span.members])
            for span in best
        ]

    def _spans_around(self, query: ResolvedStreams, hits: Sequence[Hit]) -> dict[str, list[Span]]:
        """Return the ranges around hits whose captions are read, by stream."""
        margin = timedelta(seconds=TYPICAL_SECONDS * (1.0 - SHARE_BEFORE))
        spans_by_stream: dict[str, list[Span]] = {}
        for hit in hits:
            period = hit.document.occurred
            if period is not None:
                bounds = query.streams[hit.document.source].span
                spans_by_stream.setdefault(hit.document.source, []).append(
                    intersect_range(bounds, period.start - margin, period.end + margin)
                )
        return {name: merge_ranges(spans) for name, spans in spans_by_stream.items()}


def _matches(query: ResolvedStreams, document: Document) -> bool:
    return matches(query.query.filter, document_row(document))


def score_captions(query: ResolvedStreams, hits: Sequence[Hit]) -> dict[str, ScoredCaption]:
    """Return hits with times as scored captions, by document. Neighbors are scored separately."""
    analyser = analyzer_for(query.access.collection.language)
    question = first_mention_question(query.text)
    terms = frozenset(analyser.terms(query.text if question is None else question.subject))
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
                first_mention=hit.parts.get(FIRST_MENTION_PART, 0.0),
            )
    return captions


def caption_of(query: ResolvedStreams, document: Document, text: str) -> Caption:
    """Return a document of one of the streams, on its clock."""
    return as_caption(document, text, query.streams[document.source].clock)


def moment_of(query: ResolvedStreams, stretch: MomentSpan, captions: Sequence[Caption | None]) -> Moment:
    """Return a moment with those of its captions that exist."""
    searched = query.streams[stretch.stream]
    return Moment(
        stream=searched.stream.source,
        start=stretch.start,
        end=stretch.end,
        start_text=format_time(stretch.start, searched.clock),
        end_text=format_time(stretch.end, searched.clock),
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
