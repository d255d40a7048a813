"""Filters as expressions of Milvus."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, TypeGuard

from conspectus.deferred import dataclass
from conspectus.index.filter_compiler import ColumnValue, FilterCompiler, needs_distinct_values
from conspectus.index.filter_terms import NUMBERS, TEXTS
from conspectus.index.milvus.facts import ABSENT, MAX_NUMBER, encode_hex, fact_word
from conspectus.model.filter import Between, Contains, Field, FieldName, Filter, Leaf, holds, leaves

EVERY, NONE = "version >= 0", "version < 0"
FieldValues: TypeAlias = Mapping[Field, Sequence[tuple[int, object]]]
"""The distinct values of a field, each with its fact."""


def _reads_distinct_values(leaf: Leaf) -> TypeGuard[Between | Contains]:
    return isinstance(leaf, Contains) or (isinstance(leaf, Between) and needs_distinct_values(leaf))


def find_enumerated_fields(condition: Filter) -> set[Field]:
    """Return the fields whose distinct values are needed to compile a filter."""
    return {leaf.field for leaf in leaves(condition) if _reads_distinct_values(leaf)}


@dataclass(frozen=True, slots=True)
class Compiler(FilterCompiler):
    """Compiles filters to Milvus expressions. `distinct_values` holds the fields of `find_enumerated_fields`.

    Milvus Lite scans arrays 200 times slower than texts. With `facts_as_text`, facts are one text of
    hexadecimal words that is searched with LIKE.
    """

    every, none, largest = EVERY, NONE, MAX_NUMBER - 1
    distinct_values: FieldValues
    facts_as_text: bool = False

    def match_present(self, field: FieldName) -> str:
        """Return the condition: the column is not null."""
        if field in TEXTS:
            return f'{field} != ""'
        return f"{field if field in NUMBERS else 'ends'} > {ABSENT}"

    def match_any_fact(self, facts: Sequence[int]) -> str:
        """Return the condition: the row has at least one of these facts."""
        if self.facts_as_text:
            return " or ".join(f'facts like "%{fact_word(number)}%"' for number in facts)
        return f"array_contains_any(facts, [{','.join(map(str, facts))}])"

    def match_any(self, field: FieldName, values: Sequence[str] | Sequence[int]) -> str:
        """Return the condition: the column has one of these values."""
        listed = [
            f'"{encode_hex(operand)}"' if isinstance(operand, str) else str(operand) for operand in values
        ]
        return f"{field} in [{','.join(listed)}]"

    def compare_column(self, column: str, sign: str, value: ColumnValue) -> str:
        """Return the condition: the value of the column compares so with the bound."""
        return f"{column} {sign} {_literal(value)}"

    def match_range(self, leaf: Between) -> str:
        """Return the condition: the row has a value at the path within the bounds."""
        return self._has_matching_value(leaf)

    def match_part(self, leaf: Contains) -> str:
        """Return the condition: the row has a text at the path that contains the part."""
        return self._has_matching_value(leaf)

    def _has_matching_value(self, leaf: Between | Contains) -> str:
        facts = [number for number, value in self.distinct_values[leaf.field] if holds(leaf, value)]
        return self.match_any_fact(facts) if facts else self.none


def either(ids: Iterable[int]) -> str:
    """Return the expression of the rows of these chunks."""
    listed = ",".join(map(str, ids))
    return f"chunk in [{listed}]" if listed else NONE


def match_keys(keys: Iterable[str]) -> str:
    """Return the expression of rows by key, which Milvus looks up without a scan."""
    listed = ",".join(f'"{key}"' for key in keys)
    return f"key in [{listed}]"


def _literal(value: ColumnValue) -> str:
    """Return a value as a literal; a number is rounded up to an integer."""
    if isinstance(value, str):
        return f'"{encode_hex(value)}"'
    if isinstance(value, float) and math.isinf(value):
        return str(MAX_NUMBER if value > 0 else ABSENT)
    return str(max(ABSENT, min(MAX_NUMBER, math.ceil(value))))
