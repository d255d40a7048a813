"""Points on the clock of a stream: positions in a recording, times of day and days."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Final

from conspectus.time_expressions.clock_face import ClockFace, add_seconds, clamp
from conspectus.time_expressions.points import Kind, Point
from conspectus.time_expressions.tokens import Token
from conspectus.time_expressions.vocabulary import DAY, HOUR, MINUTE, SECOND

HALF_DAY: Final = 12 * HOUR
_ONE_DAY: Final = timedelta(days=1)
_EDGE_SHARE: Final = 0.1
_MIN_EDGE_SECONDS: Final = 30.0
_MAX_EDGE_SECONDS: Final = 300.0


class Timeline:
    """Makes points on the clock of a stream.

    Args:
        face: the clock.
        tokens: the query, which decides what `12:30` means in a recording.
        day: the day that the query names, on which times of day are.
    """

    def __init__(self, face: ClockFace, tokens: Sequence[Token], day: date | None) -> None:
        self.face = face
        self.day = day
        self.length = (face.end - face.begin).total_seconds()
        self._hours_first = _hours_first(tokens, face)

    @property
    def today(self) -> date:
        """The day of the query in the clock's zone."""
        return self.face.local(self.face.now).date()

    @property
    def edge_seconds(self) -> float:
        """Length of the beginning, the end and the sides of the middle."""
        return min(max(self.length * _EDGE_SHARE, _MIN_EDGE_SECONDS), _MAX_EDGE_SECONDS)

    def point_at(
        self, seconds: float, unit: float, *, kind: Kind = "place", start: datetime | None = None
    ) -> Point:
        """Return the point a number of seconds after the beginning of the stream."""
        begins = add_seconds(clamp(self.face.begin if start is None else start), seconds)
        return Point(begins, add_seconds(begins, unit), unit, kind)

    def position_at_clock(self, text: str) -> Point:
        """Return the position in a recording that its clock shows so."""
        seconds, unit = clock_parts(text, hours_first=self._hours_first)
        return self.point_at(seconds, unit, kind="clock", start=self.face.clock.origin)

    def of_day(self, seconds: float, unit: float) -> Point:
        """Return a time of day on the named day, else on the last day on which the stream has it."""
        start, end = self.face.of_day(self._day_of(seconds, unit), seconds, unit)
        return Point(start, end, unit, "clock", of_day=seconds)

    def of_either_half(self, seconds: float, unit: float) -> Point:
        """Return a time of day of a twelve-hour clock: in the afternoon if only that is in the stream."""
        early = self.of_day(seconds, unit)
        late = self.of_day(seconds % HALF_DAY + HALF_DAY, unit)
        only_late = self._covers(late) and not self._covers(early)
        return late if only_late else early

    def on_day(self, point: Point, day: date) -> Point:
        """Return the same time of day on a day."""
        start, end = self.face.of_day(day, point.of_day or 0.0, point.unit)
        return replace(point, start=start, end=end, kind="dated", of_day=None, day=day)

    def spread(self, first: Point, last: Point) -> tuple[Point, Point]:
        """Resolve two times of day, one of them without a day: the second is within a day after the first."""
        if first.of_day is None and last.of_day is None:
            backwards = first.weekly and last.weekly and last.start < first.start
            return first, _week_later(last) if backwards else last
        if first.of_day is None:
            day = self.face.local(first.start).date()
            later = self.on_day(last, day)
            return first, later if later.start > first.start else self.on_day(last, day + _ONE_DAY)
        if last.of_day is None:
            day = self.face.local(last.start).date()
            earlier = self.on_day(first, day)
            return (earlier if earlier.start < last.start else self.on_day(first, day - _ONE_DAY)), last
        over_night = timedelta(days=last.of_day < first.of_day)
        day = self._day_of(first.of_day, last.of_day + over_night.total_seconds() - first.of_day)
        return self.on_day(first, day), self.on_day(last, day + over_night)

    def _day_of(self, seconds: float, unit: float) -> date:
        if self.day is not None:
            return self.day
        days = (self.face.last_day, self.face.last_day - _ONE_DAY)
        covered = (day for day in days if self.face.overlaps(*self.face.of_day(day, seconds, unit)))
        return next(covered, days[0])

    def _covers(self, point: Point) -> bool:
        return self.face.overlaps(point.start, point.end or point.start)


def clock_parts(text: str, *, hours_first: bool) -> tuple[float, float]:
    """Return the seconds of a clock time, and the unit of its last part."""
    parts = [float(part.replace(",", ".")) for part in text.split(":")]
    if len(parts) == 3:
        return parts[0] * HOUR + parts[1] * MINUTE + parts[2], SECOND
    large = HOUR if hours_first else MINUTE
    return parts[0] * large + parts[1] * large / MINUTE, large / MINUTE


def _hours_first(tokens: Sequence[Token], face: ClockFace) -> bool:
    """Return whether `12:30` is 12 hours and 30 minutes on the clock of a recording.

    It is for recordings of at least 12 hours, and if only that position is in the recording; otherwise it is
    12 minutes and 30 seconds.
    """
    texts = [token.text for token in tokens if token.kind == "clock" and token.text.count(":") == 1]
    if face.last is None or not texts:
        return False
    last = face.clock.seconds(face.end)
    first = face.clock.seconds(face.begin)
    hours = [clock_parts(text, hours_first=True)[0] for text in texts]
    minutes = [clock_parts(text, hours_first=False)[0] for text in texts]
    fits_hours = all(first <= seconds <= last for seconds in hours)
    fits_minutes = all(first <= seconds <= last for seconds in minutes)
    return fits_hours and (last - first >= HALF_DAY or not fits_minutes)


def _week_later(point: Point) -> Point:
    end = None if point.end is None else add_seconds(point.end, 7 * DAY)
    return replace(point, start=add_seconds(point.start, 7 * DAY), end=end)
