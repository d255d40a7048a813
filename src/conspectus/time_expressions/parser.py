"""Parse the time expression of a query: a range of the stream, and the text left to search for."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from itertools import islice, pairwise
from types import MappingProxyType
from typing import Final

from conspectus.deferred import dataclass
from conspectus.text.times import timecode
from conspectus.time_expressions.fractions import PartReader
from conspectus.time_expressions.language import (
    DAY,
    ENGLISH,
    HOUR,
    MINUTE,
    SECOND,
    Amount,
    Language,
    Relation,
    Words,
)
from conspectus.time_expressions.points import ClockFace, Kind, Point, PointReader, Read, bounded, shifted


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A phrase, tokens [first, last), with its range (None is open) and the day that it names."""

    first: int
    last: int
    start: datetime | None
    end: datetime | None
    relation: str
    day: date | None = None


_WIDENING: Final = ((SECOND, 30.0), (MINUTE, 120.0), (HOUR, 1_800.0))
"""The margin of `around` on both sides, by the unit in the text; a day for days."""


def bounds(relation: Relation, point: Point) -> tuple[datetime | None, datetime | None]:
    """Return the range of a preposition with a point. Days and parts count as a whole."""
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
    """Return the range shortly before or after a point: the margin of `around`."""
    width = 2 * _width(point)
    if relation == "before":
        return shifted(point.start, -width), point.start
    start = (point.end or point.start) if point.wide else point.start
    return start, shifted(start, width)


def within(point: Point, amount: Amount) -> tuple[datetime, datetime | None]:
    """Return the range on both sides of a point, or of its start if it is longer ("10 minutes of 3 pm")."""
    end = point.start if amount.seconds < point.unit else point.end
    return shifted(point.start, -amount.seconds), None if end is None else shifted(end, amount.seconds)


def next_to(
    point: Point, amount: Amount, *, earlier: bool, all_of_it: bool
) -> tuple[datetime, datetime | None]:
    """Return the amount of time before or after a point, or only the instant at that distance."""
    far = shifted(point.start, -amount.seconds if earlier else amount.seconds)
    if not all_of_it:
        return far, shifted(far, amount.unit)
    if not earlier:
        return point.start, far
    return far, None if point.end is None else point.start


def _width(point: Point) -> float:
    return next((width for unit, width in _WIDENING if point.unit <= unit), DAY)


_RANGED: Final = frozenset({None, "between", "from", "in", "on", "at", "around", "about"})
_Two = tuple[Point, Point, int]


class RangeReader:
    """Reads ranges at a token position. `relation` is the preposition before them."""

    def __init__(self, words: Words, language: Language, points: PointReader, parts: PartReader) -> None:
        self._words = words
        self._language = language
        self._points = points
        self._parts = parts

    def between(self, index: int, after: int, relation: Relation | None) -> TimeRange | None:
        """Return the range that begins at `after`. `index` is the start of the phrase."""
        if relation not in _RANGED:
            return None
        two = self._units(after, relation) or self._hours(after, relation)
        two = two or self._points_of(after, relation, whole=True)
        two = two or self._points_of(after, relation, whole=False)
        if two is None or not self._is_range(index, two, relation):
            return None
        first, last = self._points.spread(two[0], two[1])
        if last.start < first.start:
            first, last = last, first
        whole = last.wide or last.start == first.start
        start, end = first.start, last.end if whole else last.start
        return TimeRange(index, two[2], start, end, "between", first.day or last.day)

    def _is_range(self, index: int, two: _Two, relation: Relation | None) -> bool:
        """Return whether it is a range of the stream: amounts may also be durations."""
        kinds = {two[0].kind, two[1].kind}
        if "amount" not in kinds:
            return relation in {"between", "from"} or two[0].wide is two[1].wide is (kinds == {"day"})
        lasting = self._words.text(index - 1) in self._language.lasting
        goes_on = self._words.text(two[2]) in self._language.lengths and self._parts.recording(two[2]) is None
        return relation in {"between", "from"} and not lasting and not goes_on

    def _join(self, index: int, relation: Relation | None) -> int | None:
        """Return the position after the `to`, `-` or `and` between two points."""
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
        """Read a clock time with an optional day after it."""
        read = self._points.clock(index)
        if read is None or read[0].of_day is None:
            return read
        relation = self._language.relations.get((self._words.text(read[1]),))
        day = self._points.day(read[1] + (relation == "on"))
        if day is None or day[0].kind != "day" or day[0].day is None:
            return read
        return self._points.on(read[0], day[0].day), day[1]

    def _units(self, index: int, relation: Relation | None) -> _Two | None:
        """Read `3 to 5 minutes`, `minutes 3 and 5`, `3-5 minutes in`: one unit for both."""
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
        """Read `2 to 3pm`, `between 11 and 1 pm`: the first is before the second."""
        hour = self._words.number(index)
        after = None if hour is None else self._join(index + 1, relation)
        last = None if after is None else self._points.clock(after)
        if hour is None or last is None or last[0].of_day is None or not 1 <= hour <= 12:
            return None
        same = hour % 12 * HOUR + (12 * HOUR if last[0].of_day >= 12 * HOUR else 0)
        seconds = same if same < last[0].of_day else (same - 12 * HOUR) % (24 * HOUR)
        return self._points.of_day(seconds, HOUR), last[0], last[1]


