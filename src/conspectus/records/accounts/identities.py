"""Identities of users at issuers of tokens, and groups whose members have a claim."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Label, Row, bindparam, delete, insert, or_, select, update

from conspectus.errors import Conflict, NotFound
from conspectus.model.access import AccountChange, Principal, User
from conspectus.model.identities import (
    DIRECTORY_ISSUER,
    DirectoryMembership,
    GroupClaim,
    Identity,
    RefusedSignIn,
    SignedIn,
)
from conspectus.model.ids import GroupId, UserId
from conspectus.records.accounts.audit import Change, note_change
from conspectus.records.accounts.users import add_user, require_principal, user_by_id
from conspectus.records.core.rows import columns_of, to_moment
from conspectus.records.tables.core import (
    account_changes,
    group_claims,
    groups,
    identities,
    members,
    refused_sign_ins,
    sessions,
)
from conspectus.text.times import from_microseconds, to_microseconds

MAX_REFUSED: Final = 1_000
"""Subjects that are listed; the oldest are forgotten."""
REFUSED_LIFETIME: Final = timedelta(days=30)
_IDENTITY = select(identities).where(identities.c.id == bindparam("of"))


def add_identity(
    connection: Connection, identity: Identity, change: Change = None, *, new_user: User | None = None
) -> None:
    """Store an identity, with its user if that is new. Raises NotFound or Conflict."""
    if connection.execute(_IDENTITY, {"of": identity.id}).one_or_none() is not None:
        raise Conflict("identity", identity.subject, "is that of a user already; unmap it first")
    if new_user is not None:
        add_user(connection, new_user)
    user_by_id(connection, identity.user)
    of_user = identities.c.user == identity.user, identities.c.issuer == identity.issuer
    if connection.execute(select(identities.c.id).where(*of_user)).first() is not None:
        raise Conflict("user", identity.user, "has an identity of that issuer; unmap it first")
    fields = columns_of(identity)
    columns = {column.name: fields[column.name] for column in identities.columns}
    connection.execute(insert(identities), columns)
    connection.execute(delete(refused_sign_ins).where(refused_sign_ins.c.id == identity.id))
    note_change(connection, change)


def find_signed_in(connection: Connection, identity: str) -> SignedIn | None:
    """Return an identity with its user and the memberships of that user."""
    row = connection.execute(_IDENTITY, {"of": identity}).one_or_none()
    if row is None:
        return None
    memberships = connection.execute(
        select(members.c.group, members.c.issuer).where(members.c.user == row.user)
    )
    return SignedIn(
        _to_identity(row),
        user_by_id(connection, row.user),
        {GroupId(group): issuer for group, issuer in memberships},
    )


def list_identities(connection: Connection, user: UserId | None = None) -> list[Identity]:
    """Return the identities of one user or of all, oldest first."""
    query = select(identities, _mapper("actor"), _mapper("actor_name"))
    if user is not None:
        query = query.where(identities.c.user == user)
    rows = connection.execute(query.order_by(identities.c.created, identities.c.id))
    return [
        replace(_to_identity(row), mapped_by=row.actor, mapped_by_name=row.actor_name or None) for row in rows
    ]


def _mapper(column: str) -> Label[Any]:
    """Return a column of the change that mapped an identity: it is of the same instant and user."""
    is_mapping = (
        account_changes.c.created == identities.c.created,
        account_changes.c.subject == identities.c.user,
        account_changes.c.action.in_(("map_identity", "create_user")),
    )
    change = select(account_changes.c[column]).where(*is_mapping).order_by(account_changes.c.id).limit(1)
    return change.scalar_subquery().label(column)


def note_refused_sign_in(connection: Connection, refused: RefusedSignIn) -> None:
    """Store that a subject was refused, and forget old ones and those over the limit."""
    stored = refused_sign_ins.c.id == refused.id
    last = to_microseconds(refused.last)
    if not connection.execute(update(refused_sign_ins).where(stored).values(last=last)).rowcount:
        connection.execute(insert(refused_sign_ins), columns_of(refused))
    newest = select(refused_sign_ins.c.id).order_by(refused_sign_ins.c.last.desc(), refused_sign_ins.c.id)
    ids = connection.execute(newest.offset(MAX_REFUSED)).scalars().all()
    is_old = refused_sign_ins.c.last < to_microseconds(refused.last - REFUSED_LIFETIME)
    connection.execute(delete(refused_sign_ins).where(or_(refused_sign_ins.c.id.in_(ids), is_old)))


def list_refused_sign_ins(connection: Connection) -> list[RefusedSignIn]:
    """Return the subjects that were refused, newest first."""
    query = select(refused_sign_ins).order_by(refused_sign_ins.c.last.desc(), refused_sign_ins.c.id)
    return [
        RefusedSignIn(
            row.id, row.issuer, row.subject, from_microseconds(row.first), from_microseconds(row.last)
        )
        for row in connection.execute(query)
    ]


def remove_identity(connection: Connection, identity: Identity, change: Change = None) -> None:
    """Delete an identity with its sessions, and end memberships by claims. Raises NotFound.

    With the last identity of a user, memberships by a directory end too.
    """
    if not connection.execute(delete(identities).where(identities.c.id == identity.id)).rowcount:
        raise NotFound("identity", identity.id)
    connection.execute(delete(sessions).where(sessions.c.identity == identity.id))
    issuers = [identity.issuer]
    of_user = select(identities.c.id).where(identities.c.user == identity.user)
    if connection.execute(of_user).first() is None:
        issuers.append(DIRECTORY_ISSUER)
    ended = members.c.user == identity.user, members.c.issuer.in_(issuers)
    connection.execute(delete(members).where(*ended))
    note_change(connection, change)


def note_sign_in(
    connection: Connection,
    identity: Identity,
    issued: datetime,
    *,
    first: AccountChange,
    joined: Mapping[GroupId, AccountChange],
    left: Mapping[GroupId, AccountChange],
) -> None:
    """Change memberships as a token says, unless a newer token has; changes that happen are noted."""
    row = connection.execute(_IDENTITY, {"of": identity.id}).one_or_none()
    instant = to_microseconds(issued)
    if row is None or (row.last_issued is not None and row.last_issued > instant):
        return
    if row.last_issued is None:
        note_change(connection, first)
    connection.execute(update(identities).where(identities.c.id == identity.id).values(last_issued=instant))
    for group, change in left.items():
        membership = members.c.group == group, members.c.user == row.user, members.c.issuer == row.issuer
        if connection.execute(delete(members).where(*membership)).rowcount:
            note_change(connection, change)
    present = select(members.c.group).where(members.c.user == row.user)
    missing = select(groups.c.id).where(groups.c.id.in_(joined), groups.c.id.not_in(present))
    for group in connection.execute(missing).scalars().all():
        connection.execute(insert(members), {"group": group, "user": row.user, "issuer": row.issuer})
        note_change(connection, joined[group])


def list_directory_members(connection: Connection, issuer: str) -> list[tuple[GroupId, UserId]]:
    """Return the memberships that a directory made."""
    rows = connection.execute(select(members.c.group, members.c.user).where(members.c.issuer == issuer))
    return [(GroupId(group), UserId(user)) for group, user in rows]


def change_directory_members(
    connection: Connection,
    issuer: str,
    *,
    joined: Mapping[DirectoryMembership, AccountChange],
    left: Mapping[DirectoryMembership, AccountChange],
) -> None:
    """Change memberships as a directory says; changes that happen are noted.

    Nobody joins by a group or an identity that was unmapped meanwhile.
    """
    for membership, change in left.items():
        row = members.c.group == membership.group, members.c.user == membership.user
        if connection.execute(delete(members).where(*row, members.c.issuer == issuer)).rowcount:
            note_change(connection, change)
    mapped = {(id, user) for id, user in connection.execute(select(identities.c.id, identities.c.user))}
    mapped_groups = set(
        connection.execute(select(group_claims.c.group).where(group_claims.c.issuer == issuer)).scalars()
    )
    pairs = connection.execute(select(members.c.group, members.c.user))
    present = {(group, user) for group, user in pairs}
    for membership, change in joined.items():
        is_mapped = (membership.identity, membership.user) in mapped and membership.group in mapped_groups
        if is_mapped and (membership.group, membership.user) not in present:
            columns = {"group": membership.group, "user": membership.user, "issuer": issuer}
            connection.execute(insert(members), columns)
            note_change(connection, change)


def add_group_claim(connection: Connection, group_claim: GroupClaim, change: Change = None) -> None:
    """Store what claim a group has. Raises NotFound for an unknown group, and Conflict if it has it."""
    require_principal(connection, Principal("group", group_claim.group))
    stored = select(group_claims.c.id).where(group_claims.c.id == group_claim.id)
    if connection.execute(stored).one_or_none() is not None:
        raise Conflict("claim", group_claim.claim, "is that of the group already")
    connection.execute(insert(group_claims), columns_of(group_claim))
    note_change(connection, change)


def list_group_claims(connection: Connection, issuer: str | None = None) -> list[GroupClaim]:
    """Return the claims of groups of one issuer or of all, by claim."""
    query = select(group_claims)
    if issuer is not None:
        query = query.where(group_claims.c.issuer == issuer)
    rows = connection.execute(query.order_by(group_claims.c.claim, group_claims.c.id))
    return [
        GroupClaim(row.id, row.issuer, row.claim, row.group, from_microseconds(row.created)) for row in rows
    ]


def remove_group_claim(connection: Connection, group_claim: GroupClaim, change: Change = None) -> None:
    """Delete the claim of a group, and end memberships by claims of that issuer. Raises NotFound.

    Members who have another claim of the group join it again with their next request.
    """
    if not connection.execute(delete(group_claims).where(group_claims.c.id == group_claim.id)).rowcount:
        raise NotFound("claim", group_claim.id)
    of_group = members.c.group == group_claim.group, members.c.issuer == group_claim.issuer
    connection.execute(delete(members).where(*of_group))
    note_change(connection, change)


def _to_identity(row: Row[Any]) -> Identity:
    return Identity(
        id=row.id,
        issuer=row.issuer,
        subject=row.subject,
        user=row.user,
        created=from_microseconds(row.created),
        last_issued=to_moment(row.last_issued),
    )
