"""Counts of what was given this minute, one row for each name, shared by all processes."""

from functools import partial

from sqlalchemy import Connection, case, insert, or_, select, update

from conspectus.errors import Conflict
from conspectus.ports.rate_counters import RateCount
from conspectus.records.core.clock import MICROSECONDS, DatabaseTime
from conspectus.records.core.transactions import Transactions
from conspectus.records.tables.locks import allowances

MINUTE = 60 * MICROSECONDS


class SqlRateCounters:
    """The port `Allowances` by statements that wait for no writer."""

    def __init__(self, transactions: Transactions) -> None:
        self._beside = transactions.beside

    async def take(self, name: str, count: int, *, most: int) -> RateCount:
        """Take so much of what a name may have this minute: all of it, or nothing."""
        work = partial(_take, name=name, count=count, most=most)
        try:
            return await self._beside(work)
        except Conflict:
            # Another process was the first to take for this name.
            return await self._beside(work)


def _take(connection: Connection, name: str, count: int, most: int) -> RateCount:
    now: int = connection.execute(select(DatabaseTime())).scalar_one()
    minute, left = now // MINUTE, (MINUTE - now % MINUTE) / MICROSECONDS
    here = allowances.c.name == name
    if connection.execute(select(allowances.c.name).where(here)).first() is None:
        connection.execute(insert(allowances).values(name=name, minute=minute, taken=0))
    same = allowances.c.minute == minute
    more = case((same, allowances.c.taken + count), else_=count)
    enough = update(allowances).where(here, or_(~same, allowances.c.taken + count <= most))
    return RateCount(connection.execute(enough.values(minute=minute, taken=more)).rowcount == 1, left)
