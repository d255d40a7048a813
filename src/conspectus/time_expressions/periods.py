"""Builders of calendar periods in the zone of the clock: weeks, weekends, months and years.

Weeks begin on Monday. `Two days ago` and `a week ago` are that day, `two months ago` that month, `a year ago`
that year.
"""

from datetime import date, timedelta
from typing import Final

from conspectus.time_expressions.points import Point
from conspectus.time_expressions.timeline import Timeline
from conspectus.time_expressions.vocabulary import DAY, CalendarUnit

_YEARS: Final = range(1_900, 2_101)
_MONTHS_IN_YEAR: Final = 12
_SATURDAY: Final = 5
_FIRST_DAY, _LAST_DAY = date(2, 1, 1), date(9998, 12, 31)
_MAX_MONTHS: Final = 1_200


def take_unit(timeline: Timeline, offset: int, unit: CalendarUnit) -> Point:
    """Return `last week`, `this month` or `next year`."""
    today = timeline.today
    if unit in {"week", "weekend"}:
        monday = today + timedelta(days=7 * offset - today.weekday())
        first = monday + timedelta(days=_SATURDAY if unit == "weekend" else 0)
        return _span(timeline, first, monday + timedelta(days=7), bare=True)
    if unit == "month":
        return _months(timeline, today, offset, 1)
    return _months(timeline, today.replace(month=1), _MONTHS_IN_YEAR * offset, _MONTHS_IN_YEAR)


def take_last_weekend(timeline: Timeline) -> Point:
    """Return `the weekend`: the last one that has begun by the last day of the stream."""
    last = timeline.face.last_day
    saturday = last - timedelta(days=(last.weekday() - _SATURDAY) % 7)
    return _span(timeline, saturday, saturday + timedelta(days=2))


def take_month(timeline: Timeline, offset: int | None, month: int, year: int | None) -> Point | None:
    """Return `April 2024`, `last April`, or the last April of the stream."""
    if year is not None:
        return _month_of(timeline, year, month, bare=True) if year in _YEARS else None
    if offset is not None:
        today = timeline.today
        earlier = offset < 0 and month >= today.month
        return _month_of(timeline, today.year + (offset if earlier or offset > 0 else 0), month, bare=True)
    last = timeline.face.last_day
    return _month_of(timeline, last.year - (month > last.month), month, bare=False)


def take_year(timeline: Timeline, year: int) -> Point | None:
    """Return `2024`. Without a preposition, it has to be a year of the stream."""
    if year not in _YEARS:
        return None
    face = timeline.face
    is_in_stream = face.first is not None and face.local(face.first).year <= year <= timeline.today.year
    return _months(timeline, date(year, 1, 1), 0, _MONTHS_IN_YEAR, bare=is_in_stream)


def take_last_units(timeline: Timeline, count: float, unit: CalendarUnit) -> Point | None:
    """Return `the last three months`, which end now."""
    months = _months_of(count, unit)
    if months is None:
        return None
    today = timeline.today
    first = _shift_months(today.replace(day=1), -months)
    day = min(today.day, (_shift_months(first, 1) - first).days)
    return _span(timeline, first.replace(day=day), today + timedelta(days=1), bare=True)


def count_units_back(timeline: Timeline, count: float, unit: CalendarUnit) -> Point | None:
    """Return `two months ago` or `a year ago`: that month or year."""
    months = _months_of(count, unit)
    if months is None:
        return None
    if unit == "month":
        return _months(timeline, timeline.today, -months, 1)
    return _months(timeline, timeline.today.replace(month=1), -months, _MONTHS_IN_YEAR)


def count_days_back(timeline: Timeline, days: int) -> Point:
    """Return `two days ago`: that day."""
    today = timeline.today
    day = today - timedelta(days=min(days, (today - _FIRST_DAY).days))
    start, end = timeline.face.of_day(day, 0.0, DAY)
    return Point(start, end, DAY, "day", day=day, bare=True)


def _months_of(count: float, unit: CalendarUnit) -> int | None:
    months = count * (_MONTHS_IN_YEAR if unit == "year" else 1)
    return int(months) if months.is_integer() and 0 < months <= _MAX_MONTHS else None


def _month_of(timeline: Timeline, year: int, month: int, *, bare: bool) -> Point:
    return _months(timeline, date(year, month, 1), 0, 1, bare=bare)


def _months(timeline: Timeline, day: date, offset: int, count: int, *, bare: bool = True) -> Point:
    first = _shift_months(day.replace(day=1), offset)
    return _span(timeline, first, _shift_months(first, count), bare=bare)


def _shift_months(first: date, months: int) -> date:
    years, month = divmod(first.month - 1 + months, _MONTHS_IN_YEAR)
    return date(min(max(first.year + years, _FIRST_DAY.year), _LAST_DAY.year), month + 1, 1)


def _span(timeline: Timeline, first: date, after: date, *, bare: bool = False) -> Point:
    start, _ = timeline.face.of_day(max(first, _FIRST_DAY), 0.0, DAY)
    end, _ = timeline.face.of_day(min(after, _LAST_DAY), 0.0, DAY)
    return Point(start, end, DAY, "day", bare=bare)
