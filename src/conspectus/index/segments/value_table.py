"""The distinct values that filters compare, sorted by type, so that a comparison is a range of codes.

Codes count through whole numbers, other numbers, texts, instants, and last all other values (truth
values, numbers beyond 64 bits, NaN, and a stand-in for what only exists, as mappings do). The first
four are compared here by position, the last one by one through `holds`.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from conspectus.index.segments.string_table import Strings, encoded, pack
from conspectus.model.filter import Between, Eq, In, Scalar, holds, instant

Comparison: TypeAlias = Eq | In | Between
Arrays: TypeAlias = Mapping[str, NDArray[Any]]
Codes: TypeAlias = tuple[int, int]

NO_INSTANT = np.iinfo(np.int64).min
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TYPES = ("whole", "number", "text", "moment", "other")


def microseconds(moment: datetime) -> int:
    """Since 1970, exactly."""
    return (moment - _EPOCH) // _MICROSECOND


def classify(value: object) -> tuple[int, object]:
    """The place of the value's type in the order of types, and what is stored of it."""
    match value:
        case bool():
            return 4, json.dumps(value)
        case int():
            return (0, value) if _LOWEST <= value <= _HIGHEST else (4, str(value))
        case float():
            return (1, value) if value == value else (4, "NaN")
        case str():
            return 2, value
        case datetime() if value.tzinfo is not None:
            return 3, microseconds(value)
        case list() | tuple():
            return 4, "[]"
        case _:
            return 4, "{}"


class ValueWriter:
    """Gives each distinct value a number, and at the end its code."""

    def __init__(self) -> None:
        self._known: list[dict[object, int]] = [{} for _ in _TYPES]
        self._count = 0

    def number(self, value: object) -> int:
        """The provisional number of a value."""
        kind, stored = classify(value)
        known = self._known[kind]
        found = known.get(stored)
        if found is None:
            found = known[stored] = self._count
            self._count += 1
        return found

    def finish(self) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64]]:
        """The tables to store, and the code of each provisional number."""
        ordered = [sorted(known, key=_sortable) for known in self._known]
        codes = np.empty(self._count, np.int64)
        code = 0
        for known, values in zip(self._known, ordered, strict=True):
            codes[[known[value] for value in values]] = np.arange(code, code + len(values))
            code += len(values)
        whole, number, text, moment, other = ordered
        texts, text_offsets = pack([encoded(str(value)) for value in text])
        others, other_offsets = pack([encoded(str(value)) for value in other])
        tables: dict[str, NDArray[Any]] = {
            "values.whole": np.array(whole, np.int64),
            "values.number": np.array(number, np.float64),
            "values.text": texts,
            "values.text_offsets": text_offsets,
            "values.instant": _instants([str(value) for value in text]),
            "values.moment": np.array(moment, np.int64),
            "values.other": others,
            "values.other_offsets": other_offsets,
        }
        return tables, codes


