"""Ports of streams: timelines of captions, files of captions, alerts and summaries."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from conspectus.deferred import dataclass
from conspectus.model.alerts import Alert, DeliveryState
from conspectus.model.captions import CaptionTrack
from conspectus.model.ids import DocumentId, SourceId, UserId
from conspectus.model.records import Document, EmbeddingSpace, Kind, Metadata, Period


@dataclass(frozen=True, slots=True)
class Span:
    """Which of a source: what shares an instant with [start, end), or with `contains` lies wholly inside.

    `first` and `last` bound the sequence, both included; None is open everywhere.
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
    """The number of captions of a source, the first start and the last end among them, None without any."""

    captions: int
    first: datetime | None
    last: datetime | None


@dataclass(frozen=True, slots=True)
class Spot:
    """The time range of a caption or an event, in microseconds since 1970."""

    document: DocumentId
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class EntityOccurrence:
    """A name that a caption or an event gives: among its entities, or as its speaker."""

    document: DocumentId
    name: str
    occurred: Period | None


class Timelines(Protocol):
    """A part of Records."""

    async def timeline(
        self, source: SourceId, span: Span, *, kind: Kind = "caption", after: str | None = None, limit: int
    ) -> TimelinePage:
        """Captions or events of a source with their whole texts, in the order of (start, end, sequence, key).

        Those without event time come last, and only where the span names no time.
        """

    async def stretches(
        self, source: SourceId, spans: Sequence[Span], *, limit: int, last: bool = False
    ) -> Sequence[tuple[Document, str]]:
        """Captions and events with times that lie in any of the spans, each once, in the order of time.

        The first `limit` of them, or with `last` the last ones.
        """

    async def list_positions(self, source: SourceId, spans: Sequence[Span]) -> Sequence[Spot]:
        """The same without reading them, and all of it, in no order."""

    async def names(self, source: SourceId, span: Span) -> Mapping[str, int]:
        """In how many captions and events of a source each name is given, as it is spelt."""

    async def mentions(
        self, source: SourceId, span: Span, *, names: Sequence[str]
    ) -> Sequence[EntityOccurrence]:
        """The documents that have any of these entities, in no particular order."""

    async def extent(self, source: SourceId, *, counted: bool = True) -> Extent:
        """How many captions a source has (0 where they are not counted), and from when to when they go."""


Watch: TypeAlias = Callable[[float, float], None]
"""Is called several times a second with the seconds of a recording that were read, and those that it has.

They are 0 if unknown. It may raise what ends the reading."""


def ignore_progress(_: float, __: float) -> None:
    """Watch nothing."""


class CaptionReader(Protocol):
    """Reads every format it knows; what a file is called counts where its form does not tell."""

    def read(
        self, data: bytes | Path, name: str, *, sentences: bool, watch: Watch = ignore_progress
    ) -> CaptionTrack:
        """The captions of a file, or with `sentences` its sentences, each with the times of its cues.

        Those of a recording are its speech. Raises UnreadableFile for what holds no captions that can be
        read, TooLarge over a limit, and what `watch` raises.
        """


MAX_WAIT_SECONDS: Final = 600.0
"""Seconds until a webhook that could not be delivered is tried again, at most."""


@dataclass(frozen=True, slots=True)
class Behind:
    """An alert with unchecked changes; it needs those that have chunks after `since`."""

    alert: Alert
    since: int


@dataclass(frozen=True, slots=True)
class Match:
    """A caption that matches an alert, and why."""

    document: DocumentId
    source: SourceId
    occurred: Period | None
    reason: str


@dataclass(frozen=True, slots=True)
class Checked:
    """How far an alert has come: what matched in the changes after `alert.checked`, up to `until`."""

    alert: Alert
    until: int
    matches: tuple[Match, ...] = ()


@dataclass(frozen=True, slots=True)
class AlertMatch:
    """One time that an alert went off, as it is kept: the caption's text stays where it is."""

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
        """The id by which the receiver of a webhook recognizes it, also when it is sent again."""
        return f"{self.alert.id}-{self.number}"


@dataclass(frozen=True, slots=True)
class Delivery:
    """The result of a webhook: with `due`, it is sent again then."""

    state: DeliveryState
    attempts: int
    error: str | None = None
    due: datetime | None = None


