"""Compiles filters to conditions in a database language, over columns of rows and facts of metadata."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import ClassVar, TypeAlias, TypeGuard, assert_never

from conspectus.index.filter_terms import NAMES_IN_FACTS, NUMBERS, TEXTS, equals, exists
from conspectus.model.filter import (
    And,
    Between,
    Contains,
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
    operands_of,
)
from conspectus.text.times import to_microseconds

ColumnValue: TypeAlias = str | int | float


def needs_distinct_values(leaf: Between) -> bool:
    """Return whether a comparison has to enumerate distinct values, because no column orders them."""
    if not _has_column(leaf.field):
        return True
    return leaf.field in TEXTS and any(isinstance(bound, datetime) for bound in (leaf.low, leaf.high))


class FilterCompiler:
    """Compiles filters to conditions that are never null, so that each may be negated.

    Subclasses implement the public methods after `compile` for their language. Rows have the columns
    `starts` and `ends` of the event time, in microseconds.
    """

    every: ClassVar[str]
    """The condition of all rows."""
    none: ClassVar[str]
    """The condition of no row."""
    largest: ClassVar[int]
    """The largest integer of a column."""

    def compile(self, condition: Filter) -> str:
        """Return the condition of a filter for rows whose fields all fit into their columns."""
        match condition:
            case Not():
                return f"not ({self.compile(condition.inner)})"
            case And():
                return self._join_with_and(map(self.compile, condition.inner))
            case Or():
                return self._join_with_or(map(self.compile, condition.inner))
            case _:
                return self._compile_leaf(condition)

    def _compile_leaf(self, leaf: Leaf) -> str:
        match leaf:
            case Overlaps():
                return self._overlaps(leaf)
            case Exists():
                return self._exists(leaf.field)
            case Contains():
                return self.match_part(leaf)
            case Eq() | In():
                return self._compile_in(leaf.field, operands_of(leaf))
            case Between():
                return self._compile_between(leaf)
            case _:
                assert_never(leaf)

    def _join_with_and(self, parts: Iterable[str]) -> str:
        return _join_conditions(" and ", [part for part in parts if part != self.every]) or self.every

    def _join_with_or(self, parts: Iterable[str]) -> str:
        return _join_conditions(" or ", [part for part in parts if part != self.none]) or self.none

    def _overlaps(self, leaf: Overlaps) -> str:
        parts = [self.match_present("occurred")]
        if leaf.end is not None:
            parts.append(self.compare_column("starts", "<", to_microseconds(leaf.end)))
        if leaf.start is not None:
            low = to_microseconds(leaf.start)
            parts.append(
                self._join_with_or(
                    [self.compare_column("ends", ">", low), self.compare_column("starts", ">=", low)]
                )
            )
        return self._join_with_and(parts)

    def _exists(self, field: Field) -> str:
        return self.match_present(field) if _has_column(field) else self.match_any_fact([exists(field)])

    def _compile_in(self, field: Field, values: Sequence[Scalar]) -> str:
        if not _has_column(field):
            return self._equal_facts(field, values)
        if field in TEXTS:
            texts = [value for value in values if isinstance(value, str)]
            equal_texts = self.match_any(field, texts) if texts else self.none
            if len(texts) == len(values):
                return equal_texts
            moments = [value for value in values if isinstance(value, datetime)]
            return self._join_with_or([equal_texts, self._equal_facts(field, moments)])
        numbers = [_to_column_number(value, field) for value in values] if field in NUMBERS else []
        exact = [int(number) for number in numbers if number is not None and self._fits(number)]
        return self.match_any(field, exact) if exact else self.none

    def _equal_facts(self, field: Field, values: Sequence[Scalar]) -> str:
        facts = [fact for value in values if (fact := equals(field, value)) is not None]
        return self.match_any_fact(facts) if facts else self.none

    def _compile_between(self, leaf: Between) -> str:
        field = leaf.field
        if not _has_column(field) or needs_distinct_values(leaf):
            return self.match_range(leaf)
        parts = [self.match_present(field)]
        for sign, bound in ((">=", leaf.low), ("<", leaf.high)):
            if bound is None:
                continue
            value = _to_column_value(bound, field)
            if value is None:
                return self.none
            parts.append(self.compare_column(field, sign, value))
        return self._join_with_and(parts)

    def _fits(self, number: int | float) -> bool:
        return abs(number) <= self.largest and number == int(number)

    def match_present(self, field: FieldName) -> str:
        """Return the condition: the column is not null."""
        raise NotImplementedError

    def match_any_fact(self, facts: Sequence[int]) -> str:
        """Return the condition: the row has at least one of these facts. `facts` is not empty."""
        raise NotImplementedError

    def match_any(self, field: FieldName, values: Sequence[str] | Sequence[int]) -> str:
        """Return the condition: the column has one of these values. `values` is not empty."""
        raise NotImplementedError

    def compare_column(self, column: str, sign: str, value: ColumnValue) -> str:
        """Return the condition: the value of the column compares so with the bound. Null does not."""
        raise NotImplementedError

    def match_range(self, leaf: Between) -> str:
        """Return the condition: the row has a value at the path within the bounds."""
        raise NotImplementedError

    def match_part(self, leaf: Contains) -> str:
        """Return the condition: the row has a text at the path that contains the part."""
        raise NotImplementedError


def _has_column(field: Field) -> TypeGuard[FieldName]:
    """Return whether a field has a column of its own. Others are among the facts."""
    return isinstance(field, str) and field not in NAMES_IN_FACTS


def _join_conditions(word: str, parts: Sequence[str]) -> str:
    return word.join(f"({part})" for part in parts) if len(parts) > 1 else "".join(parts)


def _to_column_value(value: Scalar, field: FieldName) -> ColumnValue | None:
    """Return a value as the column stores it; None if the column can never be compared with it."""
    if field in TEXTS:
        return value if isinstance(value, str) else None
    return _to_column_number(value, field) if field in NUMBERS else None


def _to_column_number(value: Scalar, field: FieldName) -> int | float | None:
    if field == "recorded":
        moment = instant(value) if isinstance(value, datetime) else None
        return None if moment is None else to_microseconds(moment)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return value
