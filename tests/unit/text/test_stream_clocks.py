"""Clocks of streams: instants and periods on them, timecodes, and intervals that belong together."""

from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.errors import InvalidInput
from conspectus.model.records import Period
from conspectus.text.intervals import GAP_SECONDS, OVERLAP_SECONDS, belongs, runs
from conspectus.text.stream_clocks import StreamClock, timecode, zone_by_name
from conspectus.text.times import EPOCH, parse_instant, parse_offset, validity

MORNING = datetime(2026, 1, 5, 8, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
CLOCK = StreamClock(MORNING, BERLIN)
INTERVALS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), max_size=8).map(
    lambda given: [(float(start), float(start + length)) for start, length in given]
)


@pytest.mark.parametrize(
    ("value", "seconds"),
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
def test_a_clock_reads_offsets_and_instants_in_its_zone(
    value: datetime | str | float, seconds: float
) -> None:
    found = CLOCK.instant(value)
    assert found == MORNING + timedelta(seconds=seconds)
    assert CLOCK.seconds(found) == seconds


def test_an_instant_on_a_clock_is_in_utc_whatever_its_zone() -> None:
    assert CLOCK.instant("2026-01-05T09:00").tzinfo is UTC
    assert CLOCK.instant(MORNING.astimezone(BERLIN)).tzinfo is UTC


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("soon", "neither seconds"),
        (-1, "from 0 on"),
        (True, "bool is not a time"),
        ("2026-13-01", "neither ISO 8601"),
        (1e12, "beyond the year 9999"),
        ("300000000000", "beyond the year 9999"),
    ],
)
def test_what_is_on_no_clock_is_an_error_about_a_time(value: str | float, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason) as refused:
        CLOCK.instant(value)
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


@pytest.mark.parametrize("value", ["59:59", "1:59:59", "1:59:59,5", "100:59", "0:00:00", "1:2:3"])
def test_the_last_minute_of_an_hour_is_one(value: str) -> None:
    *hours, minutes, seconds = map(float, value.replace(",", ".").split(":"))
    assert parse_offset(f" {value}\n") == sum(hours) * 3_600 + minutes * 60 + seconds


@pytest.mark.parametrize("read", [parse_instant, parse_offset])
def test_a_time_has_at_most_a_hundred_characters(read: object) -> None:
    assert callable(read)
    assert read("1." + "0" * 98) in {1.0, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)}
    with pytest.raises(InvalidInput):
        read("1." + "0" * 99)


@pytest.mark.parametrize(
    ("text", "microsecond"),
    [
        ("08:00:00.1", 100_000),
        ("08:00:00.123456", 123_456),
        ("08:00:00,9999999", 999_999),
        ("080000.5", 500_000),
    ],
)
def test_fractions_are_cut_to_microseconds(text: str, microsecond: int) -> None:
    day = "2026-01-05T" if ":" in text else "20260105T"
    assert parse_instant(day + text) == MORNING.replace(microsecond=microsecond)


def test_seconds_since_1970_keep_their_microseconds() -> None:
    assert parse_instant(0.999_999) == EPOCH.replace(microsecond=999_999)
    assert parse_instant(-0.000_001) == EPOCH - timedelta(microseconds=1)
    assert parse_instant("1.5") == EPOCH + timedelta(seconds=1.5)


def test_a_validity_may_be_open_and_may_be_an_instant() -> None:
    assert validity(None, None) == (None, None)
    assert validity("2026-01-05T08:00Z", None) == (MORNING, None)
    assert validity(None, MORNING) == (None, MORNING)
    assert validity(MORNING, MORNING.astimezone(timezone(timedelta(hours=2)))) == (MORNING, MORNING)


@pytest.mark.parametrize(
    ("begins", "ends", "field", "reason"),
    [
        ("soon", None, "valid_from", "neither ISO 8601"),
        (None, "soon", "valid_until", "neither ISO 8601"),
        ("2026-01-05T08:00:00.000001Z", MORNING, "valid_until", "is before valid_from"),
    ],
)
def test_an_error_in_a_validity_names_its_end(begins: str, ends: str, field: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason) as refused:
        validity(begins, ends)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("end", "start", "expected"),
    [
        (10.0, 10.0 + GAP_SECONDS, True),
        (10.0, 10.1 + GAP_SECONDS, False),
        (10.0, 10.0, True),
        (10.0, 3.0, True),
        (0.0, 4.0, True),
        (0.0, 4.5, False),
    ],
)
def test_what_follows_within_the_gap_belongs_to_what_was_before(
    end: float, start: float, expected: bool
) -> None:
    assert belongs(end, start) is expected


def test_an_overlap_joins_whatever_the_gap_and_a_touch_does_not() -> None:
    assert belongs(10.0, 10.0 - OVERLAP_SECONDS - 0.01, gap=-5.0)
    assert not belongs(10.0, 9.95, gap=-5.0)
    assert belongs(OVERLAP_SECONDS, 0.0, gap=-5.0)


def test_a_long_interval_holds_what_lies_in_it_together() -> None:
    assert runs([(20.0, 21.0), (0.0, 30.0), (1.0, 2.0), (40.0, 41.0)]) == [[1, 2, 0], [3]]
    assert runs([(0.0, 1.0), (6.0, 7.0)]) == [[0], [1]]
    assert runs([(0.0, 1.0), (6.0, 7.0)], gap=5.0) == [[0, 1]]
    assert runs([]) == []


@given(INTERVALS, st.integers(0, 6))
def test_intervals_are_together_if_a_chain_of_near_ones_joins_them(
    intervals: list[tuple[float, float]], gap: int
) -> None:
    found = runs(intervals, gap=gap)
    assert sorted(place for run in found for place in run) == list(range(len(intervals)))
    borders = [
        (min(intervals[each][0] for each in run), max(intervals[each][1] for each in run)) for run in found
    ]
    assert all(later[0] - earlier[1] > gap for earlier, later in pairwise(borders))
    for run in found:
        reached = intervals[run[0]][1]
        for each in run[1:]:
            assert intervals[each][0] - reached <= gap
            reached = max(reached, intervals[each][1])
