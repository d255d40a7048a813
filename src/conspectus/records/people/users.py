"""Users, groups and keys."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Table, bindparam, delete, insert, or_, select, update

from conspectus.errors import Conflict, NotFound
from conspectus.model.access import Group, Key, User
from conspectus.model.ids import GroupId, KeyId, UserId
from conspectus.records.tables.alerts import alerts
from conspectus.records.tables.core import collections
from conspectus.records.tables.jobs import connections, jobs
from conspectus.records.tables.people import groups, keys, members, users
from conspectus.text.times import from_microseconds, to_microseconds

_HAS_ID = users.c.id == bindparam("called")
_USER = (
    select(users).where(or_(_HAS_ID, users.c.name == bindparam("called"))).order_by(_HAS_ID.desc()).limit(1)
)
_KEY = (
    select(keys, users.c.name, users.c.created, users.c.owner, users.c.disabled)
    .join(users, users.c.id == keys.c.user)
    .where(keys.c.id == bindparam("wanted"))
)
_KEY_WIDTH = len(keys.c)


def add_user(connection: Connection, user: User) -> None:
    """Store it. Raises Conflict if the name is taken."""
    _require_free(connection, users, user.name)
    values = {"id": user.id, "name": user.name, "owner": int(user.owner), "disabled": int(user.disabled)}
    connection.execute(insert(users), {**values, "created": to_microseconds(user.created)})


def disable_user(connection: Connection, user: UserId, *, disabled: bool) -> User:
    """Let a user do nothing any more, or let it again. Raises NotFound."""
    connection.execute(update(users).where(users.c.id == user).values(disabled=int(disabled)))
    return _by_id(connection, user)


def delete_user(connection: Connection, user: UserId, *, heir: UserId | None) -> None:
    """Delete it with its keys, grants, memberships and alerts; its collections and jobs go to the heir.

    Raises NotFound, or Conflict if it owns collections and there is no heir.
    """
    leaving = _by_id(connection, user)
    follower = None if heir is None else _by_id(connection, heir)
    owned = connection.execute(
        select(collections.c.id, collections.c.name).where(collections.c.owner == user)
    ).all()
    if owned and follower is None:
        raise Conflict("user", leaving.name, "owns collections; name the user that gets them")
    if follower is not None:
        for row in owned:
            _hand_over(connection, row, leaving, follower)
        for table in (jobs, connections):
            connection.execute(update(table).where(table.c.owner == user).values(owner=follower.id))
    connection.execute(delete(alerts).where(alerts.c.owner == user))
    connection.execute(delete(users).where(users.c.id == user))


def all_users(connection: Connection) -> Sequence[User]:
    """All users by name."""
    return [_to_user(row) for row in connection.execute(select(users).order_by(users.c.name))]


def find_user(connection: Connection, name: str) -> User | None:
    """The user of that id, else of that name."""
    row = connection.execute(_USER, {"called": name}).one_or_none()
    return None if row is None else _to_user(row)


def add_group(connection: Connection, group: Group) -> None:
    """Store it. Raises Conflict if the name is taken."""
    _require_free(connection, groups, group.name)
    values = {"id": group.id, "name": group.name, "created": to_microseconds(group.created)}
    connection.execute(insert(groups), values)


def delete_group(connection: Connection, group: GroupId) -> None:
    """Delete it with its grants and memberships. Raises NotFound."""
    if not connection.execute(delete(groups).where(groups.c.id == group)).rowcount:
        raise NotFound("group", group)


def all_groups(connection: Connection) -> Sequence[Group]:
    """All groups by name."""
    rows = connection.execute(select(groups).order_by(groups.c.name))
    return [Group(row.id, row.name, from_microseconds(row.created)) for row in rows]


def members_of(connection: Connection, group: GroupId) -> Sequence[User]:
    """The members of a group by name. Raises NotFound."""
    _require_group(connection, group)
    chosen = select(users).join(members, members.c.user == users.c.id).where(members.c.group == group)
    return [_to_user(row) for row in connection.execute(chosen.order_by(users.c.name))]


def join(connection: Connection, group: GroupId, user: UserId) -> None:
    """Make the user a member, if it is none yet. Raises NotFound."""
    _require_group(connection, group)
    _by_id(connection, user)
    leave(connection, group, user)
    connection.execute(insert(members), {"group": group, "user": user})


def leave(connection: Connection, group: GroupId, user: UserId) -> None:
    """End the membership, if there is one."""
    connection.execute(delete(members).where(members.c.group == group, members.c.user == user))


def add_key(connection: Connection, key: Key, *, secret_hash: str) -> None:
    """Store a key with the hash of its secret. Raises NotFound for an unknown user."""
    _by_id(connection, key.user)
    values = {
        "id": key.id,
        "user": key.user,
        "label": key.label,
        "hash": secret_hash,
        "scopes": " ".join(key.scopes),
        "created": to_microseconds(key.created),
        "expires": _number(key.expires),
        "last_used": _number(key.last_used),
        "revoked": _number(key.revoked),
    }
    connection.execute(insert(keys), values)


def find_key(connection: Connection, key: KeyId) -> tuple[Key, str, User] | None:
    """A key with the hash of its secret and its user."""
    row = connection.execute(_KEY, {"wanted": key}).one_or_none()
    if row is None:
        return None
    name, created, owner, disabled = row[_KEY_WIDTH:]
    user = User(row[1], name, from_microseconds(created), bool(owner), bool(disabled))
    return _to_key(row[:_KEY_WIDTH]), row[3], user


def keys_of(connection: Connection, user: UserId | None) -> Sequence[Key]:
    """The keys of one user or of all, oldest first."""
    chosen = select(keys) if user is None else select(keys).where(keys.c.user == user)
    return [_to_key(row) for row in connection.execute(chosen.order_by(keys.c.created, keys.c.id))]


def revoke_key(connection: Connection, key: KeyId, at: datetime) -> Key:
    """End a key's validity for the very next request; the first time stays. Raises NotFound."""
    unrevoked = update(keys).where(keys.c.id == key, keys.c.revoked.is_(None))
    connection.execute(unrevoked.values(revoked=to_microseconds(at)))
    row = connection.execute(select(keys).where(keys.c.id == key)).one_or_none()
    if row is None:
        raise NotFound("key", key)
    return _to_key(row)


