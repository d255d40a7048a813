"""Alerts: saved queries that are matched with new captions, and their matches."""

from datetime import datetime
from typing import Annotated, Literal

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example, Length, Range
from conspectus.model.filter import EVERYTHING, DocumentFilter, Filter
from conspectus.model.ids import SourceId
from conspectus.model.parameters import (
    MAX_ALERT_STREAMS,
    MAX_QUERY,
    MAX_WEBHOOK,
    CollectionName,
    Name,
    PersonName,
    StoredCollection,
    StoredId,
    StoredText,
)
from conspectus.model.validation import Validated


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
