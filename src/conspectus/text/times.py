"""Times: instants with a zone, and offsets in seconds."""

import math
import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from conspectus.errors import InvalidInput, RecordsDamaged, as_field
from conspectus.text.late_patterns import re_pattern

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MAX_INPUT_LENGTH = 100
_NUMBER = re_pattern(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_COMPACT_DATE = re_pattern(r"\d{8}|\d{4}", re.ASCII)
_FRACTION = re_pattern(r"(?<=:\d\d:\d\d)[.,](\d+)|(?<=[T ]\d{6})[.,](\d+)", re.ASCII)
_SPACED_ZONE = re_pattern(r"\s+(?=[+-]\d|Z$)|\s+UTC$|\s+GMT$", re.ASCII)
_TIMECODE = re_pattern(r"(?:(\d+):)?(\d{1,}):([0-5]?\d(?:[.,]\d*)?)", re.ASCII)
_UNITS = re_pattern(
    r"(?:(\d+(?:\.\d*)?)\s*h\s*)?(?:(\d+(?:\.\d*)?)\s*m(?:in)?\s*)?(?:(\d+(?:\.\d*)?)\s*s\s*)?",
    re.ASCII | re.IGNORECASE,
)


def parse_instant(value: str | int | float | datetime, default_zone: tzinfo = UTC) -> datetime:
    """Parse an instant.

    Args:
        value: a datetime, seconds since 1970 (a number, or a numeric string except four or eight digits,
            which are a year and a date), or ISO 8601: calendar or week dates, optionally with a time after
            "T" or a space, any fraction of a second (truncated to microseconds), an offset or "Z".
        default_zone: the zone of a value without one.

    Raises:
        InvalidInput: the value is invalid, not finite, or outside the years 1 to 9999 in UTC.
    """
    if isinstance(value, datetime):
        moment = value if value.utcoffset() is not None else value.replace(tzinfo=default_zone)
        try:
            moment.astimezone(UTC)
        except (OverflowError, ValueError) as error:
            raise InvalidInput("time", f"{value} is outside the years 1 to 9999 in UTC") from error
        return moment
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidInput(
            "time",
            f"{type(value).__name__} is not a time; give a datetime, ISO 8601 text or seconds since 1970",
        )
    if isinstance(value, str):
        text = value.strip()
        if len(text) > _MAX_INPUT_LENGTH:
            raise InvalidInput("time", f"has {len(text)} characters, a time has at most {_MAX_INPUT_LENGTH}")
        if not _NUMBER.fullmatch(text) or _COMPACT_DATE.fullmatch(text):
            return _from_iso(text, default_zone)
        value = float(text)
    return _from_epoch(value)


def validity(
    begins: datetime | str | None, ends: datetime | str | None
) -> tuple[datetime | None, datetime | None]:
    """Parse a validity. Raises InvalidInput for `valid_from` or `valid_until`."""
    with as_field("valid_from", was="time"):
        since = None if begins is None else parse_instant(begins)
    with as_field("valid_until", was="time"):
        until = None if ends is None else parse_instant(ends)
    if since is not None and until is not None and until < since:
        raise InvalidInput("valid_until", "is before valid_from; swap them")
    return since, until


def parse_offset(value: str | int | float | timedelta) -> float:
    """Parse seconds from the start of a stream.

    Args:
        value: seconds as a number or numeric string, a timecode (`mm:ss`, `hh:mm:ss`, optionally with a
            fraction after a point or comma; minutes above 59 only without hours), or amounts with units
            (`1h2m3s`, `90s`).

    Raises:
        InvalidInput: the value is invalid, negative, or not finite.
    """
    if isinstance(value, timedelta):
        return _offset(value.total_seconds())
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidInput(
            "offset",
            f"{type(value).__name__} is not a time; give seconds or a timecode such as 12:30",
        )
    return _offset(_seconds(value.strip()) if isinstance(value, str) else value)


def to_microseconds(moment: datetime) -> int:
    """Return exact microseconds since 1970 in UTC; negative for earlier instants."""
    return (_aware(moment) - EPOCH) // _MICROSECOND


def from_microseconds(microseconds: int) -> datetime:
    """Return a stored instant in UTC; the inverse of `to_microseconds`. Raises RecordsDamaged."""
    try:
        return EPOCH + timedelta(microseconds=microseconds)
    except (OverflowError, TypeError) as error:
        raise RecordsDamaged(f"a stored time cannot be read ({error}); restore a backup") from error


def canonical(moment: datetime) -> str:
    """Return ISO 8601 in UTC with six fraction digits and "Z", which sorts by time."""
    return _aware(moment).astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def render(moment: datetime) -> str:
    """Return date and minute in UTC for display: `2026-01-05 14:30`."""
    return _aware(moment).astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ", timespec="minutes")


def _from_iso(text: str, default_zone: tzinfo) -> datetime:
    compact = _SPACED_ZONE.sub(lambda match: "Z" if match[0].strip() else "", text.upper())
    exact = _FRACTION.sub(lambda match: "." + (match[1] or match[2])[:6].ljust(6, "0"), compact, count=1)
    if re.fullmatch(r"\d{4}(-\d\d)?", exact, re.ASCII):
        exact += "-01-01" if len(exact) == 4 else "-01"
    try:
        # The standard library reads a fraction of an hour or minute as one of a second.
        if re.search("[.,]", compact) and not _FRACTION.search(compact):
            raise ValueError(exact)
        moment = datetime.fromisoformat(exact)
    except ValueError as error:
        raise InvalidInput("time", f"{text!r} is neither ISO 8601 nor seconds since 1970") from error
    return parse_instant(moment, default_zone)


def _from_epoch(seconds: int | float) -> datetime:
    try:
        full_seconds = math.floor(seconds)
        microseconds = round((seconds - full_seconds) * 1_000_000)
        return EPOCH + timedelta(seconds=full_seconds, microseconds=microseconds)
    except (OverflowError, ValueError) as error:
        raise InvalidInput(
            "time", "the seconds since 1970 are not finite or outside the years 1 to 9999"
        ) from error


def _seconds(text: str) -> float:
    if len(text) <= _MAX_INPUT_LENGTH:
        if _NUMBER.fullmatch(text):
            return float(text)
        if match := _TIMECODE.fullmatch(text):
            return _from_timecode(match)
        if text and (match := _UNITS.fullmatch(text)):
            hours, minutes, seconds = (float(part or 0) for part in match.groups())
            return hours * 3600 + minutes * 60 + seconds
    raise InvalidInput(
        "offset", f"{text[:_MAX_INPUT_LENGTH]!r} is neither seconds, nor hh:mm:ss, nor 1h2m3s, nor ISO 8601"
    )


def _from_timecode(match: re.Match[str]) -> float:
    hours, minutes, seconds = match.groups()
    if hours is not None and int(minutes) > 59:
        raise InvalidInput("offset", f"{match[0]!r} has more than 59 minutes in an hour")
    return int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds.replace(",", "."))


def _offset(seconds: float) -> float:
    try:
        offset = float(seconds)
    except OverflowError:
        offset = math.inf
    if not (math.isfinite(offset) and offset >= 0):
        raise InvalidInput("offset", "is not a finite number of seconds from 0 on")
    return offset


def _aware(moment: datetime) -> datetime:
    if moment.utcoffset() is None:
        raise InvalidInput("time", f"{moment.isoformat()} has no time zone; add one, such as tzinfo=UTC")
    return moment
