"""The clock of a stream: seconds, timecodes and instants to one line of time, and back."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from conspectus.errors import InvalidInput
from conspectus.model.records import Period, Source
from conspectus.model.streams import ORIGIN, ZONE
from conspectus.text.times import parse_instant, parse_offset

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DATED: Final = re.compile(r"\s*\d{4}-", re.ASCII)
_COMPACT: Final = re.compile(r"\s*\d{8}T\d{4}", re.ASCII)


@dataclass(frozen=True, slots=True)
class StreamClock:
    """`origin` is the instant of second 0, `zone` that of instants without one and of times of day."""

    origin: datetime = EPOCH
    zone: tzinfo = UTC

    def instant(self, value: datetime | str | float) -> datetime:
        """The instant of seconds, of a timecode, or of an ISO 8601 instant. Raises InvalidInput."""
        if isinstance(value, datetime) or (isinstance(value, str) and _is_dated(value)):
            return parse_instant(value, self.zone).astimezone(UTC)
        try:
            return self.origin + timedelta(seconds=parse_offset(value))
        except InvalidInput as fault:
            raise InvalidInput("time", fault.reason) from fault
        except OverflowError as fault:
            raise InvalidInput("time", f"{value!r} is beyond the year 9999") from fault

    def period(self, start: datetime | str | float, end: datetime | str | float | None) -> Period:
        """From start to end; an instant without an end. Raises InvalidInput if it ends before it starts."""
        begins = self.instant(start)
        ends = begins if end is None else self.instant(end)
        if ends < begins:
            raise InvalidInput("end", "is before the start")
        return Period(begins, ends)

    def seconds(self, moment: datetime) -> float:
        """Seconds from the origin, negative before it, exact to the microsecond."""
        return (moment - self.origin) / timedelta(seconds=1)


def clock_of(stream: Source) -> StreamClock:
    """The clock that a stream's metadata describe."""
    origin, zone = stream.metadata.get(ORIGIN), zone_named(str(stream.metadata.get(ZONE) or "UTC"))
    return StreamClock(parse_instant(origin, zone) if isinstance(origin, str) else EPOCH, zone)


def zone_named(name: str) -> tzinfo:
    """The time zone of an IANA name, such as `Europe/Berlin`. Raises InvalidInput."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as fault:
        raise InvalidInput("zone", f"{name!r} is no time zone that is known here") from fault


def timecode(seconds: float) -> str:
    """`01:02:03`, with thousandths only where there are any; `-` in front before the origin."""
    thousandths = round(abs(seconds) * 1_000)
    whole, fraction = divmod(thousandths, 1_000)
    minutes, second = divmod(whole, 60)
    sign = "-" if seconds < 0 and thousandths else ""
    shown = f"{sign}{minutes // 60:02}:{minutes % 60:02}:{second:02}"
    return f"{shown}.{fraction:03}" if fraction else shown


def _is_dated(value: str) -> bool:
    return _DATED.match(value) is not None or _COMPACT.match(value) is not None
