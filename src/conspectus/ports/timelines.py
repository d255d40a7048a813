"""What a source of captions and events is read by: stretches of time, in their order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.records import Document, Kind, Period


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
    """Where in time a caption or an event is, in microseconds since 1970."""

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
        ...

    async def stretches(
        self, source: SourceId, spans: Sequence[Span], *, limit: int, last: bool = False
    ) -> Sequence[tuple[Document, str]]:
        """Captions and events with times that lie in any of the spans, each once, in the order of time.

        The first `limit` of them, or with `last` the last ones.
        """
        ...

    async def spots(self, source: SourceId, spans: Sequence[Span]) -> Sequence[Spot]:
        """The same without reading them, and all of it, in no order."""
        ...

    async def names(self, source: SourceId, span: Span) -> Mapping[str, int]:
        """In how many captions and events of a source each name is given, as it is spelt."""
        ...

    async def mentions(
        self, source: SourceId, span: Span, *, called: Sequence[str]
    ) -> Sequence[EntityOccurrence]:
        """Where any of these names is given, in no order."""
        ...

    async def extent(self, source: SourceId, *, counted: bool = True) -> Extent:
        """How many captions a source has (0 where they are not counted), and from when to when they go."""
        ...
