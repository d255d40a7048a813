"""Users and groups that an identity provider manages by SCIM."""

from collections import defaultdict
from collections.abc import Mapping

from sqlalchemy import Connection, Select, delete, insert, select, update

from conspectus.errors import Conflict, NotFound
from conspectus.model.access import AccountChange, Group, User
from conspectus.model.identities import Identity
from conspectus.model.ids import GroupId, UserId
from conspectus.model.provisioning import ProvisionedGroup, ProvisionedUser
from conspectus.records.accounts.audit import Change, note_change
from conspectus.records.accounts.identities import add_identity
from conspectus.records.accounts.users import add_group, add_user, user_by_id
from conspectus.records.tables.core import (
    groups,
    members,
    provisioned_groups,
    provisioned_users,
    users,
)
from conspectus.text.times import from_microseconds, to_microseconds

PROVISIONER = "scim"
"""The issuer of memberships that the provider made."""


def add_provisioned_user(
    connection: Connection,
    provisioned: ProvisionedUser,
    change: Change = None,
    *,
    identity: Identity | None = None,
    is_new: bool = True,
) -> None:
    """Store who manages a user, with the user if it is new. Raises NotFound or Conflict."""
    _require_free_name(connection, provisioned)
    if is_new:
        add_user(connection, provisioned.user)
    user_by_id(connection, provisioned.user.id)
    managed = provisioned_users.c.user == provisioned.user.id
    if connection.execute(select(provisioned_users.c.user).where(managed)).one_or_none() is not None:
        raise Conflict("user", provisioned.user_name, "is managed by the provider already")
    connection.execute(insert(provisioned_users), {"user": provisioned.user.id, **_user_columns(provisioned)})
    if identity is not None:
        add_identity(connection, identity)
    note_change(connection, change)


def list_provisioned_users(connection: Connection) -> list[ProvisionedUser]:
    """Return the users whom the provider manages, oldest first."""
    memberships: dict[str, list[GroupId]] = defaultdict(list)
    for group, user in connection.execute(_managed_memberships()).all():
        memberships[user].append(GroupId(group))
    rows = connection.execute(
        select(users, provisioned_users)
        .join(provisioned_users, provisioned_users.c.user == users.c.id)
        .order_by(users.c.created, users.c.id)
    )
    return [
        ProvisionedUser(
            user=User(row.id, row.name, from_microseconds(row.created), bool(row.owner), bool(row.disabled)),
            user_name=row.user_name,
            external_id=row.external_id,
            modified=from_microseconds(row.modified),
            active=bool(row.active),
            groups=tuple(memberships[row.id]),
        )
        for row in rows
    ]


def put_provisioned_user(connection: Connection, provisioned: ProvisionedUser, change: Change = None) -> None:
    """Change what the provider calls a user. Raises NotFound, or Conflict for the name of another one."""
    _require_free_name(connection, provisioned)
    row = update(provisioned_users).where(provisioned_users.c.user == provisioned.user.id)
    if not connection.execute(row.values(**_user_columns(provisioned))).rowcount:
        raise NotFound("user", provisioned.user.id)
    note_change(connection, change)


def remove_provisioned_user(connection: Connection, user: UserId, change: Change = None) -> None:
    """Leave a user to people again, out of the groups that the provider manages. Raises NotFound."""
    if not connection.execute(delete(provisioned_users).where(provisioned_users.c.user == user)).rowcount:
        raise NotFound("user", user)
    managed = select(provisioned_groups.c.group)
    connection.execute(delete(members).where(members.c.user == user, members.c.group.in_(managed)))
    note_change(connection, change)


def add_provisioned_group(
    connection: Connection, provisioned: ProvisionedGroup, change: Change = None
) -> None:
    """Store a new group that the provider manages, without members. Raises Conflict."""
    add_group(connection, provisioned.group)
    connection.execute(
        insert(provisioned_groups), {"group": provisioned.group.id, **_group_columns(provisioned)}
    )
    note_change(connection, change)


def list_provisioned_groups(connection: Connection) -> list[ProvisionedGroup]:
    """Return the groups that the provider manages, oldest first."""
    memberships: dict[str, list[UserId]] = defaultdict(list)
    for group, user in connection.execute(_managed_memberships()).all():
        memberships[group].append(UserId(user))
    rows = connection.execute(
        select(groups, provisioned_groups)
        .join(provisioned_groups, provisioned_groups.c.group == groups.c.id)
        .order_by(groups.c.created, groups.c.id)
    )
    return [
        ProvisionedGroup(
            group=Group(row.id, row.name, from_microseconds(row.created)),
            display_name=row.display_name,
            external_id=row.external_id,
            modified=from_microseconds(row.modified),
            members=tuple(memberships[row.id]),
        )
        for row in rows
    ]


def put_provisioned_group(
    connection: Connection,
    provisioned: ProvisionedGroup,
    change: Change = None,
    *,
    joined: Mapping[UserId, AccountChange],
    left: Mapping[UserId, AccountChange],
) -> None:
    """Change what the provider calls a group, and its memberships. Raises NotFound.

    A user who joins and is no longer managed by the provider is left out.
    """
    group = provisioned.group.id
    row = update(provisioned_groups).where(provisioned_groups.c.group == group)
    if not connection.execute(row.values(**_group_columns(provisioned))).rowcount:
        raise NotFound("group", group)
    note_change(connection, change)
    for user, removal in left.items():
        membership = members.c.group == group, members.c.user == user
        if connection.execute(delete(members).where(*membership)).rowcount:
            note_change(connection, removal)
    present = select(members.c.user).where(members.c.group == group)
    managed = provisioned_users.c.user
    missing = select(managed).where(managed.in_(joined), managed.not_in(present))
    for user in connection.execute(missing).scalars().all():
        connection.execute(insert(members), {"group": group, "user": user, "issuer": PROVISIONER})
        note_change(connection, joined[user])


def _managed_memberships() -> Select[str, str]:
    """Return the query for memberships of managed users in managed groups, whoever made them."""
    return (
        select(members.c.group, members.c.user)
        .join(provisioned_groups, provisioned_groups.c.group == members.c.group)
        .join(provisioned_users, provisioned_users.c.user == members.c.user)
        .order_by(members.c.group, members.c.user)
    )


def _require_free_name(connection: Connection, provisioned: ProvisionedUser) -> None:
    """Raise Conflict if another user has the name at the provider, in upper or lower case."""
    owner_of_name = select(provisioned_users.c.user).where(
        provisioned_users.c.name_key == provisioned.user_name.casefold(),
        provisioned_users.c.user != provisioned.user.id,
    )
    if connection.execute(owner_of_name).first() is not None:
        raise Conflict("user", provisioned.user_name, "is the name of another user of the provider")


def _user_columns(provisioned: ProvisionedUser) -> dict[str, str | int | None]:
    return {
        "user_name": provisioned.user_name,
        "name_key": provisioned.user_name.casefold(),
        "external_id": provisioned.external_id,
        "active": int(provisioned.active),
        "modified": to_microseconds(provisioned.modified),
    }


def _group_columns(provisioned: ProvisionedGroup) -> dict[str, str | int | None]:
    return {
        "display_name": provisioned.display_name,
        "external_id": provisioned.external_id,
        "modified": to_microseconds(provisioned.modified),
    }
