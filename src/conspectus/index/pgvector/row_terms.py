"""The facts of a row, and its values in each form in which PostgreSQL can compare them by their order."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from conspectus.index.filter_terms import TEXTS, exists, is_moment, is_value, spelled_moment
from conspectus.index.filter_values import entries
from conspectus.model.filter import Field, FieldName, Row

ALWAYS: Final[frozenset[FieldName]] = frozenset({"source", "document", "kind", "position", "recorded"})
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


def facts_of(row: Row) -> Facts:
    """The facts of a row's metadata, and of those of its names that spell instants."""
    numbers: dict[int, None] = {}
    values: dict[int, Value] = {}
    odd = False
    found = list(entries((), row["metadata"]))
    found += [(name, row[name]) for name in TEXTS if spelled_moment(row[name]) is not None]
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
    number, moment = is_value(field, value), spelled_moment(value)
    match value:
        case bool():
            values[number] = Value(number, path, truth=int(value))
        case int() | float() if value == value:
            values[number] = Value(number, path, number=Decimal(value))
        case str():
            values[number] = Value(number, path, text=encoded(value), moment=moment)
        case _:
            values[number] = Value(number, path)
    spelled = {} if moment is None else {is_moment(field, moment): None}
    return {number: None, **spelled}
