"""Transactions in threads: an ordered queue of writers, and a few readers.

A whole transaction runs in one thread, which costs a tenth of a millisecond; asynchronous drivers cost that
for every statement.
"""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Hashable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import field
from functools import partial, wraps
from itertools import chain, groupby
from threading import Lock
from typing import Any, Concatenate, Final, ParamSpec, TypeAlias, TypeVar

from sqlalchemy import Connection, Table, select

from conspectus.deferred import dataclass
from conspectus.errors import ConspectusError, ForkedEngine, StorageError
from conspectus.model.ids import CollectionId
from conspectus.ports.jobs import Commits
from conspectus.records.core.database import Database, guarded, transact
from conspectus.records.core.dialects import Ready, as_list, given, run_all
from conspectus.records.core.inline import AT_ONCE
from conspectus.records.core.row_security import install_row_security, read_as
from conspectus.records.core.rows import BLOCK
from conspectus.records.core.snapshots import Snapshots
from conspectus.records.tables.core import collections

Work: TypeAlias = Callable[[Connection], Any]
Finish: TypeAlias = Callable[[Connection], None]
Joined: TypeAlias = Callable[[Connection, Sequence[Any]], Sequence[Any]]
"""A function that does many units of work as one; it returns their results in order."""
Locks: TypeAlias = Set[str | None]
"""Names of what a unit of work looks at and changes; the id of a collection names its documents."""
_Ended: TypeAlias = tuple[Any, BaseException | None]

WHOLE: Final[Locks] = frozenset({None})
"""The lock of the whole database."""


def row_of(table: Table, id: object) -> str:
    """Return the lock of a row. That of a collection keeps it from being deleted or renamed."""
    return f"{table.name} {id}"


def name_in(table: Table, name: str) -> str:
    """Return the lock of a name that one row of a table may have."""
    return f"{table.name} called {name}"


def all_of(collection: CollectionId) -> Locks:
    """Return the locks of a collection: of its documents and of its row."""
    return {collection, row_of(collections, collection)}


MAX_BATCH: Final = 32
"""PostgreSQL caches up to 64 savepoints of a transaction for concurrent readers."""
_SAVE = Ready("SAVEPOINT work", ())
_RELEASE = Ready("RELEASE SAVEPOINT work", ())
_UNDO = Ready("ROLLBACK TO SAVEPOINT work", ())
SECONDS: Final = 0.25
"""After this time, the remaining work moves to the next transaction, so that other processes can write."""


@dataclass(slots=True, eq=False)
class Waiting:
    """A unit of work in the queue. `locks` name what it looks at and changes.

    It shares its transaction unless it is `alone`. `record` runs after the work, in the same savepoint. Units
    that have the same `joined` are done by one call with their items.
    """

    work: Callable[[Any], Any]
    locks: Locks
    alone: bool
    record: Finish | None = None
    joined: Joined | None = None
    item: Any = None
    transaction: bool = True
    started: bool = False
    answer: "Future[Any]" = field(default_factory=Future)

    def start(self) -> bool:
        """Start the unit, which can no longer be cancelled. Returns whether it is still wanted."""
        self.started = self.started or self.answer.set_running_or_notify_cancel()
        return self.started

    def do(self, connection: Connection) -> Any:
        """Run the work, and record it."""
        result = self.work(connection)
        if self.record is not None:
            self.record(connection)
        return result


