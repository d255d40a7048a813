"""Numbers of rows, from ranges that collections reserve."""

from collections.abc import Mapping
from typing import Final

from sqlalchemy import Connection, bindparam, case, insert, literal_column, update

from conspectus.errors import RecordsDamaged
from conspectus.model.ids import CollectionId
from conspectus.records.core.statements import execute_batch, fetch_rows, prepare
from conspectus.records.tables.core import Number, counters

ALL_COLLECTIONS: Final = ""
"""Instead of a collection: the counters of rows without a collection, and of reserved ranges."""
MIN_RANGE: Final = 1_024
"""Minimum count of numbers that a collection reserves at once."""
_COUNTER = (counters.c.name == bindparam("counter"), counters.c.collection == bindparam("of"))
_AMOUNT = bindparam("amount", type_=Number)
_TAKE = (
    update(counters)
    .where(*_COUNTER, counters.c.value + _AMOUNT <= counters.c.end)
    .values(value=counters.c.value + _AMOUNT)
    .returning(counters.c.value)
)
COUNTERS_OF_WRITES: Final = ("document", "chunk", "change")
"""The counters of the rows that a write of documents inserts."""
_AMOUNTS = case({name: bindparam(name, type_=Number) for name in COUNTERS_OF_WRITES}, value=counters.c.name)
_TAKE_ALL = (
    update(counters)
    .where(
        counters.c.collection == bindparam("of"),
        counters.c.name.in_([literal_column(f"'{name}'") for name in COUNTERS_OF_WRITES]),
        counters.c.value + _AMOUNTS <= counters.c.end,
    )
    .values(value=counters.c.value + _AMOUNTS)
    .returning(counters.c.name, counters.c.value)
)
_RESET = update(counters).where(*_COUNTER).values(value=bindparam("last"), end=bindparam("final"))


def allocate(connection: Connection, counter: str, amount: int, collection: str = ALL_COLLECTIONS) -> int:
    """Return the first of `amount` consecutive new numbers, greater than all earlier ones.

    It blocks other writers of the collection, and those of all collections only when it needs another range.
    """
    key = {"counter": counter, "of": collection}
    rows = fetch_rows(connection, _TAKE, {**key, "amount": amount})
    if rows:
        last: int = rows[0][0]
        return last - amount + 1
    if collection == ALL_COLLECTIONS:
        raise RecordsDamaged(f"the counter {counter} is missing; run `conspectus check`")
    range_size = max(MIN_RANGE, amount)
    first = allocate(connection, counter, range_size)
    last, end = first + amount - 1, first + range_size - 1
    if not connection.execute(_RESET, {**key, "last": last, "final": end}).rowcount:
        row = {"name": counter, "collection": collection, "value": last, "end": end}
        connection.execute(insert(counters), row)
    return first


def allocate_written(
    connection: Connection, amounts_by_collection: Mapping[CollectionId, Mapping[str, int]]
) -> dict[CollectionId, dict[str, int]]:
    """Allocate numbers of `COUNTERS_OF_WRITES`, with one statement for a collection if its ranges suffice.

    Returns the first number of each counter by collection.
    """
    statements = [
        prepare(connection, _TAKE_ALL, {**amounts, "of": collection})
        for collection, amounts in amounts_by_collection.items()
    ]
    rows_by_statement = execute_batch(connection, statements)
    first_numbers: dict[CollectionId, dict[str, int]] = {}
    for (collection, amounts), rows in zip(amounts_by_collection.items(), rows_by_statement, strict=True):
        last_numbers: dict[str, int] = dict(rows)
        numbers: dict[str, int] = {}
        for name, amount in amounts.items():
            if name in last_numbers:
                numbers[name] = last_numbers[name] - amount + 1
            else:
                numbers[name] = allocate(connection, name, amount, collection)
        first_numbers[collection] = numbers
    return first_numbers
