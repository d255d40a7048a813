"""Transactions in threads: a queue of writers, and a few readers.

A whole transaction runs in one thread, which costs a tenth of a millisecond; asynchronous drivers cost that
for every statement.
"""

import asyncio
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection

from conspectus.errors import ConspectusError, ForkedEngine, StoreClosed
from conspectus.ports.jobs import Commits
from conspectus.records.core.database import Database, run_guarded, transact
from conspectus.records.core.inline import MAX_INLINE_ROWS
from conspectus.records.core.lock_names import WHOLE_DATABASE, Locks
from conspectus.records.core.row_security import install_row_security, read_as
from conspectus.records.core.snapshots import Snapshots
from conspectus.records.core.statements import MAX_BLOCK_VALUES
from conspectus.records.core.write_queue import Finish, Joined, WriteQueue, WriteUnit

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")


class Transactions:
    """Runs functions of a connection, each in a transaction, off the event loop."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._readers = ThreadPoolExecutor(database.readers, thread_name_prefix="records-read")
        self._writer = WriteQueue(database)
        self.snapshots = Snapshots(database, self._readers)
        self._autocommitting = ThreadPoolExecutor(1, thread_name_prefix="records-beside")
        self._record: ContextVar[Finish | None] = ContextVar("recorded", default=None)
        self._commits: ContextVar[Commits | None] = ContextVar("watching", default=None)
        self._row_security = False
        self._person: str | None = None
        self._process = os.getpid()

    def enable_row_security(self) -> None:
        """Have the database hide rows that a person may not see from reads for the person."""
        with self.database.begin_migration() as connection:
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
        if self._person is not None:
            work = partial(_work_as_person, self._person, work)
        elif (shared := self.snapshots.current()) is not None:
            read = await self._await_future(partial(self._readers.submit, partial(shared.read, work)))
            if read is not None:
                return read[0]
        is_single = single and self._person is None
        engine = self.database.single if is_single else self.database.reading
        job = partial(transact, self.database, engine, work)
        return await self._await_future(partial(self._readers.submit, job))

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
            is_single = single and len(keys) <= MAX_BLOCK_VALUES
            return await self.read(lambda connection: find(connection, keys), single=is_single)
        cached_values: dict[Key, Result] = inline.find_cached(version, keys)
        missing = [key for key in keys if key not in cached_values]
        if not missing:
            return cached_values

        def find_missing(connection: Connection) -> Mapping[Key, Result]:
            return find(connection, missing)

        inline_read = inline.read(version, find_missing) if len(missing) <= MAX_INLINE_ROWS else None
        if inline_read is not None:
            fresh_values = inline_read[0]
        else:
            fresh_values = await self.read(find_missing)
            if inline.version() != version:
                if not cached_values:
                    return fresh_values
                # The cached values are of an older version than the fresh ones: read all in one snapshot.
                return await self.read(lambda connection: find(connection, keys))
        inline.cache(version, fresh_values)
        return {**cached_values, **fresh_values}

    def before_commit(self, finish: Finish) -> None:
        """Register a function to run at the end of each write transaction, before the commit."""
        self._writer.finish = finish

    @contextmanager
    def record_in_writes(self, record: Finish) -> Iterator[None]:
        """Run a function in all writes of the block and its tasks, so that their outcome is known exactly."""
        token = self._record.set(record)
        try:
            yield
        finally:
            self._record.reset(token)

    @contextmanager
    def count_commits(self) -> Iterator[Commits]:
        """Count the write transactions of the block and of the tasks it starts."""
        commits = Commits()
        token = self._commits.set(commits)
        try:
            yield commits
        finally:
            self._commits.reset(token)

    async def write(
        self, work: Callable[[Connection], Result], *, locks: Locks = WHOLE_DATABASE, long: bool = False
    ) -> Result:
        """Run a function with locks; committed on return, rolled back on an exception.

        The locks name everything that the unit looks at and changes, such as a collection: on a server, units
        with other locks run concurrently. Units that wait at the same time share a transaction, unless they
        are `long`; none may rely on being alone in it.
        """
        result: Result = await self._write(WriteUnit(work, locks, alone=long, record=self._record.get()))
        return result

    async def write_with_found_locks(
        self, find: Callable[[Connection], tuple[Locks, Callable[[Connection], Result]]], *, long: bool
    ) -> Result:
        """Run the function that `find` returns with the locks that it returns.

        It is called first, and again under these locks; if it then needs others, it gets those as well.
        """
        locks = (await self.read(find))[0] if self.database.has_partial_locks else WHOLE_DATABASE
        while True:
            needed, returned = await self.write(partial(_work_if_locked, find, locks), locks=locks, long=long)
            if returned is not None:
                return returned[0]
            locks |= needed

    async def write_joined(self, joined: Joined, item: Any, *, locks: Locks, long: bool) -> Any:
        """Write as `write` does. Units of the same function that wait at the same time are one call of it."""
        unit = WriteUnit(
            lambda connection: joined(connection, [item])[0],
            locks,
            alone=long,
            record=self._record.get(),
            joined=joined,
            item=item,
        )
        return await self._write(unit)

    async def _write(self, unit: WriteUnit) -> Any:
        self.snapshots.end_current()
        commits = self._commits.get() or Commits()
        commits.possible += 1
        try:
            return await self._await_future(partial(self._writer.write, unit))
        except ConspectusError:
            commits.possible -= 1
            raise

    async def autocommit(self, work: Callable[[Connection], Result]) -> Result:
        """Run statements in autocommit mode, concurrently with other writes."""
        job = partial(transact, self.database, self.database.autocommitted, work)
        return await self._await_future(partial(self._autocommitting.submit, job))

    async def run_exclusively(self, work: Callable[[], Result]) -> Result:
        """Run a function as the only writer, without a transaction."""
        job = partial(run_guarded, self.database, work)
        return await self._await_future(partial(self._writer.submit, job))

    async def close(self) -> None:
        """Wait for running work, then close every connection."""
        await asyncio.to_thread(self.shut)

    async def _await_future(self, start: Callable[[], Future[Result]]) -> Result:
        self._require_same_process()
        try:
            future = start()
        except RuntimeError as error:
            raise StoreClosed from error
        return await asyncio.wrap_future(future)

    def _require_same_process(self) -> None:
        if os.getpid() != self._process:
            raise ForkedEngine

    def shut(self) -> None:
        """Wait for running work, then close every connection, and block until then."""
        self._autocommitting.shutdown()
        self._writer.close()
        self._readers.shutdown()
        self.database.close()


def _work_if_locked(
    find: Callable[[Connection], tuple[Locks, Callable[[Connection], Result]]],
    locks: Locks,
    connection: Connection,
) -> tuple[Locks, tuple[Result] | None]:
    """Return the needed locks; do the work if the transaction has them, and return its result."""
    needed, work = find(connection)
    if None in locks or needed <= locks:
        return needed, (work(connection),)
    return needed, None


def _work_as_person(person: str, work: Callable[[Connection], Result], connection: Connection) -> Result:
    read_as(connection, person)
    return work(connection)
