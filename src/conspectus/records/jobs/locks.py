"""Locks between processes: leases in the database, and file locks beside a store in a folder.

Times of leases are the database's, independent of the clocks of machines. A lease that is not renewed
expires; the next holder has a greater fence, by which a paused process finds out that it lost the lease.
"""

import asyncio
import errno
import fcntl
import os
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, insert, or_, select, update

from conspectus.deferred import dataclass
from conspectus.errors import Conflict, LockLost, StorageError
from conspectus.ports.jobs import Lock
from conspectus.private import open_lock
from conspectus.records.core.dialects import DatabaseTime, time_in
from conspectus.records.core.transactions import Transactions
from conspectus.records.tables.jobs import leases

RENEWALS = 3
"""Number of renewals of a lease per its duration."""


class Leases:
    """Leases in one database, each for `seconds` unless it is renewed."""

    def __init__(self, transactions: Transactions, *, seconds: float) -> None:
        self._transactions = transactions
        self._seconds = seconds
        self._holder = f"{socket.gethostname()} {os.getpid()}"

    def turn(self, name: str) -> AbstractAsyncContextManager[Lock]:
        """Return a block that holds the lease of that name, if it is free."""
        return Lease(self._transactions, name, seconds=self._seconds, holder=self._holder)


class Lease:
    """One attempt to acquire a lease. `holder` is informative; the fence is unique for each holder."""

    def __init__(self, transactions: Transactions, name: str, *, seconds: float, holder: str) -> None:
        self.fence = 0
        self._beside = transactions.autocommitted
        self._name = name
        self._seconds = seconds
        self._holder = holder
        self._lost = False
        self._cancelled_before = 0
        self._renewing: asyncio.Task[None] | None = None

    def __bool__(self) -> bool:
        """Return whether the lease was acquired."""
        return self._renewing is not None

    async def confirm(self) -> None:
        """Raise LockLost if another process has held the lease since."""
        held = select(leases.c.name).where(self._is_mine())
        if self._lost or not await self._beside(lambda connection: connection.execute(held).all()):
            raise LockLost(self._name)

    async def __aenter__(self) -> Lock:
        """Acquire the lease if it is free. Raises StorageError if the database fails."""
        asked = time.monotonic()
        work = partial(_take, name=self._name, seconds=self._seconds, holder=self._holder)
        with suppress(Conflict):
            fence = await self._beside(work)
            self.fence = fence or 0
        task = asyncio.current_task()
        if self.fence and task is not None:
            self._cancelled_before = task.cancelling()
            self._renewing = asyncio.create_task(self._renew(task, asked + self._seconds))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Release the lease. Raises LockLost instead of a cancellation caused by its loss."""
        task = asyncio.current_task()
        if self._renewing is None or task is None:
            return
        self._renewing.cancel()
        await asyncio.wait({self._renewing})
        if not self._lost:
            # A lease that cannot be released expires.
            with suppress(StorageError):
                held = delete(leases).where(self._is_mine())
                await self._beside(lambda connection: connection.execute(held).close())
        elif task.uncancel() <= self._cancelled_before and kind in (None, asyncio.CancelledError):
            raise LockLost(self._name) from fault

    async def _renew(self, working: asyncio.Task[Any], until: float) -> None:
        """Renew the lease until another process holds it, or may hold it because the database fails."""
        pause, held = self._seconds / RENEWALS, True
        while held:
            await asyncio.sleep(pause)
            asked = time.monotonic()
            try:
                async with asyncio.timeout(max(until - asked, pause)):
                    held = await self._beside(self._prolong)
                until = asked + self._seconds
            except (StorageError, TimeoutError):
                held = time.monotonic() < until
        self._lost = True
        working.cancel()

    def _is_mine(self) -> ColumnElement[bool]:
        return and_(leases.c.name == self._name, leases.c.fence == self.fence)

    def _prolong(self, connection: Connection) -> bool:
        """Renew the lease. Returns whether it is held; an expired one counts if no other process took it."""
        held = update(leases).where(self._is_mine()).values(until=time_in(self._seconds))
        return connection.execute(held).rowcount == 1


def _take(connection: Connection, name: str, seconds: float, holder: str) -> int | None:
    """Return the fence of the acquired lease; None if it is held. Raises Conflict if another is first."""
    now, until = DatabaseTime(), time_in(seconds)
    # An expiry beyond the maximum is left over from before the clock was set back.
    free = and_(leases.c.name == name, or_(leases.c.until <= now, leases.c.until > until))
    values = {"holder": holder, "until": until}
    taken = update(leases).where(free).values(**values, fence=leases.c.fence + 1)
    fence: int | None = connection.execute(taken.returning(leases.c.fence)).scalar()
    known = exists(select(leases.c.name).where(leases.c.name == name))
    if fence is None and not connection.execute(select(known)).scalar_one():
        # The fence of a released lease is unknown, but not greater than the clock.
        given = insert(leases).values(**values, name=name, fence=now)
        fence = connection.execute(given.returning(leases.c.fence)).scalar_one()
    return fence


@dataclass(frozen=True, slots=True)
class FileHold:
    """A file lock, which the system holds for a process until it exits, even while it is paused."""

    mine: bool
    fence: int = 0

    def __bool__(self) -> bool:
        """Return whether this process holds the lock."""
        return self.mine

    async def confirm(self) -> None:
        """Do nothing: the lock cannot be lost."""


@asynccontextmanager
async def turn(lock: Path) -> AsyncIterator[Lock]:
    """Acquire a file lock if it is free, and release it at the end of the block or of the process."""
    file = _opened(lock)
    if file is None:
        yield FileHold(mine=False)
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield FileHold(mine=False)
            return
        yield FileHold(mine=True)


def _opened(lock: Path) -> TextIO | None:
    """Return the lock file; None in a folder that this process cannot write to, where it has no work."""
    try:
        return os.fdopen(open_lock(lock), "w")
    except OSError as fault:
        if fault.errno in {errno.EROFS, errno.EACCES}:
            return None
        raise
