"""The retentions of one open store, carried out by one of the processes that have it open."""

from collections.abc import Awaitable, Callable
from typing import Final

from conspectus.ports.locks import Turn
from conspectus.streams.leadership import Leadership

FAULT_SECONDS: Final = 60.0
"""Seconds after which what could not be done is tried again."""


class RetentionWorker(Leadership):
    """Of all processes that have a store open, the one that has the turn looks after what is due."""

    def __init__(self, look: Callable[[], Awaitable[None]], *, turn: Turn, pause: float) -> None:
        super().__init__(turn, "carrying out retentions", again=FAULT_SECONDS)
        self._look = look
        self._between = pause

    async def _lead(self) -> None:
        """Look after what is due to the end, if it is this process's turn."""
        async with self._turn() as mine:
            while mine and not self._closing.is_set():
                await self._look()
                await self._pause(self._between)
