"""Builders of clock times and days."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Final

from conspectus.errors import InvalidInput
from conspectus.text.times import parse_instant
from conspectus.time_expressions.clock_face import add_seconds, clamp
from conspectus.time_expressions.points import ALL_DAY, Day, Point
from conspectus.time_expressions.timeline import HALF_DAY, Timeline, clock_parts
from conspectus.time_expressions.vocabulary import DAY, HOUR, MINUTE, SECOND

_HOURS_OF_HALF_DAY: Final = frozenset(map(float, range(1, 13)))
_YEARS: Final = range(1_000, 9_000)
_MAX_YEARS_BACK: Final = 8


def read_instant(timeline: Timeline, text: str) -> Point | None:
    """Return the point of `2026-01-05T14:30`."""
    if "-" not in text or len(text) <= len("2026-01-05"):
        return None
    try:
        start = clamp(parse_instant(text.upper().replace(" Z", "Z"), timeline.face.clock.zone))
    except InvalidInput:
        return None
    if not timeline.face.wall and start.year != timeline.face.clock.origin.year:
        return None
    unit = SECOND if text.count(":", 0, len("2026-01-05T14:30:05")) > 1 else MINUTE
    return Point(start, add_seconds(start, unit), unit, "dated", day=timeline.face.local(start).date())


def read_position(timeline: Timeline, text: str) -> Point:
    """Return the position of `12:30` in a recording."""
    return timeline.position_at_clock(text)


def read_named_time(timeline: Timeline, seconds: float) -> Point:
    """Return the time of `noon`."""
    return timeline.of_day(seconds, MINUTE)


def read_clock_in_half(timeline: Timeline, text: str, half: int) -> Point | None:
    """Return the time of `3:30 pm`."""
    seconds, unit = clock_parts(text, hours_first=True)
    if not HOUR <= seconds < 13 * HOUR:
        return None
    return timeline.of_day(_next_after(half, seconds), unit)


def read_universal_clock(timeline: Timeline, text: str) -> Point | None:
    """Return the time of `14:30 UTC`."""
    seconds, unit = clock_parts(text, hours_first=True)
    return None if seconds > DAY else timeline.of_day(timeline.face.from_universal(seconds), unit)


def read_wall_clock(timeline: Timeline, text: str) -> Point | None:
    """Return the time of `14:30`."""
    seconds, unit = clock_parts(text, hours_first=True)
    return None if seconds > DAY else timeline.of_day(seconds, unit)


def read_fraction_beside_hour(
    timeline: Timeline, parts: int, side: int, hour: float, half: int | None
) -> Point | None:
    """Return the time of `half past eight` or `a quarter to nine in the evening`."""
    if hour not in _HOURS_OF_HALF_DAY:
        return None
    seconds = hour * HOUR + side * HOUR / parts
    if half is None:
        return timeline.of_either_half(seconds, MINUTE)
    return timeline.of_day(_next_after(half, seconds), MINUTE)


def read_hour_in_half(timeline: Timeline, hour: str, half: int) -> Point | None:
    """Return the time of `3 pm`."""
    if float(hour) not in _HOURS_OF_HALF_DAY:
        return None
    return timeline.of_day(_next_after(half, float(hour) * HOUR), HOUR)


def read_full_hour(timeline: Timeline, hour: str) -> Point | None:
    """Return the time of `3 o'clock`."""
    return timeline.of_either_half(float(hour) * HOUR, HOUR) if float(hour) in range(24) else None


def count_position(timeline: Timeline, unit: float, count: str) -> Point:
    """Return the position of `minute 12`, as the clock shows it."""
    return timeline.point_at(float(count) * unit, unit)


def read_clock_of_minute(_: Timeline, unit: float, time: Point) -> Point | None:
    """Return the position of `minute 12:30`."""
    return time if unit == MINUTE else None


def place_on_day(timeline: Timeline, day: Day, time: Point) -> Point | None:
    """Return the point of `yesterday at 3 pm`."""
    return None if time.of_day is None else timeline.on_day(time, _date_of(day, timeline))


def place_hour_in_part(timeline: Timeline, day: Day, hour: str) -> Point | None:
    """Return the point of `this afternoon at 3`; None if it may be in either half of the day."""
    if float(hour) not in _HOURS_OF_HALF_DAY:
        return None
    first, last = day.part
    seconds = [float(hour) * HOUR + half for half in (0, HALF_DAY, DAY)]
    inside = [second for second in seconds if first <= second < last]
    if len(inside) != 1:
        return None
    return timeline.on_day(timeline.of_day(inside[0], HOUR), _date_of(day, timeline))


def span_day(timeline: Timeline, day: Day) -> Point:
    """Return the range of a day or of its part."""
    date_of_day = _date_of(day, timeline)
    start, end = timeline.face.of_day(date_of_day, day.part[0], day.part[1] - day.part[0])
    named = None if day.unnamed else day.day
    return Point(start, end, DAY, "day", day=named, bare=day.bare, weekly=day.weekly)


def place_clock_on_day(timeline: Timeline, time: Point, day: Point) -> Point | None:
    """Return the point of `3 pm on Monday`."""
    if time.of_day is None or day.kind != "day" or day.day is None:
        return None
    return timeline.on_day(time, day.day)


def take_part_of_today(timeline: Timeline, part: tuple[float, float]) -> Day:
    """Return `this morning`."""
    return Day(timeline.today, part, bare=True)


def take_part_of_yesterday(timeline: Timeline, part: tuple[float, float]) -> Day:
    """Return `last night`."""
    return Day(timeline.today - timedelta(days=1), part, bare=True)


def take_part_of_last_day(timeline: Timeline, part: tuple[float, float]) -> Day:
    """Return `the morning` of the last day of the stream."""
    return Day(timeline.face.last_day, part, unnamed=True)


def take_part_of_day(_: Timeline, part: tuple[float, float], day: Day) -> Day:
    """Return `the evening of 7 July`."""
    return replace(day, part=part)


def take_following_part(_: Timeline, day: Day, part: tuple[float, float]) -> Day | None:
    """Return `Monday morning`."""
    return replace(day, part=part, bare=True) if day.part == ALL_DAY else None


def read_near_day(timeline: Timeline, offset: int, part: tuple[float, float] | None) -> Day:
    """Return `yesterday` or `tonight`."""
    return Day(timeline.today + timedelta(days=offset), part or ALL_DAY, bare=True)


def read_weekday(timeline: Timeline, number: int, these: bool | None) -> Day:
    """Return the last such weekday of the stream."""
    last = timeline.face.last_day
    return Day(last - timedelta(days=(last.weekday() - number) % 7), bare=bool(these), weekly=True)


def read_written_day(_: Timeline, text: str) -> Day | None:
    """Return the day of `2026-01-05` or `5.1.2026`."""
    if "." in text and "-" not in text:
        day, month, year = map(int, text.split("."))
    elif len(text) == len("2026-01-05"):
        year, month, day = map(int, text.split("-"))
    else:
        return None
    valid = _valid_date(year, month, day)
    return None if valid is None else Day(valid)


def read_day_of_month(timeline: Timeline, month: int, number: int, year: int | None) -> Day | None:
    """Return the day of `5 March 2026`; without a year, the last such day."""
    if year is not None:
        days = [_valid_date(year, month, number)]
    else:
        last = timeline.face.last_day
        years = range(last.year, last.year - _MAX_YEARS_BACK - 1, -1)
        days = [day for year in years if (day := _valid_date(year, month, number)) and day <= last]
    return Day(days[0]) if days and days[0] else None


def read_day_number(_: Timeline, text: str) -> int | None:
    """Return the number of `5` or `5th`."""
    return int(text) if text.isdigit() and len(text) <= 2 else None


def read_year(_: Timeline, text: str) -> int | None:
    """Return a year of four digits."""
    return int(text) if text.isdigit() and len(text) == 4 else None


def _date_of(day: Day, timeline: Timeline) -> date:
    return timeline.day if day.unnamed and timeline.day is not None else day.day


def _next_after(hour: int, seconds: float) -> float:
    """Return the next occurrence of a time of a twelve-hour clock after that hour of the day."""
    early = seconds % HALF_DAY
    halves = max(0, -((early - hour * HOUR) // HALF_DAY))
    return (early + halves * HALF_DAY) % DAY


def _valid_date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day) if year in _YEARS else None
    except ValueError:
        return None
