"""The facts of a row as far as Milvus can hold them, and its distinct values, which ranges need."""

import hashlib
import json
from dataclasses import dataclass
from typing import Final

from conspectus.index.filter_terms import TEXTS, exists, is_moment, is_value, spelled_moment, stand_in
from conspectus.index.filter_values import entries, path_name
from conspectus.model.filter import Field, Row

MOST_FACTS = 3_500
"""Milvus takes arrays of at most 4,096 elements, and texts of as many bytes as so many facts need."""
LONGEST_VALUE = 10_000
"""Characters, or bits of a number, of a value that can be kept for ranges."""
LONGEST_NAME = 1_000
"""Bytes of a text in a column of its own."""
ABSENT: Final = -(2**62)
MOST: Final = 2**62


@dataclass(frozen=True, slots=True)
class Value:
    """A distinct value at a path, as JSON, with the fact that stands for it."""

    path: str
    fact: int
    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts of a row. An `odd` row has more, or others, than Milvus can hold: it is looked at here."""

    numbers: tuple[int, ...]
    values: tuple[Value, ...]
    odd: bool


def fact_word(number: int) -> str:
    """A fact as a word of a fixed number of letters."""
    return f"{number:016x}"


def path_key(field: Field) -> str:
    """A path as text of one length."""
    return hashlib.blake2b(path_name(field).encode(), digest_size=16).hexdigest()


def facts_of(row: Row) -> Facts:
    """The facts of a row's metadata, and of those of its names that spell instants."""
    numbers: dict[int, None] = {}
    values: dict[int, Value] = {}
    odd = False
    for field, value in entries((), row["metadata"]):
        numbers[exists(field)] = None
        odd |= _add(field, value, numbers, values)
    for name in TEXTS:
        if spelled_moment(row[name]) is not None:
            odd |= _add(name, row[name], numbers, values)
    return Facts(tuple(numbers)[:MOST_FACTS], tuple(values.values()), odd or len(numbers) > MOST_FACTS)


def hexed(text: str) -> str:
    """A text in letters that mean nothing in an expression and sort as its code points do."""
    return "=" + text.encode("utf-8", "surrogatepass").hex()


def is_odd(row: Row) -> bool:
    """Whether a column of its own cannot hold a field."""
    named = (row[name] for name in TEXTS)
    numbers = (row[name] for name in ("sequence", "position"))
    return any(isinstance(text, str) and len(hexed(text)) > 2 * LONGEST_NAME for text in named) or any(
        isinstance(number, int) and abs(number) >= MOST for number in numbers
    )


def _add(field: Field, value: object, numbers: dict[int, None], values: dict[int, Value]) -> bool:
    """Whether the value is beyond what can be kept."""
    if (moment := spelled_moment(value)) is not None:
        numbers[is_moment(field, moment)] = None
    if isinstance(value, int) and value.bit_length() > LONGEST_VALUE:
        return True
    number = is_value(field, value)
    numbers[number] = None
    stored = json.dumps(stand_in(value))
    if len(stored) > LONGEST_VALUE:
        return True
    values[number] = Value(path_key(field), number, stored)
    return False