_BESIDES: Final[frozenset[Relation]] = frozenset({"before", "until", "by", "after", "around"})
_ANYWHERE: Final[frozenset[Relation]] = _BESIDES | {"since", "from"}
_ALLOWED: Final[Mapping[Kind, frozenset[Relation]]] = MappingProxyType(
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

_MAX_RELATION_WORDS: Final = 2
_NEAR_WORDS: Final = frozenset({None, "in", "at", "around", "about"})
_PLAIN: Final[Mapping[Relation, Relation]] = MappingProxyType(
    {"by": "until", "about": "around", "from": "since"}
)


class PhraseReader:
    """Reads phrases at a token position."""

    def __init__(self, words: Words, language: Language, points: PointReader, face: ClockFace) -> None:
        self._words = words
        self._language = language
        self._points = points
        self._openers = _openers(language)
        self._parts = PartReader(words, language, face, points)
        self._ranges = RangeReader(words, language, points, self._parts)

    def may_begin(self, index: int) -> bool:
        """Return quickly whether a time phrase may begin at a position."""
        return (
            self._words.kind(index) not in {"word", "mark", "dash"}
            or self._words.text(index) in self._openers
        )

    def read(self, index: int) -> TimeRange | None:
        """Return the phrase at a position, with an `of the video` after it."""
        soon = self._words.text(index) in self._language.soon
        relation, after = self._relation(index + soon) or (None, index + soon)
        if soon and relation is None:
            return None
        found = self._ranges.between(index, after, relation) or self._compound_range(index, after, relation)
        if found is None and relation is not None:
            found = self._related(index, after, relation)
        elif found is None:
            found = self._alone(index)
        if found is None or found.start is found.end is None:
            return None
        last = found.last
        last += self._words.kind(last - 1) == "clock" and self._points.amounts.unit(last) is not None
        return replace(found, last=self._parts.recording(last) or last)

    def _relation(self, index: int) -> tuple[Relation, int] | None:
        for length in range(_MAX_RELATION_WORDS, 0, -1):
            words = tuple(self._words.text(index + step) for step in range(length))
            relation = self._language.relations.get(words)
            if relation is not None:
                return relation, index + length
        return None

    def _related(self, index: int, after: int, relation: Relation) -> TimeRange | None:
        """Read a preposition such as `before`, and a point."""
        hedge = self._language.relations.get((self._words.text(after),))
        hedged = self._words.text(after) in self._language.hedges
        read = self._target(after + hedged, relation)
        if read is None:
            return None
        relation = "around" if relation == "at" and hedged and hedge else relation
        point, last = read
        onwards = self._onwards(last) if relation in {"from", "since", "after"} else False
        if self._words.text(index) in self._language.soon and relation in {"before", "after"}:
            start, end = shortly(relation, point)
        else:
            start, end = bounds("since" if onwards else relation, point)
        return TimeRange(index, last + onwards, start, end, _PLAIN.get(relation, relation), point.day)

    def _onwards(self, index: int) -> bool:
        """Return whether an `on` means "onwards", and not a day."""
        return self._words.text(index) in self._language.onwards and self._points.day(index + 1) is None

    def _target(self, index: int, relation: Relation) -> Read:
        parts, points = self._parts, self._points
        if relation in {"until", "by"} and parts.edge(index) is not None:
            return None
        readers = (
            parts.part,
            parts.place,
            points.day,
            self._marked,
            points.clock,
            points.numbered,
            parts.amount,
        )
        for reader in readers:
            read = reader(index)
            if read is not None and relation in _ALLOWED[read[0].kind] and self._ours(read):
                return read
        return None

    def _ours(self, read: tuple[Point, int]) -> bool:
        """Return whether it is a part of the stream, and not of something else."""
        return read[0].kind not in {"part", "stretch", "end", "amount"} or not self._parts.of_another(read[1])

    def _marked(self, index: int) -> Read:
        """Match `the 12:30 mark`."""
        read = self._points.clock(index + (self._words.text(index) in self._language.articles))
        marked = read is not None and self._words.text(read[1]) in self._language.marks
        return (read[0], read[1] + 1) if read is not None and marked else None

    def _alone(self, index: int) -> TimeRange | None:
        """Read a time without a preposition."""
        readers = (
            self._bare_part,
            self._parts.start_or_end,
            self._parts.place,
            self._marked,
            self._bare_day,
            self._bare_clock,
        )
        read = next((read for reader in readers if (read := reader(index)) is not None), None)
        if read is None:
            return None
        point, last = read
        return TimeRange(
            index,
            last,
            point.start,
            point.end,
            "in" if point.wide and point.kind != "day" else "at",
            point.day,
        )

    def _bare_part(self, index: int) -> Read:
        """Match `the first five minutes`, but not `at the last minute`."""
        read = self._parts.part(index)
        idiom = self._words.text(index - 1) in self._language.at
        return read if read is not None and read[0].bare and not idiom and self._ours(read) else None

    def _bare_day(self, index: int) -> Read:
        """Match `yesterday`, but not `about yesterday`."""
        read = self._points.day(index)
        before = self._words.text(index - 1)
        topic = self._language.relations.get((before,)) == "about" or before in self._language.articles
        return read if read is not None and not topic and (read[0].bare or read[0].kind == "dated") else None

    def _bare_clock(self, index: int) -> Read:
        """Match `minute 12`, `timestamp 12:30`, `1:02:03`, and a query that is nothing but a time."""
        if self._points.amounts.unit(index) == MINUTE:
            return self._points.numbered(index)
        read = self._points.clock(index)
        if read is None:
            return None
        exact = self._words.text(index).count(":") == 2 or read[0].kind == "dated"
        named = self._words.text(index) in self._language.positions
        others = (*range(index), *range(read[1], len(self._words)))
        whole = all(map(self._words.over, others))
        return read if exact or named or whole else None

    def _compound_range(self, index: int, after: int, relation: Relation | None) -> TimeRange | None:
        """Match `within 2 minutes of 12:30`, `in the minute before noon`, `5 minutes before the end`."""
        article = self._words.text(after) in self._language.articles
        read = self._amount(after + article, named=article) if relation in _NEAR_WORDS else None
        if read is None:
            return None
        amount, at = read
        both = self._words.text(at) in self._language.of and relation == "in"
        side = self._language.relations.get((self._words.text(at),))
        anchor = self._anchor(at + 1) if both or side in {"before", "after", "from"} else None
        if anchor is None:
            return None
        point, last = anchor
        if both:
            start, end = within(point, amount)
            return TimeRange(index, last, start, end, "around", point.day)
        earlier = side == "before" or (side == "from" and point.end is None)
        start, end = next_to(point, amount, earlier=earlier, all_of_it=article or relation == "in")
        return TimeRange(index, last, start, end, "before" if earlier else "after", point.day)

    def _amount(self, index: int, *, named: bool) -> tuple[Amount, int] | None:
        one = self._points.amounts.one(index) if named else None
        read = one or self._points.amounts.amount(index)
        return read if read is not None and self._parts.fits(read[0]) else None

    def _anchor(self, index: int) -> Read:
        points = self._points
        return self._parts.edge(index) or points.day(index) or points.clock(index) or points.numbered(index)


def _openers(language: Language) -> frozenset[str]:
    return frozenset(words[0] for words in language.relations).union(
        language.soon,
        language.articles,
        language.these,
        language.latest,
        language.ordinals,
        language.numbers,
        language.fractions,
        language.middles,
        language.hows,
        language.positions,
        language.days,
        language.times,
        language.weekdays,
        language.months,
        language.units,
    )


_MAX_PHRASES: Final = 4
_MAX_ATTEMPTS: Final = 64
_CLOSING: Final = ",.;:?!)]"
_BRACKETS: Final = {"()", "[]"}


@dataclass(frozen=True, slots=True)
class TimeExpression:
    """A time range [start, end) of a stream that a query names; None is open.

    Args:
        start: the first instant.
        end: the end, not included.
        phrase: the words of the time expression.
        rest: the query without them; empty if no content is left to search for.
        relation: the preposition, such as `before` or `between`.
        unused: other time expressions, which contradict the range.
    """

    start: datetime | None
    end: datetime | None
    phrase: str
    rest: str
    relation: str
    unused: tuple[str, ...] = ()


def find_time(question: str, face: ClockFace) -> TimeExpression | None:
    """Return the time range that a query names; None if it names none, as "before the explosion".

    Ambiguous expressions are resolved by these rules:

    - `12:30` in a recording is 12 minutes and 30 seconds. It is 12 hours and 30 minutes in a recording of at
      least 12 hours, or if only that position exists. On a wall clock it is a time of day in its zone:
      on the day that is named, else on the last day on which the stream has it. Days and `3 pm` exist on wall
      clocks only. "Monday" is the last Monday of the stream, "today" the day of the query.
    - A point has the precision of its text: a second, a minute, an hour or a day. "Around" adds 30 seconds,
      two minutes, half an hour or a day to both sides. "Minute 12" is what the clock shows as 12.
    - "The last ten minutes" end with the captions, or now if a wall clock is live.
    - Several ranges are intersected. A range that contradicts the first one is listed in `unused`.
    """
    words = Words(question)
    found = _phrases(words, face, ENGLISH, None)
    day = next((each.day for each in found if each.day is not None), None)
    if day is not None:
        found = _phrases(words, face, ENGLISH, day)
    return _together(question, words, found, ENGLISH) if found else None


def described(expression: TimeExpression, face: ClockFace) -> str:
    """Return the range for users, with the words it was read from: `00:12:00 to 00:13:01 (around 12:30)`."""
    zone = f" {face.clock.zone}" if face.wall else ""
    unused = f", but not {', '.join(expression.unused)}" if expression.unused else ""
    return f"{_format_range(expression, face, zone)} ({expression.phrase}{unused})"


def _format_range(expression: TimeExpression, face: ClockFace, zone: str) -> str:
    start = None if expression.start is None else _format_point(expression.start, face)
    end = None if expression.end is None else _format_point(expression.end, face)
    if end is None:
        return f"from {start}{zone} on"
    if start is None:
        return f"until {end}{zone}"
    day, between, time = end.rpartition(" ")
    return f"{start} to {time if between and start.startswith(day) else end}{zone}"


def _phrases(words: Words, face: ClockFace, language: Language, day: date | None) -> list[TimeRange]:
    reader = PhraseReader(words, language, PointReader(words, language, face, day), face)
    found: list[TimeRange] = []
    behind = 0
    for index in islice(filter(reader.may_begin, range(len(words))), _MAX_ATTEMPTS):
        read = reader.read(index) if index >= behind and len(found) < _MAX_PHRASES else None
        if read is not None:
            found.append(read)
            behind = read.last
    return found


def _together(question: str, words: Words, found: Sequence[TimeRange], language: Language) -> TimeExpression:
    """Intersect the ranges with the first one, as far as they overlap."""
    range_, used, unused = found[0], [found[0]], []
    for each in found[1:]:
        start = max(filter(None, (range_.start, each.start)), default=None)
        end = min(filter(None, (range_.end, each.end)), default=None)
        if start is not None and end is not None and start >= end:
            unused.append(_text(question, words, each))
        else:
            range_ = replace(range_, start=start, end=end)
            used.append(each)
    phrase = ", ".join(_text(question, words, each) for each in used)
    relation = ", ".join(each.relation for each in used)
    rest = _without(question, words, found, language)
    return TimeExpression(range_.start, range_.end, phrase, rest, relation, tuple(unused))


def _text(question: str, words: Words, found: TimeRange) -> str:
    return " ".join(question[words[found.first].start : words[found.last - 1].end].split())


def _without(question: str, words: Words, found: Sequence[TimeRange], language: Language) -> str:
    """Return the query without the phrases; empty if only words without content are left."""
    gone = [(words[each.first].start, words[each.last - 1].end) for each in found]
    for before, after in pairwise(found):
        between = [words.text(index) for index in range(before.last, after.first)]
        if all(text in language.conjunction or text == "," for text in between):
            gone.append((words[before.last - 1].end, words[after.first].start))
    kept, last = "", 0
    for start, end in sorted(gone):
        kept, last = _joined(kept, question[last:start]), end
    rest = _joined(kept, question[last:]).lstrip(" ,;:").rstrip(" ,;:")
    left = Words(rest)
    heard = any(
        left.kind(index) not in {"mark", "dash"} and left.text(index) not in language.empties
        for index in range(len(left))
    )
    return rest if heard else ""


def _joined(before: str, after: str) -> str:
    after = after.strip()
    if before[-1:] + after[:1] in _BRACKETS:
        return _joined(before[:-1].rstrip(), after[1:])
    if after[:1] in _CLOSING:
        return before.rstrip(" ,;:") + after
    return f"{before} {after}" if before else after


def _format_point(moment: datetime, face: ClockFace) -> str:
    if not face.wall:
        return timecode(max(face.clock.seconds(bounded(moment)), 0.0))
    local = face.local(moment).replace(tzinfo=None)
    return local.isoformat(sep=" ", timespec="milliseconds" if local.microsecond else "seconds")
