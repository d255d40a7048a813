"""Builders of ranges: from two points, or from a preposition and a point."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from conspectus.time_expressions.clock_face import add_seconds
from conspectus.time_expressions.points import Amount, Kind, Point, TimeRange
from conspectus.time_expressions.timeline import HALF_DAY, Timeline
from conspectus.time_expressions.vocabulary import DAY, HOUR, MINUTE, SECOND, Relation

Pair = tuple[Point, Point]

_MARGINS: Final = ((SECOND, 30.0), (MINUTE, 120.0), (HOUR, 1_800.0))
"""The margin of `around` on both sides in seconds, by the unit in the text; a day for days."""
_BESIDES: Final[frozenset[Relation]] = frozenset({"before", "until", "by", "after", "around"})
_ANYWHERE: Final[frozenset[Relation]] = _BESIDES | {"since", "from"}
_RELATIONS_BY_KIND: Final[Mapping[Kind, frozenset[Relation]]] = MappingProxyType(
    {
        "clock": _ANYWHERE | {"about", "at"},
        "dated": _ANYWHERE | {"about", "at", "on", "in"},
        "amount": frozenset({"before", "until", "after", "at"}),
        "place": _ANYWHERE | {"about", "at", "in"},
        "day": _ANYWHERE | {"on", "in"},
        "part": _BESIDES | {"at", "in"},
        "stretch": _ANYWHERE | {"in"},
        "end": _BESIDES | {"at"},
    }
)
"""Prepositions that make a point a time: not `about Monday`, `in 5 minutes`."""
_PLAIN_RELATIONS: Final[Mapping[Relation, Relation]] = MappingProxyType(
    {"by": "until", "about": "around", "from": "since"}
)


def suits_preposition(_: Timeline, captures: Mapping[str, Any]) -> bool:
    """Return whether a preposition makes a point a time."""
    return captures["relation"] in _RELATIONS_BY_KIND[captures["point"].kind]


def pair_named_positions(timeline: Timeline, unit: float, low: float, high: float) -> Pair:
    """Return the points of `minutes 3 and 5`."""
    return timeline.point_at(low * unit, unit), timeline.point_at(high * unit, unit)


def pair_counted_positions(
    timeline: Timeline, low: float, high: float, unit: float, position: bool | None
) -> Pair | None:
    """Return the points of `3 to 5 minutes`, or of `3-5 minutes in`."""
    if unit > HOUR:
        return None
    kind: Kind = "place" if position else "amount"
    return timeline.point_at(low * unit, unit, kind=kind), timeline.point_at(high * unit, unit, kind=kind)


def pair_hours(timeline: Timeline, hour: str, last: Point) -> Pair | None:
    """Return the points of `2 to 3pm` or `between 11 and 1 pm`: the first is before the second."""
    if last.of_day is None or not 1 <= float(hour) <= 12:
        return None
    same_half = float(hour) % 12 * HOUR + (HALF_DAY if last.of_day >= HALF_DAY else 0)
    seconds = same_half if same_half < last.of_day else (same_half - HALF_DAY) % DAY
    return timeline.of_day(seconds, HOUR), last


def pair_points(_: Timeline, first: Point, last: Point) -> Pair:
    """Return two points."""
    return first, last


def span_pair(
    timeline: Timeline,
    pair: Pair,
    goes_on: bool | None,
    relation: Relation | None = None,
    lasting: bool | None = None,
) -> TimeRange | None:
    """Return the range between two points, unless they are amounts that may be a duration."""
    first, last = pair
    kinds = {first.kind, last.kind}
    delimited = relation in {"between", "from"}
    if "amount" in kinds:
        is_range = delimited and not lasting and not goes_on
    else:
        is_range = delimited or first.wide is last.wide is (kinds == {"day"})
    if not is_range:
        return None
    first, last = timeline.spread(first, last)
    if last.start < first.start:
        first, last = last, first
    includes_last = last.wide or last.start == first.start
    end = last.end if includes_last else last.start
    return TimeRange(first.start, end, "between", first.day or last.day)


def span_around(_: Timeline, length: Amount, anchor: Point) -> TimeRange:
    """Return the range on both sides of a point, or of its start if it is longer ("10 minutes of 3 pm")."""
    end = anchor.start if length.seconds < anchor.unit else anchor.end
    start = add_seconds(anchor.start, -length.seconds)
    return TimeRange(start, None if end is None else add_seconds(end, length.seconds), "around", anchor.day)


def span_beside(
    _: Timeline,
    length: Amount,
    side: Relation,
    anchor: Point,
    article: bool | None,
    relation: Relation | None = None,
) -> TimeRange:
    """Return an amount of time before or after a point, or only the instant at that distance."""
    earlier = side == "before" or (side == "from" and anchor.end is None)
    far = add_seconds(anchor.start, -length.seconds if earlier else length.seconds)
    start: datetime
    end: datetime | None
    if not article and relation != "in":
        start, end = far, add_seconds(far, length.unit)
    elif earlier:
        start, end = far, None if anchor.end is None else anchor.start
    else:
        start, end = anchor.start, far
    return TimeRange(start, end, "before" if earlier else "after", anchor.day)


def span_related(
    _: Timeline,
    relation: Relation,
    point: Point,
    soon: bool | None,
    hedge: Relation | None,
    hedged: bool | None,
    onwards: bool | None = None,
) -> TimeRange:
    """Return the range of a preposition with a point."""
    if relation == "at" and hedged and hedge:
        relation = "around"
    if soon and relation in {"before", "after"}:
        start, end = _shortly(relation, point)
    else:
        start, end = _bounds("since" if onwards else relation, point)
    return TimeRange(start, end, _PLAIN_RELATIONS.get(relation, relation), point.day)


def span_point(_: Timeline, point: Point) -> TimeRange:
    """Return the range of a point without a preposition."""
    relation: Relation = "in" if point.wide and point.kind != "day" else "at"
    return TimeRange(point.start, point.end, relation, point.day)


def require_bare(_: Timeline, point: Point) -> Point | None:
    """Return a point that needs no preposition."""
    return point if point.bare or point.kind == "dated" else None


def require_dated(_: Timeline, point: Point) -> Point | None:
    """Return a point with a day."""
    return point if point.kind == "dated" else None


def require_bounds(_: Timeline, range_: TimeRange) -> TimeRange | None:
    """Return a range with a start or an end."""
    return None if range_.start is None and range_.end is None else range_


def _bounds(relation: Relation, point: Point) -> tuple[datetime | None, datetime | None]:
    """Return the bounds of a preposition with a point. Days and parts count as a whole."""
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
            margin = _margin(point)
            return add_seconds(point.start, -margin), None if point.end is None else add_seconds(
                point.end, margin
            )
        case _:
            return point.start, point.end


def _shortly(relation: Relation, point: Point) -> tuple[datetime | None, datetime | None]:
    """Return the bounds shortly before or after a point: the margin of `around`, twice."""
    width = 2 * _margin(point)
    if relation == "before":
        return add_seconds(point.start, -width), point.start
    start = (point.end or point.start) if point.wide else point.start
    return start, add_seconds(start, width)


def _margin(point: Point) -> float:
    return next((margin for unit, margin in _MARGINS if point.unit <= unit), DAY)
