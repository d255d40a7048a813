"""What a phrase about time bounds."""

from dataclasses import dataclass
from datetime import date, datetime


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A phrase, tokens [first, last), and its range, where None is open; `day` is the one that it names."""

    first: int
    last: int
    start: datetime | None
    end: datetime | None
    relation: str
    day: date | None = None
