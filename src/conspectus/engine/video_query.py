"""A question to streams as it was read: which streams, which stretch of each, and what to search for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from math import nan

from conspectus.access.policy import among
from conspectus.access.reader import SourceRef
from conspectus.engine.stream_reader import as_caption
from conspectus.model.filter import EVERYTHING, And, Between, Eq, Filter, In, Not, Or, Overlaps
from conspectus.model.records import Document
from conspectus.model.results import Hit
from conspectus.model.streams import Caption, Moment, Stream, StreamQuery
from conspectus.ports.timelines import Span
from conspectus.retrieval.moments import MomentSpan, Seen
from conspectus.text.analyzer import analyzer_for
from conspectus.text.times import EPOCH, StreamClock, timecode
from conspectus.time_expressions import ClockFace, TimeExpression, described, time_said
from conspectus.time_expressions.clock import shifted
from conspectus.time_expressions.language import DAY

SEEN = In("kind", ("caption", "event"))
NEARING = frozenset({"before", "until", "by"})
"""What is nearest to a time that something was before is the last, and not the first."""

MOST_SHOWN = 5
"""So many streams, and stretches of them, are named to people."""
LEFT_OUT = "left out"
"""The part of a plan that says which streams have no such time as the question names."""

CENTURY = 36_525 * DAY
IN_RANGE = "in the time range"
"""The part of a score that says no more than that."""


@dataclass(frozen=True, slots=True)
class ParsedVideoQuery:
    """A stream that is asked, and the stretch of it that is meant; `said` where the question names it."""

    stream: Stream
    clock: StreamClock
    span: Span
    face: ClockFace
    said: TimeExpression | None = None

    @property
    def name(self) -> str:
        """What it is called."""
        return self.stream.title or self.stream.source.name

    @property
    def range(self) -> str | None:
        """The stretch for people; None for all of the stream."""
        if self.said is not None:
            return described(self.said, self.face)
        if self.span.start is None and self.span.end is None:
            return None
        start, end = (self._shown(each) for each in (self.span.start, self.span.end))
        return f"{start or 'the beginning'} to {end or 'the end'}"

    def _shown(self, moment: datetime | None) -> str | None:
        if moment is None:
            return None
        return moment.isoformat() if self.face.wall else timecode(self.clock.seconds(moment))


@dataclass(frozen=True, slots=True)
class ResolvedStreams:
    """What is left to search for, and where; `streams` by the ids of their sources."""

    question: StreamQuery
    place: SourceRef
    text: str
    streams: Mapping[str, ParsedVideoQuery]
    plan: Mapping[str, str] = field(default_factory=dict)

    @property
    def bounded(self) -> bool:
        """Whether less than all of the streams is meant."""
        return any(inside(looked.span) for looked in self.streams.values())

    @property
    def where(self) -> Filter:
        """What can be an answer: captions and events of the streams, each within its own stretch."""
        narrow = (SEEN,) if self.question.where == EVERYTHING else (SEEN, self.question.where)
        stretches = {name: inside(looked.span) for name, looked in self.streams.items()}
        if not any(stretches.values()):
            return And((among(looked.stream.source.id for looked in self.streams.values()), *narrow))
        each = tuple(And((Eq("source", name), *bounds)) for name, bounds in stretches.items())
        return And((Or(each), *narrow))


def may_say_time(question: str, at: datetime) -> bool:
    """Whether the question says a time on the clock of any stream: few do, and there may be many streams."""
    faces = (
        ClockFace(StreamClock(), False, EPOCH, shifted(EPOCH, CENTURY), at, live=True),
        ClockFace(StreamClock(), True, shifted(at, -CENTURY), shifted(at, CENTURY), at, live=True),
    )
    return any(time_said(question, face) is not None for face in faces)


def inside(span: Span) -> tuple[Filter, ...]:
    """The filters of a span; what lies within it shares nothing with what is around it."""
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


def narrowed(bounds: Span, start: datetime, end: datetime) -> Span:
    """What of [start, end) lies within bounds."""
    first = start if bounds.start is None else max(start, bounds.start)
    last = end if bounds.end is None else min(end, bounds.end)
    return Span(first, max(first, last), bounds.contains, bounds.first, bounds.last)


def ranges(streams: Mapping[str, ParsedVideoQuery]) -> str | None:
    """The stretches for people: one, where it is the same for all, else that of each; None of no stream."""
    names: dict[str | None, list[str]] = {}
    for looked in sorted(streams.values(), key=lambda each: each.name):
        names.setdefault(looked.range, []).append(looked.name)
    if len(names) < 2:
        return next(iter(names), None)
    shown = [f"{named(each)}: {range_ or 'all'}" for range_, each in islice(names.items(), MOST_SHOWN)]
    more = len(names) - len(shown)
    return "; ".join([*shown, f"and {more} other stretches"] if more else shown)


def telling(streams: Mapping[str, ParsedVideoQuery]) -> dict[str, ParsedVideoQuery]:
    """The streams on whose clocks the time is that a question names; all, where it is on none or names none.

    A recording has no yesterday: nothing in it is known to be of then.
    """
    told = {name: looked for name, looked in streams.items() if looked.said is not None}
    return told or dict(streams)


def named(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - MOST_SHOWN
    return ", ".join([*names[:MOST_SHOWN], f"{more} more"] if more > 0 else names)


def joined(spans: Sequence[Span]) -> list[Span]:
    """The same time in spans that do not overlap; all have the same bounds besides, and both ends."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda each: (each.start or EPOCH, each.end or EPOCH)):
        start, end = span.start, span.end
        if found and start and end and found[-1].end and start <= found[-1].end:
            found[-1] = replace(found[-1], end=max(found[-1].end, end))
        else:
            found.append(span)
    return found


