"""The deletion of a user, whose collections get another owner."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, Row, delete, or_, select, update

from conspectus.errors import Conflict
from conspectus.model.access import User
from conspectus.model.ids import UserId
from conspectus.records.accounts.audit import Change, note_change
from conspectus.records.accounts.users import user_by_id
from conspectus.records.core.lock_names import Locks, collection_locks, name_lock, row_lock
from conspectus.records.feedback import forget_feedback
from conspectus.records.tables.core import account_changes, audit, collections, feedback, keys, users
from conspectus.records.tables.graph import events
from conspectus.records.tables.jobs import connections, jobs
from conspectus.records.tables.streams import alerts


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
    leaving = user_by_id(connection, user)
    follower = None if transfer_to is None else user_by_id(connection, transfer_to)
    locks: set[str | None] = {
        row_lock(users, account.id) for account in (leaving, follower) if account is not None
    }
    for table, owner in ((alerts, alerts.c.owner), (feedback, feedback.c.user)):
        locks |= set(connection.execute(select(table.c.collection).where(owner == user)).scalars())
    owned = connection.execute(
        select(collections.c.id, collections.c.name).where(collections.c.owner == user)
    ).all()
    for row in owned:
        locks |= collection_locks(row.id)
        if follower is not None:
            locks.add(name_lock(collections, _new_name(row.name, leaving, follower)))
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
    note_change(connection, change)
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


def _hand_over(connection: Connection, row: Row[*tuple[Any, ...]], leaving: User, follower: User) -> None:
    name = _new_name(row.name, leaving, follower)
    same_name = select(collections.c.id).where(collections.c.name == name, collections.c.id != row.id)
    anothers = select(users.c.id).where(users.c.name == name.partition("/")[0], users.c.id != follower.id)
    prefixed = "/" in name and connection.execute(anothers).first() is not None
    if prefixed or connection.execute(same_name).first() is not None:
        raise Conflict("collection", name, "is taken; rename one of the two")
    row_update = update(collections).where(collections.c.id == row.id)
    connection.execute(row_update.values(owner=follower.id, name=name))


def _new_name(name: str, leaving: User, follower: User) -> str:
    """Return the name of a collection for its new owner."""
    bare = name.removeprefix(f"{leaving.name}/")
    return bare if follower.owner else f"{follower.name}/{bare}"
