"""What filters can meet of a chunk as numbers, so that nothing a user gives ever stands in an expression.

A fact is 62 bits of a hash of a path and a value: that the path has a value, that it has this one, that
it spells this instant. Ranges need the values themselves; those are kept beside, each once.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, get_args

from conspectus.index.entries import entries, path_name
from conspectus.model.filter import Field, FieldName, Row, instant
from conspectus.text.times import to_microseconds

MOST_FACTS = 3_500
"""Milvus takes arrays of at most 4,096 elements, and texts of as many bytes as so many facts need."""
LONGEST_VALUE = 10_000
"""Characters, or bits of a number, of a value that can be kept for ranges."""
LONGEST_NAME = 1_000
"""Bytes of a text in a column of its own."""
ABSENT: Final = -(2**62)
MOST: Final = 2**62
TEXTS: Final[tuple[FieldName, ...]] = ("source", "document", "kind", "author", "role", "thread", "parent")
NUMBERS: Final[tuple[FieldName, ...]] = ("sequence", "position", "recorded")
assert {*TEXTS, *NUMBERS, "occurred"} == set(get_args(FieldName))


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


def fact(field: Field, tag: str, text: str = "") -> int:
    """The number that stands for a field having a value."""
    content = json.dumps([path_name(field), tag, text]).encode()
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little") >> 2


def fact_word(number: int) -> str:
    """A fact as a word of a fixed number of letters."""
    return f"{number:016x}"


def path_key(field: Field) -> str:
    """A path as text of one length."""
    return hashlib.blake2b(path_name(field).encode(), digest_size=16).hexdigest()


def exists(field: Field) -> int:
    """The fact that there is a value other than null."""
    return fact(field, "exists")


def equals(field: Field, value: object) -> int | None:
    """The fact that a value equals this one; None for what equals nothing."""
    if isinstance(value, datetime):
        moment = instant(value)
        return None if moment is None else fact(field, "instant", str(to_microseconds(moment)))
    tag, text = _canonical(value)
    return None if tag == "other" else fact(field, tag, text)


def facts_of(row: Row) -> Facts:
    """The facts of a row's metadata, and of those of its names that spell instants."""
    numbers: dict[int, None] = {}
    values: dict[int, Value] = {}
    odd = False
    for field, value in entries((), row["metadata"]):
        numbers[exists(field)] = None
        odd |= _add(field, value, numbers, values)
    for name in TEXTS:
        if _spells_instant(row[name]):
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
    if _spells_instant(value) and (moment := instant(value)) is not None:
        numbers[fact(field, "instant", str(to_microseconds(moment)))] = None
    if isinstance(value, int) and value.bit_length() > LONGEST_VALUE:
        return True
    tag, text = _canonical(value)
    number = fact(field, tag, text)
    numbers[number] = None
    stored = json.dumps(_stand_in(value))
    if len(stored) > LONGEST_VALUE:
        return True
    values[number] = Value(path_key(field), number, stored)
    return False


def _spells_instant(value: object) -> bool:
    return isinstance(value, str) and value[:1].isdigit() and instant(value) is not None


def _canonical(value: object) -> tuple[str, str]:
    """One spelling for all values that are equal, with a tag that keeps types apart."""
    match value:
        case bool():
            return "truth", str(value)
        case int():
            return "number", hex(value)
        case float() if value.is_integer():
            return "number", hex(int(value))
        case float() if value == value:
            return "number", repr(value)
        case str():
            return "text", value
        case _:
            return "other", json.dumps(_stand_in(value))


def _stand_in(value: object) -> object:
    """The value itself, or an empty one of its kind: what is in it has paths of its own."""
    if isinstance(value, Mapping):
        return {}
    return [] if isinstance(value, list | tuple) else value
