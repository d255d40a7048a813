"""Invitations, with each of which a user logs in once."""

from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select

from conspectus.errors import NotFound
from conspectus.model.access import Invitation, Session
from conspectus.model.ids import UserId
from conspectus.records.accounts.audit import Change, note_change
from conspectus.records.accounts.sessions import add_session
from conspectus.records.accounts.users import user_by_id
from conspectus.records.core.rows import columns_of
from conspectus.records.tables.core import invitations
from conspectus.text.times import from_microseconds, to_microseconds


def add_invitation(
    connection: Connection, invitation: Invitation, secret_hash: str, change: Change = None
) -> None:
    """Store an invitation, and delete those that have expired. Raises NotFound for an unknown user."""
    user_by_id(connection, invitation.user)
    now = to_microseconds(invitation.created)
    connection.execute(delete(invitations).where(invitations.c.expires <= now))
    columns = {**columns_of(invitation), "hash": secret_hash, "scopes": " ".join(invitation.scopes)}
    connection.execute(insert(invitations), columns)
    note_change(connection, change)


def find_invitation(connection: Connection, invitation: str) -> tuple[Invitation, str] | None:
    """Return an invitation and the hash of its token."""
    row = connection.execute(select(invitations).where(invitations.c.id == invitation)).one_or_none()
    return None if row is None else (_to_invitation(row), row.hash)


def list_invitations(connection: Connection, user: UserId | None = None) -> list[Invitation]:
    """Return the invitations of one user or of all, newest first."""
    query = select(invitations)
    if user is not None:
        query = query.where(invitations.c.user == user)
    rows = connection.execute(query.order_by(invitations.c.created.desc(), invitations.c.id))
    return [_to_invitation(row) for row in rows]


def withdraw_invitation(connection: Connection, invitation: str, change: Change = None) -> None:
    """Delete an invitation. Raises NotFound if there is none, for example because it was accepted."""
    if not connection.execute(delete(invitations).where(invitations.c.id == invitation)).rowcount:
        raise NotFound("invitation", invitation)
    note_change(connection, change)


def accept_invitation(
    connection: Connection, invitation: str, session: Session, secret_hash: str, change: Change = None
) -> None:
    """Replace an invitation by the session of who accepts it. Raises NotFound if there is none any more."""
    withdraw_invitation(connection, invitation)
    add_session(connection, session, secret_hash, change)


def _to_invitation(row: Row[Any]) -> Invitation:
    times = from_microseconds(row.created), from_microseconds(row.expires)
    return Invitation(row.id, row.user, tuple(row.scopes.split()), *times)
