"""A background task of the process that holds a lock."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from conspectus.errors import ConspectusError
from conspectus.ports.jobs import Turn

logger = logging.getLogger(__name__)

TURN_SECONDS: Final = 1.0
"""Seconds between two attempts to acquire the lock."""


class Leadership:
    """A background task that runs in the process that holds a lock. Subclasses implement `_lead`.

    Call `start` to begin and `close` to end it. If the task fails, the log names it `what`, and it is
    repeated after `again` seconds.
    """

    def __init__(self, turn: Turn, what: str, *, again: float = TURN_SECONDS) -> None:
        self._turn = turn
        self._what = what
        self._again = again
        self._serving: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def start(self) -> None:
        """Start the task, which waits for the lock. Raises the error that ended it, if any."""
        if self._serving is None:
            self._serving = asyncio.create_task(self._serve())
        if self._serving.done() and not self._closing.is_set():
            self._serving.result()

    async def close(self) -> None:
        """Stop after the current step."""
        self._closing.set()
        if self._serving is not None:
            await asyncio.wait({self._serving})

    async def _lead(self) -> None:
        """Run until the task is closed, if this process gets the lock."""
        raise NotImplementedError

    async def _serve(self) -> None:
        while not self._closing.is_set():
            pause = TURN_SECONDS
            try:
                await self._lead()
            except (ConspectusError, OSError) as fault:
                reason = fault.code if isinstance(fault, ConspectusError) else fault.strerror
                logger.warning(
                    "leader_task_failed task=%(task)s reason=%(reason)s",
                    {"task": self._what, "reason": reason},
                )
                pause = self._again
            await self._pause(pause)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)


class PeriodicTask(Leadership):
    """A background task that runs every `pause` seconds."""

    def __init__(
        self, turn: Turn, what: str, run: Callable[[], Awaitable[None]], *, pause: float, again: float
    ) -> None:
        super().__init__(turn, what, again=again)
        self._run = run
        self._between = pause

    async def _lead(self) -> None:
        """Run until the task is closed, if this process gets the lock."""
        async with self._turn() as mine:
            while mine and not self._closing.is_set():
                await self._run()
                await self._pause(self._between)
