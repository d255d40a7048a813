"""Grants of roles, and sources hidden from all but managers."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, or_, select, update

from conspectus.errors import NotFound
from conspectus.model.access import Grant, Principal
from conspectus.model.ids import CollectionId, SourceId, UserId
from conspectus.records.accounts.audit import Change, note_change
from conspectus.records.accounts.users import require_principal
from conspectus.records.core.collections import state
from conspectus.records.core.lock_names import Locks, row_lock
from conspectus.records.tables.core import collections, grants, groups, members, sources, users
from conspectus.text.hashing import stable_id
from conspectus.text.times import from_microseconds, to_microseconds


def put_grant(connection: Connection, grant: Grant, change: Change = None) -> None:
    state(connection, grant.collection)
    source = select(sources.c.id).where(
        sources.c.id == grant.source, sources.c.collection == grant.collection
    )
    if grant.source is not None and connection.execute(source).one_or_none() is None:
        raise NotFound("source", grant.source)
    require_principal(connection, grant.grantee)
    id = grant_id(grant.collection, grant.source, grant.grantee)
    connection.execute(delete(grants).where(grants.c.id == id))
    columns = {
        "id": id,
        "collection": grant.collection,
        "source": grant.source,
        "user": grant.grantee.id if grant.grantee.kind == "user" else None,
        "group": grant.grantee.id if grant.grantee.kind == "group" else None,
        "role": grant.role,
        "created": to_microseconds(grant.created),
    }
    connection.execute(insert(grants), columns)
    note_change(connection, change)


def revoke(
    connection: Connection,
    collection: CollectionId,
    source: SourceId | None,
    grantee: Principal,
    change: Change = None,
) -> bool:
    id = grant_id(collection, source, grantee)
    is_revoked = connection.execute(delete(grants).where(grants.c.id == id)).rowcount > 0
    note_change(connection, change if is_revoked else None)
    return is_revoked


def grants_on(connection: Connection, collection: CollectionId) -> Sequence[Grant]:
    query = select(grants).where(grants.c.collection == collection)
    return [_to_grant(row) for row in connection.execute(query.order_by(grants.c.created, grants.c.id))]


def grants_of(connection: Connection, user: UserId) -> Sequence[Grant]:
    own_groups = select(members.c.group).where(members.c.user == user)
    query = select(grants).where(or_(grants.c.user == user, grants.c.group.in_(own_groups)))
    return [_to_grant(row) for row in connection.execute(query.order_by(grants.c.created, grants.c.id))]


def list_hidden_sources(connection: Connection, collection: CollectionId) -> Mapping[SourceId, datetime]:
    hidden = sources.c.collection == collection, sources.c.hidden_from.is_not(None)
    rows = connection.execute(select(sources.c.id, sources.c.hidden_from).where(*hidden))
    return {SourceId(source): from_microseconds(instant) for source, instant in rows}


def hide_sources(connection: Connection, ids: Sequence[SourceId], *, since: datetime | None) -> None:
    instant = None if since is None else to_microseconds(since)
    connection.execute(update(sources).where(sources.c.id.in_(ids)).values(hidden_from=instant))


def _to_grant(row: Row[*tuple[Any, ...]]) -> Grant:
    grantee = Principal("user", row.user) if row.user is not None else Principal("group", row.group)
    return Grant(row.collection, row.source, grantee, row.role, from_microseconds(row.created))


def grant_id(collection: CollectionId, source: SourceId | None, grantee: Principal) -> str:
    """Return an id that is equal for all roles of a principal in one place, so that only one exists."""
    return stable_id("grant", collection, source or "", grantee.kind, grantee.id)


def locks_of_grant(grant: Grant) -> Locks:
    """Return the locks of all rows that a grant refers to."""
    grantee = row_lock(users if grant.grantee.kind == "user" else groups, grant.grantee.id)
    locks = {row_lock(collections, grant.collection), grantee}
    return locks if grant.source is None else {*locks, row_lock(sources, grant.source)}
