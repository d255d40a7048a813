"""Grants of roles, and sources hidden from all but managers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Label, Row, case, delete, insert, literal, or_, select, update

from conspectus.errors import NotFound
from conspectus.model.access import Grant, Principal
from conspectus.model.ids import CollectionId, SourceId, UserId
from conspectus.records.accounts.audit import Change, note_change
from conspectus.records.accounts.users import require_principal
from conspectus.records.core.collections import renew_viewers_version, state
from conspectus.records.core.lock_names import Locks, row_lock
from conspectus.records.tables.core import (
    account_changes,
    collections,
    grants,
    groups,
    members,
    sources,
    users,
)
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
    query = select(grants, _grantor("actor"), _grantor("actor_name")).where(grants.c.collection == collection)
    rows = connection.execute(query.order_by(grants.c.created, grants.c.id))
    return [
        replace(_to_grant(row), granted_by=row.actor, granted_by_name=row.actor_name or None) for row in rows
    ]


def _grantor(column: str) -> Label[Any]:
    """Return a column of the change that made a grant: it is of the same instant, and says the same."""
    of_user = grants.c.user.is_not(None)
    detail = case((of_user, "user "), else_="group ").concat(grants.c.role)
    source = case((grants.c.source.is_(None), ""), else_=literal(" source ").concat(grants.c.source))
    is_grant = (
        account_changes.c.action == "put_grant",
        account_changes.c.created == grants.c.created,
        account_changes.c.collection == grants.c.collection,
        account_changes.c.subject == case((of_user, grants.c.user), else_=grants.c.group),
        account_changes.c.detail == detail.concat(source),
    )
    # A grant that is repeated at once has two changes.
    change = select(account_changes.c[column]).where(*is_grant).order_by(account_changes.c.id).limit(1)
    return change.scalar_subquery().label(column)


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
    hidden = select(sources.c.collection).where(sources.c.id.in_(ids))
    renew_viewers_version(connection, collections.c.id.in_(hidden), collections.c.mirrors != 0)


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