def used(connection: Connection, key: KeyId, at: datetime, *, secret_hash: str | None) -> None:
    """Note that a key was used, and replace the hash of its secret if another one is given."""
    replaced = {} if secret_hash is None else {"hash": secret_hash}
    connection.execute(update(keys).where(keys.c.id == key).values(last_used=to_microseconds(at), **replaced))


def _hand_over(connection: Connection, row: Row[*tuple[Any, ...]], leaving: User, follower: User) -> None:
    bare = row.name.removeprefix(f"{leaving.name}/")
    name = bare if follower.owner else f"{follower.name}/{bare}"
    taken = select(collections.c.id).where(collections.c.name == name, collections.c.id != row.id)
    anothers = select(users.c.id).where(users.c.name == name.partition("/")[0], users.c.id != follower.id)
    prefixed = "/" in name and connection.execute(anothers).first() is not None
    if prefixed or connection.execute(taken).first() is not None:
        raise Conflict("collection", name, "is a name that is taken; rename one of the two")
    chosen = update(collections).where(collections.c.id == row.id)
    connection.execute(chosen.values(owner=follower.id, name=name))


def _by_id(connection: Connection, user: UserId) -> User:
    row = connection.execute(select(users).where(users.c.id == user)).one_or_none()
    if row is None:
        raise NotFound("user", user)
    return _to_user(row)


def _require_group(connection: Connection, group: GroupId) -> None:
    if connection.execute(select(groups.c.id).where(groups.c.id == group)).one_or_none() is None:
        raise NotFound("group", group)


def _require_free(connection: Connection, table: Table, name: str) -> None:
    if connection.execute(select(table.c.id).where(table.c.name == name)).one_or_none() is not None:
        raise Conflict(table.name.removesuffix("s"), name, "exists already")


def _to_user(row: Row[*tuple[Any, ...]]) -> User:
    return User(row.id, row.name, from_microseconds(row.created), bool(row.owner), bool(row.disabled))


def _to_key(row: Sequence[Any]) -> Key:
    number, user, label, _, scopes, created, expires, last_used, revoked = row
    times = (_instant(expires), _instant(last_used), _instant(revoked))
    return Key(number, user, label, tuple(scopes.split()), from_microseconds(created), *times)


def _number(instant: datetime | None) -> int | None:
    return None if instant is None else to_microseconds(instant)


def _instant(number: int | None) -> datetime | None:
    return None if number is None else from_microseconds(number)
