"""Pages of rows and their cursors."""

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, FromClause, Select, tuple_

from conspectus.errors import InvalidInput


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
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode()


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
