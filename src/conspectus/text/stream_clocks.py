"""Clocks and timecodes of streams."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput, as_field
from conspectus.model.captions import ORIGIN, ZONE
from conspectus.model.records import Period, Source
from conspectus.text.late_patterns import re_pattern
from conspectus.text.times import EPOCH, parse_instant, parse_offset

_DATED: Final = re_pattern(r"\s*(?:\d{4}-|\d{8}T\d{4})", re.ASCII)


@dataclass(frozen=True, slots=True)
class StreamClock:
    """The clock of a stream: `origin` is the instant of second 0, `zone` the default time zone."""

    origin: datetime = EPOCH
    zone: tzinfo = UTC

    def instant(self, value: datetime | str | float) -> datetime:
        """Return the instant of seconds, a timecode, or an ISO 8601 instant. Raises InvalidInput."""
        if isinstance(value, datetime) or (isinstance(value, str) and _DATED.match(value)):
            return parse_instant(value, self.zone).astimezone(UTC)
        try:
            return self.origin + timedelta(seconds=parse_offset(value))
        except InvalidInput as fault:
            raise InvalidInput("time", fault.reason) from fault
        except OverflowError as fault:
            raise InvalidInput("time", f"{value!r} is beyond the year 9999") from fault

    def period(self, start: datetime | str | float, end: datetime | str | float | None) -> Period:
        """Return the period from start to end, by default an instant.

        Raises InvalidInput if it is reversed.
        """
        with as_field("start", was="time"):
            begins = self.instant(start)
        with as_field("end", was="time"):
            ends = begins if end is None else self.instant(end)
        if ends < begins:
            raise InvalidInput("end", "is before the start")
        return Period(begins, ends)

    def seconds(self, moment: datetime) -> float:
        """Return seconds from the origin (negative before it), exact to the microsecond."""
        return (moment - self.origin) / timedelta(seconds=1)


def clock_of(stream: Source) -> StreamClock:
    """Return the clock in a stream's metadata."""
    origin, zone = stream.metadata.get(ORIGIN), zone_by_name(str(stream.metadata.get(ZONE) or "UTC"))
    return StreamClock(parse_instant(origin, zone) if isinstance(origin, str) else EPOCH, zone)


def zone_by_name(name: str) -> tzinfo:
    """Return the time zone with an IANA name, such as `Europe/Berlin`. Raises InvalidInput."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as fault:
        raise InvalidInput("time_zone", f"{name!r} is not a known time zone") from fault


def timecode(seconds: float) -> str:
    """Return `01:02:03`, with thousandths if there are any, and with `-` before the origin."""
    thousandths = round(abs(seconds) * 1_000)
    full_seconds, fraction = divmod(thousandths, 1_000)
    minutes, second = divmod(full_seconds, 60)
    sign = "-" if seconds < 0 and thousandths else ""
    code = f"{sign}{minutes // 60:02}:{minutes % 60:02}:{second:02}"
    return f"{code}.{fraction:03}" if fraction else code
