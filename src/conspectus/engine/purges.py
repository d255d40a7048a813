"""Purges: deleted texts are erased from disk, at once or as soon as no reader may need them."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from conspectus.engine.answer_writes import AnswerWrites
from conspectus.engine.components import EngineComponents
from conspectus.errors import ConspectusError, StorageBusy
from conspectus.ingest.maintenance import purge
from conspectus.ingest.open_indexes import OpenIndexes
from conspectus.model.ids import CollectionId
from conspectus.model.records import Erasure

PURGE_LOCK: Final = "purging"
MAX_WAIT_SECONDS: Final = 15.0
"""Seconds that a caller waits for the erasure, which goes on in the background."""
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 2.0, 15.0
"""Seconds between attempts to finish a purge."""

logger = logging.getLogger(__name__)


class Purges:
    """The purges of a store. Unfinished ones are rows of the records, which outlive this process."""

    def __init__(
        self, parts: EngineComponents, open_indexes: OpenIndexes, answer_writes: AnswerWrites
    ) -> None:
        self._records = parts.records
        self._indexes = parts.indexes
        self._turns = parts.turns
        self._open_indexes = open_indexes
        self._answer_writes = answer_writes
        self.max_wait_seconds = MAX_WAIT_SECONDS
        self._attempts: set[asyncio.Task[bool]] = set()
        self._finishing: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    @asynccontextmanager
    async def open_deletion(self, *collections: CollectionId) -> AsyncIterator[Erasure]:
        """Erase from disk what the block deletes from the collections.

        While somebody may still read it, and after `max_wait_seconds`, the erasure is pending and goes on in
        the background. After an interruption, the next opening or purge continues it.
        """
        erasure = Erasure()
        for collection in collections:
            await self._records.begin_purge(collection)
        yield erasure
        attempt = asyncio.create_task(self._attempt())
        self._attempts.add(attempt)
        attempt.add_done_callback(self._end)
        await asyncio.wait({attempt}, timeout=self.max_wait_seconds)
        erasure.purged = attempt.done() and await attempt
        erasure.pending = not erasure.purged

    async def _attempt(self) -> bool:
        """Erase all deleted texts; return False if a reader still held them."""
        try:
            async with self._turns(PURGE_LOCK):
                await self._purge()
        except StorageBusy as fault:
            logger.warning("purge_pending reason=%(reason)s", {"reason": str(fault)})
            self.finish()
            return False
        return True

    def _end(self, attempt: asyncio.Task[bool]) -> None:
        """Forget an attempt. After a failed one, the purge is finished in the background."""
        self._attempts.discard(attempt)
        if attempt.cancelled() or attempt.exception() is not None:
            self.finish()

    def finish(self) -> None:
        """Finish pending purges, and those of processes that ended, in the background."""
        if self._finishing is None or self._finishing.done():
            self._finishing = asyncio.create_task(self._finish())

    async def close(self) -> None:
        """Stop after the running attempts."""
        self._closing.set()
        if self._attempts:
            await asyncio.wait(self._attempts)
        if self._finishing is not None:
            await asyncio.wait({self._finishing})

    async def _finish(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not self._closing.is_set() and not await self._is_finished():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), pause)
            pause = min(2 * pause, MAX_PAUSE_SECONDS)

    async def _is_finished(self) -> bool:
        """Return whether no purge is unfinished, after an attempt unless another process makes one."""
        try:
            async with self._turns(PURGE_LOCK) as mine:
                if mine and await self._records.list_unfinished_purges():
                    await self._purge(waits=False)
                return not await self._records.list_unfinished_purges()
        except ConspectusError as fault:
            logger.warning("purge_recovery_failed code=%(code)s", {"code": fault.code})
        return False

    async def _purge(self, *, waits: bool = True) -> None:
        await self._answer_writes.wait_until_written()
        sweep, stop_builds = self._indexes.sweep, self._indexes.stop_builds
        await purge(self._records, self._open_indexes, sweep=sweep, stop_builds=stop_builds, waits=waits)
