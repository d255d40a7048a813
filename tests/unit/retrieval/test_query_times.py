"""Calendar periods in a query of conversations."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from conspectus.model.records import Period
from conspectus.retrieval.query_times import read_query_times

MONDAY = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "first_day", "day_after"),
    [
        ("what did we decide last week", "2026-11-23", "2026-11-30"),
        ("who joined this month?", "2026-11-01", "2026-12-01"),
        ("what did Ann say two days ago", "2026-11-28", "2026-11-29"),
        ("all about berths in 2024", "2024-01-01", "2025-01-01"),
        ("was haben wir gestern beschlossen", "2026-11-29", "2026-11-30"),
        ("qu'avons-nous dit la semaine dernière", "2026-11-23", "2026-11-30"),
    ],
)
def test_a_calendar_period_is_read(query: str, first_day: str, day_after: str) -> None:
    period = read_query_times(query, MONDAY).period
    assert period is not None
    assert (f"{period.start:%Y-%m-%d}", f"{period.end:%Y-%m-%d}") == (first_day, day_after)


def test_a_period_is_one_of_the_time_zone_of_the_query() -> None:
    late_in_tokyo = datetime(2026, 11, 30, 1, tzinfo=timezone(timedelta(hours=9)))
    period = read_query_times("what happened yesterday", late_in_tokyo).period
    assert period is not None
    assert period.start == datetime(2026, 11, 28, 15, tzinfo=UTC)


def test_the_end_of_a_period_is_outside_and_its_beginning_inside() -> None:
    period = read_query_times("what happened yesterday", MONDAY).period
    assert period is not None
    assert period.start is not None and period.end is not None
    moments = (
        period.start - timedelta(seconds=1),
        period.start,
        period.end - timedelta(seconds=1),
        period.end,
    )
    assert [period.includes(Period(moment, moment)) for moment in moments] == [False, True, True, False]
    assert period.includes(Period(moments[0], moments[1]))


@pytest.mark.parametrize("query", ["", "when did Mel go camping in June?", "what is a berth", "May I go?"])
def test_a_query_without_a_period_has_neither_period_nor_notice(query: str) -> None:
    times = read_query_times(query, MONDAY)
    assert (times.period, times.notices) == (None, ())


def test_a_time_that_is_not_read_is_a_notice() -> None:
    [notice] = read_query_times("what happened on 03/02/2026", MONDAY).notices
    assert notice.startswith("'03/02/2026' looks like a time")
