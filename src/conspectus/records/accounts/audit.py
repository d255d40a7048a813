"""The audit log: reviews, queries as other users, and changes."""

from typing import TypeAlias

from sqlalchemy import Connection, Subquery, cast, insert, literal, null, select, types, union_all

from conspectus.model.access import AccountChange, AuditEntry, AuditPage
from conspectus.records.core.collections import state
from conspectus.records.core.pages import newest_page
from conspectus.records.core.rows import columns_of, to_model
from conspectus.records.tables.core import account_changes, audit

Change: TypeAlias = AccountChange | None
"""What is noted in the audit log together with a write."""


def note_change(connection: Connection, change: Change) -> None:
    """Store a change in the transaction that makes it."""
    if change is not None:
        connection.execute(insert(account_changes), columns_of(change))


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


def audit_page(connection: Connection, *, after: str | None = None, limit: int) -> AuditPage:
    entries = _entries()
    rows, following = newest_page(connection, select(entries), entries, after=after, limit=limit)
    return AuditPage(tuple(to_model(AuditEntry, row._mapping) for row in rows), following)
