"""The retentions of one open store: which process carries them out, and that it goes on."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, suppress
from typing import Final

from conspectus.errors import ConspectusError

logger = logging.getLogger(__name__)

TURN_SECONDS: Final = 1.0
"""Seconds between two looks at whether it is this process's turn."""
FAULT_SECONDS: Final = 60.0
"""Seconds after which what could not be done is tried again."""

Turn = Callable[[], AbstractContextManager[bool]]
"""Opens a context that is true when this process is the one that carries retentions out."""


class Keeper:
    """Of all processes that have a store open, the one that has the turn looks after what is due."""

    def __init__(self, look: Callable[[], Awaitable[None]], *, turn: Turn, pause: float) -> None:
        self._look = look
        self._turn = turn
        self._pause = pause
        self._serving: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def start(self) -> None:
        """Begin, as soon as it is this process's turn. Raises what ended it."""
        if self._serving is None:
            self._serving = asyncio.create_task(self._serve())
        if self._serving.done() and not self._closing.is_set():
            self._serving.result()

    async def close(self) -> None:
        """Stop after the look that is under way."""
        self._closing.set()
        if self._serving is not None:
            await asyncio.wait({self._serving})

    async def _serve(self) -> None:
        while not self._closing.is_set():
            try:
                await self._lead()
                await self._wait(TURN_SECONDS)
            except ConspectusError as fault:
                await self._after(fault.code)
            except OSError as fault:
                await self._after(fault.strerror)

    async def _lead(self) -> None:
        """Look after what is due to the end, if it is this process's turn."""
        with self._turn() as mine:
            while mine and not self._closing.is_set():
                await self._look()
                await self._wait(self._pause)

    async def _after(self, fault: str | None) -> None:
        logger.warning("retentions cannot be carried out now: %s", fault)
        await self._wait(FAULT_SECONDS)

    async def _wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)
