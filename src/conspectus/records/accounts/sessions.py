"""Sessions of browsers."""

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, insert, select, update

from conspectus.model.access import Session
from conspectus.model.ids import KeyId, UserId
from conspectus.records.accounts.audit import Change, note_change
from conspectus.records.core.rows import columns_of
from conspectus.records.tables.core import keys, sessions
from conspectus.text.times import from_microseconds, to_microseconds

_SESSIONS = select(sessions, keys.c.user).join(keys, keys.c.id == sessions.c.key)
_SESSION = _SESSIONS.where(sessions.c.id == bindparam("of"))


def add_session(connection: Connection, session: Session, secret_hash: str) -> None:
    """Store a session, and delete those that have expired."""
    connection.execute(delete(sessions).where(sessions.c.expires <= to_microseconds(session.created)))
    columns = columns_of(session)
    del columns["user"]
    connection.execute(insert(sessions), {**columns, "hash": secret_hash})


def find_session(connection: Connection, session: str) -> tuple[Session, str] | None:
    """Return a session and the hash of its token."""
    row = connection.execute(_SESSION, {"of": session}).one_or_none()
    return None if row is None else (_to_session(row), row.hash)


def list_sessions(connection: Connection, user: UserId | None = None) -> list[Session]:
    """Return the sessions of one user or of all, newest first."""
    query = _SESSIONS if user is None else _SESSIONS.where(keys.c.user == user)
    rows = connection.execute(query.order_by(sessions.c.created.desc(), sessions.c.id))
    return [_to_session(row) for row in rows]


def session_used(connection: Connection, session: str, at: datetime) -> None:
    """Store when a session was used last."""
    connection.execute(update(sessions).where(sessions.c.id == session).values(last_used=to_microseconds(at)))


def end_session(connection: Connection, session: str, change: Change = None) -> None:
    """Delete a session."""
    if connection.execute(delete(sessions).where(sessions.c.id == session)).rowcount:
        note_change(connection, change)


def _to_session(row: Row[Any]) -> Session:
    times = (from_microseconds(row.created), from_microseconds(row.expires), from_microseconds(row.last_used))
    return Session(row.id, KeyId(row.key), UserId(row.user), *times)
