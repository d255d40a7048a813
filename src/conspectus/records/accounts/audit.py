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
    empty, no_key = literal("", types.String()), cast(null(), types.String())
    reviews = select(
        audit.c.id,
        audit.c.actor,
        audit.c.viewed_as,
        audit.c.collection,
        audit.c.query,
        audit.c.created,
        audit.c.action,
        no_key.label("key"),
        empty.label("actor_name"),
        empty.label("subject"),
        empty.label("subject_name"),
        empty.label("detail"),
    )
    changes = select(
        account_changes.c.id,
        account_changes.c.actor,
        account_changes.c.actor.label("viewed_as"),
        account_changes.c.collection,
        empty.label("query"),
        account_changes.c.created,
        account_changes.c.action,
        account_changes.c.key,
        account_changes.c.actor_name,
        account_changes.c.subject,
        account_changes.c.subject_name,
        account_changes.c.detail,
    )
    return union_all(reviews, changes).subquery("entries")


def audit_page(connection: Connection, *, after: str | None = None, limit: int) -> AuditPage:
    entries = _entries()
    rows, following = newest_page(connection, select(entries), entries, after=after, limit=limit)
    return AuditPage(tuple(to_model(AuditEntry, row._mapping) for row in rows), following)
