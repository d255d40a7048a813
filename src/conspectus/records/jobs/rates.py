"""Counters of requests a minute."""

from functools import partial

from sqlalchemy import Connection, case, insert, or_, select, update

from conspectus.errors import Conflict
from conspectus.ports.jobs import RateCount
from conspectus.records.core.database_clock import MICROSECONDS, DatabaseTime
from conspectus.records.core.transactions import Transactions
from conspectus.records.tables.jobs import allowances

MINUTE_MICROSECONDS = 60 * MICROSECONDS


class SqlRateCounters:
    """The port `RateCounters`, with statements that do not wait for writers."""

    def __init__(self, transactions: Transactions) -> None:
        self._autocommit = transactions.autocommit

    async def take(self, name: str, count: int, *, maximum: int) -> RateCount:
        work = partial(_take, name=name, count=count, maximum=maximum)
        try:
            return await self._autocommit(work)
        except Conflict:
            # Another process was the first to count for this name.
            return await self._autocommit(work)


def _take(connection: Connection, name: str, count: int, maximum: int) -> RateCount:
    now: int = connection.execute(select(DatabaseTime())).scalar_one()
    minute = now // MINUTE_MICROSECONDS
    seconds_left = (MINUTE_MICROSECONDS - now % MINUTE_MICROSECONDS) / MICROSECONDS
    has_name = allowances.c.name == name
    if connection.execute(select(allowances.c.name).where(has_name)).first() is None:
        connection.execute(insert(allowances).values(name=name, minute=minute, used=0))
    is_this_minute = allowances.c.minute == minute
    used = case((is_this_minute, allowances.c.used + count), else_=count)
    if_enough = update(allowances).where(has_name, or_(~is_this_minute, allowances.c.used + count <= maximum))
    is_taken = connection.execute(if_enough.values(minute=minute, used=used)).rowcount == 1
    return RateCount(is_taken, seconds_left)
