"""Work that one of all processes does which have a store open: whose turn it is, and that it goes on."""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from conspectus.errors import ConspectusError
from conspectus.ports.locks import Turn

logger = logging.getLogger(__name__)

TURN_SECONDS: Final = 1.0
"""Seconds between two looks at whether it is this process's turn."""


class Leadership:
    """Begun with `start`, ended with `close`; what the work is, `_lead` says.

    `what` is said in the log where it cannot be done; it is tried again `again` seconds later.
    """

    def __init__(self, turn: Turn, what: str, *, again: float = TURN_SECONDS) -> None:
        self._turn = turn
        self._what = what
        self._again = again
        self._serving: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def start(self) -> None:
        """Begin, as soon as it is this process's turn. Raises what ended it."""
        if self._serving is None:
            self._serving = asyncio.create_task(self._serve())
        if self._serving.done() and not self._closing.is_set():
            self._serving.result()

    async def close(self) -> None:
        """Stop after what is under way."""
        self._closing.set()
        if self._serving is not None:
            await asyncio.wait({self._serving})

    async def _lead(self) -> None:
        """Work until it is closed, if it is this process's turn."""
        raise NotImplementedError

    async def _serve(self) -> None:
        while not self._closing.is_set():
            pause = TURN_SECONDS
            try:
                await self._lead()
            except ConspectusError as fault:
                logger.warning("%s cannot be done now: %s", self._what, fault.code)
                pause = self._again
            except OSError as fault:
                logger.warning("%s cannot be done now: %s", self._what, fault.strerror)
                pause = self._again
            await self._pause(pause)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)
