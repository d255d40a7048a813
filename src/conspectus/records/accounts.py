"""Users, groups, API keys and grants."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias

from sqlalchemy import (
    Connection,
    Row,
    Subquery,
    Table,
    bindparam,
    cast,
    delete,
    insert,
    literal,
    null,
    or_,
    select,
    types,
    union_all,
    update,
)

from conspectus.errors import Conflict, NotFound
from conspectus.model.access import AccountChange, AuditEntry, AuditPage, Grant, Group, Key, Principal, User
from conspectus.model.ids import CollectionId, GroupId, KeyId, SourceId, UserId
from conspectus.records.core.collections import state
from conspectus.records.core.rows import columns_of, newest_page, to_model, to_moment
from conspectus.records.core.transactions import (
    Locks,
    SqlStore,
    all_of,
    cached,
    name_in,
    reading,
    row_of,
    writing,
)
from conspectus.records.feedback import forget_feedback
from conspectus.records.sessions import add_session, end_session, find_session, session_used
from conspectus.records.tables.core import (
    account_changes,
    audit,
    collections,
    feedback,
    grants,
    groups,
    keys,
    members,
    sessions,
    sources,
    users,
)
from conspectus.records.tables.graph import events
from conspectus.records.tables.jobs import connections, jobs
from conspectus.records.tables.streams import alerts
from conspectus.text.hashing import stable_id
from conspectus.text.times import from_microseconds, to_microseconds

Change: TypeAlias = AccountChange | None
"""What is noted in the audit log together with a write."""


def note(connection: Connection, change: Change) -> None:
    """Store a change in the transaction that makes it."""
    if change is not None:
        connection.execute(insert(account_changes), columns_of(change))


def put_grant(connection: Connection, grant: Grant, change: Change = None) -> None:
    state(connection, grant.collection)
    here = select(sources.c.id).where(sources.c.id == grant.source, sources.c.collection == grant.collection)
    if grant.source is not None and connection.execute(here).one_or_none() is None:
        raise NotFound("source", grant.source)
    _require(connection, grant.grantee)
    name = _id(grant.collection, grant.source, grant.grantee)
    connection.execute(delete(grants).where(grants.c.id == name))
    values = {
        "id": name,
        "collection": grant.collection,
        "source": grant.source,
        "user": grant.grantee.id if grant.grantee.kind == "user" else None,
        "group": grant.grantee.id if grant.grantee.kind == "group" else None,
        "role": grant.role,
        "created": to_microseconds(grant.created),
    }
    connection.execute(insert(grants), values)
    note(connection, change)


def revoke(
    connection: Connection,
    collection: CollectionId,
    source: SourceId | None,
    grantee: Principal,
    change: Change = None,
) -> bool:
    name = _id(collection, source, grantee)
    is_revoked = connection.execute(delete(grants).where(grants.c.id == name)).rowcount > 0
    note(connection, change if is_revoked else None)
    return is_revoked


def grants_on(connection: Connection, collection: CollectionId) -> Sequence[Grant]:
    chosen = select(grants).where(grants.c.collection == collection)
    return [_to_grant(row) for row in connection.execute(chosen.order_by(grants.c.created, grants.c.id))]


def grants_of(connection: Connection, user: UserId) -> Sequence[Grant]:
    own = select(members.c.group).where(members.c.user == user)
    chosen = select(grants).where(or_(grants.c.user == user, grants.c.group.in_(own)))
    return [_to_grant(row) for row in connection.execute(chosen.order_by(grants.c.created, grants.c.id))]


def hidden_sources(connection: Connection, collection: CollectionId) -> Mapping[SourceId, datetime]:
    hidden = sources.c.collection == collection, sources.c.hidden_from.is_not(None)
    rows = connection.execute(select(sources.c.id, sources.c.hidden_from).where(*hidden))
    return {SourceId(source): from_microseconds(instant) for source, instant in rows}


def hide_sources(connection: Connection, names: Sequence[SourceId], *, since: datetime | None) -> None:
    instant = None if since is None else to_microseconds(since)
    connection.execute(update(sources).where(sources.c.id.in_(names)).values(hidden_from=instant))


def _to_grant(row: Row[*tuple[Any, ...]]) -> Grant:
    grantee = Principal("user", row.user) if row.user is not None else Principal("group", row.group)
    return Grant(row.collection, row.source, grantee, row.role, from_microseconds(row.created))


def _id(collection: CollectionId, source: SourceId | None, grantee: Principal) -> str:
    """Return an id that is equal for all roles of a principal in one place, so that only one exists."""
    return stable_id("grant", collection, source or "", grantee.kind, grantee.id)


def _require(connection: Connection, who: Principal) -> None:
    """Raise NotFound for an unknown user or group."""
    table = users if who.kind == "user" else groups
    if connection.execute(select(table.c.id).where(table.c.id == who.id)).one_or_none() is None:
        raise NotFound(who.kind, who.id)


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


def add_user(connection: Connection, user: User, change: Change = None) -> None:
    _require_free(connection, users, user.name)
    connection.execute(insert(users), columns_of(user))
    note(connection, change)


def set_user_disabled(connection: Connection, user: UserId, *, disabled: bool, change: Change = None) -> User:
    note(connection, change)
    connection.execute(update(users).where(users.c.id == user).values(disabled=int(disabled)))
    return _by_id(connection, user)


def find_for_deletion(
    connection: Connection,
    user: UserId,
    transfer_to: UserId | None = None,
    change: Change = None,
    *,
    purge: bool = False,
) -> tuple[Locks, Callable[[Connection], None]]:
    """Return the locks for the deletion of a user, and the deletion.

    Its collections get another name, and others lose its alerts and feedback.
    """
    leaving = _by_id(connection, user)
    follower = None if transfer_to is None else _by_id(connection, transfer_to)
    locks: set[str | None] = {row_of(users, each.id) for each in (leaving, follower) if each is not None}
    for table, owner in ((alerts, alerts.c.owner), (feedback, feedback.c.user)):
        locks |= set(connection.execute(select(table.c.collection).where(owner == user)).scalars())
    owned = connection.execute(
        select(collections.c.id, collections.c.name).where(collections.c.owner == user)
    ).all()
    for row in owned:
        locks |= all_of(row.id)
        if follower is not None:
            locks.add(name_in(collections, _new_name(row.name, leaving, follower)))
    delete_it = partial(_delete_user, leaving=leaving, follower=follower, owned=owned)
    return locks, partial(delete_it, change=change, purge=purge)


def _delete_user(
    connection: Connection,
    *,
    leaving: User,
    follower: User | None,
    owned: Sequence[Row[*tuple[Any, ...]]],
    change: Change,
    purge: bool,
) -> None:
    note(connection, change)
    if purge:
        _erase_name(connection, leaving.id)
    user = leaving.id
    if owned and follower is None:
        raise Conflict("user", leaving.name, "owns collections; give `transfer_to`")
    if follower is not None:
        for row in owned:
            _hand_over(connection, row, leaving, follower)
        for table in (jobs, connections):
            connection.execute(update(table).where(table.c.owner == user).values(owner=follower.id))
    connection.execute(update(events).where(events.c.by == leaving.name).values(by=user))
    connection.execute(delete(alerts).where(alerts.c.owner == user))
    forget_feedback(connection, user)
    connection.execute(delete(audit).where(or_(audit.c.actor == user, audit.c.viewed_as == user)))
    connection.execute(delete(users).where(users.c.id == user))


def _erase_name(connection: Connection, user: UserId) -> None:
    """Leave only the id of a user in the log of changes."""
    rows = update(account_changes)
    own_keys = select(keys.c.id).where(keys.c.user == user)
    is_subject = or_(account_changes.c.subject == user, account_changes.c.subject.in_(own_keys))
    connection.execute(rows.where(account_changes.c.actor == user).values(actor_name=""))
    connection.execute(rows.where(is_subject).values(subject_name=""))


def all_users(connection: Connection) -> Sequence[User]:
    return [_to_user(row) for row in connection.execute(select(users).order_by(users.c.name))]


def find_user(connection: Connection, name_or_id: str) -> User | None:
    row = connection.execute(_USER, {"called": name_or_id}).one_or_none()
    return None if row is None else _to_user(row)


def add_group(connection: Connection, group: Group, change: Change = None) -> None:
    _require_free(connection, groups, group.name)
    connection.execute(insert(groups), columns_of(group))
    note(connection, change)


def delete_group(connection: Connection, group: GroupId, change: Change = None) -> None:
    if not connection.execute(delete(groups).where(groups.c.id == group)).rowcount:
        raise NotFound("group", group)
    note(connection, change)


def all_groups(connection: Connection) -> Sequence[Group]:
    rows = connection.execute(select(groups).order_by(groups.c.name))
    return [Group(row.id, row.name, from_microseconds(row.created)) for row in rows]


def members_of(connection: Connection, group: GroupId) -> Sequence[User]:
    _require(connection, Principal("group", group))
    chosen = select(users).join(members, members.c.user == users.c.id).where(members.c.group == group)
    return [_to_user(row) for row in connection.execute(chosen.order_by(users.c.name))]


def join(connection: Connection, group: GroupId, user: UserId, change: Change = None) -> None:
    _require(connection, Principal("group", group))
    _by_id(connection, user)
    leave(connection, group, user)
    connection.execute(insert(members), {"group": group, "user": user})
    note(connection, change)


def leave(connection: Connection, group: GroupId, user: UserId, change: Change = None) -> None:
    """Remove the user from the group, if it is a member."""
    is_member = members.c.group == group, members.c.user == user
    if connection.execute(delete(members).where(*is_member)).rowcount:
        note(connection, change)


def add_key(connection: Connection, key: Key, secret_hash: str, change: Change = None) -> None:
    _by_id(connection, key.user)
    values = {**columns_of(key), "hash": secret_hash, "scopes": " ".join(key.scopes)}
    connection.execute(insert(keys), values)
    note(connection, change)


def find_key(connection: Connection, key: KeyId) -> tuple[Key, str, User] | None:
    row = connection.execute(_KEY, {"wanted": key}).one_or_none()
    if row is None:
        return None
    name, created, owner, disabled = row[_KEY_WIDTH:]
    user = User(row[1], name, from_microseconds(created), bool(owner), bool(disabled))
    return _to_key(row[:_KEY_WIDTH]), row[3], user


def keys_of(connection: Connection, user: UserId | None = None) -> Sequence[Key]:
    chosen = select(keys) if user is None else select(keys).where(keys.c.user == user)
    return [_to_key(row) for row in connection.execute(chosen.order_by(keys.c.created, keys.c.id))]


def revoke_key(connection: Connection, key: KeyId, at: datetime, change: Change = None) -> Key:
    """Revoke a key from the next request on; the first time of revocation is kept. Raises NotFound."""
    unrevoked = update(keys).where(keys.c.id == key, keys.c.revoked.is_(None))
    if connection.execute(unrevoked.values(revoked=to_microseconds(at))).rowcount:
        note(connection, change)
    row = connection.execute(select(keys).where(keys.c.id == key)).one_or_none()
    if row is None:
        raise NotFound("key", key)
    return _to_key(row)


def used(connection: Connection, key: KeyId, at: datetime) -> None:
    connection.execute(update(keys).where(keys.c.id == key).values(last_used=to_microseconds(at)))


def add_audit(connection: Connection, entry: AuditEntry) -> None:
    if entry.collection is not None:
        state(connection, entry.collection)
    columns = columns_of(entry)
    connection.execute(insert(audit), {column.name: columns[column.name] for column in audit.c})


def _entries() -> Subquery:
    """Return the audit log: reviews, queries as other users, and changes."""
    nothing, no_key = literal("", types.String()), cast(null(), types.String()).label("key")
    noted = (no_key, *(nothing.label(name) for name in ("actor_name", "subject", "subject_name", "detail")))
    changes = account_changes.c
    queried = (changes.actor.label("viewed_as"), nothing.label("query"))
    named = (changes.id, changes.actor, queried[0], changes.collection, queried[1], changes.created)
    rest = (changes.key, changes.actor_name, changes.subject, changes.subject_name, changes.detail)
    reviews = select(*(audit.c[name] for name in _ENTRY), *noted)
    return union_all(reviews, select(*named, changes.action, *rest)).subquery("entries")


_ENTRY = ("id", "actor", "viewed_as", "collection", "query", "created", "action")


def _audit(connection: Connection, *, after: str | None = None, limit: int) -> AuditPage:
    entries = _entries()
    rows, following = newest_page(connection, select(entries), entries, after=after, limit=limit)
    return AuditPage(tuple(to_model(AuditEntry, row._mapping) for row in rows), following)


def _hand_over(connection: Connection, row: Row[*tuple[Any, ...]], leaving: User, follower: User) -> None:
    name = _new_name(row.name, leaving, follower)
    taken = select(collections.c.id).where(collections.c.name == name, collections.c.id != row.id)
    anothers = select(users.c.id).where(users.c.name == name.partition("/")[0], users.c.id != follower.id)
    prefixed = "/" in name and connection.execute(anothers).first() is not None
    if prefixed or connection.execute(taken).first() is not None:
        raise Conflict("collection", name, "is taken; rename one of the two")
    chosen = update(collections).where(collections.c.id == row.id)
    connection.execute(chosen.values(owner=follower.id, name=name))


def _new_name(name: str, leaving: User, follower: User) -> str:
    """Return the name of a collection for its new owner."""
    bare = name.removeprefix(f"{leaving.name}/")
    return bare if follower.owner else f"{follower.name}/{bare}"


def _grant_locks(grant: Grant) -> Locks:
    """Return the locks of all rows that a grant refers to."""
    grantee = row_of(users if grant.grantee.kind == "user" else groups, grant.grantee.id)
    place = {row_of(collections, grant.collection), grantee}
    return place if grant.source is None else {*place, row_of(sources, grant.source)}


def _by_id(connection: Connection, user: UserId) -> User:
    row = connection.execute(select(users).where(users.c.id == user)).one_or_none()
    if row is None:
        raise NotFound("user", user)
    return _to_user(row)


def _require_free(connection: Connection, table: Table, name: str) -> None:
    if connection.execute(select(table.c.id).where(table.c.name == name)).one_or_none() is not None:
        raise Conflict(table.name.removesuffix("s"), name, "exists already")


def _to_user(row: Row[*tuple[Any, ...]]) -> User:
    return User(row.id, row.name, from_microseconds(row.created), bool(row.owner), bool(row.disabled))


def _to_key(row: Sequence[Any]) -> Key:
    number, user, label, _, scopes, created, expires, last_used, revoked, origin = row
    times = (to_moment(expires), to_moment(last_used), to_moment(revoked))
    return Key(number, user, label, tuple(scopes.split()), from_microseconds(created), *times, origin)


class SqlAccounts(SqlStore):
    """The methods of the port `Accounts`, each as one transaction; see the port for their docs."""

    add_user = writing(add_user, locks=lambda user, change=None: {name_in(users, user.name)})
    set_user_disabled = writing(set_user_disabled, locks=lambda user, **_: {row_of(users, user)})
    users = reading(all_users)
    user = cached(find_user, single=True)
    add_group = writing(add_group, locks=lambda group, change=None: {name_in(groups, group.name)})
    delete_group = writing(delete_group, locks=lambda group, change=None: {row_of(groups, group)})
    groups = reading(all_groups)
    members = reading(members_of)
    join = writing(join, locks=lambda group, user, change=None: {row_of(groups, group), row_of(users, user)})
    leave = writing(leave, locks=lambda group, user, change=None: {row_of(groups, group)})
    add_key = writing(add_key, locks=lambda key, secret_hash, change=None: {row_of(users, key.user)})
    key = cached(find_key, single=True)
    keys = reading(keys_of)
    revoke_key = writing(revoke_key, locks=lambda key, at, change=None: {row_of(keys, key)})
    used = writing(used, locks=lambda key, at: {row_of(keys, key)})
    put_grant = writing(put_grant, locks=lambda grant, change=None: _grant_locks(grant))
    revoke = writing(revoke, locks=lambda collection, *_: {row_of(collections, collection)})
    grants = reading(grants_on)
    grants_of = cached(grants_of, single=True)
    hidden_sources = cached(hidden_sources, single=True)
    hide_sources = writing(hide_sources, locks=lambda names, **_: {row_of(sources, name) for name in names})
    add_audit = writing(add_audit, locks=lambda entry: {row_of(collections, entry.collection)})
    add_change = writing(note, locks=lambda change: {row_of(account_changes, change.id if change else "")})
    audit = reading(_audit)
    add_session = writing(add_session, locks=lambda session, secret_hash: {row_of(keys, session.key)})
    session = cached(find_session, single=True)
    session_used = writing(session_used, locks=lambda session, at: {row_of(sessions, session)})
    end_session = writing(end_session, locks=lambda session: {row_of(sessions, session)})

    async def delete_user(
        self, user: UserId, *, transfer_to: UserId | None = None, change: Change = None, purge: bool = False
    ) -> None:
        find = partial(find_for_deletion, user=user, transfer_to=transfer_to, change=change, purge=purge)
        await self.transactions.write_found(find, long=True)
