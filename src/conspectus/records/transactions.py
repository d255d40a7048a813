"""Transactions in threads: one writes, so that writers of this process queue in order, and a few read.

A whole transaction is one job of one thread, which costs a tenth of a millisecond; the asynchronous drivers
cost that for every statement.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection, Engine

from conspectus.errors import StorageError
from conspectus.records.sqlite import WRITES, translated_errors

READERS = 4

Result = TypeVar("Result")


class Transactions:
    """Runs functions of a connection in a transaction each, off the event loop."""

    def __init__(self, engine: Engine, busy_seconds: float) -> None:
        self.engine = engine
        self.busy_seconds = busy_seconds
        self._writing = engine.execution_options(**{WRITES: True})
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="records-read")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="records-write")

    async def read(self, work: Callable[[Connection], Result]) -> Result:
        """Run with one unchanging view of the data."""
        return await self._run(self._readers, partial(transact, self.engine, work))

    async def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run with the write lock; committed when this returns, undone when it raises."""
        return await self._run(self._writer, partial(transact, self._writing, work))

    async def alone(self, work: Callable[[], Result]) -> Result:
        """Run in the place of a writer, without a transaction."""
        return await self._run(self._writer, partial(guarded, self.engine, work))

    async def close(self) -> None:
        """Let running work finish, then close every connection."""
        await asyncio.to_thread(self.shut)

    def shut(self) -> None:
        """The same, for callers that may block."""
        self._writer.shutdown()
        self._readers.shutdown()
        self.engine.dispose()

    @staticmethod
    async def _run(threads: ThreadPoolExecutor, job: Callable[[], Result]) -> Result:
        try:
            future = asyncio.get_running_loop().run_in_executor(threads, job)
        except RuntimeError as error:
            raise StorageError("the store is closed") from error
        return await future


def transact(engine: Engine, work: Callable[[Connection], Result]) -> Result:
    """Run with a connection in one transaction."""
    with translated_errors(engine), engine.begin() as connection:
        return work(connection)


def guarded(engine: Engine, work: Callable[[], Result]) -> Result:
    """Run with the errors of the database as ours."""
    with translated_errors(engine):
        return work()
