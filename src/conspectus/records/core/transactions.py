"""Transactions in threads: one writes, so that writers of this process queue in order, and a few read.

A whole transaction is one job of one thread, which costs a tenth of a millisecond; the asynchronous drivers
cost that for every statement.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from functools import partial
from typing import Final, TypeVar

from sqlalchemy import Connection

from conspectus.errors import ConspectusError, ForkedEngine, StorageError
from conspectus.ports.jobs import Commits
from conspectus.records.core import row_security
from conspectus.records.core.database import Database, guarded, transact
from conspectus.records.core.write_queue import Finish, WriteQueue

Result = TypeVar("Result")

FEW: Final = 50
"""A work on more rows than these is a long one."""


class Transactions:
    """Runs functions of a connection in a transaction each, off the event loop."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._readers = ThreadPoolExecutor(database.readers, thread_name_prefix="records-read")
        self._writer = WriteQueue(database)
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="records-beside")
        self._noted: ContextVar[Finish | None] = ContextVar("noted", default=None)
        self._watching: ContextVar[Commits | None] = ContextVar("watching", default=None)
        self._walled = False
        self._person: str | None = None
        self._process = os.getpid()

    def wall_in(self) -> None:
        """Have the database itself keep from a person's reads what the person may not see."""
        with self.database.migrating() as connection:
            row_security.install(connection)
        self._walled = True

    def seen_by(self, person: str) -> "Transactions":
        """The same, with reads for a person, if the database is walled in."""
        if not self._walled:
            return self
        view = copy(self)
        view._person = person
        return view

    async def read(self, work: Callable[[Connection], Result]) -> Result:
        """Run with one unchanging view of the data."""
        seen = work if self._person is None else partial(_as_person, self._person, work)
        job = partial(transact, self.database, self.database.reading, seen)
        return await self._answer(partial(self._readers.submit, job))

    def before_commit(self, finish: Finish) -> None:
        """Do this, too, at the end of each transaction that writes, which it may still undo."""
        self._writer.finish = finish

    @contextmanager
    def noting(self, note: Finish) -> Iterator[None]:
        """Do the same in what this block, and whatever it starts, writes: to be known exactly if it was."""
        token = self._noted.set(note)
        try:
            yield
        finally:
            self._noted.reset(token)

    @contextmanager
    def watching(self) -> Iterator[Commits]:
        """Count the transactions by which this block, and whatever it starts, writes."""
        commits = Commits()
        token = self._watching.set(commits)
        try:
            yield commits
        finally:
            self._watching.reset(token)

    async def write(self, work: Callable[[Connection], Result], *, long: bool = False) -> Result:
        """Run with the write lock; committed when this returns, undone when it raises.

        Works that wait at the same moment share a transaction, unless they are `long`; none may rely on
        being alone in it.
        """
        note = self._noted.get()
        whole = work if note is None else partial(_and_noted, work, note)
        commits = self._watching.get() or Commits()
        commits.possible += 1
        try:
            return await self._answer(partial(self._writer.write, whole, long=long))
        except ConspectusError:
            commits.possible -= 1
            raise

    async def beside(self, work: Callable[[Connection], Result]) -> Result:
        """Run statements that count one by one, whatever this process or another writes meanwhile."""
        job = partial(transact, self.database, self.database.beside, work)
        return await self._answer(partial(self._beside.submit, job))

    async def alone(self, work: Callable[[], Result]) -> Result:
        """Run in the place of a writer, without a transaction."""
        return await self._answer(partial(self._writer.submit, partial(guarded, self.database, work)))

    async def close(self) -> None:
        """Let running work finish, then close every connection."""
        await asyncio.to_thread(self.shut)

    async def _answer(self, start: Callable[[], Future[Result]]) -> Result:
        if os.getpid() != self._process:
            raise ForkedEngine
        try:
            future = start()
        except RuntimeError as error:
            raise StorageError("the store is closed") from error
        return await asyncio.wrap_future(future)

    def shut(self) -> None:
        """The same, for callers that may block."""
        self._beside.shutdown()
        self._writer.close()
        self._readers.shutdown()
        self.database.reading.dispose()


def _as_person(person: str, work: Callable[[Connection], Result], connection: Connection) -> Result:
    row_security.read_as(connection, person)
    return work(connection)


def _and_noted(work: Callable[[Connection], Result], note: Finish, connection: Connection) -> Result:
    result = work(connection)
    note(connection)
    return result