def seen_of(asked: ResolvedStreams, hits: Sequence[Hit]) -> dict[str, Seen]:
    """The hits that have times as scored captions, by their documents: what stands beside is weighed anew."""
    analyser = analyzer_for(asked.place.collection.language)
    terms = frozenset(analyser.terms(asked.text))
    found: dict[str, Seen] = {}
    for hit in hits:
        period, source = hit.document.occurred, hit.document.source
        if period is not None and hit.document.id not in found:
            clock = asked.streams[source].clock
            found[hit.document.id] = Seen(
                stream=source,
                start=clock.seconds(period.start),
                end=clock.seconds(period.end),
                score=hit.parts["words"] + hit.parts["vectors"],
                similarity=nan if hit.similarity is None else hit.similarity,
                words=terms.intersection(analyser.terms(hit.chunk.text)) if hit.words else frozenset(),
            )
    return found


def caption_of(asked: ResolvedStreams, document: Document, text: str) -> Caption:
    """A document of one of the streams, on its clock."""
    return as_caption(document, text, asked.streams[document.source].clock)


def moment_of(asked: ResolvedStreams, stretch: MomentSpan, captions: Sequence[Caption | None]) -> Moment:
    """A stretch with those of its captions that are there."""
    return Moment(
        stream=asked.streams[stretch.stream].stream.source,
        start=stretch.start,
        end=stretch.end,
        captions=tuple(each for each in captions if each is not None),
        score=stretch.score,
        parts=stretch.parts,
    )


def whole_ranges(asked: ResolvedStreams, hits: Sequence[Hit]) -> list[Moment]:
    """What lies in the stretches that are meant, as one moment of each stream, in the order of time."""
    found: dict[str, list[Caption]] = {}
    for hit in hits:
        found.setdefault(hit.document.source, []).append(caption_of(asked, hit.document, hit.chunk.text))
    moments = []
    for name, captions in found.items():
        captions.sort(key=lambda each: (each.start or 0.0, each.end or 0.0, each.document.id))
        first = min(each.start or 0.0 for each in captions)
        last = max(each.end or 0.0 for each in captions)
        source = asked.streams[name].stream.source
        moments.append(Moment(source, first, last, tuple(captions), 1.0, {IN_RANGE: 1.0}))
    return moments
