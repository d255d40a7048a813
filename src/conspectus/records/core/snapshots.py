"""One transaction for several reads of a task."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from threading import BoundedSemaphore, Lock
from typing import TypeVar

from sqlalchemy import Connection

from conspectus.errors import StorageError
from conspectus.records.core.database import Database, run_guarded

Result = TypeVar("Result")


class Snapshots:
    """Transactions of several reads each. They hold at most half of the connections for reads."""

    def __init__(self, database: Database, readers: Executor) -> None:
        self._database = database
        self._readers = readers
        self._free = BoundedSemaphore(max(database.readers // 2, 1))
        self._shared: ContextVar[Snapshot | None] = ContextVar("shared", default=None)

    @contextmanager
    def share(self) -> Iterator[None]:
        """Have the reads of this task see one snapshot until it writes, if a connection is free for that."""
        if self._database.inline is not None or not self._free.acquire(blocking=False):
            yield
            return
        token = self._shared.set(Snapshot(self._database, self._free.release))
        try:
            yield
        finally:
            self.end_current()
            self._shared.reset(token)

    def current(self) -> "Snapshot | None":
        """Return the snapshot of this task. Tasks that it starts read for themselves."""
        shared = self._shared.get()
        return shared if shared is not None and shared.includes_task(asyncio.current_task()) else None

    def end_current(self) -> None:
        """End the snapshot, so that the next reads see newer data. Nobody waits for its rollback."""
        shared = self._shared.get()
        if shared is None or shared.has_ended:
            return
        shared.has_ended = True
        try:
            self._readers.submit(shared.end)
        except RuntimeError:
            shared.end()


class Snapshot:
    """A read transaction of one task, which ends with its first error."""

    def __init__(self, database: Database, release: Callable[[], None]) -> None:
        self.has_ended = False
        self._task = asyncio.current_task()
        self._database = database
        self._connection: Connection | None = None
        self._lock = Lock()
        self._resources = ExitStack()
        self._resources.callback(release)

    def includes_task(self, task: asyncio.Task[object] | None) -> bool:
        """Return whether reads of a task are part of it."""
        return not self.has_ended and task is self._task

    def read(self, work: Callable[[Connection], Result]) -> tuple[Result] | None:
        """Return the result; None if the database ended the transaction, and another one has to read."""
        with self._lock, ExitStack() as failed:
            failed.callback(self._end)
            try:
                with self._database.convert_errors():
                    result = work(self._open_connection())
            except StorageError:
                return None
            failed.pop_all()
            return (result,)

    def end(self) -> None:
        """Roll back and return the connection, unless that is done."""
        with self._lock:
            self._end()

    def _open_connection(self) -> Connection:
        if self._connection is None:
            self._connection = self._database.reading.connect()
            self._resources.callback(run_guarded, self._database, self._connection.close)
            self._connection.begin()
        return self._connection

    def _end(self) -> None:
        self.has_ended = True
        # Nothing is lost with a read that cannot be rolled back, because its connection is dead.
        with suppress(StorageError):
            self._resources.close()
