"""Transactions in threads: one writes, so that writers of this process queue in order, and a few read.

A whole transaction is one job of one thread, which costs a tenth of a millisecond; the asynchronous drivers
cost that for every statement.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from copy import copy
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

from sqlalchemy import Connection, Engine

from conspectus.errors import StorageError
from conspectus.records import row_security

Result = TypeVar("Result")
Finish: TypeAlias = Callable[[Connection], None]


class Database(Protocol):
    """What differs between the databases that records may lie in.

    Transactions of `reading` have one unchanging view; those of `writing` also have the write lock, so that
    they follow one after the other, in all processes. `beside` is for statements that need neither: each
    counts by itself, and waits for no writer where the database allows that.
    """

    name: str
    readers: int
    reading: Engine
    writing: Engine
    beside: Engine

    def prepare(self) -> None:
        """What has to be done before the first transaction."""
        ...

    def migrating(self) -> AbstractContextManager[Connection]:
        """A transaction that no other process migrates in."""
        ...

    def translated(self) -> AbstractContextManager[None]:
        """The one border where errors of database and driver become ours."""
        ...

    def problems(self, connection: Connection) -> list[str]:
        """What the database itself finds wrong."""
        ...

    def erase(self) -> None:
        """Leave nothing of what was deleted in any file. Raises StorageBusy."""
        ...

    def may_repeat(self, fault: StorageError, *, attempt: int, undone: bool) -> bool:
        """Whether a transaction that failed so may succeed when it is run again.

        `undone` says that nothing of it can have stayed: it was not committed, or only read.
        """
        ...

    def told(self, fault: StorageError, *, undone: bool) -> StorageError:
        """The fault as the caller is told of it, with `undone` as above."""
        ...


class Transactions:
    """Runs functions of a connection in a transaction each, off the event loop."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._readers = ThreadPoolExecutor(database.readers, thread_name_prefix="records-read")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="records-write")
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="records-beside")

        self._finish: Finish | None = None
        self._noted: ContextVar[Finish | None] = ContextVar("noted", default=None)
        self._walled = False
        self._person: str | None = None

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
        return await self._run(self._readers, partial(transact, self.database, self.database.reading, seen))

    def before_commit(self, finish: Finish) -> None:
        """Do this, too, at the end of each transaction that writes, which it may still undo."""
        self._finish = finish

    @contextmanager
    def noting(self, note: Finish) -> Iterator[None]:
        """Do the same in what this block, and whatever it starts, writes: to be known exactly if it was."""
        token = self._noted.set(note)
        try:
            yield
        finally:
            self._noted.reset(token)

    async def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run with the write lock; committed when this returns, undone when it raises."""
        finishes = [each for each in (self._noted.get(), self._finish) if each is not None]
        whole = partial(_finished, work, finishes) if finishes else work
        return await self._run(self._writer, partial(transact, self.database, self.database.writing, whole))

    async def beside(self, work: Callable[[Connection], Result]) -> Result:
        """Run statements that count one by one, whatever this process or another writes meanwhile."""
        return await self._run(self._beside, partial(transact, self.database, self.database.beside, work))

    async def alone(self, work: Callable[[], Result]) -> Result:
        """Run in the place of a writer, without a transaction."""
        return await self._run(self._writer, partial(guarded, self.database, work))

    async def close(self) -> None:
        """Let running work finish, then close every connection."""
        await asyncio.to_thread(self.shut)

    def shut(self) -> None:
        """The same, for callers that may block."""
        self._beside.shutdown()
        self._writer.shutdown()
        self._readers.shutdown()
        self.database.reading.dispose()

    @staticmethod
    async def _run(threads: ThreadPoolExecutor, job: Callable[[], Result]) -> Result:
        try:
            future = asyncio.get_running_loop().run_in_executor(threads, job)
        except RuntimeError as error:
            raise StorageError("the store is closed") from error
        return await future


def _as_person(person: str, work: Callable[[Connection], Result], connection: Connection) -> Result:
    row_security.read_as(connection, person)
    return work(connection)


ATTEMPTS = 5
PAUSE_SECONDS = 0.02


def _finished(
    work: Callable[[Connection], Result], finishes: Sequence[Finish], connection: Connection
) -> Result:
    result = work(connection)
    for finish in finishes:
        finish(connection)
    return result


def transact(database: Database, engine: Engine, work: Callable[[Connection], Result]) -> Result:
    """Run with a connection in one transaction, and again where the database undid it for another's sake."""
    for attempt in range(1, ATTEMPTS + 1):
        undone = True
        try:
            with database.translated(), engine.begin() as connection:
                undone = engine is not database.beside
                result = work(connection)
                undone = engine is database.reading
            return result
        except StorageError as fault:
            if attempt == ATTEMPTS or not database.may_repeat(fault, attempt=attempt, undone=undone):
                raise database.told(fault, undone=undone) from fault.__cause__
            # The other one, for whose sake this was undone, needs a moment to go first.
            time.sleep(PAUSE_SECONDS * (attempt - 1))
    raise AssertionError("the last attempt returns or raises")


def guarded(database: Database, work: Callable[[], Result]) -> Result:
    """Run with the errors of the database as ours."""
    with database.translated():
        return work()
