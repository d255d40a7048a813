"""Filters of the pgvector index, compiled to SQL."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from decimal import Decimal
from typing import Any

from conspectus.deferred import dataclass
from conspectus.index.filter_compiler import ColumnValue, FilterCompiler
from conspectus.index.filter_terms import TEXTS, comparable, decode_text, exists
from conspectus.index.pgvector.facts import LARGEST, NEVER_NULL
from conspectus.model.filter import (
    Between,
    Contains,
    FieldName,
    Scalar,
    holds,
    instant,
)
from conspectus.text.times import to_microseconds

MAX_NAMED = 100
"""Maximum number of facts that are looked up in the index of facts; more are compared row by row."""
_HASHED = "(held IN ({})) IS TRUE"
"""With plain `IN`, the planner would evaluate the join for each row."""


@dataclass(slots=True)
class Compiler(FilterCompiler):
    """Compiles filters to conditions on rows `r`. `facts_of` runs a statement that selects facts, and
    `texts_of` one that selects facts with their texts.

    `values` is the table of distinct values. User input is only ever passed in `parameters`.
    """

    every, none, largest = "true", "false", LARGEST
    values: str
    facts_of: Callable[[str, Mapping[str, Any]], Sequence[int]]
    texts_of: Callable[[str, Mapping[str, Any]], Iterable[tuple[int, bytes]]]
    parameters: dict[str, Any] = field(default_factory=dict)

    def match_present(self, field: FieldName) -> str:
        """Return the condition: the column is not null."""
        return (
            self.every
            if field in NEVER_NULL
            else f"r.{'starts' if field == 'occurred' else field} IS NOT NULL"
        )

    def match_any_fact(self, facts: Sequence[int]) -> str:
        """Return the condition: the row has at least one of these facts."""
        return f"r.facts && {self._name(list(facts), 'bigint[]')}"

    def match_any(self, field: FieldName, values: Sequence[str] | Sequence[int]) -> str:
        """Return the condition: the column has one of these values."""
        kind = "bytea[]" if field in TEXTS else "bigint[]"
        operands = [comparable(value) if isinstance(value, str) else value for value in values]
        return self._join_with_and(
            [self.match_present(field), f"r.{field} = ANY({self._name(operands, kind)})"]
        )

    def compare_column(self, column: str, sign: str, value: ColumnValue) -> str:
        """Return the condition: the value of the column compares so with the bound."""
        return self._bound(f"r.{column}", sign, value)

    def match_range(self, leaf: Between) -> str:
        """Return the condition: the row has a value at the path within the bounds."""
        path = exists(leaf.field)
        parts = [f"path = {self._name(path, 'bigint')}"]
        for sign, bound in ((">=", leaf.low), ("<", leaf.high)):
            if bound is not None:
                parts.append(self._compare_bound(sign, bound))
        query = f"SELECT fact FROM {self.values} WHERE {' AND '.join(parts)}"
        few = self.facts_of(f"{query} LIMIT {MAX_NAMED + 1}", self.parameters)
        if len(few) <= MAX_NAMED:
            return self.match_any_fact(few) if few else self.none
        condition = f"EXISTS (SELECT FROM unnest(r.facts) AS held WHERE {_HASHED.format(query)})"
        return self._join_with_and([self.match_any_fact([path]), condition])

    def match_part(self, leaf: Contains) -> str:
        """Return the condition: the row has a text at the path that contains the part."""
        query = f"SELECT fact, text FROM {self.values} WHERE path = %(path)s AND text IS NOT NULL"
        texts = self.texts_of(query, {"path": exists(leaf.field)})
        facts = [fact for fact, text in texts if holds(leaf, decode_text(text))]
        return self.match_any_fact(facts) if facts else self.none

    def _compare_bound(self, sign: str, bound: Scalar) -> str:
        match bound:
            case datetime():
                moment = instant(bound)
                return self.none if moment is None else self._bound("moment", sign, to_microseconds(moment))
            case bool():
                return f"truth {sign} {self._name(int(bound), 'smallint')}"
            case str():
                return self._bound("text", sign, bound)
            case _:
                return self._bound("number", sign, bound) if bound == bound else self.none

    def _bound(self, column: str, sign: str, value: ColumnValue) -> str:
        if isinstance(value, str):
            return f"{column} {sign} {self._name(comparable(value), 'bytea')}"
        if isinstance(value, int) and abs(value) <= LARGEST:
            return f"{column} {sign} {self._name(value, 'bigint')}"
        return f"{column} {sign} {self._name(Decimal(value), 'numeric')}"

    def _name(self, value: object, kind: str) -> str:
        name = f"f{len(self.parameters)}"
        self.parameters[name] = value
        return f"%({name})s::{kind}"
