"""Filters as expressions of Milvus, made of column names, numbers and hexadecimal letters only."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias, assert_never

from conspectus.index.milvus.facts import ABSENT, MOST, NUMBERS, TEXTS, equals, exists, hexed
from conspectus.model.filter import (
    And,
    Between,
    Eq,
    Exists,
    Field,
    Filter,
    In,
    Leaf,
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


def compiled(condition: Filter, known: Known) -> str:
    """The expression that selects the rows which satisfy the filter; odd rows are judged elsewhere."""
    match condition:
        case Not():
            return f"not ({compiled(condition.inner, known)})"
        case And():
            return _joined(" and ", (compiled(part, known) for part in condition.inner), EVERY)
        case Or():
            return _joined(" or ", (compiled(part, known) for part in condition.inner), NONE)
        case Overlaps():
            return _overlaps(condition)
        case Eq() | In() | Between() | Exists():
            return _leaf(condition, known)
        case _:
            assert_never(condition)


def either(ids: Iterable[int]) -> str:
    """The rows of these chunks."""
    listed = ",".join(map(str, ids))
    return f"chunk in [{listed}]" if listed else NONE


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


def _leaf(leaf: Eq | In | Between | Exists, known: Known) -> str:
    field = leaf.field
    if isinstance(field, tuple):
        return _by_facts(leaf, known)
    if isinstance(leaf, Exists) or (isinstance(leaf, Between) and leaf.low is None and leaf.high is None):
        return _present(field)
    if field in TEXTS:
        return _text(leaf, field, known)
    return _number(leaf, field) if field in NUMBERS else NONE


def _present(field: str) -> str:
    if field in TEXTS:
        return f'{field} != ""'
    return f"{field if field in NUMBERS else 'ends'} > {ABSENT}"


def _by_value(leaf: Between) -> bool:
    if isinstance(leaf.field, tuple):
        return True
    return leaf.field in TEXTS and any(isinstance(bound, datetime) for bound in (leaf.low, leaf.high))


def _by_facts(leaf: Leaf, known: Known) -> str:
    match leaf:
        case Exists():
            return _any_fact([exists(leaf.field)])
        case Eq():
            return _any_fact([equals(leaf.field, leaf.value)])
        case In():
            return _any_fact(equals(leaf.field, value) for value in leaf.values)
        case Between():
            return _any_fact(number for number, value in known[leaf.field] if holds(leaf, value))
        case Overlaps():
            return _overlaps(leaf)
        case _:
            assert_never(leaf)


def _any_fact(numbers: Iterable[int | None]) -> str:
    listed = ",".join(str(number) for number in numbers if number is not None)
    return f"array_contains_any(facts, [{listed}])" if listed else NONE


def _text(leaf: Eq | In | Between, name: Field, known: Known) -> str:
    if isinstance(leaf, Between):
        return _by_facts(leaf, known) if _by_value(leaf) else _text_range(leaf, name)
    wanted = leaf.values if isinstance(leaf, In) else (leaf.value,)
    listed = ",".join(f'"{hexed(value)}"' for value in wanted if isinstance(value, str))
    moments = _any_fact(equals(name, value) for value in wanted if isinstance(value, datetime))
    return _joined(" or ", [f"{name} in [{listed}]"] * bool(listed) + [moments] * (moments != NONE), NONE)


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
