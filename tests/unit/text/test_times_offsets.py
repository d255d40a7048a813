"""Offsets, instants and validities at the limits of what is read as a time."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from conspectus.errors import InvalidInput
from conspectus.text.times import EPOCH, parse_instant, parse_offset, validity

MORNING = datetime(2026, 1, 5, 8, tzinfo=UTC)


@pytest.mark.parametrize("offset", ["59:59", "1:59:59", "1:59:59,5", "100:59", "0:00:00", "1:2:3"])
def test_the_last_minute_of_an_hour_is_one(offset: str) -> None:
    *hours, minutes, seconds = map(float, offset.replace(",", ".").split(":"))
    assert parse_offset(f" {offset}\n") == sum(hours) * 3_600 + minutes * 60 + seconds


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
