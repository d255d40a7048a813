"""Streams of captions: their inputs, queries and results."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Annotated, Literal, TypedDict

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example, Length, Range
from conspectus.model.checks import Checked
from conspectus.model.filter import EVERYTHING, DocumentFilter, Filter
from conspectus.model.ids import SourceId
from conspectus.model.parameters import (
    MAX_ALERT_STREAMS,
    MAX_QUERY,
    MAX_WEBHOOK,
    CollectionName,
    EndText,
    HitLimit,
    Label,
    ListedEntities,
    LowestTrust,
    MinConfidence,
    MinSimilarity,
    Name,
    PersonName,
    QueryText,
    StartText,
    StoredCollection,
    StoredId,
    StoredText,
    StoredTitle,
    StreamName,
    Text,
    Vector,
)
from conspectus.model.query import WindowFormOptions
from conspectus.model.records import Document, Metadata, Source
from conspectus.model.results import ContextWindow
from conspectus.model.trust import MinTrust, Trust
from conspectus.model.validation import Validated

TRACK = "captions"
"""The thread of all captions of a stream: the one before and the one after are neighbors."""
ORIGIN = "start_time"
ZONE = "time_zone"
LIVE = "live"
TITLE = "title"
"""Metadata of a stream's source: the instant of its second 0, its time zone, whether it is live, and its
title."""
ENTITIES = "entities"
EVENT_TYPE = "type"
"""Metadata of captions and events: names of entities, and the type of an event."""

When = Annotated[
    datetime | str | float, "Seconds or a timecode on the stream's clock, or an ISO 8601 instant."
]
"""Timecodes are `mm:ss`, `hh:mm:ss` and `1h2m3s`."""


@dataclass(frozen=True, slots=True)
class NewCaption(Checked):
    """A caption: text with a time range in a stream.

    `start` and `end` are on the stream's clock; without an end it is an instant, without both it has no time.
    `index` is its number in the stream (chunk_idx), `key` the caller's own name for it. Without a key the
    index identifies it, without both its text and times: the same caption is never stored twice.
    """

    text: Annotated[Text, "Text of the caption.", Example("A train arrives.")]
    start: Annotated[When | None, "Begin.", Example("00:12:30")] = None
    end: Annotated[When | None, "End; without one it is an instant.", Example("00:12:38")] = None
    index: Annotated[int | None, Range(0), "Its number in the stream."] = None
    key: Annotated[Label, "Name that the caller gives it."] | None = None
    speaker: Annotated[Label, "Who speaks."] | None = None
    entities: ListedEntities = ()
    metadata: Annotated[Mapping[str, object], "Metadata as JSON."] = field(default_factory=dict)
    vector: Annotated[Vector | None, "Embedding, if the caller has it."] = None


@dataclass(frozen=True, slots=True)
class NewStream(Checked):
    """A stream to be created or changed; fields that are None stay as they are.

    `start_time` is the instant of second 0: without one times are media time, and instants are counted from
    1970. `time_zone` is an IANA name for reading times of day in queries. `live` says that more captions will
    come.
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


EPOCH_YEAR = 1970


@dataclass(frozen=True, slots=True)
class Caption:
    """A stored caption (or event) with its text; `start` and `end` are seconds on its stream's clock.

    `start_text` and `end_text` are timecodes, or instants in the zone of the stream.
    """

    document: Document
    text: StoredText
    start: float | None
    end: float | None
    start_text: StartText | None = None
    end_text: EndText | None = None


@dataclass(frozen=True, slots=True)
class CaptionRange(Checked):
    """A range of captions of a stream: those that overlap [start, end), where None is open.

    With `contains`, only those that lie wholly inside. `first` and `last` limit the index, both inclusive.
    Without any of these, all captions are in it, also those without times.
    """

    start: When | None = None
    end: When | None = None
    contains: Annotated[bool, "Only captions that lie wholly inside."] = False
    first: Annotated[int | None, Range(0), "Number of the first caption, included."] = None
    last: Annotated[int | None, Range(-1), "Number of the last caption, included; -1: to the end."] = None


WHOLE = CaptionRange()
"""All of a stream."""


