"""Sessions of browsers."""

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, insert, select, update

from conspectus.model.access import Session, User
from conspectus.model.ids import UserId
from conspectus.records.accounts.audit import Change, note_change
from conspectus.records.accounts.users import user_by_id
from conspectus.records.core.rows import columns_of
from conspectus.records.tables.core import identities, sessions
from conspectus.text.times import from_microseconds, to_microseconds

_SESSION = select(sessions).where(sessions.c.id == bindparam("of"))


def add_session(connection: Connection, session: Session, secret_hash: str, change: Change = None) -> None:
    """Store a session, and delete those that have expired. Raises NotFound for an unknown user."""
    user_by_id(connection, session.user)
    connection.execute(delete(sessions).where(sessions.c.expires <= to_microseconds(session.created)))
    columns = {**columns_of(session), "hash": secret_hash, "scopes": " ".join(session.scopes)}
    connection.execute(insert(sessions), columns)
    note_change(connection, change)


def find_session(connection: Connection, session: str) -> tuple[Session, str, User] | None:
    """Return a session, the hash of its token, and its user."""
    row = connection.execute(_SESSION, {"of": session}).one_or_none()
    return None if row is None else (_to_session(row), row.hash, user_by_id(connection, row.user))


def list_sessions(connection: Connection, user: UserId | None = None) -> list[Session]:
    """Return the sessions of one user or of all, newest first."""
    query = select(sessions) if user is None else select(sessions).where(sessions.c.user == user)
    rows = connection.execute(query.order_by(sessions.c.created.desc(), sessions.c.id))
    return [_to_session(row) for row in rows]


def find_issuer_sessions(
    connection: Connection, issuer: str, *, identity: str | None, issuer_session: str | None
) -> list[tuple[Session, User]]:
    """Return the sessions that began at an issuer, of an identity or of a session there, with their users."""
    is_named = (
        sessions.c.issuer_session == issuer_session if identity is None else sessions.c.identity == identity
    )
    query = select(sessions).join(identities, identities.c.id == sessions.c.identity)
    rows = connection.execute(query.where(is_named, identities.c.issuer == issuer))
    return [(_to_session(row), user_by_id(connection, row.user)) for row in rows.all()]


def session_used(connection: Connection, session: str, at: datetime) -> None:
    """Store when a session was used last."""
    connection.execute(update(sessions).where(sessions.c.id == session).values(last_used=to_microseconds(at)))


def end_session(connection: Connection, session: str, change: Change = None) -> None:
    """Delete a session."""
    if connection.execute(delete(sessions).where(sessions.c.id == session)).rowcount:
        note_change(connection, change)


def _to_session(row: Row[Any]) -> Session:
    return Session(
        id=row.id,
        user=row.user,
        scopes=tuple(row.scopes.split()),
        created=from_microseconds(row.created),
        expires=from_microseconds(row.expires),
        last_used=from_microseconds(row.last_used),
        key=row.key,
        origin=row.origin,
        identity=row.identity,
        issuer_session=row.issuer_session,
    )
