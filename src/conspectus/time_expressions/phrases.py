"""Phrases about time: a word such as `before` with a point, a range, or a part of the stream by itself."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from conspectus.time_expressions.amounts import Amount
from conspectus.time_expressions.bounds import bounds, next_to, shortly, within
from conspectus.time_expressions.clock import ClockFace
from conspectus.time_expressions.found import TimeRange
from conspectus.time_expressions.fractions import PartReader
from conspectus.time_expressions.language import MINUTE, Language, Relation
from conspectus.time_expressions.points import Kind, Point, PointReader, Read
from conspectus.time_expressions.ranges import RangeReader
from conspectus.time_expressions.tokens import Words

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
"""Which words before a point make it a time: not `about Monday`, `in 5 minutes`."""

_LONGEST_RELATION: Final = 2
_BESIDE: Final = frozenset({None, "in", "at", "around", "about"})
_PLAIN: Final[Mapping[Relation, Relation]] = MappingProxyType(
    {"by": "until", "about": "around", "from": "since"}
)


class PhraseReader:
    """Reads phrases where they begin."""

    def __init__(self, words: Words, language: Language, points: PointReader, face: ClockFace) -> None:
        self._words = words
        self._language = language
        self._points = points
        self._openers = _openers(language)
        self._parts = PartReader(words, language, face, points)
        self._ranges = RangeReader(words, language, points, self._parts)

    def may_begin(self, index: int) -> bool:
        """Whether a phrase about time can begin there, at a glance."""
        return (
            self._words.kind(index) not in {"word", "mark", "dash"}
            or self._words.text(index) in self._openers
        )

    def read(self, index: int) -> TimeRange | None:
        """The phrase that begins there, with the `of the video` behind it."""
        soon = self._words.text(index) in self._language.soon
        relation, after = self._relation(index + soon) or (None, index + soon)
        if soon and relation is None:
            return None
        found = self._ranges.between(index, after, relation) or self._beside(index, after, relation)
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
        for length in range(_LONGEST_RELATION, 0, -1):
            words = tuple(self._words.text(index + step) for step in range(length))
            relation = self._language.relations.get(words)
            if relation is not None:
                return relation, index + length
        return None

    def _related(self, index: int, after: int, relation: Relation) -> TimeRange | None:
        """A word such as `before`, and a point."""
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
        """Whether an `on` says that it goes on, and not on which day."""
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
        """Whether it is a part of the stream, and not of something else."""
        return read[0].kind not in {"part", "stretch", "end", "amount"} or not self._parts.of_another(read[1])

    def _marked(self, index: int) -> Read:
        """`the 12:30 mark`."""
        read = self._points.clock(index + (self._words.text(index) in self._language.articles))
        marked = read is not None and self._words.text(read[1]) in self._language.marks
        return (read[0], read[1] + 1) if read is not None and marked else None

    def _alone(self, index: int) -> TimeRange | None:
        """What is a time without a word before it."""
        readers = (
            self._bare_part,
            self._parts.told,
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
        """`the first five minutes`, but not `at the last minute`."""
        read = self._parts.part(index)
        idiom = self._words.text(index - 1) in self._language.at
        return read if read is not None and read[0].bare and not idiom and self._ours(read) else None

    def _bare_day(self, index: int) -> Read:
        """`yesterday`, but not `about yesterday`."""
        read = self._points.day(index)
        before = self._words.text(index - 1)
        topic = self._language.relations.get((before,)) == "about" or before in self._language.articles
        return read if read is not None and not topic and (read[0].bare or read[0].kind == "dated") else None

    def _bare_clock(self, index: int) -> Read:
        """`minute 12`, `timestamp 12:30`, `1:02:03`, and a question that is nothing but a time."""
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

    def _beside(self, index: int, after: int, relation: Relation | None) -> TimeRange | None:
        """`within 2 minutes of 12:30`, `in the minute before noon`, `5 minutes before the end`."""
        article = self._words.text(after) in self._language.articles
        read = self._amount(after + article, named=article) if relation in _BESIDE else None
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
