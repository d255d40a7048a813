"""Users, groups, keys and grants on the same database as everything else."""

from collections.abc import Sequence
from functools import partial

from sqlalchemy import Connection, or_, select

from conspectus.model.access import Grant, Grantee
from conspectus.model.ids import UserId
from conspectus.records.account_tables import grants, members
from conspectus.records.store import Transactions
from conspectus.text.times import from_microseconds


class SqlAccounts:
    """Every method of the port `Accounts` as one transaction."""

    def __init__(self, transactions: Transactions) -> None:
        self._read = transactions.read
        self._write = transactions.write

    async def held_by(self, user: UserId) -> Sequence[Grant]:
        """All grants that a user has, directly or through groups."""
        return await self._read(partial(_held_by, user=user))


def _held_by(connection: Connection, user: UserId) -> list[Grant]:
    own = select(members.c.group).where(members.c.user == user)
    chosen = select(grants).where(or_(grants.c.user == user, grants.c.group.in_(own)))
    return [
        Grant(
            row.collection,
            row.source,
            Grantee("user", row.user) if row.user is not None else Grantee("group", row.group),
            row.role,
            from_microseconds(row.created),
        )
        for row in connection.execute(chosen.order_by(grants.c.id))
    ]
