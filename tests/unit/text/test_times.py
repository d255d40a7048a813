from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.errors import InvalidInput, RecordsDamaged
from conspectus.text.times import (
    canonical,
    from_microseconds,
    parse_instant,
    parse_offset,
    render,
    to_microseconds,
)

BERLIN = timezone(timedelta(hours=2))
MOMENTS = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=st.sampled_from([UTC, BERLIN]))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-01-05T14:30:00Z", "2026-01-05T14:30:00.000000Z"),
        ("2026-01-05t14:30:00z", "2026-01-05T14:30:00.000000Z"),
        ("2026-01-05 14:30", "2026-01-05T14:30:00.000000Z"),
        (" 2026-01-05 14:30:00 +0200 ", "2026-01-05T12:30:00.000000Z"),
        ("2026-01-05 14:30 UTC", "2026-01-05T14:30:00.000000Z"),
        ("2026-01-05T14:30:00.1234567891+02:00", "2026-01-05T12:30:00.123456Z"),
        ("2026-01-05T14:30:00,5", "2026-01-05T14:30:00.500000Z"),
        ("2026-01-05T14:30:00.123456", "2026-01-05T14:30:00.123456Z"),
        ("20260105T143000Z", "2026-01-05T14:30:00.000000Z"),
        ("20260105", "2026-01-05T00:00:00.000000Z"),
        ("2026-W02-1", "2026-01-05T00:00:00.000000Z"),
        ("2026-01", "2026-01-01T00:00:00.000000Z"),
        ("2026", "2026-01-01T00:00:00.000000Z"),
        (0, "1970-01-01T00:00:00.000000Z"),
        (-1.5, "1969-12-31T23:59:58.500000Z"),
        (1_700_000_000.25, "2023-11-14T22:13:20.250000Z"),
        ("1700000000", "2023-11-14T22:13:20.000000Z"),
        (datetime(2026, 1, 5), "2026-01-05T00:00:00.000000Z"),
        (datetime(2026, 1, 5, tzinfo=BERLIN), "2026-01-04T22:00:00.000000Z"),
    ],
)
def test_instants(value, expected):
    assert canonical(parse_instant(value)) == expected


def test_a_value_without_a_zone_gets_the_default():
    assert parse_instant("2026-01-05", BERLIN) == parse_instant(datetime(2026, 1, 4, 22, tzinfo=UTC), BERLIN)
    assert parse_instant("2026-01-05T00:00Z", BERLIN).utcoffset() == timedelta(0)
    assert parse_instant(0, BERLIN) == datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        *(
            "",
            "nan",
            "yesterday",
            "2026-02-30",
            "10000-01-01",
            "14:30",
            "2026-01-05T14.5",
            "2026-01-05T14:30:61Z",
        ),
        *(
            "0001-01-01T00:00+10:00",
            "9999-12-31T23:59:59-10:00",
            "1700000000000",
            "1e400",
            "9" * 99,
            "x" * 5000,
        ),
        *(
            float("nan"),
            float("inf"),
            -float("inf"),
            10**400,
            True,
            None,
            [],
            253_402_300_800,
            "\u0661\u0662",
        ),
    ],
)
def test_what_is_not_an_instant_is_refused(value):
    with pytest.raises(InvalidInput):
        parse_instant(value)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        *(
            (0, 0),
            (5, 5),
            (1.25, 1.25),
            ("5", 5),
            ("7.5", 7.5),
            ("9:00", 540),
            ("10:00", 600),
            ("90:00", 5400),
        ),
        *(("1:02:03", 3723), ("01:02:03,250", 3723.25), ("01:02:03.5", 3723.5), ("0:05", 5)),
        *(("1h2m3s", 3723), ("1h 2m", 3720), ("90s", 90), ("1.5H", 5400), ("2min", 120)),
        *(("100:00:00", 360_000), (timedelta(minutes=1), 60)),
    ],
)
def test_offsets(value, seconds):
    assert parse_offset(value) == seconds


def test_offsets_compare_as_numbers():
    assert parse_offset("9:00") < parse_offset("10:00")


@pytest.mark.parametrize(
    "value",
    [
        *(
            "",
            " ",
            "h",
            "nan",
            "inf",
            "-1",
            "-0:01",
            "1:60",
            "1:60:00",
            "12:",
            ":12",
            "1:2:3:4",
            "1m2h",
            "1e999",
        ),
        *(float("nan"), float("inf"), -1, -0.001, 10**400, False, None, timedelta(seconds=-1), "x" * 5000),
    ],
)
def test_what_is_not_an_offset_is_refused(value):
    with pytest.raises(InvalidInput):
        parse_offset(value)


@given(MOMENTS, MOMENTS)
def test_every_form_goes_round_and_keeps_the_order(one, other):
    for form, back in (
        (to_microseconds, from_microseconds),
        (canonical, parse_instant),
        (str, parse_instant),
    ):
        assert back(form(one)) == one
    assert (
        (one < other)
        == (to_microseconds(one) < to_microseconds(other))
        == (canonical(one) < canonical(other))
    )


def test_numbers_too_long_to_print_are_refused_all_the_same():
    for function in (parse_instant, parse_offset):
        with pytest.raises(InvalidInput):
            function(10**6000)


def test_a_stored_time_that_is_none_is_damage():
    for stored in (10**6000, 10**30, "then", None):
        with pytest.raises(RecordsDamaged):
            from_microseconds(stored)


def test_the_form_for_people():
    assert render(datetime(2026, 1, 5, 14, 30, 59, tzinfo=UTC)) == "2026-01-05 14:30"
    assert render(datetime(2026, 1, 5, 1, tzinfo=BERLIN)) == "2026-01-04 23:00"


def test_a_moment_without_a_zone_is_refused():
    for function in (to_microseconds, canonical, render):
        with pytest.raises(InvalidInput, match="zone"):
            function(datetime(2026, 1, 5))
