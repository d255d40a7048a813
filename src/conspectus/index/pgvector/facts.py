"""What filters can meet in metadata, as numbers: one index over them answers every question of equality.

A fact is 63 bits of a hash of a path and a value: that the path has a value, that it has this one, that it
spells this instant. Comparisons by order look the values up, which are kept beside, each once.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final, get_args

from conspectus.index.entries import entries, path_name
from conspectus.model.filter import Field, FieldName, Row, instant
from conspectus.text.times import to_microseconds

TEXTS: Final[tuple[FieldName, ...]] = ("source", "document", "kind", "author", "role", "thread", "parent")
NUMBERS: Final[tuple[FieldName, ...]] = ("sequence", "position", "recorded")
ALWAYS: Final[frozenset[FieldName]] = frozenset({"source", "document", "kind", "position", "recorded"})
assert {*TEXTS, *NUMBERS, "occurred"} == set(get_args(FieldName))

LARGEST: Final = 2**63 - 1
MOST_BITS: Final = 10_000
"""Of a whole number whose place among others is kept."""


@dataclass(frozen=True, slots=True)
class Value:
    """A distinct value at a path, in each form in which it can be compared; none: it only exists."""

    fact: int
    path: int
    number: Decimal | None = None
    text: bytes | None = None
    moment: int | None = None
    truth: int | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts of a row. An `odd` row has others, that the database cannot hold: it is looked at here."""

    numbers: tuple[int, ...] = ()
    values: tuple[Value, ...] = ()
    odd: bool = False


def fact(field: Field, tag: str, text: str = "") -> int:
    """The number that stands for a field having a value."""
    content = json.dumps([path_name(field), tag, text]).encode()
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little") >> 1


def exists(field: Field) -> int:
    """The fact that there is a value other than null; it stands for the path, too."""
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
    found = list(entries((), row["metadata"]))
    found += [(name, row[name]) for name in TEXTS if _moment(row[name]) is not None]
    for field, value in found:
        path = exists(field)
        numbers[path] = None
        odd |= isinstance(value, int) and value.bit_length() > MOST_BITS
        if not odd:
            numbers |= _add(field, path, value, values)
    return Facts(tuple(numbers), tuple(values.values()), odd)


def encoded(text: str) -> bytes:
    """A text as bytes that sort as its code points do; halves of surrogate pairs may stand in it."""
    return text.encode("utf-8", "surrogatepass")


def _add(field: Field, path: int, value: object, values: dict[int, Value]) -> dict[int, None]:
    """The facts of one value, which is put among the values."""
    if isinstance(value, list | tuple):
        return {}
    number = fact(field, *_canonical(value))
    moment = _moment(value)
    match value:
        case bool():
            values[number] = Value(number, path, truth=int(value))
        case int() | float() if value == value:
            values[number] = Value(number, path, number=Decimal(value))
        case str():
            values[number] = Value(number, path, text=encoded(value), moment=moment)
        case _:
            values[number] = Value(number, path)
    spelled = {} if moment is None else {fact(field, "instant", str(moment)): None}
    return {number: None, **spelled}


def _moment(value: object) -> int | None:
    """The microsecond that a text spells."""
    spelled = instant(value) if isinstance(value, str) and value[:1].isdigit() else None
    return None if spelled is None else to_microseconds(spelled)


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
        case Mapping():
            return "other", "{}"
        case _:
            return "other", repr(value)
