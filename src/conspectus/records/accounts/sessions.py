"""Sessions of browsers."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from conspectus.model.access import Session
from conspectus.model.ids import KeyId
from conspectus.records.core.rows import columns_of
from conspectus.records.tables.core import sessions
from conspectus.text.times import from_microseconds, to_microseconds

_SESSION = select(sessions).where(sessions.c.id == bindparam("of"))


def add_session(connection: Connection, session: Session, secret_hash: str) -> None:
    """Store a session, and delete those that have expired."""
    connection.execute(delete(sessions).where(sessions.c.expires <= to_microseconds(session.created)))
    connection.execute(insert(sessions), {**columns_of(session), "hash": secret_hash})


def find_session(connection: Connection, session: str) -> tuple[Session, str] | None:
    """Return a session and the hash of its token."""
    row = connection.execute(_SESSION, {"of": session}).one_or_none()
    if row is None:
        return None
    times = (from_microseconds(row.created), from_microseconds(row.expires), from_microseconds(row.last_used))
    return Session(row.id, KeyId(row.key), *times), row.hash


def session_used(connection: Connection, session: str, at: datetime) -> None:
    """Store when a session was used last."""
    connection.execute(update(sessions).where(sessions.c.id == session).values(last_used=to_microseconds(at)))


def end_session(connection: Connection, session: str) -> None:
    """Delete a session."""
    connection.execute(delete(sessions).where(sessions.c.id == session))
