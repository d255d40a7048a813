"""The ports of standing alerts: who keeps them and what they told, and who tells the world outside."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from conspectus.model.ids import DocumentId, SourceId, UserId
from conspectus.model.records import Period
from conspectus.model.streams import Alert, DeliveryState

LONGEST_WAIT: Final = 600.0
"""Seconds until a webhook that could not be delivered is tried again, at most."""


@dataclass(frozen=True, slots=True)
class Behind:
    """An alert that has not seen all changes; it waits for what has chunks after `since`."""

    alert: Alert
    since: int


@dataclass(frozen=True, slots=True)
class Match:
    """A caption that is what an alert waits for, and why."""

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
        """What the receiver of a webhook knows it by, however often it is sent."""
        return f"{self.alert.id}-{self.number}"


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of a webhook: with `due`, it is to be tried again then."""

    state: DeliveryState
    attempts: int
    error: str | None = None
    due: datetime | None = None


class Alerts(Protocol):
    """The rows of alerts and of what they told; every method is one transaction."""

    async def put(self, alert: Alert, *, most: int) -> Alert:
        """Store it, or change the stored one of that id, which goes on where it was.

        A new one begins with the newest change, and waits for nothing that was written before. Raises
        NotFound for an unknown collection, and TooLarge where its owner has `most` already.
        """
        ...

    async def alert(self, alert: str) -> Alert | None:
        """The alert of that id."""
        ...

    async def owned(self, owner: UserId) -> Sequence[Alert]:
        """The alerts of a person, by name."""
        ...

    async def delete(self, alert: str) -> bool:
        """Forget it with all that it told; whether there was one."""
        ...

    async def behind(self) -> Sequence[Behind]:
        """Those that have not seen all changes of their collection, those at the same change together."""
        ...

    async def record(self, checked: Sequence[Checked], *, now: datetime) -> int:
        """Keep what alerts tell and how far they have come, all or nothing; how many events are new.

        Matches of one alert and stream that overlap, or lie no more than its gap apart, are one event; those
        that belong to one that was told make it longer. One without times is an event of its own, once.
        Captions that are gone by now are left out, and so is what is said of an alert that was checked
        meanwhile.
        """
        ...

    async def events(
        self, owner: UserId, *, alert: str | None = None, after: int = 0, limit: int
    ) -> Sequence[AlertMatch]:
        """What the alerts of a person, or one of them, told after a number, in order."""
        ...

    async def newest(self, owner: UserId) -> int:
        """The number of the newest event of a person's alerts, 0 without any."""
        ...

    async def waiting(self, *, now: datetime) -> Sequence[str]:
        """The alerts with an event whose delivery is due."""
        ...

    async def due(self, alert: str, *, now: datetime) -> AlertMatch | None:
        """The first event of an alert whose delivery is due."""
        ...

    async def settle(self, number: int, delivery: Delivery) -> None:
        """Keep what became of a delivery; one that is settled, or an event that is gone, stays so."""
        ...


class Poster(Protocol):
    """Sends what alerts tell to addresses outside."""

    def check(self, url: str) -> None:
        """Raise InvalidInput for what is no address to send to, ForbiddenAddress for one that may not be."""
        ...

    async def post(self, url: str, body: bytes, *, id: str) -> None:
        """Send JSON once; an answer other than a success raises FetchFailed, `passing` where it may pass."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
