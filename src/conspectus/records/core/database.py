"""What a database has to offer, and how one transaction is run in it."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from sqlalchemy import Connection, Engine

from conspectus.errors import StorageError

Result = TypeVar("Result")

ATTEMPTS = 5
PAUSE_SECONDS = 0.02


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
