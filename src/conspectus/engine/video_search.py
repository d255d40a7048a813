"""Questions to streams: what is said or seen, where, and in the time that the question names."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import nan
from time import perf_counter

from conspectus.access.reader import SourceRef
from conspectus.engine.context import EngineContext
from conspectus.engine.search import Searcher, WindowBuilder
from conspectus.engine.stream_reader import StreamReader, stream_of
from conspectus.engine.video_query import (
    IN_RANGE,
    LEFT_OUT,
    NEARING,
    ParsedVideoQuery,
    ResolvedStreams,
    caption_of,
    joined,
    may_say_time,
    moment_of,
    named,
    narrowed,
    ranges,
    seen_of,
    telling,
    whole_ranges,
)
from conspectus.ingest.captions import span_of
from conspectus.model.filter import document_row, matches
from conspectus.model.query import Budget, Query
from conspectus.model.records import Document, Source
from conspectus.model.results import Hit, Retrieval
from conspectus.model.streams import Caption, Moment, Moments, StreamQuery, StreamWindow
from conspectus.ports.timelines import Extent, Span
from conspectus.retrieval.candidates import asked as checked
from conspectus.retrieval.moments import BEFORE, TYPICAL_SECONDS, Seen, moments
from conspectus.text.times import clock_of, to_microseconds
from conspectus.time_expressions import ClockFace, time_said

UNKNOWN = Extent(0, None, None)
"""How far a stream goes is only looked up where a time has to be understood."""
FEW = 2
"""For more streams it is found out first whether the question may say a time at all."""
CANDIDATES = 100
"""So many captions are looked at, at the least."""
READ_AROUND = 3
"""For each moment that is wanted the captions around so many hits are read."""
SHORT = 20
"""A window asks for one caption per so many tokens."""
AROUND = "beside what was found"
"""The part of the score of a caption that only its moment brings along."""


class VideoSearch:
    """Answers questions to streams."""

    def __init__(self, context: EngineContext, searcher: Searcher, reader: StreamReader) -> None:
        self._parts = context.parts
        self._sight = context.sight
        self._searcher = searcher
        self._reader = reader

    async def find_moments(self, question: StreamQuery) -> Moments:
        """The moments of streams that answer a question, best first."""
        asked = await self._read(question)
        looked = await self._candidates(asked, max(CANDIDATES, 10 * question.limit))
        start = perf_counter()
        if asked.text:
            best = await self._moments(asked, looked.hits, question.limit)
        else:
            best = whole_ranges(asked, looked.hits)[: question.limit]
        took = {"put together": (perf_counter() - start) * 1_000}
        return Moments(
            outcome="found" if best else "nothing_relevant",
            moments=tuple(best),
            plan={**looked.plan, **asked.plan},
            notices=looked.notices,
            timings={**looked.timings, **took},
        )

    async def window(
        self, question: StreamQuery, budget: int | Budget, *, renderer: str = "text"
    ) -> StreamWindow:
        """The context for a question to streams, never over the budget."""
        wanted = Budget(budget) if isinstance(budget, int) else budget
        asked = await self._read(question)
        labels = {name: looked.name for name, looked in asked.streams.items()}
        zones = {name: looked.clock.zone for name, looked in asked.streams.items()}

        async def search(limit: int) -> Retrieval:
            return await self._with_moments(asked, await self._candidates(asked, limit), limit)

        several = labels if len(labels) > 1 else None
        window = await self._searcher.filled(
            search, wanted, renderer, WindowBuilder(each=SHORT, labels=several, zones=zones)
        )
        shown = list(dict.fromkeys(each.document for each in window.citations))
        captions = tuple(await self._sight.inside(asked.place, shown))
        streams = {each.source: asked.streams[each.source].stream.source for each in captions}
        return StreamWindow(captions, tuple(streams.values()), asked.plan, window)

    async def _read(self, question: StreamQuery) -> ResolvedStreams:
        """The question as it is meant: which streams, which stretch of each, and what to search for."""
        checked(question.prompt, {"limit": question.limit, "floor": question.floor}, self._parts.settings)
        place = await self._sight.place(question.collection)
        if question.streams:
            names = dict.fromkeys(question.streams)
            found = [(await self._reader.source(name, question.collection))[1] for name in names]
        else:
            found = [each for each in await self._sight.sources(place) if each.kind == "stream"]
        at = question.at or self._parts.clock()
        if len(found) > FEW and question.read_times and not may_say_time(question.prompt, at):
            question = replace(question, read_times=False)
        every = {str(each.id): await self._looked(question, place, each, at) for each in found}
        looked = telling(every)
        rest = (each.said.rest for each in looked.values() if each.said is not None)
        shown = ranges(looked)
        plan = {} if shown is None else {"time range": shown}
        without = sorted(each.name for source, each in every.items() if source not in looked)
        if without:
            plan[LEFT_OUT] = f"{named(without)} (no such time on the clock)"
        return ResolvedStreams(question, place, next(rest, question.prompt).strip(), looked, plan)

    async def _looked(
        self, question: StreamQuery, place: SourceRef, source: Source, at: datetime
    ) -> ParsedVideoQuery:
        clock = clock_of(source)
        span = span_of(question.range, clock)
        timed = question.read_times or span.start is not None or span.end is not None
        extent = await self._sight.extent(place, source, counted=False) if timed else UNKNOWN
        stream = stream_of(source, extent)
        face = ClockFace(clock, stream.wall, stream.first, stream.last, at, stream.live)
        if question.read_times and span.start is None and span.end is None:
            said = time_said(question.prompt, face)
            if said is not None:
                return ParsedVideoQuery(
                    stream, clock, replace(span, start=said.start, end=said.end), face, said
                )
        return ParsedVideoQuery(stream, clock, span, face)

    async def _candidates(self, asked: ResolvedStreams, limit: int) -> Retrieval:
        """The captions that are found; where there is nothing to search for, those that lie in the range."""
        question = asked.question
        most = min(limit, self._parts.settings.max_limit)
        if not asked.streams or not (asked.text or asked.bounded):
            return Retrieval("nothing_relevant", ())
        if not asked.text:
            return await self._in_range(asked, most)
        query = Query(asked.text, question.collection, asked.where, limit=most, floor=question.floor)
        return await self._searcher.look(checked(query, {}, self._parts.settings), asked.place, alone=True)

    async def _in_range(self, asked: ResolvedStreams, limit: int) -> Retrieval:
        """The captions in the stretches that are meant, nearest first to what was said."""
        found: list[tuple[float, Hit]] = []
        for looked in asked.streams.values():
            last = looked.said is not None and looked.said.relation in NEARING
            source = looked.stream.source
            rows = await self._sight.stretches(asked.place, source, [looked.span], limit=limit, last=last)
            kept = [document for document, _ in rows if _matches(asked, document)]
            for place, hit in enumerate(await self._hits_of([each.id for each in kept])):
                far = len(kept) - place if last else place
                found.append((-far, replace(hit, score=1.0 / (1 + far), parts={IN_RANGE: 1.0 / (1 + far)})))
        hits = [hit for _, hit in sorted(found, key=lambda each: -each[0])][:limit]
        return Retrieval("found" if hits else "nothing_relevant", tuple(hits), plan={"arms": "time"})

    async def _hits_of(self, documents: Sequence[str]) -> list[Hit]:
        rows = await self._sight.beginnings(documents)
        return [Hit(row.chunk, row.document, 0.0, {}, None, None) for row in rows]

    async def _with_moments(self, asked: ResolvedStreams, found: Retrieval, limit: int) -> Retrieval:
        """What was found, moment by moment, each with the captions between those that were found."""
        if not asked.text:
            return found
        by_document: dict[str, Hit] = {}
        for hit in found.hits:
            by_document.setdefault(hit.document.id, hit)
        brought: dict[str, Hit] = {}
        for moment in await self._moments(asked, found.hits, max(limit // 5, 1)):
            names = [each.document.id for each in moment.captions]
            best = max((by_document[name] for name in names if name in by_document), key=_score)
            brought = {name: best for name in names if name not in by_document} | brought
        beside = [
            replace(hit, score=best.score, parts={AROUND: best.score}, along_with=best.chunk.id)
            for hit in await self._hits_of(list(brought))
            for best in (brought[hit.document.id],)
        ]
        return replace(found, hits=(*found.hits, *beside))

    async def _moments(self, asked: ResolvedStreams, hits: Sequence[Hit], limit: int) -> list[Moment]:
        """The best stretches around what was found, with the captions there that were not."""
        seen = seen_of(asked, hits)
        for name, spans in self._near(asked, hits[: READ_AROUND * max(limit, 1)]).items():
            looked = asked.streams[name]
            origin = to_microseconds(looked.clock.origin)
            for spot in await self._sight.spots(asked.place, looked.stream.source, spans):
                if spot.document not in seen:
                    times = (spot.start - origin) / 1_000_000, (spot.end - origin) / 1_000_000
                    seen[spot.document] = Seen(name, *times, nan)
        names = list(seen)
        best = moments(list(seen.values()), limit=limit)
        wanted = dict.fromkeys(names[place] for each in best for place in each.members)
        captions = {
            str(hit.document.id): caption_of(asked, hit.document, hit.chunk.text)
            for hit in hits
            if hit.document.chunks == 1 and hit.document.id in wanted
        }
        captions |= await self._members(asked, [name for name in wanted if name not in captions])
        return [
            moment_of(asked, each, [captions.get(names[place]) for place in each.members]) for each in best
        ]

    def _near(self, asked: ResolvedStreams, hits: Sequence[Hit]) -> dict[str, list[Span]]:
        """What is around hits, in the stretches that are meant, by stream."""
        near = timedelta(seconds=TYPICAL_SECONDS * (1.0 - BEFORE))
        found: dict[str, list[Span]] = {}
        for hit in hits:
            period = hit.document.occurred
            if period is not None:
                bounds = asked.streams[hit.document.source].span
                found.setdefault(hit.document.source, []).append(
                    narrowed(bounds, period.start - near, period.end + near)
                )
        return {name: joined(spans) for name, spans in found.items()}

    async def _members(self, asked: ResolvedStreams, names: Sequence[str]) -> dict[str, Caption]:
        """Those that still exist and that the question's own filter leaves in."""
        kept = [each for each in await self._sight.inside(asked.place, names) if _matches(asked, each)]
        texts = await self._sight.texts(kept)
        return {each.id: caption_of(asked, each, texts[each.id]) for each in kept if each.id in texts}


def _matches(asked: ResolvedStreams, document: Document) -> bool:
    return matches(asked.question.where, document_row(document))


def _score(hit: Hit) -> float:
    return hit.score
