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
from conspectus.records.tables.answers import answers
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
    """Return the locks for the deletion of a user, and the function that deletes it under them.

    It changes the names of the user's collections, and alerts and feedback in collections of others.
    """
    account = user_by_id(connection, user)
    heir = None if transfer_to is None else user_by_id(connection, transfer_to)
    locks: set[str | None] = {
        row_lock(users, user_account.id) for user_account in (account, heir) if user_account is not None
    }
    for table, owner in ((alerts, alerts.c.owner), (feedback, feedback.c.user)):
        locks |= set(connection.execute(select(table.c.collection).where(owner == user)).scalars())
    owned = connection.execute(
        select(collections.c.id, collections.c.name).where(collections.c.owner == user)
    ).all()
    for row in owned:
        locks |= collection_locks(row.id)
        if heir is not None:
            locks.add(name_lock(collections, _new_name(row.name, account, heir)))
    deletion = partial(_delete_user, account=account, heir=heir, owned=owned, change=change, purge=purge)
    return locks, deletion


def _delete_user(
    connection: Connection,
    *,
    account: User,
    heir: User | None,
    owned: Sequence[Row[*tuple[Any, ...]]],
    change: Change,
    purge: bool,
) -> None:
    note_change(connection, change)
    if purge:
        _erase_name(connection, account.id)
    user = account.id
    if owned and heir is None:
        raise Conflict("user", account.name, "owns collections; give `transfer_to`")
    if heir is not None:
        for row in owned:
            _transfer_collection(connection, row, account, heir)
        for table in (jobs, connections):
            connection.execute(update(table).where(table.c.owner == user).values(owner=heir.id))
    connection.execute(update(events).where(events.c.by == account.name).values(by=user))
    connection.execute(delete(alerts).where(alerts.c.owner == user))
    forget_feedback(connection, user)
    connection.execute(delete(answers).where(answers.c.user == user))
    connection.execute(delete(audit).where(or_(audit.c.actor == user, audit.c.viewed_as == user)))
    connection.execute(delete(users).where(users.c.id == user))


def _erase_name(connection: Connection, user: UserId) -> None:
    """Leave only the id of a user in the log of changes."""
    rows = update(account_changes)
    own_keys = select(keys.c.id).where(keys.c.user == user)
    is_subject = or_(account_changes.c.subject == user, account_changes.c.subject.in_(own_keys))
    connection.execute(rows.where(account_changes.c.actor == user).values(actor_name=""))
    connection.execute(rows.where(is_subject).values(subject_name=""))


def _transfer_collection(
    connection: Connection, row: Row[*tuple[Any, ...]], account: User, heir: User
) -> None:
    name = _new_name(row.name, account, heir)
    same_name = select(collections.c.id).where(collections.c.name == name, collections.c.id != row.id)
    other_user = select(users.c.id).where(users.c.name == name.partition("/")[0], users.c.id != heir.id)
    has_prefix_of_other = "/" in name and connection.execute(other_user).first() is not None
    if has_prefix_of_other or connection.execute(same_name).first() is not None:
        raise Conflict("collection", name, "is taken; rename one of the two")
    row_update = update(collections).where(collections.c.id == row.id)
    connection.execute(row_update.values(owner=heir.id, name=name))


def _new_name(name: str, account: User, heir: User) -> str:
    """Return the name of a collection for its new owner."""
    bare = name.removeprefix(f"{account.name}/")
    return bare if heir.owner else f"{heir.name}/{bare}"
