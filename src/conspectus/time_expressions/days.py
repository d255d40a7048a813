"""Days of the calendar as people say them: `yesterday`, `this morning`, `Monday`, `5 March`, `2026-01-05`."""

from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Final

from conspectus.time_expressions.clock import ClockFace
from conspectus.time_expressions.language import DAY, Language
from conspectus.time_expressions.tokens import Words

_WHOLE: Final = (0.0, DAY)
_YEARS: Final = range(1_000, 9_000)
_MOST_YEARS_BACK: Final = 8


@dataclass(frozen=True, slots=True)
class Day:
    """A day, or a part of one, in seconds from its midnight.

    `bare` is one that needs no word before it; of an `unnamed` one only the part was said (`the morning`);
    a `weekly` one is a day of the week.
    """

    day: date
    part: tuple[float, float] = _WHOLE
    bare: bool = False
    unnamed: bool = False
    weekly: bool = False


class DayReader:
    """Reads them where they stand, on a stream's own calendar; a recording has none."""

    def __init__(self, words: Words, language: Language, face: ClockFace) -> None:
        self._words = words
        self._language = language
        self._face = face

    def day(self, index: int) -> tuple[Day, int] | None:
        """The day that begins there."""
        if not self._face.wall or self._words.kind(index) in {None, "dash", "clock", "amount"}:
            return None
        read = (
            self._this_part(index)
            or self._near(index)
            or self._weekday(index)
            or self._written(index)
            or self._dated(index)
        )
        if read is None or read[0].part != _WHOLE:
            return read
        part = self._language.parts.get(self._words.text(read[1]))
        return read if part is None else (replace(read[0], part=part, bare=True), read[1] + 1)

    def _near(self, index: int) -> tuple[Day, int] | None:
        word = self._words.text(index)
        back = self._language.days.get(word)
        if back is None:
            return None
        day = self._face.local(self._face.now).date() + timedelta(days=back)
        return Day(day, self._language.parts.get(word, _WHOLE), bare=True), index + 1

    def _this_part(self, index: int) -> tuple[Day, int] | None:
        """`this morning`, `last night`, `the evening of 7 July`, and `the morning` of the last day."""
        first, second = self._words.text(index), self._words.text(index + 1)
        part = self._language.parts.get(second)
        if part is None or second in self._language.days:
            return None
        today = self._face.local(self._face.now).date()
        if first in self._language.these:
            back = int(first in self._language.latest)
            return Day(today - timedelta(days=back), part, bare=True), index + 2
        return self._part_of(index + 2, part) if first in self._language.articles else None

    def _part_of(self, index: int, part: tuple[float, float]) -> tuple[Day, int] | None:
        if self._words.text(index) not in self._language.of:
            return Day(self._face.last_day, part, unnamed=True), index
        read = self._near(index + 1) or self._weekday(index + 1) or self._dated(index + 1)
        return None if read is None else (replace(read[0], part=part), read[1])

    def _weekday(self, index: int) -> tuple[Day, int] | None:
        these = self._words.text(index) in self._language.these
        number = self._language.weekdays.get(self._words.text(index + these))
        if number is None:
            return None
        last = self._face.last_day
        return Day(
            last - timedelta(days=(last.weekday() - number) % 7), bare=these, weekly=True
        ), index + these + 1

    def _written(self, index: int) -> tuple[Day, int] | None:
        text = self._words.text(index)
        if self._words.kind(index) != "date" or len(text) != len("2026-01-05"):
            return None
        year, month, day = map(int, text.split("-"))
        found = _date(year, month, day)
        return None if found is None else (Day(found), index + 1)

    def _dated(self, index: int) -> tuple[Day, int] | None:
        """`5 March`, `the 5th of March`, `March 5th, 2026`; without a year the last such day."""
        index += self._words.text(index) in self._language.articles
        month = self._language.months.get(self._words.text(index))
        if month is not None:
            number, after = self._day_number(index + 1), index + 2
        else:
            number, after = self._day_number(index), index + 1
            after += self._words.text(after) in self._language.of
            month = self._language.months.get(self._words.text(after))
            after += 1
        if number is None or month is None:
            return None
        year, after = self._year(after)
        found = self._last_such(month, number) if year is None else _date(year, month, number)
        return None if found is None else (Day(found), after)

    def _day_number(self, index: int) -> int | None:
        text, ending = self._words.text(index), self._words.ending(index)
        proper = self._words.kind(index) == "number" and text.isdigit() and len(text) <= 2
        return int(text) if proper and (not ending or ending in self._language.ordinal_endings) else None

    def _year(self, index: int) -> tuple[int | None, int]:
        after = index + (self._words.text(index) == ",")
        text = self._words.text(after)
        proper = self._words.number(after) is not None and text.isdigit() and len(text) == 4
        return (int(text), after + 1) if proper else (None, index)

    def _last_such(self, month: int, number: int) -> date | None:
        last = self._face.last_day
        years = range(last.year, last.year - _MOST_YEARS_BACK - 1, -1)
        days = (_date(year, month, number) for year in years)
        return next((day for day in days if day is not None and day <= last), None)


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day) if year in _YEARS else None
    except ValueError:
        return None
