"""Filters as conditions in SQL over the index's own rows, exact for all of them that are not odd."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, assert_never

from conspectus.index.filter_terms import NUMBERS, TEXTS, equals, exists
from conspectus.index.pgvector.row_terms import ALWAYS, LARGEST, encoded
from conspectus.model.filter import (
    And,
    Between,
    Eq,
    Exists,
    Field,
    FieldName,
    Filter,
    In,
    Leaf,
    Not,
    Or,
    Overlaps,
    Scalar,
    instant,
)
from conspectus.text.times import to_microseconds

EVERY, NONE = "true", "false"
MOST_NAMED = 100
"""Facts that are looked up in the index of facts; more are compared with those of each row."""
_HASHED = "(held IN ({})) IS TRUE"
"""The planner would join what is asked in plain `IN`, for each row anew."""


@dataclass(slots=True)
class Compiler:
    """Makes conditions on rows called `r`; `facts_of` runs a statement that selects facts.

    `values` is the table of distinct values. What a user gave only ever stands in `given`. No condition is
    ever null, so that each may be negated.
    """

    values: str
    facts_of: Callable[[str, Mapping[str, Any]], Sequence[int]]
    given: dict[str, Any] = field(default_factory=dict)

    def compiled(self, condition: Filter) -> str:
        """The rows that satisfy the filter."""
        match condition:
            case Not():
                return f"NOT ({self.compiled(condition.inner)})"
            case And():
                return _joined(" AND ", [self.compiled(part) for part in condition.inner], EVERY)
            case Or():
                return _joined(" OR ", [self.compiled(part) for part in condition.inner], NONE)
            case Overlaps() | Exists() | Eq() | In() | Between():
                return self._leaf(condition)
            case _:
                assert_never(condition)

    def _leaf(self, leaf: Leaf) -> str:
        match leaf:
            case Overlaps():
                return self._overlaps(leaf)
            case Exists():
                return self._exists(leaf.field)
            case Eq():
                return self._one_of(leaf.field, (leaf.value,))
            case In():
                return self._one_of(leaf.field, leaf.values)
            case Between():
                return self._between(leaf)
            case _:
                assert_never(leaf)

    def _name(self, value: object, kind: str) -> str:
        name = f"f{len(self.given)}"
        self.given[name] = value
        return f"%({name})s::{kind}"

    def _overlaps(self, leaf: Overlaps) -> str:
        parts = ["r.starts IS NOT NULL"]
        if leaf.end is not None:
            parts.append(f"r.starts < {self._name(to_microseconds(leaf.end), 'bigint')}")
        if leaf.start is not None:
            low = self._name(to_microseconds(leaf.start), "bigint")
            parts.append(f"(r.ends > {low} OR r.starts >= {low})")
        return _joined(" AND ", parts, EVERY)

    def _exists(self, name: Field) -> str:
        if not isinstance(name, str):
            return self._any_fact([exists(name)])
        if name in ALWAYS:
            return EVERY
        return f"r.{_column(name)} IS NOT NULL"

    def _any_fact(self, numbers: Sequence[int]) -> str:
        return f"r.facts && {self._name(list(numbers), 'bigint[]')}" if numbers else NONE

    def _one_of(self, name: Field, values: Sequence[Scalar]) -> str:
        if not isinstance(name, str):
            return self._equal_facts(name, values)
        if name in TEXTS:
            texts = [encoded(value) for value in values if isinstance(value, str)]
            moments = [value for value in values if isinstance(value, datetime)]
            return _joined(
                " OR ", [self._among(name, texts, "bytea"), self._equal_facts(name, moments)], NONE
            )
        if name not in NUMBERS:
            return NONE
        exact = [number for value in values if (number := _whole(value, name)) is not None]
        return self._among(name, [int(number) for number in exact if _fits(number)], "bigint")

    def _equal_facts(self, name: Field, values: Sequence[Scalar]) -> str:
        found = (equals(name, value) for value in values)
        return self._any_fact([number for number in found if number is not None])

    def _among(self, name: FieldName, values: Sequence[object], kind: str) -> str:
        if not values:
            return NONE
        listed = f"r.{name} = ANY({self._name(list(values), f'{kind}[]')})"
        return listed if name in ALWAYS else f"r.{name} IS NOT NULL AND {listed}"

    def _between(self, leaf: Between) -> str:
        if isinstance(leaf.field, str):
            if leaf.field == "occurred":
                return self._exists("occurred") if leaf.low is leaf.high is None else NONE
            if leaf.field in NUMBERS:
                return self._number_range(leaf, leaf.field)
            if not isinstance(leaf.low, datetime) and not isinstance(leaf.high, datetime):
                return self._text_range(leaf, leaf.field)
        return self._by_values(leaf)

    def _number_range(self, leaf: Between, name: FieldName) -> str:
        parts = [self._exists(name)]
        for sign, bound in ((">=", leaf.low), ("<", leaf.high)):
            if bound is None:
                continue
            number = _whole(bound, name)
            if number is None:
                return NONE
            parts.append(self._bound(f"r.{name}", sign, Decimal(number), "numeric"))
        return _joined(" AND ", parts, EVERY)

    def _text_range(self, leaf: Between, name: FieldName) -> str:
        parts = [self._exists(name)]
        for sign, bound in ((">=", leaf.low), ("<", leaf.high)):
            if bound is not None and not isinstance(bound, str):
                return NONE
            if bound is not None:
                parts.append(f"r.{name} {sign} {self._name(encoded(bound), 'bytea')}")
        return _joined(" AND ", parts, EVERY)

    def _by_values(self, leaf: Between) -> str:
        """Rows with a fact of which the value lies between."""
        path = exists(leaf.field)
        parts = [f"path = {self._name(path, 'bigint')}"]
        for sign, bound in ((">=", leaf.low), ("<", leaf.high)):
            if bound is not None:
                parts.append(self._ordered(sign, bound))
        found = f"SELECT fact FROM {self.values} WHERE {' AND '.join(parts)}"
        few = self.facts_of(f"{found} LIMIT {MOST_NAMED + 1}", self.given)
        if len(few) <= MOST_NAMED:
            return self._any_fact(few)
        held = f"EXISTS (SELECT FROM unnest(r.facts) AS held WHERE {_HASHED.format(found)})"
        return f"({self._any_fact([path])} AND {held})"

    def _ordered(self, sign: str, bound: Scalar) -> str:
        match bound:
            case datetime():
                moment = instant(bound)
                return (
                    NONE if moment is None else self._bound("moment", sign, to_microseconds(moment), "bigint")
                )
            case bool():
                return self._bound("truth", sign, int(bound), "smallint")
            case str():
                return self._bound("text", sign, encoded(bound), "bytea")
            case _:
                return self._bound("number", sign, Decimal(bound), "numeric") if bound == bound else NONE

    def _bound(self, column: str, sign: str, value: object, kind: str) -> str:
        return f"{column} {sign} {self._name(value, kind)}"


def _column(name: FieldName) -> str:
    return "starts" if name == "occurred" else name


def _joined(word: str, parts: Sequence[str], nothing: str) -> str:
    """The parts as one; those that decide nothing are left out."""
    kept = [part for part in parts if part != nothing]
    return word.join(f"({part})" for part in kept) or nothing


def _whole(bound: Scalar, name: FieldName) -> int | float | None:
    """What a bound is among the numbers of a column; None where they cannot be compared."""
    if name == "recorded":
        moment = instant(bound) if isinstance(bound, datetime) else None
        return None if moment is None else to_microseconds(moment)
    if isinstance(bound, bool) or not isinstance(bound, int | float) or bound != bound:
        return None
    return bound


def _fits(number: int | float) -> bool:
    return abs(number) <= LARGEST and number == int(number)
