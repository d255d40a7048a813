"""The writer of a process: what waits for the write lock at the same moment shares a transaction.

Each work has a savepoint of its own, so that one that fails is undone by itself. What a transaction costs
besides its works (waiting for the lock, taking changes into an index, the commit that reaches the disk) is
paid once.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final, TypeAlias

from sqlalchemy import Connection, NestedTransaction
from sqlalchemy.exc import SQLAlchemyError

from conspectus.errors import ConspectusError, StorageError
from conspectus.records.core.database import Database, transact

Work: TypeAlias = Callable[[Connection], Any]
Finish: TypeAlias = Callable[[Connection], None]
_Ended: TypeAlias = tuple[Any, ConspectusError | None]

MOST: Final = 32
"""PostgreSQL keeps up to 64 savepoints of a transaction at hand for those who read meanwhile."""
SECONDS: Final = 0.25
"""After so long the rest is left to the next transaction, so that other processes have their turn."""


@dataclass(slots=True, eq=False)
class _Waiting:
    work: Work
    long: bool
    answer: "Future[Any] | None" = None
    ended: _Ended | None = None

    def is_wanted(self) -> bool:
        return self.answer is not None and not self.answer.cancelled()


class WriteQueue:
    """One thread, in which works are done in the order in which they came."""

    def __init__(self, database: Database) -> None:
        self.finish: Finish | None = None
        """Done at the end of each transaction, which it may still undo."""
        self._database = database
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="records-write")
        self._waiting: dict[_Waiting, None] = {}

    def write(self, work: Work, *, long: bool) -> "Future[Any]":
        """Do it in a transaction with the write lock, which it shares with nobody if it is `long`.

        Raises RuntimeError when the writer is closed.
        """
        waiting = _Waiting(work, long)
        self._thread.submit(self._share)
        self._waiting[waiting] = None
        waiting.answer = self._thread.submit(self._end, waiting)
        waiting.answer.add_done_callback(lambda _: self._waiting.pop(waiting, None))
        return waiting.answer

    def submit(self, job: Callable[[], Any]) -> "Future[Any]":
        """Do something else in the place of a work. Raises RuntimeError when the writer is closed."""
        return self._thread.submit(job)

    def close(self) -> None:
        """Let all that waits be done."""
        self._thread.shutdown()

    def _share(self) -> None:
        """Do what waits together; a single one, and those beside a fault of the program, are done alone."""
        works = list(islice(self._shareable(), MOST))
        if len(works) < 2:
            return
        try:
            ended = transact(self._database, self._database.writing, partial(self._together, works))
        except StorageError as fault:
            ended = [(None, fault)] * len(works)
        for waiting, each in zip(works, ended, strict=False):
            waiting.ended = each

    def _shareable(self) -> Iterator[_Waiting]:
        for waiting in list(self._waiting):
            if waiting.long:
                return
            if waiting.ended is None and waiting.is_wanted():
                yield waiting

    def _together(self, works: Sequence[_Waiting], connection: Connection) -> list[_Ended]:
        ended: list[_Ended] = []
        begun = time.monotonic()
        for waiting in works:
            ended.append(self._one(waiting.work, connection))
            if time.monotonic() - begun > SECONDS:
                break
        self._finish(connection)
        return ended

    def _one(self, work: Work, connection: Connection) -> _Ended:
        savepoint = connection.begin_nested()
        try:
            with self._database.translated():
                result = work(connection)
        except ConspectusError as fault:
            if isinstance(fault, StorageError) and self._database.may_repeat(fault, attempt=1, undone=True):
                raise
            _undo(savepoint, fault)
            return None, fault
        savepoint.commit()
        return result, None

    def _end(self, waiting: _Waiting) -> Any:
        if waiting.ended is None:
            return transact(self._database, self._database.writing, partial(self._alone, waiting.work))
        result, fault = waiting.ended
        if fault is not None:
            raise fault
        return result

    def _alone(self, work: Work, connection: Connection) -> Any:
        result = work(connection)
        self._finish(connection)
        return result

    def _finish(self, connection: Connection) -> None:
        if self.finish is not None:
            self.finish(connection)


def _undo(savepoint: NestedTransaction, fault: ConspectusError) -> None:
    """Undo one work. Raises its fault where the database has undone the others, too."""
    try:
        savepoint.rollback()
    except SQLAlchemyError as error:
        raise fault from error
