"""What a stream's clock shows: where it begins and ends, and what instant a time of day is on it."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from conspectus.text.times import EPOCH, StreamClock
from conspectus.time_expressions.language import DAY, HOUR

_EARLIEST: Final = datetime(2, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(9998, 12, 31, tzinfo=UTC)
_INSTANT: Final = 1e-6
_LATE_START: Final = timedelta(hours=1)
_SILENCE: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class ClockFace:
    """A stream's clock, and from when to when the stream goes.

    Args:
        clock: seconds and instants of the stream.
        wall: whether its times are instants of the calendar, and not seconds of a recording.
        first: where the captions begin; None without any.
        last: where the captions end; None without any.
        now: the instant at which it is asked.
        live: whether more is to come.
    """

    clock: StreamClock
    wall: bool
    first: datetime | None
    last: datetime | None
    now: datetime
    live: bool = False

    @property
    def begin(self) -> datetime:
        """Second 0; the first caption where that is before it, or an hour and more after it."""
        origin = self.clock.origin
        if self.first is None:
            return self.now if self.wall and origin == EPOCH else bounded(origin)
        late = self.first - origin
        return bounded(origin if timedelta(0) <= late < _LATE_START else self.first)

    @property
    def end(self) -> datetime:
        """Where the last caption ends, and now where a wall clock is live; never before the beginning."""
        known = self.last or self.begin
        if self.live and self.wall:
            known = max(known, self.now)
        return max(bounded(known), self.begin)

    @property
    def last_day(self) -> date:
        """The last day, on the clock's own calendar, that the stream covers; today without captions."""
        return self.local(self.now if self.last is None else self._last_known).date()

    def local(self, moment: datetime) -> datetime:
        """The moment as the clock on the wall shows it."""
        return bounded(moment).astimezone(self.clock.zone)

    def of_day(self, day: date, seconds: float, unit: float) -> tuple[datetime, datetime]:
        """From when to when the clock shows a time of a day, said as exactly as `unit`.

        A time that a change of the clocks leaves out is as much later; one that comes twice is both.
        """
        start = self._instant(day, seconds, fold=0)
        last = self._instant(day, seconds + unit - _INSTANT, fold=1)
        return start, max(shifted(last, _INSTANT), shifted(start, min(unit, HOUR)))

    def from_universal(self, seconds: float) -> float:
        """The time of day on this clock when it is another in UTC, as it was where the stream ends."""
        offset = self.local(self.end).utcoffset() or timedelta(0)
        return (seconds + offset.total_seconds()) % DAY

    def covers(self, start: datetime, end: datetime) -> bool:
        """Whether the stream has something of [start, end)."""
        return self.first is not None and bounded(self.first) < end and start <= self._last_known

    @property
    def _last_known(self) -> datetime:
        """Where it ends; of a live stream that has been silent for an hour, where it last said something."""
        silent = self.last is not None and self.now - self.last > _SILENCE
        return bounded(self.last) if self.last is not None and silent else self.end

    def _instant(self, day: date, seconds: float, *, fold: int) -> datetime:
        shown = datetime.combine(day, time()) + timedelta(seconds=seconds)
        return shown.replace(tzinfo=self.clock.zone, fold=fold).astimezone(UTC)


def shifted(moment: datetime, seconds: float) -> datetime:
    """So many seconds later, but within the calendar."""
    try:
        return bounded(moment + timedelta(seconds=seconds))
    except OverflowError:
        return _LATEST if seconds > 0 else _EARLIEST


def bounded(moment: datetime) -> datetime:
    """The moment in UTC, not so near to the ends of the calendar that a zone could pass them."""
    return min(max(moment, _EARLIEST), _LATEST).astimezone(UTC)
