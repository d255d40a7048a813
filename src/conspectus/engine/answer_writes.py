"""Answer records on their way into the store: written after their answers are given, several at once."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import Context
from typing import Final, TypeAlias

from conspectus.errors import ConspectusError
from conspectus.model.answers import NewAnswer

MAX_BATCH_RECORDS: Final = 32
"""Number of records in a batch. An answer waits while a full batch is written."""
GATHER_SECONDS: Final = 0.05
"""Seconds before a batch is written: answers are sent first, and records share a transaction."""

StoreAnswers: TypeAlias = Callable[[Sequence[NewAnswer]], Awaitable[int]]
"""Stores records; returns the number of those whose documents still exist."""

logger = logging.getLogger(__name__)


class AnswerWrites:
    """Writes answer records in the order of their answers, and logs each one that cannot be kept."""

    def __init__(self, store: StoreAnswers) -> None:
        self._store = store
        self._batch: list[NewAnswer] = []
        self._is_awaited = asyncio.Event()
        self._last_task: asyncio.Task[None] | None = None

    async def add(self, answer: NewAnswer) -> None:
        """Write a record soon."""
        while len(self._batch) >= MAX_BATCH_RECORDS:
            await self.wait_until_written()
        self._batch.append(answer)
        if len(self._batch) == 1:
            # The task outlives the request, and must not see its snapshot.
            self._last_task = asyncio.create_task(self._write_after(self._last_task), context=Context())

    async def wait_until_written(self) -> None:
        """Wait until the records that were added before are written."""
        if self._last_task is not None and not self._last_task.done():
            self._is_awaited.set()
            await asyncio.wait({self._last_task})

    async def _write_after(self, earlier: asyncio.Task[None] | None) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_awaited.wait(), GATHER_SECONDS)
        if earlier is not None:
            await asyncio.wait({earlier})
        batch, self._batch = self._batch, []
        self._is_awaited.clear()
        await self._write(batch)

    async def _write(self, batch: Sequence[NewAnswer]) -> None:
        try:
            stored_count = await self._store(batch)
        except ConspectusError as fault:
            log_loss(fault.code, len(batch))
            return
        if stored_count < len(batch):
            log_loss("document_deleted", len(batch) - stored_count)


def log_loss(reason: str, count: int = 1) -> None:
    """Log that answer records were not kept."""
    logger.warning("answer_not_kept reason=%(reason)s count=%(count)d", {"reason": reason, "count": count})
