"""Days and months in a query, such as "in June 2023", "on October 13" and 2023-06-02."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass
from conspectus.model.records import Period

DATE_PART: Final = "date"
DATE_WEIGHT: Final = 0.3
MAX_DELAY: Final = timedelta(days=7)
"""Time after a day in which messages still count for it."""

_NAMES: Final = (
    "january/jan february/feb march/mar april/apr may june/jun july/jul august/aug september/sept/sep"
    " october/oct november/nov december/dec"
)
_NUMBERS: Final = {
    name: number for number, names in enumerate(_NAMES.split(), start=1) for name in names.split("/")
}
_MONTHS: Final = "|".join(sorted(_NUMBERS, key=len, reverse=True))
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR: Final = r"(?P<year>\d{4})\b"
_DATE_PATTERNS: Final = tuple(
    re.compile(pattern, re.IGNORECASE | re.ASCII)
    for pattern in (
        rf"\b{_DAY}\s+(?:of\s+)?(?P<month>{_MONTHS})\b(?:\.?,?\s+{_YEAR})?",
        rf"\b(?P<month>{_MONTHS})\.?\s+{_DAY}\b(?!:\d)(?:,?\s+{_YEAR})?",
        rf"\b(?P<month>{_MONTHS})\.?,?\s+(?:of\s+)?{_YEAR}",
        rf"\b(?:in|during|since|until|before|after|by|last|early|mid|late|of)\s+(?P<month>{_MONTHS})\b(?!\.?,?\s+\d)",
        r"\b(?P<year>\d{4})-(?P<month>0[1-9]|1[0-2])(?:-(?P<day>\d\d))?\b(?!-)",
    )
)
_ANY_DATE: Final = re.compile(rf"\b(?:{_MONTHS})\b|\d{{4}}-\d\d", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class NamedDate:
    """A month or a day, with or without a year."""

    month: int
    day: int | None = None
    year: int | None = None

    def includes(self, at: datetime) -> bool:
        """Return whether an instant is in the month, or within a week from the start of the day (UTC)."""
        at = at.astimezone(UTC)
        if self.day is None:
            return at.month == self.month and self.year in {None, at.year}
        years = (at.year - 1, at.year) if self.year is None else (self.year,)
        return any(timedelta() <= at - day < MAX_DELAY + timedelta(days=1) for day in self._days(years))

    def _days(self, years: Sequence[int]) -> Iterator[datetime]:
        for year in years:
            try:
                yield datetime(year, self.month, self.day or 1, tzinfo=UTC)
            except ValueError:
                continue


def find_dates(query: str) -> tuple[NamedDate, ...]:
    """Return the days and months in a query, in English or as ISO 8601, in any order."""
    if not _ANY_DATE.search(query):
        return ()
    dates: dict[NamedDate, None] = {}
    read_characters: set[int] = set()
    for match in chain.from_iterable(pattern.finditer(query) for pattern in _DATE_PATTERNS):
        # Patterns with a day come first: "1 February, 2023" is a day and not also a month.
        month = range(*match.span("month"))
        if read_characters.isdisjoint(month):
            read_characters.update(month)
            dates[_date_of(**match.groupdict())] = None
    return tuple(dates)


def date_boost(
    query: str, occurred: Sequence[Period | None], *, weight: float = DATE_WEIGHT
) -> NDArray[np.float64]:
    """Return `weight` for texts from a month in the query, or from the week after a day in it."""
    dates = find_dates(query) if weight else ()
    if not dates:
        return np.zeros(len(occurred))
    is_named = [
        period is not None and any(date.includes(period.start) for date in dates) for period in occurred
    ]
    return weight * np.array(is_named, dtype=np.float64)


def _date_of(month: str, day: str | None = None, year: str | None = None) -> NamedDate:
    number = int(month) if month.isdigit() else _NUMBERS[month.casefold()]
    return NamedDate(number, int(day) if day else None, int(year) if year else None)
