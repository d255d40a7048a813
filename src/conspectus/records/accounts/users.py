"""Users and groups."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Table, bindparam, delete, insert, or_, select, update

from conspectus.errors import Conflict, NotFound
from conspectus.model.access import Group, Principal, User
from conspectus.model.ids import GroupId, UserId
from conspectus.records.accounts.audit import Change, note_change
from conspectus.records.core.rows import columns_of
from conspectus.records.tables.core import groups, invitations, keys, members, sessions, users
from conspectus.text.times import from_microseconds, to_microseconds


def require_principal(connection: Connection, principal: Principal) -> None:
    """Raise NotFound for an unknown user or group."""
    table = users if principal.kind == "user" else groups
    if connection.execute(select(table.c.id).where(table.c.id == principal.id)).one_or_none() is None:
        raise NotFound(principal.kind, principal.id)


_HAS_ID = users.c.id == bindparam("name_or_id")
_USER = (
    select(users)
    .where(or_(_HAS_ID, users.c.name == bindparam("name_or_id")))
    .order_by(_HAS_ID.desc())
    .limit(1)
)


def add_user(connection: Connection, user: User, change: Change = None) -> None:
    _require_free(connection, users, user.name)
    connection.execute(insert(users), columns_of(user))
    note_change(connection, change)


def set_user_disabled(
    connection: Connection,
    user: UserId,
    *,
    disabled: bool,
    change: Change = None,
    revoke_keys: datetime | None = None,
) -> User:
    """Disable a user, whose sessions and invitations end for good, or enable it. Raises NotFound."""
    note_change(connection, change)
    connection.execute(update(users).where(users.c.id == user).values(disabled=int(disabled)))
    if disabled:
        connection.execute(delete(sessions).where(sessions.c.user == user))
        connection.execute(delete(invitations).where(invitations.c.user == user))
    if revoke_keys is not None:
        valid_keys = keys.c.user == user, keys.c.revoked.is_(None)
        connection.execute(update(keys).where(*valid_keys).values(revoked=to_microseconds(revoke_keys)))
    return user_by_id(connection, user)


def all_users(connection: Connection) -> Sequence[User]:
    return [_to_user(row) for row in connection.execute(select(users).order_by(users.c.name))]


def find_user(connection: Connection, name_or_id: str) -> User | None:
    row = connection.execute(_USER, {"name_or_id": name_or_id}).one_or_none()
    return None if row is None else _to_user(row)


def add_group(connection: Connection, group: Group, change: Change = None) -> None:
    _require_free(connection, groups, group.name)
    connection.execute(insert(groups), columns_of(group))
    note_change(connection, change)


def delete_group(connection: Connection, group: GroupId, change: Change = None) -> None:
    if not connection.execute(delete(groups).where(groups.c.id == group)).rowcount:
        raise NotFound("group", group)
    note_change(connection, change)


def all_groups(connection: Connection) -> Sequence[Group]:
    rows = connection.execute(select(groups).order_by(groups.c.name))
    return [Group(row.id, row.name, from_microseconds(row.created)) for row in rows]


def members_of(connection: Connection, group: GroupId) -> Sequence[User]:
    require_principal(connection, Principal("group", group))
    query = select(users).join(members, members.c.user == users.c.id).where(members.c.group == group)
    return [_to_user(row) for row in connection.execute(query.order_by(users.c.name))]


def add_member(connection: Connection, group: GroupId, user: UserId, change: Change = None) -> None:
    require_principal(connection, Principal("group", group))
    user_by_id(connection, user)
    remove_member(connection, group, user)
    connection.execute(insert(members), {"group": group, "user": user})
    note_change(connection, change)


def remove_member(connection: Connection, group: GroupId, user: UserId, change: Change = None) -> None:
    """Remove the user from the group, if it is a member."""
    is_member = members.c.group == group, members.c.user == user
    if connection.execute(delete(members).where(*is_member)).rowcount:
        note_change(connection, change)


def user_by_id(connection: Connection, user: UserId) -> User:
    row = connection.execute(select(users).where(users.c.id == user)).one_or_none()
    if row is None:
        raise NotFound("user", user)
    return _to_user(row)


def _require_free(connection: Connection, table: Table, name: str) -> None:
    if connection.execute(select(table.c.id).where(table.c.name == name)).one_or_none() is not None:
        raise Conflict(table.name.removesuffix("s"), name, "exists already")


def _to_user(row: Row[*tuple[Any, ...]]) -> User:
    return User(row.id, row.name, from_microseconds(row.created), bool(row.owner), bool(row.disabled))
