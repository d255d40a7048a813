"""Pages of rows and their cursors."""

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, Label, Select, tuple_

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class KeysetOrder:
    """The order of a list by a key and then the id, and the cursors of its pages.

    A row that stays as it is is on exactly one page, whatever is written between the reads.
    """

    key: ColumnElement[Any]
    id: ColumnElement[Any]
    key_type: type
    mark: str = ""
    """Begins its cursors, so that those of other orders are refused; empty for the default order."""
    descending: bool = False

    @property
    def labeled_key(self) -> Label[Any]:
        """The key as a column of the rows, for `cursor_of`."""
        return self.key.label("sort_key")

    def page(self, query: Select[Any], *, after: str | None) -> Select[Any]:
        """Return the query in this order, from the row after the cursor. Raises InvalidInput."""
        if after is not None:
            position = self._position_of(after)
            row = tuple_(self.key, self.id)
            query = query.where(row < position if self.descending else row > position)
        return self.sort(query)

    def sort(self, query: Select[Any]) -> Select[Any]:
        """Return the query in this order."""
        columns = (self.key, self.id)
        return query.order_by(*(column.desc() if self.descending else column for column in columns))

    def cursor_of(self, row: Any) -> str:
        """Return the cursor of what follows a row that was read with `labeled_key`."""
        if not self.mark:
            return to_cursor(row.sort_key, row.id)
        return to_cursor(self.mark, row.sort_key, row.id)

    def _position_of(self, cursor: str) -> tuple[Any, ...]:
        *marks, _, _ = from_cursor(cursor, (int, str), (str, int, str), (str, str, str))
        if marks != ([self.mark] if self.mark else []):
            raise InvalidInput("after", "is the cursor of a list in another order")
        own_form = (str, self.key_type, str) if self.mark else (self.key_type, str)
        return tuple(from_cursor(cursor, own_form)[-2:])


def newest_page(
    connection: Connection, query: Select[Any], table: FromClause, *, after: str | None, limit: int
) -> tuple[Sequence[Any], str | None]:
    """Return a page of rows by `created` and `id` of a table, newest first, and the cursor of the next page.

    Raises InvalidInput for an invalid cursor.
    """
    key = (table.c.created, table.c.id)
    if after is not None:
        query = query.where(tuple_(*key) < tuple(from_cursor(after, (int, str))))
    rows = connection.execute(query.order_by(*(column.desc() for column in key)).limit(limit + 1)).all()
    if len(rows) <= limit:
        return rows, None
    last = rows[limit - 1]
    return rows[:limit], to_cursor(last.created, last.id)


def to_cursor(*position: int | str) -> str:
    """Return the position of the last row of a page as the cursor of the next page."""
    return base64.urlsafe_b64encode(json.dumps(position, ensure_ascii=False).encode()).decode()


def from_cursor(cursor: str, *forms: tuple[type, ...]) -> list[Any]:
    """Decode a cursor of one of these types. Raises InvalidInput."""
    try:
        position = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
    except (ValueError, binascii.Error, RecursionError) as error:
        raise InvalidInput("after", "is not a cursor; pass the `next` of the page before") from error
    has_form = isinstance(position, list) and tuple(map(type, position)) in forms
    if not has_form or any(type(part) is int and part >> 63 not in {0, -1} for part in position):
        raise InvalidInput("after", "is not a cursor; pass the `next` of the page before")
    return list(position)