class Alerts(Protocol):
    """The rows of alerts and of their matches; every method is one transaction."""

    async def put(self, alert: Alert, *, maximum: int) -> Alert:
        """Store an alert, or change the stored one of that id, which keeps its position.

        A new one begins after the newest change, so earlier writes are not matched. Raises NotFound for an
        unknown collection, and TooLarge if its owner has `most` already.
        """

    async def alert(self, alert: str) -> Alert | None:
        """The alert of that id."""

    async def list_alerts_of(self, owner: UserId) -> Sequence[Alert]:
        """The alerts of a person, by name."""

    async def delete(self, alert: str) -> bool:
        """Delete it with all its matches; return whether it existed."""

    async def behind(self) -> Sequence[Behind]:
        """Those that have not seen all changes of their collection, those at the same change together."""

    async def record(self, checked: Sequence[Checked], *, now: datetime) -> int:
        """Store the matches of alerts and their positions, all or nothing; return the number of new events.

        Matches of one alert and stream that overlap, or lie no more than its gap apart, are one event;
        matches that belong to a sent event extend it. A match without times is an event of its own, once.
        Deleted captions are left out, and so are matches of an alert that was checked meanwhile.
        """

    async def events(
        self, owner: UserId, *, alert: str | None = None, after: int = 0, limit: int
    ) -> Sequence[AlertMatch]:
        """The matches of the alerts of a person, or of one of them, after a number, in order."""

    async def newest(self, owner: UserId) -> int:
        """The number of the newest event of a person's alerts, 0 without any."""

    async def list_due_alerts(self, *, now: datetime) -> Sequence[str]:
        """The alerts with an event whose delivery is due."""

    async def due(self, alert: str, *, now: datetime) -> AlertMatch | None:
        """The first event of an alert whose delivery is due."""

    async def set_delivery(self, number: int, delivery: Delivery) -> None:
        """Store the state of a delivery, unless it is final or the event is deleted."""


class Poster(Protocol):
    """Sends what alerts tell to addresses outside."""

    def check(self, url: str) -> None:
        """Raise InvalidInput for an invalid address, and ForbiddenAddress for one that is not allowed."""

    async def post(self, url: str, body: bytes, *, id: str) -> None:
        """Send JSON once; an answer other than a success raises FetchFailed, `passing` where it may pass."""

    async def close(self) -> None:
        """Close all connections."""


CaptionPlace: TypeAlias = tuple[float, str]
"""The position of a caption without an index: its start, and its id for equal starts."""


@dataclass(frozen=True, slots=True)
class SummaryBounds:
    """The begin and end of a batch by time when it was summarized, and whether it was full then."""

    first: CaptionPlace
    last: CaptionPlace
    full: bool


@dataclass(frozen=True, slots=True)
class NewSummary:
    """A summary to keep, with what it was made of: captions with their fingerprints, earlier summaries by id.

    `recipe` names the request that had it made.
    """

    id: str
    recipe: str
    text: str
    captions: tuple[tuple[DocumentId, str], ...]
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SavedSummary:
    """The request of a live summary, and the user for whom it is made."""

    owner: UserId
    request: Metadata
    since: datetime


class Summaries(Protocol):
    """Part of the system of record. Deleting or replacing a caption there deletes what was made of it."""

    async def text(self, summary: str) -> str | None:
        """The summary of that id."""

    async def select_stored(self, summaries: Sequence[str]) -> Collection[str]:
        """Those of the ids that are stored."""

    async def add(self, source: SourceId, summary: NewSummary) -> None:
        """Store it, unless there is one of that id.

        Raises PreconditionFailed where a caption or a summary that it was made of has changed.
        """

    async def borders(self, source: SourceId, recipe: str) -> Sequence[SummaryBounds]:
        """The boundaries of the batches of a request, in order."""

    async def set_boundaries(self, source: SourceId, recipe: str, borders: Sequence[SummaryBounds]) -> None:
        """Store them in place of those that there were."""

    async def tidy(self, source: SourceId, recipe: str, used: Collection[str]) -> int:
        """Delete the summaries that a request had made and does not use any more; how many."""

    async def vectors(
        self, documents: Sequence[DocumentId], space: EmbeddingSpace
    ) -> Mapping[DocumentId, bytes]:
        """The vectors of the first chunks of those documents that have one."""

    async def get_live_summary(self, source: SourceId) -> SavedSummary | None:
        """The live summary of a stream, if one is set."""

    async def set_live_summary(self, source: SourceId, live: SavedSummary | None) -> None:
        """Summarize a stream by this from now on, or no more. Raises NotFound."""
