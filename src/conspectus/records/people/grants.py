"""Roles on collections and sources."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, or_, select

from conspectus.errors import NotFound
from conspectus.model.access import Grant, Principal
from conspectus.model.ids import CollectionId, SourceId, UserId
from conspectus.records.core.collections import state
from conspectus.records.tables.core import sources
from conspectus.records.tables.people import grants, groups, members, users
from conspectus.text.hashing import stable_id
from conspectus.text.times import from_microseconds, to_microseconds


def put_grant(connection: Connection, grant: Grant) -> None:
    """Store it, in place of another role of the same grantee there. Raises NotFound."""
    state(connection, grant.collection)
    _require_source(connection, grant.collection, grant.source)
    _require_grantee(connection, grant.grantee)
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


def revoke(
    connection: Connection, collection: CollectionId, *, source: SourceId | None, grantee: Principal
) -> bool:
    """Take a role away; whether there was one."""
    name = _id(collection, source, grantee)
    return connection.execute(delete(grants).where(grants.c.id == name)).rowcount > 0


def grants_on(connection: Connection, collection: CollectionId) -> Sequence[Grant]:
    """All grants on a collection and its sources, oldest first."""
    chosen = select(grants).where(grants.c.collection == collection)
    return [_to_grant(row) for row in connection.execute(chosen.order_by(grants.c.created, grants.c.id))]


def held_by(connection: Connection, user: UserId) -> Sequence[Grant]:
    """All grants that a user has, directly or through groups."""
    own = select(members.c.group).where(members.c.user == user)
    chosen = select(grants).where(or_(grants.c.user == user, grants.c.group.in_(own)))
    return [_to_grant(row) for row in connection.execute(chosen.order_by(grants.c.created, grants.c.id))]


def _to_grant(row: Row[*tuple[Any, ...]]) -> Grant:
    grantee = Principal("user", row.user) if row.user is not None else Principal("group", row.group)
    return Grant(row.collection, row.source, grantee, row.role, from_microseconds(row.created))


def _id(collection: CollectionId, source: SourceId | None, grantee: Principal) -> str:
    """The same for every role of a grantee in one place, so that there is never more than one."""
    return stable_id("grant", collection, source or "", grantee.kind, grantee.id)


def _require_source(connection: Connection, collection: CollectionId, source: SourceId | None) -> None:
    here = select(sources.c.id).where(sources.c.id == source, sources.c.collection == collection)
    if source is not None and connection.execute(here).one_or_none() is None:
        raise NotFound("source", source)


def _require_grantee(connection: Connection, grantee: Principal) -> None:
    table = users if grantee.kind == "user" else groups
    if connection.execute(select(table.c.id).where(table.c.id == grantee.id)).one_or_none() is None:
        raise NotFound(grantee.kind, grantee.id)
