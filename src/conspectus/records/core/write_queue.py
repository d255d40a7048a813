"""An ordered queue of writes. Those that wait at the same time share a transaction."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import field
from functools import partial
from itertools import chain, groupby
from threading import Lock
from typing import Any, Final, TypeAlias

from sqlalchemy import Connection

from conspectus.deferred import dataclass
from conspectus.errors import ConspectusError, StorageError
from conspectus.records.core.database import Database, transact
from conspectus.records.core.lock_names import WHOLE_DATABASE, Locks
from conspectus.records.core.statements import PreparedStatement, execute_batch

Work: TypeAlias = Callable[[Connection], Any]
Finish: TypeAlias = Callable[[Connection], None]
Joined: TypeAlias = Callable[[Connection, Sequence[Any]], Sequence[Any]]
"""A function that does many units of work as one; it returns their results in order."""
_Outcome: TypeAlias = tuple[Any, BaseException | None]

MAX_BATCH_UNITS: Final = 32
"""PostgreSQL caches up to 64 savepoints of a transaction for concurrent readers."""
MAX_TRANSACTION_SECONDS: Final = 0.25
"""After this time, the remaining work moves to the next transaction, so that other processes can write."""
_SAVEPOINT = PreparedStatement("SAVEPOINT work", ())
_RELEASE_SAVEPOINT = PreparedStatement("RELEASE SAVEPOINT work", ())
_ROLLBACK_TO_SAVEPOINT = PreparedStatement("ROLLBACK TO SAVEPOINT work", ())


@dataclass(slots=True, eq=False)
class WriteUnit:
    """A unit of work in the queue."""

    work: Callable[[Any], Any]
    locks: Locks
    """What the unit looks at and changes."""
    alone: bool
    """Whether the unit does not share its transaction."""
    record: Finish | None = None
    """A function to run after the work, in the same savepoint."""
    joined: Joined | None = None
    """The function that does this unit and others that have the same one, by one call with their items."""
    item: Any = None
    in_transaction: bool = True
    started: bool = False
    answer: "Future[Any]" = field(default_factory=Future)

    def start(self) -> bool:
        """Start the unit, which can no longer be cancelled. Returns false if it was cancelled before."""
        self.started = self.started or self.answer.set_running_or_notify_cancel()
        return self.started

    def run(self, connection: Connection) -> Any:
        """Run the work, and record it."""
        result = self.work(connection)
        if self.record is not None:
            self.record(connection)
        return result


def _run_joined(units: Sequence[WriteUnit], joined: Joined, connection: Connection) -> Sequence[Any]:
    """Run units by one call, and record them."""
    results = joined(connection, [unit.item for unit in units])
    for unit in units:
        if unit.record is not None:
            unit.record(connection)
    return results


class WriteQueue:
    """A queue of units of work, in the order of arrival. Units with different locks run concurrently.

    Units that wait at the same time share a transaction. Each has its own savepoint, so that a failed unit is
    rolled back alone. The fixed costs of a transaction (waiting for locks, flushing the commit) are paid
    once.
    """

    def __init__(self, database: Database) -> None:
        self.finish: Finish | None = None
        """A hook at the end of each transaction, before the commit. It may raise."""
        self._database = database
        self._threads = ThreadPoolExecutor(database.writers, thread_name_prefix="records-write")
        self._mutex = Lock()
        self._waiting: list[WriteUnit] = []
        self._running: list[list[WriteUnit]] = []
        self._closed = False

    def write(self, unit: WriteUnit) -> "Future[Any]":
        """Run a unit in a transaction that holds its locks. Raises RuntimeError if the queue is closed."""
        if not self._database.has_partial_locks:
            unit.locks = WHOLE_DATABASE
        return self._queue(unit)

    def submit(self, job: Callable[[], Any]) -> "Future[Any]":
        """Run a function while no unit writes. Raises RuntimeError if the queue is closed."""
        return self._queue(WriteUnit(lambda _: job(), WHOLE_DATABASE, alone=True, in_transaction=False))

    def close(self) -> None:
        """Finish all queued units."""
        with self._mutex:
            self._closed = True
            answers = [unit.answer for unit in (*self._waiting, *chain(*self._running))]
        wait(answers)
        self._threads.shutdown()

    def _queue(self, unit: WriteUnit) -> "Future[Any]":
        with self._mutex:
            if self._closed:
                raise RuntimeError("the queue is closed")
            self._waiting.append(unit)
        self._start()
        return unit.answer

    def _start(self) -> None:
        """Start everything that can run now."""
        while batch := self._take_batch():
            job = self._threads.submit(self._run_batch, batch)
            job.add_done_callback(partial(self._report_batch, batch))

    def _take_batch(self) -> list[WriteUnit]:
        """Return the first units that can share a transaction now."""
        batch: list[WriteUnit] = []
        with self._mutex:
            if len(self._running) == self._database.writers:
                return batch
            locks_ahead = set[str | None]().union(*(unit.locks for unit in chain(*self._running)))
            for unit in list(self._waiting):
                if None in locks_ahead:
                    break
                if not self._may_join(unit, batch, locks_ahead):
                    locks_ahead |= unit.locks
                    continue
                self._waiting.remove(unit)
                if unit.start():
                    batch.append(unit)
            if batch:
                self._running.append(batch)
        return batch

    def _may_join(self, unit: WriteUnit, batch: Sequence[WriteUnit], locks_ahead: Locks) -> bool:
        """Return whether a unit may join a batch, ahead of units with those locks."""
        locks_everything = None in unit.locks
        if unit.locks & locks_ahead:
            return False
        if locks_everything and (locks_ahead or self._running):
            return False
        if not batch:
            return True
        first = batch[0]
        if unit.alone or first.alone or len(batch) == MAX_BATCH_UNITS:
            return False
        return not locks_everything or None in first.locks

    def _run_batch(self, batch: Sequence[WriteUnit]) -> list[_Outcome]:
        first = batch[0]
        if not first.in_transaction:
            return [(first.work(None), None)]
        engine = self._database.with_locks(frozenset().union(*(unit.locks for unit in batch)))
        if len(batch) > 1:
            return transact(self._database, engine, partial(self._run_units, batch))
        return [(transact(self._database, engine, partial(self._run_single, first.run)), None)]

    def _report_batch(self, batch: Sequence[WriteUnit], job: "Future[list[_Outcome]]") -> None:
        """Report the results of a batch. After an unexpected error, each unit is run alone."""
        fault = job.exception()
        if fault is None:
            outcomes = job.result()
        elif len(batch) == 1 or isinstance(fault, StorageError):
            outcomes = [(None, fault)] * len(batch)
        else:
            outcomes = []
        unfinished = batch[len(outcomes) :]
        with self._mutex:
            self._running = [running_batch for running_batch in self._running if running_batch is not batch]
            self._waiting[:0] = unfinished
            for unit in unfinished:
                unit.alone = unit.alone or fault is not None
        for unit, (result, unit_fault) in zip(batch, outcomes, strict=False):
            if unit_fault is None:
                unit.answer.set_result(result)
            else:
                unit.answer.set_exception(unit_fault)
        self._start()

    def _run_units(self, batch: Sequence[WriteUnit], connection: Connection) -> list[_Outcome]:
        """Run units until time is up. Returns the outcomes of those that were run."""
        outcomes: list[_Outcome] = []
        deadline = time.monotonic() + MAX_TRANSACTION_SECONDS
        for _, units in groupby(batch, key=lambda unit: unit.joined or unit):
            outcomes += self._run_group(list(units), connection)
            if time.monotonic() > deadline:
                break
        self._finish(connection)
        return outcomes

    def _run_group(self, units: Sequence[WriteUnit], connection: Connection) -> list[_Outcome]:
        """Run units by one call, and by themselves if that fails: only those at fault get an error."""
        joined = units[0].joined
        if len(units) > 1 and joined is not None:
            results, fault = self._run_unit(partial(_run_joined, units, joined), connection)
            if fault is None:
                return [(result, None) for result in results]
        return [self._run_unit(unit.run, connection) for unit in units]

    def _run_unit(self, work: Work, connection: Connection) -> _Outcome:
        # Savepoints of SQLAlchemy cost more than the statements of most units.
        execute_batch(connection, [_SAVEPOINT])
        try:
            with self._database.convert_errors():
                result = work(connection)
        except ConspectusError as fault:
            if isinstance(fault, StorageError) and self._database.may_repeat(fault, attempt=1, undone=True):
                raise
            self._roll_back_unit(connection, fault)
            return None, fault
        execute_batch(connection, [_RELEASE_SAVEPOINT])
        return result, None

    def _roll_back_unit(self, connection: Connection, fault: ConspectusError) -> None:
        """Roll back one unit. Raises its error if the database has rolled back the others too."""
        try:
            with self._database.convert_errors():
                execute_batch(connection, [_ROLLBACK_TO_SAVEPOINT, _RELEASE_SAVEPOINT])
        except ConspectusError as error:
            raise fault from error

    def _run_single(self, work: Work, connection: Connection) -> Any:
        result = work(connection)
        self._finish(connection)
        return result

    def _finish(self, connection: Connection) -> None:
        if self.finish is not None:
            self.finish(connection)
