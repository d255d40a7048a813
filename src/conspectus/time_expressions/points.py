"""What the grammar reads from a query: amounts, days, points and ranges of time."""

from datetime import date, datetime
from typing import Final, Literal

from conspectus.deferred import dataclass
from conspectus.time_expressions.vocabulary import DAY, Relation

Kind = Literal["clock", "dated", "amount", "place", "day", "part", "stretch", "end"]
ALL_DAY: Final = (0.0, DAY)


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of time.

    Args:
        seconds: its length.
        unit: the last unit in the text, which is its precision.
        first_unit: the first unit in the text, the largest one.
        attributive: whether it describes a thing, as in `a five minute timer`.
    """

    seconds: float
    unit: float
    first_unit: float
    attributive: bool = False


@dataclass(frozen=True, slots=True)
class Day:
    """A day, or a part of one, in seconds from its midnight.

    `bare` days need no preposition; of an `unnamed` one only the part is in the text (`the morning`); a
    `weekly` one is a weekday.
    """

    day: date
    part: tuple[float, float] = ALL_DAY
    bare: bool = False
    unnamed: bool = False
    weekly: bool = False


@dataclass(frozen=True, slots=True)
class Point:
    """A time with the precision of its text: from its first instant to that of the next such time.

    Args:
        start: the first instant.
        end: the end; None if it extends to the end of the stream.
        unit: the precision in seconds.
        kind: decides which prepositions make it a time expression.
        of_day: seconds from midnight, for a time of day without a day.
        day: the day in the text.
        bare: whether it needs no preposition.
        weekly: whether the day is a weekday.
    """

    start: datetime
    end: datetime | None
    unit: float
    kind: Kind
    of_day: float | None = None
    day: date | None = None
    bare: bool = False
    weekly: bool = False

    @property
    def wide(self) -> bool:
        """Return whether it is a period, so that "before" and "after" refer to all of it."""
        return self.kind in {"day", "part", "stretch", "end"}


@dataclass(frozen=True, slots=True)
class TimeRange:
    """The range [start, end) of a phrase (None is open), and the day that the phrase names."""

    start: datetime | None
    end: datetime | None
    relation: Relation
    day: date | None = None
