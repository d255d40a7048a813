"""Points in time on a stream's clock: a time of day, a position, or a calendar day."""

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, Literal

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.text.times import EPOCH, StreamClock, parse_instant
from conspectus.time_expressions.language import DAY, HOUR, MINUTE, SECOND, AmountReader, Language, Words

_EARLIEST: Final = datetime(2, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(9998, 12, 31, tzinfo=UTC)
_INSTANT: Final = 1e-6
_LATE_START: Final = timedelta(hours=1)
_SILENCE: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class ClockFace:
    """A stream's clock, and the time range of its captions.

    Args:
        clock: converts between seconds and instants of the stream.
        wall: whether times are calendar instants instead of seconds of a recording.
        first: the start of the first caption; None without captions.
        last: the end of the last caption; None without captions.
        now: the time of the query.
        live: whether the stream continues.
    """

    clock: StreamClock
    wall: bool
    first: datetime | None
    last: datetime | None
    now: datetime
    live: bool = False

    @property
    def begin(self) -> datetime:
        """Second 0; the first caption if that is earlier, or at least an hour later."""
        origin = self.clock.origin
        if self.first is None:
            return self.now if self.wall and origin == EPOCH else bounded(origin)
        late = self.first - origin
        return bounded(origin if timedelta(0) <= late < _LATE_START else self.first)

    @property
    def end(self) -> datetime:
        """The end of the last caption, or the current time of a live wall clock; not before the beginning."""
        known = self.last or self.begin
        if self.live and self.wall:
            known = max(known, self.now)
        return max(bounded(known), self.begin)

    @property
    def last_day(self) -> date:
        """The last calendar day of the stream in the clock's zone; today without captions."""
        return self.local(self.now if self.last is None else self._last_known).date()

    def local(self, moment: datetime) -> datetime:
        """Return the instant in the clock's zone."""
        return bounded(moment).astimezone(self.clock.zone)

    def of_day(self, day: date, seconds: float, unit: float) -> tuple[datetime, datetime]:
        """Return the range of a time of day with the precision `unit`.

        A time that a clock change skips is shifted by it; a time that occurs twice includes both.
        """
        start = self._instant(day, seconds, fold=0)
        last = self._instant(day, seconds + unit - _INSTANT, fold=1)
        return start, max(shifted(last, _INSTANT), shifted(start, min(unit, HOUR)))

    def from_universal(self, seconds: float) -> float:
        """Convert a time of day from UTC to this clock, with the offset at the end of the stream."""
        offset = self.local(self.end).utcoffset() or timedelta(0)
        return (seconds + offset.total_seconds()) % DAY

    def covers(self, start: datetime, end: datetime) -> bool:
        """Return whether the stream overlaps [start, end)."""
        return self.first is not None and bounded(self.first) < end and start <= self._last_known

    @property
    def _last_known(self) -> datetime:
        """Return the end of the stream; after an hour of silence in a live stream, that of the captions."""
        silent = self.last is not None and self.now - self.last > _SILENCE
        return bounded(self.last) if self.last is not None and silent else self.end

    def _instant(self, day: date, seconds: float, *, fold: int) -> datetime:
        shown = datetime.combine(day, time()) + timedelta(seconds=seconds)
        return shown.replace(tzinfo=self.clock.zone, fold=fold).astimezone(UTC)


def shifted(moment: datetime, seconds: float) -> datetime:
    """Return the instant a number of seconds later, within the range of the calendar."""
    try:
        return bounded(moment + timedelta(seconds=seconds))
    except OverflowError:
        return _LATEST if seconds > 0 else _EARLIEST


def bounded(moment: datetime) -> datetime:
    """Return the instant in UTC, kept away from the limits of the calendar by more than any zone offset."""
    return min(max(moment, _EARLIEST), _LATEST).astimezone(UTC)


Kind = Literal["clock", "dated", "amount", "place", "day", "part", "stretch", "end"]


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


Read = tuple[Point, int] | None


class PointReader:
    """Reads clock times, positions and days at a token position. `day` is the default day."""

    def __init__(self, words: Words, language: Language, face: ClockFace, day: date | None) -> None:
        self._words = words
        self._language = language
        self._face = face
        self._day = day
        self._days = DayReader(words, language, face)
        self._hours_first = _hours_first(words, face)
        self.amounts = AmountReader(words, language)

    def clock(self, index: int) -> Read:
        """Read a clock time: a time of day on a wall clock, else a position in the recording."""
        index += self._words.text(index) in self._language.positions
        if self._words.kind(index) == "date":
            return self._instant(index)
        if self._face.wall:
            return self._time_of_day(index)
        if self._words.kind(index) != "clock" or self._words.ending(index):
            return None
        seconds, unit = _clock_parts(self._words.text(index), hours_first=self._hours_first)
        return self.at(seconds, unit, kind="clock", start=self._face.clock.origin), index + 1

    def numbered(self, index: int) -> Read:
        """Read `minute 12`, `second 45`, `hour 2`, as the clock shows them."""
        unit = self.amounts.unit(index)
        if unit is None or unit > HOUR or not self.names_unit(index):
            return None
        number = self._words.number(index + 1)
        if number is not None:
            return self.at(number * unit, unit), index + 2
        return self.clock(index + 1) if unit == MINUTE else None

    def names_unit(self, index: int) -> bool:
        """Return whether a unit is counted by the number after it: not in `5 minutes 1`, and not `s`."""
        behind = self._words.kind(index - 1) in {"number", "amount"}
        before = self._words.text(index - 1) in self._language.numbers
        return len(self._words.text(index)) > 1 and not behind and not before

    def at(
        self, seconds: float, unit: float, *, kind: Kind = "place", start: datetime | None = None
    ) -> Point:
        """Return the point a number of seconds after the beginning of the stream."""
        begins = shifted(bounded(self._face.begin if start is None else start), seconds)
        return Point(begins, shifted(begins, unit), unit, kind)

    def day(self, index: int) -> Read:
        """Read a day, with an optional time of day after it."""
        read = self._days.day(index)
        if read is None:
            return None
        day, after = read
        if day.unnamed and self._day is not None:
            day = replace(day, day=self._day)
        between = self._words.text(after) in {",", "t"} or self._words.text(after) in self._language.at
        timed = self.clock(after + between) or self._hour_within(day.part, after + between)
        if timed is not None and timed[0].of_day is not None:
            return self.on(timed[0], day.day), timed[1]
        start, end = self._face.of_day(day.day, day.part[0], day.part[1] - day.part[0])
        named = None if day.unnamed else day.day
        return Point(start, end, DAY, "day", day=named, bare=day.bare, weekly=day.weekly), after

    def on(self, point: Point, day: date) -> Point:
        """Return the same time of day on a day."""
        start, end = self._face.of_day(day, point.of_day or 0.0, point.unit)
        return replace(point, start=start, end=end, kind="dated", of_day=None, day=day)

    def spread(self, first: Point, last: Point) -> tuple[Point, Point]:
        """Resolve two times of day, one of them without a day: the second is within a day after the first."""
        if first.of_day is None and last.of_day is None:
            backwards = first.weekly and last.weekly and last.start < first.start
            return first, self._week_later(last) if backwards else last
        if first.of_day is None:
            day = self._face.local(first.start).date()
            later = self.on(last, day)
            return first, later if later.start > first.start else self.on(last, day + _ONE_DAY)
        if last.of_day is None:
            day = self._face.local(last.start).date()
            earlier = self.on(first, day)
            return (earlier if earlier.start < last.start else self.on(first, day - _ONE_DAY)), last
        over_night = timedelta(days=last.of_day < first.of_day)
        day = self._day_of(first.of_day, last.of_day + over_night.total_seconds() - first.of_day)
        return self.on(first, day), self.on(last, day + over_night)

    def _week_later(self, point: Point) -> Point:
        end = None if point.end is None else shifted(point.end, 7 * DAY)
        return replace(point, start=shifted(point.start, 7 * DAY), end=end)

    def of_day(self, seconds: float, unit: float) -> Point:
        """Return a time of day on the given day, else on the last day on which the stream has it."""
        start, end = self._face.of_day(self._day_of(seconds, unit), seconds, unit)
        return Point(start, end, unit, "clock", of_day=seconds)

    def half_day(self, index: int) -> tuple[int, int] | None:
        """Return the hour after which `am` or `in the evening` places a time, and the next position."""
        ending = self._language.meridiems.get(self._words.ending(index - 1))
        if ending is not None:
            return ending, index
        text = self._words.text
        plain = self._language.meridiems.get(text(index))
        if plain is not None:
            return plain, index + 1
        for words, hour in self._language.halves.items():
            if words == tuple(text(index + step) for step in range(len(words))):
                return hour, index + len(words)
        dotted = self._language.meridiems.get(text(index) + text(index + 2))
        if dotted is None or text(index + 1) != ".":
            return None
        return dotted, index + 3 + (text(index + 3) == ".")

    def _day_of(self, seconds: float, unit: float) -> date:
        if self._day is not None:
            return self._day
        days = (self._face.last_day, self._face.last_day - _ONE_DAY)
        had = (day for day in days if self._face.covers(*self._face.of_day(day, seconds, unit)))
        return next(had, days[0])

    def _time_of_day(self, index: int) -> Read:
        named = self._language.times.get(self._words.text(index))
        if named is not None:
            return self.of_day(named, MINUTE), index + 1
        if self._words.kind(index) == "clock":
            return self._of_clock(index)
        beside = self._beside_hour(index)
        if beside is not None:
            return beside
        hour = float(self._words.text(index)) if self._words.kind(index) == "number" else -1.0
        half = self.half_day(index + 1)
        if half is not None and hour in _TWELVE:
            return self.of_day(_since(half[0], hour * HOUR), HOUR), half[1]
        full = self._words.text(index + 1) in self._language.hours and not self._words.ending(index)
        return (self._of_either_half(hour * HOUR, HOUR), index + 2) if full and hour in range(24) else None

    def _beside_hour(self, index: int) -> Read:
        """Read `half past eight`, `a quarter to nine in the evening`."""
        index += self._language.numbers.get(self._words.text(index)) == 1
        parts = self._language.fractions.get(self._words.text(index))
        side = self._language.sides.get(self._words.text(index + 1))
        read = None if parts is None or side is None else self.amounts.number(index + 2)
        if parts is None or side is None or read is None or read[0] not in _TWELVE:
            return None
        seconds = read[0] * HOUR + side * HOUR / parts
        half = self.half_day(read[1])
        if half is not None:
            return self.of_day(_since(half[0], seconds), MINUTE), half[1]
        return self._of_either_half(seconds, MINUTE), read[1]

    def _hour_within(self, part: tuple[float, float], index: int) -> Read:
        """Read the `3` of `this afternoon at 3`; None if it may be in either half of the day."""
        hour = self._words.number(index)
        hours = [] if hour not in _TWELVE else [hour * HOUR + half for half in (0, _HALF_A_DAY, DAY)]
        inside = [each for each in hours if part[0] <= each < part[1]]
        return (self.of_day(inside[0], HOUR), index + 1) if len(inside) == 1 else None

    def _of_either_half(self, seconds: float, unit: float) -> Point:
        """Prefer the afternoon if only that is in the stream."""
        early = self.of_day(seconds, unit)
        late = self.of_day(seconds % _HALF_A_DAY + _HALF_A_DAY, unit)
        only_late = self._covers(late) and not self._covers(early)
        return late if only_late else early

    def _covers(self, point: Point) -> bool:
        return self._face.covers(point.start, point.end or point.start)

    def _of_clock(self, index: int) -> Read:
        seconds, unit = _clock_parts(self._words.text(index), hours_first=True)
        half = self.half_day(index + 1)
        if half is not None and HOUR <= seconds < 13 * HOUR:
            return self.of_day(_since(half[0], seconds), unit), half[1]
        if seconds > DAY or half is not None or self._words.ending(index):
            return None
        if self._words.text(index + 1) in self._language.universal:
            return self.of_day(self._face.from_universal(seconds), unit), index + 2
        return self.of_day(seconds, unit), index + 1

    def _instant(self, index: int) -> Read:
        text = self._words.text(index)
        if len(text) <= len("2026-01-05"):
            return None
        try:
            start = bounded(parse_instant(text.upper().replace(" Z", "Z"), self._face.clock.zone))
        except InvalidInput:
            return None
        if not self._face.wall and start.year != self._face.clock.origin.year:
            return None
        unit = SECOND if text.count(":", 0, len("2026-01-05T14:30:05")) > 1 else MINUTE
        return Point(
            start, shifted(start, unit), unit, "dated", day=self._face.local(start).date()
        ), index + 1


_ONE_DAY: Final = timedelta(days=1)
_HALF_A_DAY: Final = 12 * HOUR
_TWELVE: Final = frozenset(map(float, range(1, 13)))


def _since(hour: int, seconds: float) -> float:
    """Return the next occurrence of a time of a twelve-hour clock after that hour of the day."""
    early = seconds % _HALF_A_DAY
    halves = max(0, -((early - hour * HOUR) // _HALF_A_DAY))
    return (early + halves * _HALF_A_DAY) % DAY


def _hours_first(words: Words, face: ClockFace) -> bool:
    """Return whether `12:30` is 12 hours and 30 minutes on the clock of a recording.

    It is for recordings of at least 12 hours, and if only that position is in the recording; otherwise it is
    12 minutes and 30 seconds.
    """
    said = [
        words[i].text for i in range(len(words)) if words[i].kind == "clock" and words[i].text.count(":") == 1
    ]
    if face.last is None or not said:
        return False
    last = face.clock.seconds(face.end)
    first = face.clock.seconds(face.begin)
    hours = [_clock_parts(text, hours_first=True)[0] for text in said]
    minutes = [_clock_parts(text, hours_first=False)[0] for text in said]
    fits_hours = all(first <= each <= last for each in hours)
    fits_minutes = all(first <= each <= last for each in minutes)
    return fits_hours and (last - first >= _HALF_A_DAY or not fits_minutes)


def _clock_parts(text: str, *, hours_first: bool) -> tuple[float, float]:
    """Return the seconds of a clock time, and the unit of its last part."""
    parts = [float(part.replace(",", ".")) for part in text.split(":")]
    if len(parts) == 3:
        return parts[0] * HOUR + parts[1] * MINUTE + parts[2], SECOND
    large = HOUR if hours_first else MINUTE
    return parts[0] * large + parts[1] * large / MINUTE, large / MINUTE


_WHOLE: Final = (0.0, DAY)
_YEARS: Final = range(1_000, 9_000)
_MAX_YEARS_BACK: Final = 8


@dataclass(frozen=True, slots=True)
class Day:
    """A day, or a part of one, in seconds from its midnight.

    `bare` days need no preposition; of an `unnamed` one only the part was given (`the morning`); a `weekly`
    one is a weekday.
    """

    day: date
    part: tuple[float, float] = _WHOLE
    bare: bool = False
    unnamed: bool = False
    weekly: bool = False


class DayReader:
    """Reads days at a token position, in the stream's zone. A recording has none."""

    def __init__(self, words: Words, language: Language, face: ClockFace) -> None:
        self._words = words
        self._language = language
        self._face = face

    def day(self, index: int) -> tuple[Day, int] | None:
        """Return the day at a position."""
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
        """Read `this morning`, `last night`, `the evening of 7 July`, and `the morning` of the last day."""
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
        """Read `5 March`, `the 5th of March`, `March 5th, 2026`; without a year, the last such day."""
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
        years = range(last.year, last.year - _MAX_YEARS_BACK - 1, -1)
        days = (_date(year, month, number) for year in years)
        return next((day for day in days if day is not None and day <= last), None)


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day) if year in _YEARS else None
    except ValueError:
        return None
