"""Clocks of streams: instants and periods on them, time zones and timecodes."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.errors import InvalidInput
from conspectus.model.records import Period
from conspectus.text.stream_clocks import StreamClock, timecode, zone_by_name
from conspectus.text.times import EPOCH, parse_offset

MORNING = datetime(2026, 1, 5, 8, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
CLOCK = StreamClock(MORNING, BERLIN)


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        (0, 0.0),
        (90.5, 90.5),
        ("90.5", 90.5),
        ("1:30", 90.0),
        ("1h", 3_600.0),
        ("2026-01-05T09:00", 0.0),
        ("2026-01-05T09:00Z", 3_600.0),
        ("20260105T0930", 1_800.0),
        (" 2026-01-05 10:00", 3_600.0),
        ("2026-01", -4 * 86_400 - 9 * 3_600.0),
        (datetime(2026, 1, 5, 9, 0, 1), 1.0),
        (MORNING + timedelta(minutes=1), 60.0),
    ],
)
def test_a_clock_reads_offsets_and_instants_in_its_zone(time: datetime | str | float, seconds: float) -> None:
    instant = CLOCK.instant(time)
    assert instant == MORNING + timedelta(seconds=seconds)
    assert CLOCK.seconds(instant) == seconds


def test_an_instant_on_a_clock_is_in_utc_whatever_its_zone() -> None:
    assert CLOCK.instant("2026-01-05T09:00").tzinfo is UTC
    assert CLOCK.instant(MORNING.astimezone(BERLIN)).tzinfo is UTC


@pytest.mark.parametrize(
    ("time", "reason"),
    [
        ("soon", "neither seconds"),
        (-1, "from 0 on"),
        (True, "bool is not a time"),
        ("2026-13-01", "neither ISO 8601"),
        (1e12, "beyond the year 9999"),
        ("300000000000", "beyond the year 9999"),
    ],
)
def test_what_is_on_no_clock_is_an_error_about_a_time(time: str | float, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason) as refused:
        CLOCK.instant(time)
    assert refused.value.field == "time"


def test_a_period_without_an_end_is_an_instant() -> None:
    moment = MORNING + timedelta(seconds=5)
    assert CLOCK.period(5, None) == Period(moment, moment)
    assert CLOCK.period("0:05", 5) == Period(moment, moment)
    assert CLOCK.period(0, 5) == Period(MORNING, moment)


@pytest.mark.parametrize(
    ("start", "end", "field"),
    [("soon", 5, "start"), (5, "soon", "end"), (5, 4.999, "end"), (-1, -2, "start")],
)
def test_an_error_in_a_period_names_its_end(start: str | float, end: str | float, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        CLOCK.period(start, end)
    assert refused.value.field == field


def test_seconds_before_the_origin_are_negative_and_exact() -> None:
    assert CLOCK.seconds(MORNING - timedelta(microseconds=1)) == -0.000001
    assert StreamClock().seconds(EPOCH + timedelta(days=1)) == 86_400.0


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../UTC", "/etc/passwd", "Europe", "\0", "x" * 5_000])
def test_a_zone_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="is not a known time zone") as refused:
        zone_by_name(name)
    assert refused.value.field == "time_zone"


def test_utc_needs_no_zone_data() -> None:
    assert zone_by_name("UTC") is UTC
    assert zone_by_name("Europe/Berlin") == BERLIN


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "00:00:00"),
        (59.9994, "00:00:59.999"),
        (59.9996, "00:01:00"),
        (60, "00:01:00"),
        (3_599, "00:59:59"),
        (3_600, "01:00:00"),
        (360_000, "100:00:00"),
        (0.001, "00:00:00.001"),
        (1.25, "00:00:01.250"),
        (-0.0004, "00:00:00"),
        (-0.25, "-00:00:00.250"),
        (-61, "-00:01:01"),
    ],
)
def test_a_timecode_has_thousandths_only_if_there_are_any(seconds: float, text: str) -> None:
    assert timecode(seconds) == text


@given(st.integers(0, 10**9))
def test_a_timecode_is_read_as_it_was_written(thousandths: int) -> None:
    assert round(parse_offset(timecode(thousandths / 1_000)) * 1_000) == thousandths
