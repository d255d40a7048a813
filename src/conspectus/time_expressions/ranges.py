"""Ranges between two points: `between 12:30 and 13:00`, `from 3 to 5 minutes`, `minutes 3-5`, `2-3pm`."""

from datetime import datetime
from typing import Final

from conspectus.time_expressions.found import TimeRange
from conspectus.time_expressions.fractions import PartReader
from conspectus.time_expressions.language import HOUR, Language, Relation
from conspectus.time_expressions.points import Kind, Point, PointReader, Read
from conspectus.time_expressions.tokens import Words

_RANGED: Final = frozenset({None, "between", "from", "in", "on", "at", "around", "about"})
_Two = tuple[Point, Point, int]


class RangeReader:
    """Reads ranges where they begin, `relation` being the word before them."""

    def __init__(self, words: Words, language: Language, points: PointReader, parts: PartReader) -> None:
        self._words = words
        self._language = language
        self._points = points
        self._parts = parts

    def between(self, index: int, after: int, relation: Relation | None) -> TimeRange | None:
        """The range that begins at `after`; `index` is where the phrase does."""
        if relation not in _RANGED:
            return None
        two = self._units(after, relation) or self._hours(after, relation)
        two = two or self._points_of(after, relation, whole=True)
        two = two or self._points_of(after, relation, whole=False)
        if two is None or not self._meant(index, two, relation):
            return None
        first, last = self._points.spread(two[0], two[1])
        start, end = _span(first, last)
        return TimeRange(index, two[2], start, end, "between", first.day or last.day)

    def _meant(self, index: int, two: _Two, relation: Relation | None) -> bool:
        """Whether it is a range of the stream; amounts may as well say how long something takes."""
        kinds = {two[0].kind, two[1].kind}
        if "amount" not in kinds:
            return relation in {"between", "from"} or two[0].wide is two[1].wide is (kinds == {"day"})
        lasting = self._words.text(index - 1) in self._language.lasting
        goes_on = self._words.text(two[2]) in self._language.lengths and self._parts.recording(two[2]) is None
        return relation in {"between", "from"} and not lasting and not goes_on

    def _join(self, index: int, relation: Relation | None) -> int | None:
        """Behind the `to`, `-` or `and` between two points."""
        joined = self._words.kind(index) == "dash" or self._words.text(index) in self._language.joins
        both = relation in {"between", "on"} and self._words.text(index) in self._language.conjunction
        return index + 1 if joined or both else None

    def _points_of(self, index: int, relation: Relation | None, *, whole: bool) -> _Two | None:
        first = self._side(index, whole=whole)
        after = None if first is None else self._join(first[1], relation)
        last = None if after is None else self._side(after, whole=True)
        return None if first is None or last is None else (first[0], last[0], last[1])

    def _side(self, index: int, *, whole: bool) -> Read:
        points, parts = self._points, self._parts
        read = parts.edge(index) or parts.part(index) or points.day(index) or self._dated(index)
        read = read or points.numbered(index) or parts.place(index)
        if read is not None:
            return read
        amount = points.amounts.amount(index, whole=whole)
        if amount is None or amount[0].describes or not parts.fits(amount[0]):
            return None
        return points.at(amount[0].seconds, amount[0].unit, kind="amount"), amount[1]

    def _dated(self, index: int) -> Read:
        """A time of the clock, with its day where one follows."""
        read = self._points.clock(index)
        if read is None or read[0].of_day is None:
            return read
        relation = self._language.relations.get((self._words.text(read[1]),))
        day = self._points.day(read[1] + (relation == "on"))
        if day is None or day[0].kind != "day" or day[0].day is None:
            return read
        return self._points.on(read[0], day[0].day), day[1]

    def _units(self, index: int, relation: Relation | None) -> _Two | None:
        """`3 to 5 minutes`, `minutes 3 and 5`, `3-5 minutes in`: one unit for both."""
        amounts = self._points.amounts
        unit = amounts.unit(index) if self._points.names_unit(index) else None
        first = amounts.number(index + (unit is not None))
        after = None if first is None else self._join(first[1], relation)
        last = None if after is None else amounts.number(after)
        if first is None or last is None:
            return None
        end = last[1]
        if unit is not None:
            return None if unit > HOUR else self._in_units(first[0], last[0], unit, end, named=True)
        unit = amounts.unit(end)
        return (
            None
            if unit is None or unit > HOUR
            else self._in_units(first[0], last[0], unit, end + 1, named=False)
        )

    def _in_units(self, first: float, last: float, unit: float, end: int, *, named: bool) -> _Two:
        place = None if named else self._parts.goes_in(end)
        kind: Kind = "place" if named or place is not None else "amount"
        starts, ends = (self._points.at(number * unit, unit, kind=kind) for number in (first, last))
        return starts, ends, end if place is None else place

    def _hours(self, index: int, relation: Relation | None) -> _Two | None:
        """`2 to 3pm`, `between 11 and 1 pm`: the first before the second."""
        hour = self._words.number(index)
        after = None if hour is None else self._join(index + 1, relation)
        last = None if after is None else self._points.clock(after)
        if hour is None or last is None or last[0].of_day is None or not 1 <= hour <= 12:
            return None
        same = hour % 12 * HOUR + (12 * HOUR if last[0].of_day >= 12 * HOUR else 0)
        seconds = same if same < last[0].of_day else (same - 12 * HOUR) % (24 * HOUR)
        return self._points.of_day(seconds, HOUR), last[0], last[1]


def _span(first: Point, last: Point) -> tuple[datetime, datetime | None]:
    """From the earlier to the later; a later one that is a day, a part, or equal is in it whole."""
    if last.start < first.start:
        first, last = last, first
    whole = last.wide or last.start == first.start
    return first.start, last.end if whole else last.start
