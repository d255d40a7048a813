"""Streams of captions: their inputs, queries and results."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Annotated, Literal, TypedDict

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example, Length
from conspectus.model.captions import EPOCH_YEAR, WHOLE, Caption, CaptionRange
from conspectus.model.checks import Checked
from conspectus.model.filter import EVERYTHING, DocumentFilter, Filter
from conspectus.model.parameters import (
    DEFAULT_HITS,
    CollectionName,
    EndText,
    HitLimit,
    Label,
    LowestTrust,
    MinConfidence,
    MinSimilarity,
    Name,
    QueryText,
    StartText,
    StoredTitle,
)
from conspectus.model.query import WindowFormOptions
from conspectus.model.records import Document, Source
from conspectus.model.results import ContextWindow
from conspectus.model.trust import MinTrust
from conspectus.model.validation import Validated


@dataclass(frozen=True, slots=True)
class NewStream(Checked):
    """A stream to be created or changed; fields that are None stay as they are.

    `start_time` is the instant of second 0. Without one, times are seconds of the recording, and instants are
    counted from 1970. `time_zone` is the IANA name of the zone for times of day in queries. A `live` stream
    gets more captions.
    """

    name: Annotated[Name, "Name of the stream.", Example("camera-1")]
    collection: CollectionName = "default"
    title: Annotated[Label, "Title of the stream."] | None = None
    start_time: Annotated[datetime | str | None, "Instant of second 0."] = None
    time_zone: Annotated[Label, "IANA time zone in which queries are read."] | None = None
    live: Annotated[bool | None, "More captions will come."] = None
    metadata: Annotated[Mapping[str, object] | None, "Metadata as JSON; replaces what is stored."] = None


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream as it is stored: `first` and `last` bound the times of its captions, None without any.

    `first_text` and `last_text` are these as timecodes, or as instants in its zone. `wall` says that its
    times are instants, not seconds of a recording.
    """

    source: Source
    title: StoredTitle
    start_time: Annotated[datetime, Example("2026-03-02T08:00:00Z")]
    time_zone: Annotated[str, Example("Europe/Berlin")]
    live: bool
    captions: int
    first: datetime | None
    last: datetime | None
    first_text: Annotated[str | None, Example("00:00:00")] = None
    last_text: Annotated[str | None, Example("01:02:03")] = None

    @property
    def wall(self) -> bool:
        """Whether the clock shows instants: it has a start time, or its times are not those of 1970."""
        return self.start_time.year != EPOCH_YEAR or (
            self.first is not None and self.first.year != EPOCH_YEAR
        )


@dataclass(frozen=True, slots=True)
class StreamQuery(Validated):
    """A query to one stream, to several, or without names to all that you may read.

    `range` limits the time. Without one, and with `read_times`, a time in the query does ("in the first
    five minutes"). `min_similarity` is the lowest similarity, `min_confidence` (0 to 1) the lowest
    confidence of all results and `limit` the maximum number of moments. `at` is the instant at which the
    query is asked (None: now). `min_trust` is the lowest level of a caption.
    """

    query: Annotated[QueryText, Example("When does the train arrive?")]
    streams: Annotated[
        tuple[Name, ...], Length(0, 1_000), "Names or ids of streams; none: all that you may read."
    ] = ()
    collection: CollectionName = "default"
    range: Annotated[CaptionRange, "Range of time that is searched."] = WHOLE
    read_times: Annotated[bool, "Read times in the query as a range."] = True
    filter: DocumentFilter = EVERYTHING
    min_similarity: MinSimilarity | None = None
    min_confidence: MinConfidence = 0.0
    limit: Annotated[HitLimit, "Maximum number of moments."] = DEFAULT_HITS
    at: Annotated[datetime | None, "Time of the query; by default now."] = None
    min_trust: LowestTrust | None = None


class StreamQueryOptions(TypedDict, total=False):
    """The fields of a StreamQuery besides `query`, as keyword arguments."""

    streams: tuple[str, ...]
    collection: str
    range: CaptionRange
    read_times: bool
    filter: Filter
    min_similarity: float | None
    min_confidence: float
    limit: int
    at: datetime | None
    min_trust: MinTrust | None


class StreamWindowOptions(StreamQueryOptions, WindowFormOptions, total=False):
    """The options of a window of a StreamQuery."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A time range of a stream that answers a query: adjacent captions, and their score.

    `start` and `end` are seconds on the stream's clock. `score` is the sum of `parts`.
    """

    stream: Source
    start: float
    end: float
    start_text: StartText
    end_text: EndText
    captions: tuple[Caption, ...]
    score: float
    parts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class StreamRange:
    """The time range of a stream that a query names or selects; None: open."""

    stream: Annotated[str, Example("camera-1")]
    start: datetime | None
    end: datetime | None


@dataclass(frozen=True, slots=True)
class Moments:
    """The moments that answer a query, best first.

    `plan` says how the query was read, `ranges` which part of a stream was searched where it was not all.
    `confidence` is the probability (0 to 1) that the moments hold the answer; 0 for a query of times only.
    """

    outcome: Literal["found", "no_match"]
    moments: tuple[Moment, ...]
    plan: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    ranges: tuple[StreamRange, ...] = ()
    confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class ShownCaption(Document):
    """A caption of a window with its times: seconds on its stream's clock, and a timecode or an instant."""

    start: float | None = None
    end: float | None = None
    start_text: StartText | None = None
    end_text: EndText | None = None


@dataclass(frozen=True, slots=True)
class StreamWindow:
    """A context window for a query to streams, with its captions in order, and their streams."""

    captions: tuple[ShownCaption, ...]
    streams: tuple[Source, ...]
    plan: Mapping[str, str]
    window: ContextWindow
