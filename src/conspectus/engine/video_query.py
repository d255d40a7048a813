"""What a query to streams asks for: the streams, the time range of each, and the remaining text."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from itertools import islice

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.policy import among
from conspectus.deferred import dataclass
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
)
from conspectus.model.streams import Stream, StreamQuery
from conspectus.ports.streams import Span
from conspectus.text.stream_clocks import StreamClock, timecode
from conspectus.text.times import EPOCH
from conspectus.time_expressions import ClockFace, TimeExpression, describe, find_time
from conspectus.time_expressions.clock_face import add_seconds
from conspectus.time_expressions.vocabulary import DAY

CAPTIONS_AND_EVENTS = In("kind", ("caption", "event"))
"""What a query to streams searches."""
MAX_SHOWN = 5
"""Maximum number of streams, and of time ranges, in a message."""
CENTURY_SECONDS = 36_525 * DAY


@dataclass(frozen=True, slots=True)
class SearchedStream:
    """A stream to be searched, with its time range and clock.

    `time_expression` is the part of the query that named the range; None if it named none.
    """

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
    """A query to streams with the streams to search, by source id, and its `text` without the time."""

    query: StreamQuery
    access: CollectionAccess
    text: str
    streams: Mapping[str, SearchedStream]
    plan: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()

    @property
    def bounded(self) -> bool:
        """Whether only a part of the streams is searched."""
        return any(range_filters(searched.span) for searched in self.streams.values())

    @property
    def filter(self) -> Filter:
        """The filter of candidates: captions and events of each stream in its range."""
        conditions: tuple[Filter, ...] = (CAPTIONS_AND_EVENTS,)
        if self.query.filter != EVERYTHING:
            conditions = (CAPTIONS_AND_EVENTS, self.query.filter)
        bounds_by_source = {name: range_filters(searched.span) for name, searched in self.streams.items()}
        if not any(bounds_by_source.values()):
            source_ids = [searched.stream.source.id for searched in self.streams.values()]
            return And((among(source_ids), *conditions))
        stream_filters = tuple(
            And((Eq("source", name), *bounds)) for name, bounds in bounds_by_source.items()
        )
        return And((Or(stream_filters), *conditions))


def may_name_time(query: str, at: datetime) -> bool:
    """Return whether the query names a time on the clock of any possible stream: a cheap test."""
    faces = (
        ClockFace(StreamClock(), False, EPOCH, add_seconds(EPOCH, CENTURY_SECONDS), at, live=True),
        ClockFace(
            StreamClock(),
            True,
            add_seconds(at, -CENTURY_SECONDS),
            add_seconds(at, CENTURY_SECONDS),
            at,
            live=True,
        ),
    )
    return any(find_time(query, face) is not None for face in faces)


def range_filters(span: Span) -> tuple[Filter, ...]:
    """Return the filters of a range. A period inside it does not overlap the time before and after."""
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


def describe_ranges(streams: Mapping[str, SearchedStream]) -> str | None:
    """Return the ranges of streams as text, once if all have the same; None without streams."""
    names: dict[str | None, list[str]] = {}
    for searched in sorted(streams.values(), key=lambda searched: searched.name):
        names.setdefault(searched.range, []).append(searched.name)
    if len(names) < 2:
        return next(iter(names), None)
    lines = [
        f"{list_first_names(stream_names)}: {range_ or 'all'}"
        for range_, stream_names in islice(names.items(), MAX_SHOWN)
    ]
    other_count = len(names) - len(lines)
    if other_count:
        lines.append(f"and {other_count} other stretches")
    return "; ".join(lines)


def select_timed_streams(streams: Mapping[str, SearchedStream]) -> dict[str, SearchedStream]:
    """Return the streams on whose clocks the query names a time; all streams if it names none.

    "Yesterday" is no time of a recording, whose clock has no date.
    """
    timed = {name: searched for name, searched in streams.items() if searched.time_expression is not None}
    return timed or dict(streams)


def list_first_names(names: Sequence[str]) -> str:
    """Return the first few names, and the number of others."""
    shown, others = list(names[:MAX_SHOWN]), len(names) - MAX_SHOWN
    if others > 0:
        shown.append(f"{others} more")
    return ", ".join(shown)


def merge_ranges(spans: Sequence[Span]) -> list[Span]:
    """Merge ranges that overlap in time. All have a start and an end, and the same other bounds."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start or EPOCH, span.end or EPOCH)):
        start, end = span.start, span.end
        if merged and start and end and merged[-1].end and start <= merged[-1].end:
            merged[-1] = replace(merged[-1], end=max(merged[-1].end, end))
        else:
            merged.append(span)
    return merged
