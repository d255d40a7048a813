"""Facts of a row: the values of its metadata in the types that SQL can compare."""

from decimal import Decimal
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
)
from conspectus.model.filter import Field, FieldName, Row

NEVER_NULL: Final[frozenset[FieldName]] = frozenset({"source", "document", "kind", "position", "recorded"})
LARGEST: Final = 2**63 - 1
MAX_BITS: Final = 10_000
"""Maximum bits of an integer that is stored for range comparisons."""


@dataclass(frozen=True, slots=True)
class Value:
    """A distinct value at a path, in each type that it can be compared as.

    All of them are None for a value that filters can only find to exist.
    """

    fact: int
    path: int
    number: Decimal | None = None
    text: bytes | None = None
    moment: int | None = None
    truth: int | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts of a row.

    Those of an `odd` row do not fit into columns of the database, such as integers over 64 bits, so filters
    are evaluated on it in Python.
    """

    numbers: tuple[int, ...] = ()
    values: tuple[Value, ...] = ()
    odd: bool = False


def facts_of(row: Row) -> Facts:
    """Return the facts of a row's metadata, and of its names that spell instants."""
    numbers: dict[int, None] = {}
    values: dict[int, Value] = {}
    odd = False
    pairs = list(fact_entries(row))
    pairs += [(name, row[name]) for name in TEXTS if parse_moment(row[name]) is not None]
    for field, value in pairs:
        path = exists(field)
        numbers[path] = None
        odd |= isinstance(value, int) and value.bit_length() > MAX_BITS
        if not odd:
            numbers |= _add(field, path, value, values)
    return Facts(tuple(numbers), tuple(values.values()), odd)


def _add(field: Field, path: int, value: object, values: dict[int, Value]) -> dict[int, None]:
    """Return the facts of one value, and add it to the distinct values."""
    if isinstance(value, list | tuple):
        return {}
    number, moment = is_value(field, value), parse_moment(value)
    match value:
        case bool():
            values[number] = Value(number, path, truth=int(value))
        case int() | float() if value == value:
            values[number] = Value(number, path, number=Decimal(value))
        case str():
            values[number] = Value(number, path, text=comparable(value), moment=moment)
        case _:
            values[number] = Value(number, path)
    spelled = {} if moment is None else {is_moment(field, moment): None}
    return {number: None, **spelled}
