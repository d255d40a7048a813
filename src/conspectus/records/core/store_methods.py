"""Methods of stores, made of functions of a connection: each is one transaction."""

from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from functools import partial, wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeAlias, TypeVar

from sqlalchemy import Connection, Table, select

from conspectus.records.core.dialects import json_list, json_list_param
from conspectus.records.core.lock_names import WHOLE_DATABASE, Locks
from conspectus.records.core.transactions import Transactions

P = ParamSpec("P")
Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")
Item = TypeVar("Item")
_Function: TypeAlias = Callable[Concatenate[Connection, P], Result]
_Method: TypeAlias = Callable[Concatenate[Any, P], Coroutine[Any, Any, Result]]

MAX_SHORT_WRITE_ROWS: Final = 50
"""A unit with more rows does not share its transaction."""


class SqlStore:
    """Base class of stores whose methods are mostly one transaction each; see the ports for their docs."""

    def __init__(self, transactions: Transactions) -> None:
        self.transactions = transactions


def reading(work: _Function[P, Result]) -> _Method[P, Result]:
    """Make a method of a function that reads in a snapshot."""

    @wraps(work)
    async def method(self: SqlStore, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        return await self.transactions.read(lambda connection: work(connection, *args, **kwargs))

    return method


def cached(work: _Function[P, Result], *, single: bool = False) -> _Method[P, Result]:
    """Make a method that caches a few frequently requested rows by key; see `Transactions.lookup`."""

    @wraps(work)
    async def method(self: SqlStore, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        key = (work, args, *kwargs.items())
        values_by_key = await self.transactions.lookup(
            [key], lambda connection, _: {key: work(connection, *args, **kwargs)}, single=single
        )
        return values_by_key[key]

    return method


def cached_rows(
    find: Callable[[Connection, Sequence[Key]], Mapping[Key, Result]],
) -> Callable[[Any, Sequence[Key]], Coroutine[Any, Any, Sequence[Result]]]:
    """Make a method that caches rows by key, of which a statement reads a block.

    It returns those that exist, in the given order.
    """

    @wraps(find)
    async def method(self: SqlStore, keys: Sequence[Key], /) -> Sequence[Result]:
        rows_by_key = await self.transactions.lookup(keys, find, single=True)
        return [rows_by_key[key] for key in keys if key in rows_by_key]

    return method


def writing(
    work: _Function[P, Result],
    *,
    locks: Callable[P, Locks] | None = None,
    rows: Table | None = None,
    long: bool = False,
) -> _Method[P, Result]:
    """Make a method of a function that writes, also with many rows.

    `locks` returns locks from the arguments. With `rows`, the first argument is the id of a row of that
    table, or several, and the collections of these rows are locked, too. Without either, the whole database
    is locked.
    """

    @wraps(work)
    async def method(self: SqlStore, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        is_long = long or any(_is_many(argument) for argument in (*args, *kwargs.values()))
        argument_locks = frozenset() if locks is None else locks(*args, **kwargs)
        if rows is not None and self.transactions.database.has_partial_locks:
            call: Callable[..., Result] = work
            find = partial(
                _find_row_locks,
                rows,
                argument_locks,
                lambda ids, connection: call(connection, ids, *args[1:], **kwargs),
                args[0],
            )
            return await self.transactions.write_with_found_locks(find, long=is_long)
        return await self.transactions.write(
            lambda connection: work(connection, *args, **kwargs),
            locks=argument_locks or WHOLE_DATABASE,
            long=is_long,
        )

    return method


def _find_row_locks(
    table: Table,
    argument_locks: Locks,
    work: Callable[[Any, Connection], Result],
    id_or_ids: Any,
    connection: Connection,
) -> tuple[Locks, Callable[[Connection], Result]]:
    """Return the locks of the rows' collections, and the work on those rows that exist.

    Rows never move to another collection, but one that does not exist may be added to any. So it is left out
    of several; a single one needs the whole database.
    """
    ids = [id_or_ids] if isinstance(id_or_ids, str) else id_or_ids
    query = select(table.c.id, table.c.collection).where(table.c.id.in_(json_list_param("ids")))
    rows = connection.execute(query, {"ids": json_list(list(dict.fromkeys(ids)))})
    collections_by_id = {row.id: row.collection for row in rows}
    row_locks = set(collections_by_id.values())
    if isinstance(id_or_ids, str):
        return argument_locks | (row_locks or WHOLE_DATABASE), partial(work, id_or_ids)
    stored_ids = [row_id for row_id in ids if row_id in collections_by_id]
    return argument_locks | row_locks, partial(work, stored_ids)


def joining(
    work: Callable[[Connection, Sequence[Sequence[Item]]], Sequence[Result]],
    *,
    locks: Callable[[Sequence[Item]], Locks],
) -> Callable[[Any, Sequence[Item]], Coroutine[Any, Any, Result]]:
    """Make a method that writes the items of one caller; the function writes those of several callers."""

    @wraps(work)
    async def method(self: SqlStore, items: Sequence[Item], /) -> Result:
        result: Result = await self.transactions.write_joined(
            work, items, locks=locks(items), long=_is_many(items)
        )
        return result

    return method


def autocommitted(work: _Function[P, Result]) -> _Method[P, Result]:
    """Make a method of statements in autocommit mode, concurrently with other writes."""

    @wraps(work)
    async def method(self: SqlStore, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        return await self.transactions.autocommit(lambda connection: work(connection, *args, **kwargs))

    return method


def _is_many(argument: object) -> bool:
    if isinstance(argument, str) or not isinstance(argument, Sequence | Mapping):
        return False
    return len(argument) > MAX_SHORT_WRITE_ROWS