class Values:
    """The tables of a segment, as ranges of codes."""

    def __init__(self, arrays: Arrays) -> None:
        self._instant = arrays["values.instant"]
        text = Strings(arrays["values.text"], arrays["values.text_offsets"])
        others = Strings(arrays["values.other"], arrays["values.other_offsets"])
        self._others = [json.loads(other) for other in others]
        numbers = len(arrays["values.whole"])
        texts = numbers + len(arrays["values.number"])
        moments = texts + len(text)
        self._whole = _Table(0, arrays["values.whole"], int)
        self._number = _Table(numbers, arrays["values.number"], float)
        self._text = _Table(texts, text, bytes)
        self._moment = _Table(moments, arrays["values.moment"], int)
        self._first_other = moments + len(arrays["values.moment"])

    def ranges(self, leaf: Comparison) -> list[Codes]:
        """The codes of all values that satisfy the leaf, those of `instants` left out."""
        found = [
            (self._first_other + position, self._first_other + position + 1)
            for position, value in enumerate(self._others)
            if holds(leaf, value)
        ]
        if isinstance(leaf, Between):
            found += self._between(leaf.low, leaf.high)
        else:
            for wanted in leaf.values if isinstance(leaf, In) else (leaf.value,):
                found += [table.equal(bound) for table, bound in self._tables(wanted)]
        return [(first, end) for first, end in found if first < end]

    def instants(self, leaf: Comparison, codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Which of the sorted codes are texts that spell an instant which satisfies the leaf."""
        chosen = np.zeros(len(codes), np.bool_)
        spans = _spans(leaf) if len(self._instant) else []
        if spans:
            first, end = np.searchsorted(codes, [self._text.first, self._moment.first])
            moments = self._instant[codes[first:end].astype(np.int64) - self._text.first]
            for low, high in spans:
                chosen[first:end] |= (moments >= low) & (moments < high) & (moments != NO_INSTANT)
        return chosen

    def _tables(self, bound: Scalar) -> "list[tuple[_Table, Any]]":
        match bound:
            case bool():
                return []
            case int() | float():
                return [(self._whole, bound), (self._number, bound)] if bound == bound else []
            case str():
                return [(self._text, encoded(bound))]
            case _:
                return [] if bound.tzinfo is None else [(self._moment, microseconds(bound))]

    def _between(self, low: Scalar | None, high: Scalar | None) -> list[Codes]:
        starts = None if low is None else {t: t.equal(bound)[0] for t, bound in self._tables(low)}
        ends = None if high is None else {t: t.equal(bound)[0] for t, bound in self._tables(high)}
        if starts is None and ends is None:
            return [(0, self._first_other)]
        tables = (starts if starts is not None else ends) or {}
        return [
            (
                table.first if starts is None else starts.get(table, table.end),
                table.end if ends is None else ends.get(table, table.first),
            )
            for table in tables
        ]


class _Table:
    """The sorted values of one type; `key` makes each a plain Python value, which compares exactly."""

    def __init__(self, first: int, values: Any, key: Callable[[Any], Any]) -> None:
        self.first = first
        self.end = first + len(values)
        self._values = values
        self._key = key

    def equal(self, bound: Any) -> Codes:
        """The codes of the values equal to the bound; where there are none, the place it would have."""
        place = bisect_left(self._values, bound, key=self._key)
        after = bisect_right(self._values, bound, lo=place, key=self._key)
        return self.first + place, self.first + after


def _spans(leaf: Comparison) -> list[Codes]:
    """The half-open spans of microseconds in which an instant satisfies the leaf."""
    match leaf:
        case Eq(value=datetime() as moment):
            return [_span(moment, moment, after=1)]
        case In():
            return [_span(value, value, after=1) for value in leaf.values if isinstance(value, datetime)]
        case Between(low=datetime() | None, high=datetime() | None):
            return [_span(leaf.low, leaf.high)] if leaf.low or leaf.high else []
        case _:
            return []


def _span(low: object, high: object, after: int = 0) -> Codes:
    ends = [
        default if bound is None else microseconds(bound) if bound.tzinfo else None
        for bound, default in ((low, NO_INSTANT), (high, _HIGHEST))
        if bound is None or isinstance(bound, datetime)
    ]
    first, end = ends
    return (0, 0) if first is None or end is None else (first, end + after)


def _sortable(value: Any) -> Any:
    return encoded(value) if isinstance(value, str) else value


def _instants(texts: Sequence[str]) -> NDArray[np.int64]:
    """The instant that each text spells; empty when none does."""
    moments = [_spelled(text) if text[:1].isdigit() else None for text in texts]
    if not any(moments):
        return np.zeros(0, np.int64)
    return np.array([NO_INSTANT if m is None else microseconds(m) for m in moments], np.int64)


def _spelled(text: str) -> datetime | None:
    """The instant of a text; None also where it lies, in UTC, before the year 1 or after 9999."""
    try:
        return instant(text)
    except OverflowError:
        return None