def _do_joined(units: Sequence[Waiting], joined: Joined, connection: Connection) -> Sequence[Any]:
    """Run units by one call, and record them."""
    results = joined(connection, [each.item for each in units])
    for each in units:
        if each.record is not None:
            each.record(connection)
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
        self._waiting: list[Waiting] = []
        self._running: list[list[Waiting]] = []
        self._closed = False

    def write(self, unit: "Waiting") -> "Future[Any]":
        """Run a unit in a transaction that holds its locks. Raises RuntimeError if the queue is closed."""
        if not self._database.locks_parts:
            unit.locks = WHOLE
        return self._queue(unit)

    def submit(self, job: Callable[[], Any]) -> "Future[Any]":
        """Run a function while no unit writes. Raises RuntimeError if the queue is closed."""
        return self._queue(Waiting(lambda _: job(), WHOLE, alone=True, transaction=False))

    def close(self) -> None:
        """Finish all queued units."""
        with self._mutex:
            self._closed = True
            left = [each.answer for each in (*self._waiting, *chain(*self._running))]
        wait(left)
        self._threads.shutdown()

    def _queue(self, waiting: Waiting) -> "Future[Any]":
        with self._mutex:
            if self._closed:
                raise RuntimeError("the queue is closed")
            self._waiting.append(waiting)
        self._start()
        return waiting.answer

    def _start(self) -> None:
        """Start everything that can run now."""
        while batch := self._next():
            job = self._threads.submit(self._do, batch)
            job.add_done_callback(partial(self._done, batch))

    def _next(self) -> list[Waiting]:
        """Return the first units that can share a transaction now."""
        batch: list[Waiting] = []
        with self._mutex:
            if len(self._running) == self._database.writers:
                return batch
            passed = set[str | None]().union(*(each.locks for each in chain(*self._running)))
            for waiting in list(self._waiting):
                if None in passed:
                    break
                if not self._joins(waiting, batch, passed):
                    passed |= waiting.locks
                elif waiting.start():
                    batch.append(waiting)
                    self._waiting.remove(waiting)
                else:
                    self._waiting.remove(waiting)
            if batch:
                self._running.append(batch)
        return batch

    def _joins(self, waiting: Waiting, batch: Sequence[Waiting], passed: Locks) -> bool:
        """Return whether a unit may join a batch, ahead of units with the skipped locks."""
        whole = None in waiting.locks
        if waiting.locks & passed or (whole and (passed or self._running)):
            return False
        if not batch:
            return True
        like = not whole or None in batch[0].locks
        return like and len(batch) < MAX_BATCH and not (waiting.alone or batch[0].alone)

    def _do(self, batch: Sequence[Waiting]) -> list[_Ended]:
        if not batch[0].transaction:
            return [(batch[0].work(None), None)]
        engine = self._database.writing_to(frozenset().union(*(each.locks for each in batch)))
        if len(batch) > 1:
            return transact(self._database, engine, partial(self._together, batch))
        return [(transact(self._database, engine, partial(self._single, batch[0].do)), None)]

    def _done(self, batch: Sequence[Waiting], job: "Future[list[_Ended]]") -> None:
        """Report the results of a batch. After an unexpected error, each unit is run alone."""
        fault = job.exception()
        if fault is None:
            ended = job.result()
        else:
            ended = [(None, fault)] * len(batch) if len(batch) == 1 or isinstance(fault, StorageError) else []
        rest = batch[len(ended) :]
        with self._mutex:
            self._running = [each for each in self._running if each is not batch]
            self._waiting[:0] = rest
            for waiting in rest:
                waiting.alone = waiting.alone or fault is not None
        for waiting, (result, failed) in zip(batch, ended, strict=False):
            if failed is None:
                waiting.answer.set_result(result)
            else:
                waiting.answer.set_exception(failed)
        self._start()

    def _together(self, works: Sequence[Waiting], connection: Connection) -> list[_Ended]:
        ended: list[_Ended] = []
        begun = time.monotonic()
        for _, units in groupby(works, key=lambda each: each.joined or each):
            ended += self._joined(list(units), connection)
            if time.monotonic() - begun > SECONDS:
                break
        self._finish(connection)
        return ended

    def _joined(self, units: Sequence[Waiting], connection: Connection) -> list[_Ended]:
        """Run units by one call, and by themselves if that fails: only those at fault get an error."""
        if len(units) > 1 and (joined := units[0].joined) is not None:
            results, failed = self._one(partial(_do_joined, units, joined), connection)
            if failed is None:
                return [(result, None) for result in results]
        return [self._one(each.do, connection) for each in units]

    def _one(self, work: Work, connection: Connection) -> _Ended:
        # Savepoints of SQLAlchemy cost more than the statements of most units.
        run_all(connection, [_SAVE])
        try:
            with self._database.translated():
                result = work(connection)
        except ConspectusError as fault:
            if isinstance(fault, StorageError) and self._database.may_repeat(fault, attempt=1, undone=True):
                raise
            self._undo(connection, fault)
            return None, fault
        run_all(connection, [_RELEASE])
        return result, None

    def _undo(self, connection: Connection, fault: ConspectusError) -> None:
        """Roll back one unit. Raises its error if the database has rolled back the others too."""
        try:
            with self._database.translated():
                run_all(connection, [_UNDO, _RELEASE])
        except ConspectusError as error:
            raise fault from error

    def _single(self, work: Work, connection: Connection) -> Any:
        result = work(connection)
        self._finish(connection)
        return result

    def _finish(self, connection: Connection) -> None:
        if self.finish is not None:
            self.finish(connection)