@dataclass(frozen=True, slots=True)
class CaptionPage:
    """Captions in the order of time, those without times last; `next` is the cursor of the next page."""

    captions: tuple[Caption, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class LiveCaption:
    """A caption as it was written; `sequence` grows, and is where to continue after a lost connection."""

    sequence: int
    caption: Caption


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
    limit: Annotated[HitLimit, "Maximum number of moments."] = 10
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


@dataclass(frozen=True, slots=True)
class CaptionTrack:
    """The captions of a file, in its order; `notice` says what was left out or changed."""

    captions: tuple[NewCaption, ...]
    title: str = ""
    language: str | None = None
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class CaptionImport:
    """The result of an import: streams by name with the number of their captions, and counts of outcomes.

    `skipped` counts the files in folders that hold no captions of a known format.
    """

    streams: Mapping[str, int]
    added: int
    replaced: int
    unchanged: int
    failures: tuple[tuple[str, str], ...] = ()
    notices: tuple[str, ...] = ()
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class NewEvent(Checked):
    """Something that happened in a stream, of a type; times as those of captions."""

    type: Annotated[Name, "Type of the event.", Example("arrival")]
    start: Annotated[When, Example("00:12:30")]
    end: Annotated[When | None, "End; without one it is an instant."] = None
    description: Annotated[Text, "Description of the event.", Example("A train arrives.")] = ""
    entities: ListedEntities = ()
    key: Annotated[Label, "Name that the caller gives it."] | None = None
    metadata: Annotated[Mapping[str, object], "Metadata as JSON."] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EventSpan:
    """An event: reports of one type that overlap or are close to each other, merged.

    `start` and `end` are seconds on the clock of the stream; `start_text` and `end_text` are timecodes, or
    instants in its zone. `documents` are the merged reports.
    """

    stream: SourceId
    type: Annotated[str, Example("arrival")]
    start: float
    end: float
    start_text: StartText
    end_text: EndText
    descriptions: Annotated[tuple[str, ...], Example(["A train arrives."])]
    entities: Annotated[tuple[str, ...], Example(["backup"])]
    documents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EntitySpan:
    """A time range in which an entity is present or mentioned."""

    stream: SourceId
    entity: Annotated[str, Example("backup")]
    start: float
    end: float
    start_text: StartText
    end_text: EndText
    documents: tuple[str, ...]


SummaryMode = Literal["batches", "refine"]
SummaryState = Literal["done", "failed"]


@dataclass(frozen=True, slots=True)
class SummaryRequest(Checked):
    """A request to summarize the captions of a range of one stream, `batch_size` at a time.

    `batches` summarizes each batch, and then all of these together; `refine` goes through the captions in
    order and improves one summary with each batch. `instructions` are added to the prompt. With a JSON
    `schema` the summary is an object that satisfies it. Without a chat model, or with `extractive`, at most
    `sentences` captions are selected instead.
    """

    stream: StreamName
    collection: CollectionName = "default"
    range: Annotated[CaptionRange, "Captions that are summarized."] = WHOLE
    mode: Annotated[SummaryMode, "Summarize batches and join them, or refine one summary."] = "batches"
    batch_size: Annotated[int, Range(1, 1_024), "Captions that are summarized together."] = 6
    instructions: Annotated[str, Length(0, 100_000), "What matters.", Example("Name the decisions.")] = ""
    schema: Annotated[Metadata | None, "JSON schema of the summary."] = None
    extractive: Annotated[bool, "Choose captions instead of asking a chat model."] = False
    sentences: Annotated[int, Range(1, 1_000), "Most captions that are chosen."] = 10


class SummaryRequestOptions(TypedDict, total=False):
    """The fields of a SummaryRequest besides `stream`, as keyword arguments."""

    collection: str
    range: CaptionRange
    mode: SummaryMode
    batch_size: int
    instructions: str
    schema: Metadata | None
    extractive: bool
    sentences: int


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """The summary of one batch: its time range (seconds), number of captions, state and text.

    A failed batch has the code and the message of its error instead of a text.
    """

    number: int
    start: float | None
    end: float | None
    captions: int
    state: SummaryState
    text: StoredText
    code: str | None = None
    error: str | None = None
    start_text: StartText | None = None
    end_text: EndText | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a range of a stream: `by` is a model's name, or `extractive`.

    `outcome` is `empty` if there are no captions, and `partial` if `failures` are left out. `data` is the
    object if a schema was given. `calls` counts the calls of the model for this answer. `trust` is the lowest
    level of its captions.
    """

    outcome: Literal["complete", "partial", "empty"]
    text: StoredText
    by: PersonName
    batches: tuple[BatchSummary, ...]
    data: Metadata | None = None
    calls: int = 0
    trust: Trust = "trusted"

    @property
    def failures(self) -> tuple[BatchSummary, ...]:
        """The batches that could not be summarized."""
        return tuple(batch for batch in self.batches if batch.state == "failed")


@dataclass(frozen=True, slots=True)
class NewAlert(Validated):
    """A saved query that is matched with each new caption of the streams (none named: all readable ones).

    A caption matches if it satisfies `filter`, and has all terms of `query` or a similarity of at least
    `min_similarity`. Matches of one stream closer than `gap_seconds` are one event, which is sent once to
    subscribers and to the `webhook`.
    """

    name: Annotated[Name, "Name of the alert.", Example("arrivals")]
    query: Annotated[
        str, Length(0, MAX_QUERY), "Text that a caption must have or resemble.", Example("a train arrives")
    ] = ""
    collection: CollectionName = "default"
    streams: Annotated[
        tuple[Name, ...],
        Length(0, MAX_ALERT_STREAMS),
        "Names or ids of streams; none: all that you may read.",
    ] = ()
    filter: DocumentFilter = EVERYTHING
    min_similarity: Annotated[float | None, Range(-1, 1), "Lowest cosine similarity of a caption."] = 0.5
    gap_seconds: Annotated[float, Range(0, 366 * 86_400), "Matches that are closer are one event."] = 4.0
    webhook: Annotated[str, Length(1, MAX_WEBHOOK), "Address that receives each event."] | None = None


@dataclass(frozen=True, slots=True)
class Alert:
    """A stored alert; `checked` is the change up to which captions were matched."""

    id: StoredId
    owner: PersonName
    collection: StoredCollection
    name: Annotated[str, Example("arrivals")]
    query: Annotated[str, Example("a train arrives")]
    streams: tuple[SourceId, ...]
    filter: Filter
    min_similarity: float | None
    gap_seconds: float
    webhook: Annotated[str | None, Example("https://example.org/hooks/alerts")]
    created: datetime
    checked: int


DeliveryState = Literal["none", "pending", "delivered", "failed"]


@dataclass(frozen=True, slots=True)
class AlertEvent:
    """A match of an alert. `number` grows, and is where a subscriber continues after a lost connection.

    `delivery` is that of the webhook, `none` without one.
    """

    number: int
    alert: Annotated[str, Example("0195f3a1c2d47e80b6a4c1d2e3f40a1e")]
    name: StoredCollection
    stream: SourceId
    start: float | None
    end: float | None
    document: StoredId
    text: StoredText
    reason: Annotated[str, Example("Both mean the nightly backup.")]
    created: datetime
    delivery: DeliveryState
    attempts: int = 0
    error: str | None = None
