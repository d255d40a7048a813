"""Tables read and written in pages."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    bindparam,
    delete,
    func,
    insert,
    select,
    tuple_,
)

from conspectus.deferred import dataclass
from conspectus.records.transfer.checksums import Sum, encode_row, hash_of, sum_of

Key = tuple[Any, ...]
Row = tuple[Any, ...]

FIRST_PAGE_ROWS = 16
MAX_PAGE_ROWS = 2_000
PAGE_BYTES = 4_000_000


@dataclass(frozen=True, slots=True)
class KeyRange:
    """All keys above one and up to another; None is unbounded."""

    after: Key | None = None
    upto: Key | None = None


EVERYTHING = KeyRange()


@dataclass(frozen=True, slots=True)
class RowPage:
    """All rows of a table whose keys are in a range."""

    keys: KeyRange
    rows: Mapping[Key, Row]
    hashes: Mapping[Key, int]
    size: int

    @property
    def sum(self) -> Sum:
        """The checksum by which pages are compared."""
        return sum_of(self.hashes.values())


class KeyedTable:
    """A table that is read in pages by its primary key, and changed by it."""

    def __init__(self, table: Table) -> None:
        self.name = table.name
        self.columns = [column.name for column in table.columns]
        self._table = table
        self._key = tuple(table.primary_key.columns)
        self._key_positions = [self.columns.index(column.name) for column in self._key]
        self._names = [f"key_{number}" for number in range(len(self._key))]

    def pages(
        self, connection: Connection, keys: KeyRange = EVERYTHING, *, expected: int = FIRST_PAGE_ROWS
    ) -> Iterator[RowPage]:
        """Yield the rows of a range in pages of about `PAGE_BYTES`, whose ranges cover all of it.

        If there are `expected` rows, they are one page.
        """
        after, maximum = keys.after, expected + 1
        while True:
            rows = connection.execute(self._query(KeyRange(after, keys.upto)).limit(maximum)).all()
            is_last = len(rows) < maximum
            upto = keys.upto if is_last else self._key_of(rows[-1])
            page = self._page(KeyRange(after, upto), [tuple(row) for row in rows])
            yield page
            if is_last:
                return
            after, maximum = upto, _next_size(maximum, page.size)

    def total(self, connection: Connection, *, read: Callable[[int], None] | None = None) -> Sum:
        """Return the checksum of all rows; `read` is called with the number of rows of each page."""
        checksum = Sum()
        for page in self.pages(connection):
            checksum += page.sum
            if read is not None:
                read(page.sum.rows)
        return checksum

    def count(self, connection: Connection) -> int:
        """Return the number of rows."""
        return connection.execute(select(func.count()).select_from(self._table)).scalar_one()

    def remove(self, connection: Connection, keys: Sequence[Key]) -> None:
        """Delete the rows with these keys."""
        if keys:
            pairs = zip(self._key, self._names, strict=True)
            gone = delete(self._table).where(*(column == bindparam(name) for column, name in pairs))
            connection.execute(gone, [dict(zip(self._names, key, strict=True)) for key in keys])

    def store(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Store rows; in SQLite, each replaces rows that violate its constraints."""
        if rows:
            row_values = [dict(zip(self.columns, row, strict=True)) for row in rows]
            connection.execute(insert(self._table).prefix_with("OR REPLACE", dialect="sqlite"), row_values)

    def _query(self, keys: KeyRange) -> Select[Any]:
        query = select(self._table).order_by(*self._key)
        if keys.after is not None:
            query = query.where(self._compare_keys() > self._value(keys.after))
        if keys.upto is not None:
            query = query.where(self._compare_keys() <= self._value(keys.upto))
        return query

    def _compare_keys(self) -> ColumnElement[Any]:
        return self._key[0] if len(self._key) == 1 else tuple_(*self._key)

    def _value(self, key: Key) -> Any:
        return key[0] if len(key) == 1 else tuple_(*key, types=[column.type for column in self._key])

    def _key_of(self, row: Row) -> Key:
        return tuple(row[position] for position in self._key_positions)

    def _page(self, keys: KeyRange, rows: Sequence[Row]) -> RowPage:
        by_key = {self._key_of(row): row for row in rows}
        written = {key: encode_row(row) for key, row in by_key.items()}
        hashes = {key: hash_of(encoded) for key, encoded in written.items()}
        return RowPage(keys, by_key, hashes, sum(map(len, written.values())))


def _next_size(rows: int, size: int) -> int:
    if size > PAGE_BYTES:
        return max(rows // 2, 1)
    return min(rows * 2, MAX_PAGE_ROWS) if size < PAGE_BYTES // 2 else rows