P = ParamSpec("P")
Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")
Item = TypeVar("Item")
_Function: TypeAlias = Callable[Concatenate[Connection, P], Result]
_Method: TypeAlias = Callable[Concatenate[Any, P], Coroutine[Any, Any, Result]]

FEW: Final = 50
"""A unit with more rows than this is long."""


class Transactions:
    """Runs functions of a connection, each in a transaction, off the event loop."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._readers = ThreadPoolExecutor(database.readers, thread_name_prefix="records-read")
        self._writer = WriteQueue(database)
        self.snapshots = Snapshots(database, self._readers)
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="records-beside")
        self._recorded: ContextVar[Finish | None] = ContextVar("recorded", default=None)
        self._watching: ContextVar[Commits | None] = ContextVar("watching", default=None)
        self._row_security = False
        self._person: str | None = None
        self._process = os.getpid()

    def enable_row_security(self) -> None:
        """Have the database hide rows that a person may not see from reads for the person."""
        with self.database.migrating() as connection:
            install_row_security(connection)
        self._row_security = True

    def visible_to(self, person: str) -> "Transactions":
        """Return the transactions with reads for a person, if the database has row security."""
        if not self._row_security:
            return self
        view = copy(self)
        view._person = person
        return view

    async def read(
        self, work: Callable[[Connection], Result], *, single: bool = False, few: bool = False
    ) -> Result:
        """Run a function in a snapshot of the data; of a `single` statement, the snapshot is its own.

        With `few`, it reads few rows and needs no thread where the database is a file.
        """
        self._require_same_process()
        inline = self.database.inline if few else None
        if inline is not None and (read := inline.read_now(work)) is not None:
            return read[0]
        if self._person is None and (shared := self.snapshots.current()) is not None:
            done = await self._answer(partial(self._readers.submit, partial(shared.read, work)))
            if done is not None:
                return done[0]
        seen = work if self._person is None else partial(_as_person, self._person, work)
        is_single = single and self._person is None
        engine = self.database.single if is_single else self.database.reading
        job = partial(transact, self.database, engine, seen)
        return await self._answer(partial(self._readers.submit, job))

    async def lookup(
        self,
        keys: Sequence[Key],
        find: Callable[[Connection, Sequence[Key]], Mapping[Key, Result]],
        *,
        single: bool = False,
    ) -> Mapping[Key, Result]:
        """Return the values of the keys in one consistent snapshot; few keys are read without a thread.

        Without commits in between, values come from a cache. They must not be modified, and must depend on
        nothing but the key and the database. With `single`, a block of keys is read by one statement.
        """
        self._require_same_process()
        inline = self.database.inline
        version = None if inline is None else inline.version()
        if inline is None or version is None:
            is_single = single and len(keys) <= BLOCK
            return await self.read(lambda connection: find(connection, keys), single=is_single)
        held: dict[Key, Result] = inline.cached(version, keys)
        missing = [key for key in keys if key not in held]
        if not missing:
            return held

        def read(connection: Connection) -> Mapping[Key, Result]:
            return find(connection, missing)

        at_once = inline.read(version, read) if len(missing) <= AT_ONCE else None
        found = at_once[0] if at_once is not None else await self.read(read)
        if at_once is None and inline.version() != version:
            return await self.read(lambda connection: find(connection, keys)) if held else found
        inline.keep(version, found)
        return {**held, **found}

    def before_commit(self, finish: Finish) -> None:
        """Register a function to run at the end of each write transaction, before the commit."""
        self._writer.finish = finish

    @contextmanager
    def recording(self, record: Finish) -> Iterator[None]:
        """Run a function in all writes of the block and its tasks, so that their outcome is known exactly."""
        token = self._recorded.set(record)
        try:
            yield
        finally:
            self._recorded.reset(token)

    @contextmanager
    def watching(self) -> Iterator[Commits]:
        """Count the write transactions of the block and of the tasks it starts."""
        commits = Commits()
        token = self._watching.set(commits)
        try:
            yield commits
        finally:
            self._watching.reset(token)

    async def write(
        self, work: Callable[[Connection], Result], *, locks: Locks = WHOLE, long: bool = False
    ) -> Result:
        """Run a function with locks; committed on return, rolled back on an exception.

        They name everything that the unit looks at and changes, such as a collection: on a server, units with
        other locks run concurrently. Units that wait at the same time share a transaction, unless they are
        `long`; none may rely on being alone in it.
        """
        result: Result = await self._write(Waiting(work, locks, long, self._recorded.get()))
        return result

    async def write_found(
        self, find: Callable[[Connection], tuple[Locks, Callable[[Connection], Result]]], *, long: bool
    ) -> Result:
        """Run the function that `find` returns with the locks that it returns.

        It is called first, and again under these locks; if it then needs others, it gets those as well.
        """
        locks = (await self.read(find))[0] if self.database.locks_parts else WHOLE
        while True:
            needed, done = await self.write(partial(_if_locked, find, locks), locks=locks, long=long)
            if done is not None:
                return done[0]
            locks |= needed

    async def write_joined(self, joined: Joined, item: Any, *, locks: Locks, long: bool) -> Any:
        """Write as `write` does. Units of the same function that wait at the same time are one call of it."""
        unit = Waiting(
            lambda connection: joined(connection, [item])[0], locks, long, self._recorded.get(), joined, item
        )
        return await self._write(unit)

    async def _write(self, unit: Waiting) -> Any:
        self.snapshots.leave()
        commits = self._watching.get() or Commits()
        commits.possible += 1
        try:
            return await self._answer(partial(self._writer.write, unit))
        except ConspectusError:
            commits.possible -= 1
            raise

    async def autocommitted(self, work: Callable[[Connection], Result]) -> Result:
        """Run statements in autocommit mode, concurrently with other writes."""
        job = partial(transact, self.database, self.database.autocommitted, work)
        return await self._answer(partial(self._beside.submit, job))

    async def alone(self, work: Callable[[], Result]) -> Result:
        """Run a function as the only writer, without a transaction."""
        return await self._answer(partial(self._writer.submit, partial(guarded, self.database, work)))

    async def close(self) -> None:
        """Wait for running work, then close every connection."""
        await asyncio.to_thread(self.shut)

    async def _answer(self, start: Callable[[], Future[Result]]) -> Result:
        self._require_same_process()
        try:
            future = start()
        except RuntimeError as error:
            raise StorageError("the store is closed") from error
        return await asyncio.wrap_future(future)

    def _require_same_process(self) -> None:
        if os.getpid() != self._process:
            raise ForkedEngine

    def shut(self) -> None:
        """Blocking version of `close`."""
        self._beside.shutdown()
        self._writer.close()
        self._readers.shutdown()
        self.database.close()


class SqlStore:
    """Base class of stores whose methods are mostly one transaction each; see the ports for their docs."""

    def __init__(self, transactions: Transactions) -> None:
        self.transactions = transactions


def reading(work: _Function[P, Result]) -> _Method[P, Result]:
    """Make a method of a function that reads in a snapshot."""

    @wraps(work)
    async def method(self: SqlStore, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        return await self.transactions.read(lambda connection: work(connection, *args, **kwargs))

    return method


def cached(work: _Function[P, Result], *, single: bool = False) -> _Method[P, Result]:
    """Make a method that caches a few frequently requested rows by key; see `Transactions.lookup`."""

    @wraps(work)
    async def method(self: SqlStore, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        key = (work, args, *kwargs.items())
        found = await self.transactions.lookup(
            [key], lambda connection, _: {key: work(connection, *args, **kwargs)}, single=single
        )
        return found[key]

    return method


def cached_rows(
    find: Callable[[Connection, Sequence[Key]], Mapping[Key, Result]],
) -> Callable[[Any, Sequence[Key]], Coroutine[Any, Any, Sequence[Result]]]:
    """Make a method that caches rows by key, of which a statement reads a block.

    It returns those that exist, in the given order.
    """

    @wraps(find)
    async def method(self: SqlStore, keys: Sequence[Key], /) -> Sequence[Result]:
        found = await self.transactions.lookup(keys, find, single=True)
        return [found[each] for each in keys if each in found]

    return method


def _if_locked(
    find: Callable[[Connection], tuple[Locks, Callable[[Connection], Result]]],
    locks: Locks,
    connection: Connection,
) -> tuple[Locks, tuple[Result] | None]:
    """Return the needed locks, and what the function returned if it has them."""
    needed, work = find(connection)
    return needed, (work(connection),) if None in locks or needed <= locks else None


def writing(
    work: _Function[P, Result],
    *,
    locks: Callable[P, Locks] | None = None,
    rows: Table | None = None,
    long: bool = False,
) -> _Method[P, Result]:
    """Make a method of a function that writes, also with many rows.

    `locks` returns locks from the arguments. With `rows`, the first argument is the id of a row of that
    table, or several, and the collections of these are locked, too. Without either, it is the whole database.
    """

    @wraps(work)
    async def method(self: SqlStore, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        many = long or any(_is_many(each) for each in (*args, *kwargs.values()))
        named = frozenset() if locks is None else locks(*args, **kwargs)
        if rows is not None and self.transactions.database.locks_parts:
            call: Callable[..., Result] = work
            find = partial(
                _at_rows, rows, named, lambda ids, each: call(each, ids, *args[1:], **kwargs), args[0]
            )
            return await self.transactions.write_found(find, long=many)
        return await self.transactions.write(
            lambda connection: work(connection, *args, **kwargs), locks=named or WHOLE, long=many
        )

    return method


def _at_rows(
    table: Table, named: Locks, work: Callable[[Any, Connection], Result], asked: Any, connection: Connection
) -> tuple[Locks, Callable[[Connection], Result]]:
    """Return the locks of the rows' collections, and the work on those rows that exist.

    Rows never move to another collection, but one that does not exist may be added to any. So it is left out
    of several; a single one needs the whole database.
    """
    ids = [asked] if isinstance(asked, str) else asked
    chosen = select(table.c.id, table.c.collection).where(table.c.id.in_(given("ids")))
    rows = connection.execute(chosen, {"ids": as_list(list(dict.fromkeys(ids)))})
    found = {row.id: row.collection for row in rows}
    if isinstance(asked, str):
        return named | (set(found.values()) or WHOLE), partial(work, asked)
    return named | set(found.values()), partial(work, [each for each in asked if each in found])


def joining(
    work: Callable[[Connection, Sequence[Sequence[Item]]], Sequence[Result]],
    *,
    locks: Callable[[Sequence[Item]], Locks],
) -> Callable[[Any, Sequence[Item]], Coroutine[Any, Any, Result]]:
    """Make a method that writes items of one caller of a function that writes those of many."""

    @wraps(work)
    async def method(self: SqlStore, items: Sequence[Item], /) -> Result:
        result: Result = await self.transactions.write_joined(
            work, items, locks=locks(items), long=_is_many(items)
        )
        return result

    return method


def autocommitted(work: _Function[P, Result]) -> _Method[P, Result]:
    """Make a method of statements in autocommit mode, concurrently with other writes."""

    @wraps(work)
    async def method(self: SqlStore, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        return await self.transactions.autocommitted(lambda connection: work(connection, *args, **kwargs))

    return method


def _is_many(value: object) -> bool:
    return isinstance(value, Sequence | Mapping) and not isinstance(value, str) and len(value) > FEW


def _as_person(person: str, work: Callable[[Connection], Result], connection: Connection) -> Result:
    read_as(connection, person)
    return work(connection)
