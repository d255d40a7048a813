"""Calendar periods that a query names, such as "last week": messages and memories of that time count more."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from conspectus.deferred import dataclass
from conspectus.model.filter import Overlaps
from conspectus.model.ids import ChunkId
from conspectus.model.records import Period, StoredChunk

TIME_ENTRY: Final = "time_range"
"""The entry of a plan that says which period the query names."""
TIMED_KINDS: Final = frozenset({"message", "memory", "event"})
"""Kinds of documents that are said or happen at a time."""


@dataclass(frozen=True, slots=True)
class NamedPeriod:
    """A range [start, end) that a query names, where None is open, and its description."""

    start: datetime | None
    end: datetime | None
    description: str

    @property
    def condition(self) -> Overlaps:
        """The filter for what happened in the period."""
        return Overlaps(self.start, self.end)

    def includes(self, occurred: Period) -> bool:
        """Return whether something that happened then is in the period, at least in part."""
        is_before_end = self.end is None or occurred.start < self.end
        return is_before_end and (self.start is None or occurred.end >= self.start)


@dataclass(frozen=True, slots=True)
class QueryTimes:
    """The period that a query names, and notices of what looks like a time but is none that is read."""

    period: NamedPeriod | None = None
    notices: tuple[str, ...] = ()


def has_timed_rows(rows: Iterable[StoredChunk]) -> bool:
    """Return whether there are messages, memories or events among the rows."""
    return any(row.document.kind in TIMED_KINDS for row in rows)


def select_in_period(period: NamedPeriod, rows: Iterable[StoredChunk]) -> list[ChunkId]:
    """Return the chunks of messages, memories and events that happened in the period."""
    return [
        row.chunk.id
        for row in rows
        if row.document.kind in TIMED_KINDS
        and row.document.occurred is not None
        and period.includes(row.document.occurred)
    ]
