"""Locks between processes: leases in the database, and file locks beside a store in a folder.

Times of leases are the database's, independent of the clocks of machines. A lease that is not renewed
expires; the next holder has a greater fence, by which a paused process finds out that it lost the lease.
A holder that names a session of PostgreSQL is dead when no connection holds the lock of that session, which
the server releases with the connections of a killed process. Its lease is taken after `GONE_SECONDS`. Through
a pooler no connection belongs to a process, so a lease there lasts `POOLED_SECONDS` at most.
"""

import asyncio
import errno
import fcntl
import os
import re
import socket
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, or_, select, update

from conspectus.deferred import dataclass
from conspectus.errors import Conflict, LockLost, StorageError
from conspectus.ports.jobs import Lock
from conspectus.private import open_lock
from conspectus.records.core.database_clock import DatabaseTime, time_in
from conspectus.records.core.server_sessions import DIRECT, is_session_alive
from conspectus.records.core.transactions import Transactions
from conspectus.records.tables.jobs import leases

RENEWALS = 5
"""Number of renewals of a lease per its duration."""
GONE_SECONDS = 2.0
"""How long the session of a holder must be gone. A living process connects again sooner."""
POOLED_SECONDS = 5.0
"""The longest lease of a process that nobody sees end. It is renewed every second."""
_SESSION = re.compile(r" @(\d+) ")


class Leases:
    """Leases in one database, each for `seconds` unless it is renewed."""

    def __init__(self, transactions: Transactions, *, seconds: float) -> None:
        self._transactions = transactions
        self._seconds = seconds
        self._gone: dict[tuple[str, int], float] = {}

    def turn(self, name: str) -> AbstractAsyncContextManager[Lock]:
        """Return a block that holds the lease of that name, if it is free."""
        return Lease(self._transactions, name, seconds=self._seconds, gone=self._gone)


class Lease:
    """One attempt to acquire a lease. The fence is unique for each holder.

    `gone` has the leases of holders whose session was gone, each with the time when that was first seen.
    """

    def __init__(
        self, transactions: Transactions, name: str, *, seconds: float, gone: dict[tuple[str, int], float]
    ) -> None:
        self.fence = 0
        self._autocommit = transactions.autocommit
        self._session = transactions.database.session
        self._name = name
        self._seconds = seconds
        self._gone = gone
        self._lost = False
        self._cancelled_before = 0
        self._renewing: asyncio.Task[None] | None = None

    def __bool__(self) -> bool:
        """Return whether the lease was acquired."""
        return self._renewing is not None

    async def confirm(self) -> None:
        """Raise LockLost if another process has held the lease since."""
        own_lease = select(leases.c.name).where(self._is_mine())
        if self._lost or not await self._autocommit(lambda connection: connection.execute(own_lease).all()):
            raise LockLost(self._name)

    async def __aenter__(self) -> Lock:
        """Acquire the lease if it is free. Raises StorageError if the database fails."""
        began = time.monotonic()
        with suppress(Conflict):
            self.fence = await self._autocommit(self._take)
        task = asyncio.current_task()
        if self.fence and task is not None:
            self._cancelled_before = task.cancelling()
            self._renewing = asyncio.create_task(self._renew(task, began + self._seconds))
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
                own_lease = delete(leases).where(self._is_mine())
                await self._autocommit(lambda connection: connection.execute(own_lease).close())
        elif task.uncancel() <= self._cancelled_before and kind in (None, asyncio.CancelledError):
            raise LockLost(self._name) from fault

    async def _renew(self, working: asyncio.Task[Any], until: float) -> None:
        """Renew the lease until another process holds it, or may hold it because the database fails."""
        pause, is_held = self._seconds / RENEWALS, True
        while is_held:
            await asyncio.sleep(pause)
            began = time.monotonic()
            try:
                async with asyncio.timeout(max(until - began, pause)):
                    is_held = await self._autocommit(self._prolong)
                until = began + self._seconds
            except (StorageError, TimeoutError):
                is_held = time.monotonic() < until
        self._lost = True
        working.cancel()

    def _take(self, connection: Connection) -> int:
        """Return the fence of the acquired lease; 0 if it is held. Raises Conflict if another is first."""
        # An expiry beyond the maximum is left over from before the clock was set back.
        now = DatabaseTime()
        expired = or_(leases.c.until <= now, leases.c.until > time_in(self._seconds))
        if self._session is not None and DIRECT not in connection.info:
            self._seconds = min(self._seconds, POOLED_SECONDS)
        until = time_in(self._seconds)
        values = {"holder": self._holder(connection), "until": until}
        if fence := self._replace(connection, expired, values):
            return fence
        stored = select(leases.c.holder, leases.c.fence).where(leases.c.name == self._name)
        row = connection.execute(stored).one_or_none()
        if row is None:
            # The fence of a released lease is unknown, but not greater than the clock.
            added = insert(leases).values(**values, name=self._name, fence=now)
            return int(connection.execute(added.returning(leases.c.fence)).scalar_one())
        if self._is_abandoned(connection, row.holder, row.fence):
            return self._replace(connection, leases.c.fence == row.fence, values)
        return 0

    def _replace(
        self, connection: Connection, condition: ColumnElement[bool], values: Mapping[str, object]
    ) -> int:
        replaced = update(leases).where(leases.c.name == self._name, condition)
        replaced = replaced.values(**values, fence=leases.c.fence + 1)
        return connection.execute(replaced.returning(leases.c.fence)).scalar() or 0

    def _holder(self, connection: Connection) -> str:
        """Name this process, and its session if the server tells others when it ends."""
        session = f"@{self._session} " if self._session is not None and DIRECT in connection.info else ""
        return f"{socket.gethostname()} {session}{os.getpid()}"

    def _is_abandoned(self, connection: Connection, holder: str, fence: int) -> bool:
        """Return whether the session of the holder has been gone for long enough."""
        session, lease = _SESSION.search(holder), (self._name, fence)
        if session is None or is_session_alive(connection, int(session[1])):
            self._gone.pop(lease, None)
            return False
        return time.monotonic() - self._gone.setdefault(lease, time.monotonic()) >= GONE_SECONDS

    def _is_mine(self) -> ColumnElement[bool]:
        return and_(leases.c.name == self._name, leases.c.fence == self.fence)

    def _prolong(self, connection: Connection) -> bool:
        """Renew the lease. Returns whether it is held; an expired one counts if no other process took it."""
        own_lease = update(leases).where(self._is_mine()).values(until=time_in(self._seconds))
        return connection.execute(own_lease).rowcount == 1


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
    file = _open_lock_file(lock)
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


def _open_lock_file(lock: Path) -> TextIO | None:
    """Return the lock file; None in a folder that this process cannot write to, where it has no work."""
    try:
        return os.fdopen(open_lock(lock), "w")
    except OSError as fault:
        if fault.errno in {errno.EROFS, errno.EACCES}:
            return None
        raise
