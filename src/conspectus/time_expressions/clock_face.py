"""A stream's clock with the time range of its captions."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from conspectus.deferred import dataclass
from conspectus.text.stream_clocks import StreamClock
from conspectus.text.times import EPOCH
from conspectus.time_expressions.vocabulary import DAY, HOUR

_EARLIEST: Final = datetime(2, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(9998, 12, 31, tzinfo=UTC)
_MICROSECOND: Final = 1e-6
_MIN_LATE_START: Final = timedelta(hours=1)
_MAX_SILENCE: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class ClockFace:
    """A stream's clock, and the time range of its captions.

    Args:
        clock: converts between seconds and instants of the stream.
        wall: whether times are calendar instants instead of seconds of a recording.
        first: the start of the first caption; None without captions.
        last: the end of the last caption; None without captions.
        now: the time of the query.
        live: whether the stream continues.
    """

    clock: StreamClock
    wall: bool
    first: datetime | None
    last: datetime | None
    now: datetime
    live: bool = False

    @property
    def begin(self) -> datetime:
        """Second 0; the first caption if that is earlier, or at least an hour later."""
        origin = self.clock.origin
        if self.first is None:
            return self.now if self.wall and origin == EPOCH else clamp(origin)
        late = self.first - origin
        return clamp(origin if timedelta(0) <= late < _MIN_LATE_START else self.first)

    @property
    def end(self) -> datetime:
        """The end of the last caption, or the current time of a live wall clock; not before the beginning."""
        last = self.last or self.begin
        if self.live and self.wall:
            last = max(last, self.now)
        return max(clamp(last), self.begin)

    @property
    def last_day(self) -> date:
        """The last calendar day of the stream in the clock's zone; today without captions."""
        return self.local(self.now if self.last is None else self._last_instant).date()

    def local(self, moment: datetime) -> datetime:
        """Return the instant in the clock's zone."""
        return clamp(moment).astimezone(self.clock.zone)

    def of_day(self, day: date, seconds: float, unit: float) -> tuple[datetime, datetime]:
        """Return the range of a time of day with the precision `unit`.

        A time that a clock change skips is shifted by it; a time that occurs twice includes both.
        """
        start = self._instant(day, seconds, fold=0)
        last = self._instant(day, seconds + unit - _MICROSECOND, fold=1)
        return start, max(add_seconds(last, _MICROSECOND), add_seconds(start, min(unit, HOUR)))

    def from_universal(self, seconds: float) -> float:
        """Convert a time of day from UTC to this clock, with the offset at the end of the stream."""
        offset = self.local(self.end).utcoffset() or timedelta(0)
        return (seconds + offset.total_seconds()) % DAY

    def overlaps(self, start: datetime, end: datetime) -> bool:
        """Return whether the stream overlaps [start, end)."""
        return self.first is not None and clamp(self.first) < end and start <= self._last_instant

    @property
    def _last_instant(self) -> datetime:
        """Return the end of the stream; after an hour of silence in a live stream, that of the captions."""
        silent = self.last is not None and self.now - self.last > _MAX_SILENCE
        return clamp(self.last) if self.last is not None and silent else self.end

    def _instant(self, day: date, seconds: float, *, fold: int) -> datetime:
        wall_time = datetime.combine(day, time()) + timedelta(seconds=seconds)
        return wall_time.replace(tzinfo=self.clock.zone, fold=fold).astimezone(UTC)


def add_seconds(moment: datetime, seconds: float) -> datetime:
    """Return the instant a number of seconds later, within the range of the calendar."""
    try:
        return clamp(moment + timedelta(seconds=seconds))
    except OverflowError:
        return _LATEST if seconds > 0 else _EARLIEST


def clamp(moment: datetime) -> datetime:
    """Return the instant in UTC, kept away from the limits of the calendar by more than any zone offset."""
    return min(max(moment, _EARLIEST), _LATEST).astimezone(UTC)
