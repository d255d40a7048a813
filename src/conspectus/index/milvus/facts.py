"""Facts of a row: the values of its metadata as words that Milvus can look up."""

import hashlib
import json
from typing import Final

from conspectus.deferred import dataclass
from conspectus.index.filter_terms import (
    TEXTS,
    comparable,
    exists,
    fact_entries,
    is_moment,
    is_value,
    parse_moment,
    path_name,
    stand_in,
)
from conspectus.model.filter import (
    Field,
    Row,
)

MAX_FACTS = 3_500
"""Milvus accepts arrays of at most 4,096 elements; text fields are sized for as many facts."""
MAX_VALUE_LENGTH = 10_000
"""Maximum characters of a text, or bits of a number, of which ranges can be searched."""
MAX_NAME_LENGTH = 1_000
"""Maximum bytes of a text in a column of its own."""
ABSENT: Final = -(2**62)
MAX_NUMBER: Final = 2**62


@dataclass(frozen=True, slots=True)
class Value:
    """A distinct value at a path, as JSON, with its fact."""

    path: str
    fact: int
    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts of a row. If `odd`, the facts do not fit into Milvus, and filters are evaluated here."""

    numbers: tuple[int, ...]
    values: tuple[Value, ...]
    odd: bool


def fact_word(number: int) -> str:
    """Return a fact as a word of fixed length."""
    return f"{number:016x}"


def path_key(field: Field) -> str:
    """Return a path as text of fixed length."""
    return hashlib.blake2b(path_name(field).encode(), digest_size=16).hexdigest()


def facts_of(row: Row) -> Facts:
    """Return the facts of a row's metadata, and of its names that spell instants."""
    numbers: dict[int, None] = {}
    values: dict[int, Value] = {}
    odd = False
    for field, value in fact_entries(row):
        numbers[exists(field)] = None
        odd |= _add(field, value, numbers, values)
    for name in TEXTS:
        if parse_moment(row[name]) is not None:
            odd |= _add(name, row[name], numbers, values)
    return Facts(tuple(numbers)[:MAX_FACTS], tuple(values.values()), odd or len(numbers) > MAX_FACTS)


def encode_hex(text: str) -> str:
    """Return a text in hexadecimal as filters compare it; it needs no escaping and sorts by code points."""
    return "=" + comparable(text).hex()


def is_odd(row: Row) -> bool:
    """Return whether a field does not fit into its column."""
    named = (row[name] for name in TEXTS)
    numbers = (row[name] for name in ("sequence", "position"))
    return any(
        isinstance(text, str) and len(encode_hex(text)) > 2 * MAX_NAME_LENGTH for text in named
    ) or any(isinstance(number, int) and abs(number) >= MAX_NUMBER for number in numbers)


def _add(field: Field, value: object, numbers: dict[int, None], values: dict[int, Value]) -> bool:
    """Add a value. Returns whether it exceeds what can be stored."""
    if (moment := parse_moment(value)) is not None:
        numbers[is_moment(field, moment)] = None
    if isinstance(value, int) and value.bit_length() > MAX_VALUE_LENGTH:
        return True
    number = is_value(field, value)
    numbers[number] = None
    stored = json.dumps(stand_in(value))
    if len(stored) > MAX_VALUE_LENGTH:
        return True
    values[number] = Value(path_key(field), number, stored)
    return False
