"""The log of requests to model providers, written in the background."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from time import perf_counter
from typing import Final, TypeAlias

from conspectus.deferred import dataclass
from conspectus.errors import ConspectusError, ProviderError
from conspectus.model.jobs import EmbeddingRequest, RequestKind
from conspectus.ports.jobs import CURRENT_USER, RequestLog

Note: TypeAlias = Callable[[EmbeddingRequest], None]
"""Receives the log row of one request; returns at once."""

MAX_LOG_ROWS: Final = 10_000


def drop(request: EmbeddingRequest) -> None:
    """Drop a log row."""


@dataclass(slots=True)
class ProviderRequest:
    """One request in progress. `tokens` is set if the vendor counted them."""

    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Calls:
    """Logs the requests to one model."""

    note: Note
    model: str

    @contextmanager
    def one(self, kind: RequestKind, texts: Sequence[str], *, query: str = "") -> Iterator[ProviderRequest]:
        """Log the outcome of the request in the block, however it ends."""
        call, created, start = ProviderRequest(), datetime.now(UTC), perf_counter()
        error: str | None = "failed"
        try:
            yield call
            error = None
        except ConspectusError as fault:
            status = fault.status if isinstance(fault, ProviderError) else None
            error = fault.code if status is None else f"HTTP {status}"
            raise
        except (asyncio.CancelledError, GeneratorExit):
            error = "cancelled"
            raise
        finally:
            latency = round((perf_counter() - start) * 1000, 3)
            tokens = call.tokens if call.tokens is not None else estimate_tokens([query, *texts])
            self.note(
                EmbeddingRequest(
                    kind,
                    "error" if error else "success",
                    self.model,
                    latency,
                    len(texts),
                    tokens,
                    created=created,
                    error=error,
                    user_id=CURRENT_USER.get(),
                )
            )


def estimate_tokens(texts: Sequence[str]) -> int:
    """Estimate tokens as four per three words."""
    return round(sum(len(text.split()) for text in texts) * 4 / 3)


class RequestNotes:
    """Buffers log rows, and writes them in the background.

    Rows are written after `every` seconds, when there are `rows` of them, and on close. If the log is not
    open yet or fails, no caller is affected: the newest rows are kept for the next attempt.
    """

    def __init__(self, *, every: float = 1.0, rows: int = 100) -> None:
        self._log: RequestLog | None = None
        self._every = every
        self._maximum = rows
        self._rows: list[EmbeddingRequest] = []
        self._full = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def write_to(self, log: RequestLog) -> None:
        """Set the target of the log."""
        self._log = log

    def __call__(self, request: EmbeddingRequest) -> None:
        """Add a row; from the event loop only. Rows after closing are dropped."""
        if self._closed:
            return
        self._rows.append(request)
        if len(self._rows) >= self._maximum:
            self._full.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Write the remaining rows. Rows that the log rejects are lost, which is logged."""
        self._closed = True
        self._full.set()
        if self._task is not None:
            await self._task
        await self._write()
        self._rows.clear()

    async def _run(self) -> None:
        while self._rows and not self._closed:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._full.wait(), self._every)
            self._full.clear()
            await self._write()

    async def _write(self) -> None:
        if self._log is None or not self._rows:
            return
        rows, self._rows = self._rows, []
        try:
            await self._log.add(rows)
        except ConspectusError as fault:
            logging.getLogger(__name__).warning("%d requests were not logged: %s", len(rows), fault.code)
            self._rows = (rows + self._rows)[-MAX_LOG_ROWS:]
