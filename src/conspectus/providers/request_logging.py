"""A row for every request that really went to a model vendor, without any of its content."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter
from typing import Final, TypeAlias

from conspectus.errors import ConspectusError, ProviderError
from conspectus.model.jobs import EmbeddingRequest, RequestKind
from conspectus.ports.jobs import ASKING, RequestLog

Note: TypeAlias = Callable[[EmbeddingRequest], None]
"""Takes the row of one request; returns at once."""

MOST_ROWS_KEPT: Final = 10_000


def drop(request: EmbeddingRequest) -> None:
    """A note that keeps nothing."""


@dataclass(slots=True)
class ProviderRequest:
    """One request under way; `tokens` is set where the vendor counted them."""

    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Calls:
    """Notes the requests that one model gets."""

    note: Note
    model: str

    @contextmanager
    def one(self, kind: RequestKind, texts: Sequence[str], *, query: str = "") -> Iterator[ProviderRequest]:
        """Note what becomes of the request in the block, however it ends."""
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
            tokens = call.tokens if call.tokens is not None else estimated_tokens([query, *texts])
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
                    user_id=ASKING.get(),
                )
            )


def estimated_tokens(texts: Sequence[str]) -> int:
    """Four tokens for three words."""
    return round(sum(len(text.split()) for text in texts) * 4 / 3)


class RequestNotes:
    """Takes notes at once and writes them to the log behind the callers' backs.

    They are written after `every` seconds, or when there are `rows` of them, and when it is closed. A log
    that is not open yet or cannot be written to costs no caller anything: the newest rows are kept for the
    next time.
    """

    def __init__(self, *, every: float = 1.0, rows: int = 100) -> None:
        self._log: RequestLog | None = None
        self._every = every
        self._most = rows
        self._rows: list[EmbeddingRequest] = []
        self._full = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def write_to(self, log: RequestLog) -> None:
        """Where the notes go from now on."""
        self._log = log

    def __call__(self, request: EmbeddingRequest) -> None:
        """Note a request; from the event loop only. After closing there is nowhere to note it."""
        if self._closed:
            return
        self._rows.append(request)
        if len(self._rows) >= self._most:
            self._full.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Write what is left; rows that the log still does not take are lost, which is logged."""
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
            self._rows = (rows + self._rows)[-MOST_ROWS_KEPT:]
