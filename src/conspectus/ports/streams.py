"""Ports of streams: timelines of captions, files of captions, alerts and summaries."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol, TypeAlias

from conspectus.model.ids import DocumentId, SourceId, UserId
from conspectus.model.records import Document, EmbeddingSpace, Kind, Metadata, Period
from conspectus.model.streams import Alert, CaptionTrack, DeliveryState


@dataclass(frozen=True, slots=True)
class Span:
    """Selects captions of a source: those that overlap [start, end), or with `contains` lie inside it.

    `first` and `last` bound the sequence, both included; None is unbounded.
    """

    start: datetime | None = None
    end: datetime | None = None
    contains: bool = False
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class TimelinePage:
    """Documents with their texts, and the cursor of the next page."""

    documents: tuple[tuple[Document, str], ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class Extent:
    """The number of captions of a source, with their first start and last end; None without any."""

    captions: int
    first: datetime | None
    last: datetime | None


@dataclass(frozen=True, slots=True)
class Spot:
    """The time range of a caption or event, in microseconds since 1970."""

    document: DocumentId
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class EntityOccurrence:
    """A name in a caption or event: among its entities, or as its speaker."""

    document: DocumentId
    name: str
    occurred: Period | None


class Timelines(Protocol):
    """Captions and events by time; a part of the records."""

    async def timeline(
        self, source: SourceId, span: Span, *, kind: Kind = "caption", after: str | None = None, limit: int
    ) -> TimelinePage:
        """Return captions or events of a source with texts, in the order of (start, end, sequence, key).

        Those without an event time come last, and only if the span has no time.
        """
        ...

    async def stretches(
        self, source: SourceId, spans: Sequence[Span], *, limit: int, last: bool = False
    ) -> Sequence[tuple[Document, str]]:
        """Return captions and events that overlap any of the spans, once each, in the order of time.

        The first `limit` of them, or with `last` the last ones.
        """
        ...

    async def spots(self, source: SourceId, spans: Sequence[Span]) -> Sequence[Spot]:
        """Return all time ranges in the spans without reading the documents, in any order."""
        ...

    async def names(self, source: SourceId, span: Span) -> Mapping[str, int]:
        """Count the captions and events of a source by name, as spelled."""
        ...

    async def mentions(
        self, source: SourceId, span: Span, *, called: Sequence[str]
    ) -> Sequence[EntityOccurrence]:
        """Return the documents with any of these entities, in any order."""
        ...

    async def extent(self, source: SourceId, *, counted: bool = True) -> Extent:
        """Return how many captions a source has (0 if they are not counted), and their time range."""
        ...


class CaptionReader(Protocol):
    """Reads captions in every known format. The file name counts if the content is ambiguous."""

    def read(self, data: bytes, name: str, *, sentences: bool) -> CaptionTrack:
        """Return the captions of a file, or with `sentences` its sentences, each with the times of its cues.

        Raises UnreadableFile for a file without readable captions, TooLarge over a limit.
        """
        ...


MAX_WAIT_SECONDS: Final = 600.0
"""Maximum seconds between two attempts to deliver a webhook."""


@dataclass(frozen=True, slots=True)
class Behind:
    """An alert with unchecked changes: those of chunks after `since`."""

    alert: Alert
    since: int


@dataclass(frozen=True, slots=True)
class Match:
    """A caption that matches an alert, with its score."""

    document: DocumentId
    source: SourceId
    occurred: Period | None
    reason: str


@dataclass(frozen=True, slots=True)
class Checked:
    """The progress of an alert: the matches in the changes after `alert.checked`, up to `until`."""

    alert: Alert
    until: int
    matches: tuple[Match, ...] = ()


@dataclass(frozen=True, slots=True)
class AlertMatch:
    """A stored alert match, without the caption's text."""

    number: int
    alert: Alert
    source: SourceId
    occurred: Period | None
    document: DocumentId
    reason: str
    created: datetime
    delivery: DeliveryState
    attempts: int = 0
    error: str | None = None

    @property
    def id(self) -> str:
        """The id by which the receiver of a webhook recognizes repeated deliveries."""
        return f"{self.alert.id}-{self.number}"


@dataclass(frozen=True, slots=True)
class Delivery:
    """The result of a webhook delivery; with `due`, it is retried then."""

    state: DeliveryState
    attempts: int
    error: str | None = None
    due: datetime | None = None


