"""What a word before a point makes of it: an open range, a wider one, a stretch beside it."""

from datetime import datetime
from typing import Final

from conspectus.time_expressions.amounts import Amount
from conspectus.time_expressions.clock import shifted
from conspectus.time_expressions.language import DAY, HOUR, MINUTE, SECOND, Relation
from conspectus.time_expressions.points import Point

_WIDENING: Final = ((SECOND, 30.0), (MINUTE, 120.0), (HOUR, 1_800.0))
"""What `around` adds on both sides, by the unit that was said; a day to days."""


def bounds(relation: Relation, point: Point) -> tuple[datetime | None, datetime | None]:
    """What a word before a point makes of it: days and parts are before, in, or after it as a whole."""
    match relation:
        case "before":
            return None, point.start
        case "until" | "by":
            return None, point.end if point.kind == "day" else point.start
        case "after":
            return (point.end or point.start) if point.wide else point.start, None
        case "since":
            return point.start, None
        case "from":
            return point.start, point.end if point.wide else None
        case "around" | "about" if point.kind not in {"part", "stretch", "end"}:
            width = _width(point)
            return shifted(point.start, -width), None if point.end is None else shifted(point.end, width)
        case _:
            return point.start, point.end


def shortly(relation: Relation, point: Point) -> tuple[datetime | None, datetime | None]:
    """Shortly before or after a point: as far as `around` reaches, to both sides together."""
    width = 2 * _width(point)
    if relation == "before":
        return shifted(point.start, -width), point.start
    start = (point.end or point.start) if point.wide else point.start
    return start, shifted(start, width)


def within(point: Point, amount: Amount) -> tuple[datetime, datetime | None]:
    """To both sides of a point; of its first instant where it is longer than that ("10 minutes of 3 pm")."""
    end = point.start if amount.seconds < point.unit else point.end
    return shifted(point.start, -amount.seconds), None if end is None else shifted(end, amount.seconds)


def next_to(
    point: Point, amount: Amount, *, earlier: bool, all_of_it: bool
) -> tuple[datetime, datetime | None]:
    """The amount before or after a point, or only the instant that is so far from it."""
    far = shifted(point.start, -amount.seconds if earlier else amount.seconds)
    if not all_of_it:
        return far, shifted(far, amount.unit)
    if not earlier:
        return point.start, far
    return far, None if point.end is None else point.start


def _width(point: Point) -> float:
    return next((width for unit, width in _WIDENING if point.unit <= unit), DAY)
