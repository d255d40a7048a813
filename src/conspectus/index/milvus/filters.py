"""Filters as expressions of Milvus, made of column names, numbers and hexadecimal letters only."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias, assert_never

from conspectus.index.filter_terms import NUMBERS, TEXTS, equals, exists
from conspectus.index.milvus.row_terms import ABSENT, MOST, fact_word, hexed
from conspectus.model.filter import (
    And,
    Between,
    Eq,
    Exists,
    Field,
    Filter,
    In,
    Not,
    Or,
    Overlaps,
    Scalar,
    holds,
    leaves,
)
from conspectus.text.times import to_microseconds

EVERY, NONE = "version >= 0", "version < 0"
Known: TypeAlias = Mapping[Field, Sequence[tuple[int, object]]]
"""For a field its distinct values, each with the fact that stands for it."""


def ranged(condition: Filter) -> set[Field]:
    """The fields of which the distinct values must be known to compile a filter."""
    return {leaf.field for leaf in leaves(condition) if isinstance(leaf, Between) and _by_value(leaf)}


@dataclass(frozen=True, slots=True)
class Compiler:
    """Makes expressions. `known` are the distinct values of all fields that `ranged` names.

    Milvus Lite looks at arrays row by row, 200 times slower than at texts: there facts are a text of
    hexadecimal words (`facts_as_text`), of which a part is looked for.
    """

    known: Known
    facts_as_text: bool = False

    def compiled(self, condition: Filter) -> str:
        """The rows that satisfy the filter; odd rows are judged elsewhere."""
        match condition:
            case Not():
                return f"not ({self.compiled(condition.inner)})"
            case And():
                return _joined(" and ", map(self.compiled, condition.inner), EVERY)
            case Or():
                return _joined(" or ", map(self.compiled, condition.inner), NONE)
            case Overlaps():
                return _overlaps(condition)
            case Eq() | In() | Between() | Exists():
                return self._leaf(condition)
            case _:
                assert_never(condition)

    def _leaf(self, leaf: Eq | In | Between | Exists) -> str:
        field = leaf.field
        if isinstance(field, tuple):
            return self._by_facts(leaf)
        if isinstance(leaf, Exists) or (isinstance(leaf, Between) and leaf.low is None and leaf.high is None):
            return _present(field)
        if field in TEXTS:
            return self._text(leaf, field)
        return _number(leaf, field) if field in NUMBERS else NONE

    def _by_facts(self, leaf: Eq | In | Between | Exists) -> str:
        match leaf:
            case Exists():
                return self._any_fact([exists(leaf.field)])
            case Eq():
                return self._any_fact([equals(leaf.field, leaf.value)])
            case In():
                return self._any_fact(equals(leaf.field, value) for value in leaf.values)
            case Between():
                return self._any_fact(n for n, value in self.known[leaf.field] if holds(leaf, value))
            case _:
                assert_never(leaf)

    def _any_fact(self, numbers: Iterable[int | None]) -> str:
        wanted = [number for number in numbers if number is not None]
        if self.facts_as_text:
            return " or ".join(f'facts like "%{fact_word(number)}%"' for number in wanted) or NONE
        return f"array_contains_any(facts, [{','.join(map(str, wanted))}])" if wanted else NONE

    def _text(self, leaf: Eq | In | Between, name: Field) -> str:
        if isinstance(leaf, Between):
            return self._by_facts(leaf) if _by_value(leaf) else _text_range(leaf, name)
        wanted = leaf.values if isinstance(leaf, In) else (leaf.value,)
        listed = ",".join(f'"{hexed(value)}"' for value in wanted if isinstance(value, str))
        moments = self._any_fact(equals(name, value) for value in wanted if isinstance(value, datetime))
        return _joined(" or ", [f"{name} in [{listed}]"] * bool(listed) + [moments] * (moments != NONE), NONE)


def either(ids: Iterable[int]) -> str:
    """The rows of these chunks."""
    listed = ",".join(map(str, ids))
    return f"chunk in [{listed}]" if listed else NONE


def one_of(keys: Iterable[str]) -> str:
    """The rows of these keys, which Milvus finds without looking through the others."""
    listed = ",".join(f'"{key}"' for key in keys)
    return f"key in [{listed}]"


def _joined(word: str, parts: Iterable[str], nothing: str) -> str:
    return word.join(f"({part})" for part in parts) or nothing


def _overlaps(leaf: Overlaps) -> str:
    parts = [f"ends > {ABSENT}"]
    if leaf.end is not None:
        parts.append(f"starts < {to_microseconds(leaf.end)}")
    if leaf.start is not None:
        low = to_microseconds(leaf.start)
        parts.append(f"(ends > {low} or starts >= {low})")
    return " and ".join(parts)


def _present(field: str) -> str:
    if field in TEXTS:
        return f'{field} != ""'
    return f"{field if field in NUMBERS else 'ends'} > {ABSENT}"


def _by_value(leaf: Between) -> bool:
    if isinstance(leaf.field, tuple):
        return True
    return leaf.field in TEXTS and any(isinstance(bound, datetime) for bound in (leaf.low, leaf.high))


def _text_range(leaf: Between, name: Field) -> str:
    parts = [f'{name} != ""']
    for sign, bound in ((">=", leaf.low), ("<", leaf.high)):
        if bound is not None and not isinstance(bound, str):
            return NONE
        if bound is not None:
            parts.append(f'{name} {sign} "{hexed(bound)}"')
    return " and ".join(parts)


def _number(leaf: Eq | In | Between, name: str) -> str:
    if isinstance(leaf, Between):
        return _number_range(leaf, name)
    wanted = leaf.values if isinstance(leaf, In) else (leaf.value,)
    exact = {_whole(value, name) for value in wanted}
    listed = ",".join(str(int(number)) for number in exact if number is not None and _fits(number))
    return f"{name} in [{listed}]" if listed else NONE


def _number_range(leaf: Between, name: str) -> str:
    parts = [f"{name} > {ABSENT}"]
    for sign, bound in ((">=", leaf.low), ("<", leaf.high)):
        if bound is None:
            continue
        number = _whole(bound, name)
        if number is None:
            return NONE
        parts.append(f"{name} {sign} {_next_whole(number)}")
    return " and ".join(parts)


def _whole(bound: Scalar, name: str) -> int | float | None:
    """What a bound is among the numbers of a column; None where they cannot be compared."""
    if name == "recorded":
        return to_microseconds(bound) if isinstance(bound, datetime) and bound.tzinfo else None
    if isinstance(bound, bool) or not isinstance(bound, int | float) or bound != bound:
        return None
    return bound


def _fits(number: int | float) -> bool:
    return abs(number) < MOST and number == int(number)


def _next_whole(number: int | float) -> int:
    """The least whole number that is not below; far enough out for all that a column holds."""
    if isinstance(number, float) and math.isinf(number):
        return MOST if number > 0 else ABSENT
    return max(ABSENT, min(MOST, math.ceil(number)))
