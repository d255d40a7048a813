"""Builders of parts of a stream: beginning and end, halves and thirds, "the first five minutes".

The beginning, the end and the middle are a tenth of the stream, but at least 30 seconds and at most five
minutes (the middle: to both sides).
"""

from datetime import datetime
from typing import Final

from conspectus.time_expressions.amounts import require_length
from conspectus.time_expressions.clock_face import add_seconds
from conspectus.time_expressions.periods import count_days_back
from conspectus.time_expressions.points import Amount, Point
from conspectus.time_expressions.timeline import Timeline
from conspectus.time_expressions.vocabulary import DAY, SECOND

_LAST: Final = -1


def count_last(_: Timeline) -> int:
    """Return the number of `last`."""
    return _LAST


def count_second(_: Timeline) -> int:
    """Return the number of the `middle` third."""
    return 2


def read_ordinal(_: Timeline, text: str) -> int | None:
    """Return the number of `5th`."""
    return int(text) or None if text.isdigit() else None


def take_share(timeline: Timeline, order: int, parts: int, bare: bool | None) -> Point | None:
    """Return a half, third or quarter. The last one extends to the end."""
    if order > parts:
        return None
    number = parts if order == _LAST else order
    begin, share = timeline.face.begin, timeline.length / parts
    end = None if number == parts else add_seconds(begin, number * share)
    start = add_seconds(begin, (number - 1) * share)
    return Point(start, end, SECOND, "part", bare=bool(bare))


def take_stretch(timeline: Timeline, order: int, length: Amount) -> Point | None:
    """Return the stretch of `last minute`, which needs a preposition."""
    return _stretch(timeline, order, length, bare=False)


def take_bare_stretch(timeline: Timeline, order: int, length: Amount) -> Point | None:
    """Return the stretch of `the first five minutes`."""
    return _stretch(timeline, order, length, bare=True)


def take_middle(timeline: Timeline) -> Point:
    """Return the middle, `halfway`."""
    middle = add_seconds(timeline.face.begin, timeline.length / 2)
    start = max(add_seconds(middle, -timeline.edge_seconds), timeline.face.begin)
    return Point(start, add_seconds(middle, timeline.edge_seconds), SECOND, "part", bare=True)


def take_beginning(timeline: Timeline) -> Point:
    """Return the beginning as a range."""
    begin = timeline.face.begin
    return Point(begin, add_seconds(begin, timeline.edge_seconds), SECOND, "part")


def take_ending(timeline: Timeline) -> Point:
    """Return the end as a range."""
    start = max(add_seconds(timeline.face.end, -timeline.edge_seconds), timeline.face.begin)
    return Point(start, None, SECOND, "end")


def take_first_instant(timeline: Timeline) -> Point:
    """Return the beginning as an instant."""
    return Point(timeline.face.begin, timeline.face.begin, SECOND, "part")


def take_last_instant(timeline: Timeline) -> Point:
    """Return the end as an instant."""
    return Point(timeline.face.end, None, SECOND, "end")


def place_amount(timeline: Timeline, length: Amount) -> Point:
    """Return the position of `5 minutes in`."""
    return timeline.point_at(length.seconds, length.unit)


def place_plain_amount(timeline: Timeline, length: Amount) -> Point:
    """Return the position of `5 minutes`, which may also be a length."""
    return timeline.point_at(length.seconds, length.unit, kind="amount")


def count_back(timeline: Timeline, length: Amount) -> Point | None:
    """Return the point of `ten minutes ago`, on wall clocks and in live streams; `two days ago` is a day."""
    face = timeline.face
    if not face.live and not face.wall:
        return None
    days, rest = divmod(length.seconds, DAY)
    if face.wall and length.unit >= DAY and not rest:
        return count_days_back(timeline, int(days))
    begins = add_seconds(face.now if face.wall else face.end, -length.seconds)
    return Point(begins, add_seconds(begins, length.unit), length.unit, "place")


def _stretch(timeline: Timeline, order: int, length: Amount, *, bare: bool) -> Point | None:
    if require_length(timeline, length) is None:
        return None
    start, end = _nth(timeline, order, length.seconds)
    return Point(start, end, length.unit, "stretch", bare=bare)


def _nth(timeline: Timeline, order: int, seconds: float) -> tuple[datetime, datetime | None]:
    begin = timeline.face.begin
    if order == _LAST:
        return max(add_seconds(timeline.face.end, -seconds), begin), None
    return add_seconds(begin, (order - 1) * seconds), add_seconds(begin, order * seconds)
