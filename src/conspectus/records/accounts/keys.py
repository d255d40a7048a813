"""API keys."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from conspectus.errors import NotFound
from conspectus.model.access import Key, User
from conspectus.model.ids import KeyId, UserId
from conspectus.records.accounts.audit import Change, note_change
from conspectus.records.accounts.users import user_by_id
from conspectus.records.core.rows import columns_of, to_moment
from conspectus.records.core.statements import fetch_rows
from conspectus.records.tables.core import keys, users
from conspectus.text.times import from_microseconds, to_microseconds

_KEY = (
    select(keys, users.c.name, users.c.created, users.c.owner, users.c.disabled)
    .join(users, users.c.id == keys.c.user)
    .where(keys.c.id == bindparam("of"))
)
_KEY_WIDTH = len(keys.c)
"""Number of columns of a row that are those of the key; the others are those of its user."""


def add_key(connection: Connection, key: Key, secret_hash: str, change: Change = None) -> None:
    user_by_id(connection, key.user)
    values = {**columns_of(key), "hash": secret_hash, "scopes": " ".join(key.scopes)}
    connection.execute(insert(keys), values)
    note_change(connection, change)


def find_key(connection: Connection, key: KeyId) -> tuple[Key, str, User] | None:
    rows = fetch_rows(connection, _KEY, {"of": key})
    if not rows:
        return None
    key_columns, user_columns = rows[0][:_KEY_WIDTH], rows[0][_KEY_WIDTH:]
    stored_key, secret_hash = _to_key(key_columns), key_columns[3]
    name, created, owner, disabled = user_columns
    user = User(stored_key.user, name, from_microseconds(created), bool(owner), bool(disabled))
    return stored_key, secret_hash, user


def keys_of(connection: Connection, user: UserId | None = None) -> Sequence[Key]:
    query = select(keys) if user is None else select(keys).where(keys.c.user == user)
    return [_to_key(row) for row in connection.execute(query.order_by(keys.c.created, keys.c.id))]


def revoke_key(connection: Connection, key: KeyId, at: datetime, change: Change = None) -> Key:
    """Revoke a key from the next request on; the first time of revocation is kept. Raises NotFound."""
    unrevoked = update(keys).where(keys.c.id == key, keys.c.revoked.is_(None))
    if connection.execute(unrevoked.values(revoked=to_microseconds(at))).rowcount:
        note_change(connection, change)
    row = connection.execute(select(keys).where(keys.c.id == key)).one_or_none()
    if row is None:
        raise NotFound("key", key)
    return _to_key(row)


def set_key_used(connection: Connection, key: KeyId, at: datetime) -> None:
    connection.execute(update(keys).where(keys.c.id == key).values(last_used=to_microseconds(at)))


def _to_key(row: Sequence[Any]) -> Key:
    id, user, label, _, scopes, created, expires, last_used, revoked, origin = row
    times = (to_moment(expires), to_moment(last_used), to_moment(revoked))
    return Key(id, user, label, tuple(scopes.split()), from_microseconds(created), *times, origin)