class Alerts(Protocol):
    """The rows of alerts and their matches. Every method is one transaction."""

    async def put(self, alert: Alert, *, maximum: int) -> Alert:
        """Store an alert, or update the one of that id, which keeps its position.

        A new one begins after the newest change, so earlier writes are not matched. Raises NotFound for an
        unknown collection, and TooLarge if its owner has `maximum` already.
        """
        ...

    async def alert(self, alert: str) -> Alert | None:
        """Return the alert of that id."""
        ...

    async def owned(self, owner: UserId) -> Sequence[Alert]:
        """Return the alerts of a person by name."""
        ...

    async def delete(self, alert: str) -> bool:
        """Delete an alert with all its matches. Returns whether it existed."""
        ...

    async def behind(self) -> Sequence[Behind]:
        """Return the alerts that have not seen all changes of their collection, grouped by position."""
        ...

    async def record(self, checked: Sequence[Checked], *, now: datetime) -> int:
        """Store the matches of alerts and their positions, all or none. Returns the number of new events.

        Matches of one alert and stream that overlap, or lie no more than its gap apart, are one event;
        matches that belong to a sent event extend it. A match without times is an event of its own, once.
        Matches of deleted captions, and of an alert that was checked meanwhile, are dropped.
        """
        ...

    async def events(
        self, owner: UserId, *, alert: str | None = None, after: int = 0, limit: int
    ) -> Sequence[AlertMatch]:
        """Return the matches of the alerts of a person, or of one of them, after a number, in order."""
        ...

    async def newest(self, owner: UserId) -> int:
        """Return the number of the newest event of a person's alerts; 0 without any."""
        ...

    async def waiting(self, *, now: datetime) -> Sequence[str]:
        """Return the alerts with a delivery that is due."""
        ...

    async def due(self, alert: str, *, now: datetime) -> AlertMatch | None:
        """Return the first event of an alert whose delivery is due."""
        ...

    async def set_delivery(self, number: int, delivery: Delivery) -> None:
        """Set the state of a delivery, unless it is final or the event was deleted."""
        ...


class Poster(Protocol):
    """Sends webhooks of alerts."""

    def check(self, url: str) -> None:
        """Raise InvalidInput for an invalid address, and ForbiddenAddress for one that is not allowed."""
        ...

    async def post(self, url: str, body: bytes, *, id: str) -> None:
        """Send JSON once. Raises FetchFailed unless the status is 2xx, `passing` if a retry may succeed."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


CaptionPlace: TypeAlias = tuple[float, str]
"""The position of a caption without an index: its start, and its id for equal starts."""


@dataclass(frozen=True, slots=True)
class SummaryBounds:
    """The start and end of a batch by time when it was summarized, and whether it was full then."""

    first: CaptionPlace
    last: CaptionPlace
    full: bool


@dataclass(frozen=True, slots=True)
class NewSummary:
    """A summary to store, with its origin: captions with fingerprints, and earlier summaries by id.

    `recipe` names the request that made it.
    """

    id: str
    recipe: str
    text: str
    captions: tuple[tuple[DocumentId, str], ...]
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SavedSummary:
    """The request of a live summary, and its owner."""

    owner: UserId
    request: Metadata
    since: datetime


class Summaries(Protocol):
    """Part of the system of record. Summaries are deleted if a caption of theirs is deleted or replaced."""

    async def text(self, summary: str) -> str | None:
        """Return the summary of that id."""
        ...

    async def add(self, source: SourceId, summary: NewSummary) -> None:
        """Store a summary, unless its id exists.

        Raises PreconditionFailed if a caption or a summary that it was made of has changed.
        """
        ...

    async def borders(self, source: SourceId, recipe: str) -> Sequence[SummaryBounds]:
        """Return the boundaries of the batches of a request, in order."""
        ...

    async def set_boundaries(self, source: SourceId, recipe: str, borders: Sequence[SummaryBounds]) -> None:
        """Replace the stored boundaries."""
        ...

    async def tidy(self, source: SourceId, recipe: str, used: Collection[str]) -> int:
        """Delete the summaries that a request no longer uses. Returns their number."""
        ...

    async def vectors(
        self, documents: Sequence[DocumentId], space: EmbeddingSpace
    ) -> Mapping[DocumentId, bytes]:
        """Return the vectors of the first chunks of those documents that have one."""
        ...

    async def standing(self, source: SourceId) -> SavedSummary | None:
        """Return the live summary of a stream, if one is set."""
        ...

    async def stand(self, source: SourceId, standing: SavedSummary | None) -> None:
        """Set or remove the live summary of a stream. Raises NotFound."""
        ...
