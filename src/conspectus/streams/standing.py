"""The alerts of one open store: which process checks and delivers them, and that it goes on."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Final

from conspectus.errors import ConspectusError
from conspectus.streams.checking import Checker
from conspectus.streams.delivery import Deliverer

logger = logging.getLogger(__name__)

TURN_SECONDS: Final = 1.0
"""Seconds between two looks at whether it is this process's turn."""


Turn = Callable[[], AbstractContextManager[bool]]
"""Opens a context that is true when this process is the one that checks and delivers."""


class AlertService:
    """Of all processes that have a store open, the one that has the turn checks and delivers for all.

    It looks for what is new every `poll` seconds; at the end, what is being sent has `grace` seconds.
    """

    def __init__(
        self,
        checker: Checker,
        deliverer: Deliverer,
        *,
        turn: Turn,
        poll: float,
        grace: float,
    ) -> None:
        self._checker = checker
        self._deliverer = deliverer
        self._turn = turn
        self._poll = poll
        self._grace = grace
        self._serving: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def start(self) -> None:
        """Begin, as soon as it is this process's turn. Raises what ended the service."""
        if self._serving is None:
            self._serving = asyncio.create_task(self._serve())
        if self._serving.done() and not self._closing.is_set():
            self._serving.result()

    async def close(self) -> None:
        """Stop; what is being sent may come to its end."""
        self._closing.set()
        if self._serving is not None:
            await asyncio.wait({self._serving})

    async def _serve(self) -> None:
        while not self._closing.is_set():
            try:
                await self._lead()
            except ConspectusError as fault:
                logger.warning("alerts cannot be checked now: %s", fault.code)
            except OSError as fault:
                logger.warning("alerts cannot be checked now: %s", fault.strerror)
            await self._pause(TURN_SECONDS)

    async def _lead(self) -> None:
        """Check and deliver to the end of the service, if it is this process's turn."""
        with self._turn() as mine:
            if not mine:
                return
            try:
                await self._go_on()
            finally:
                await self._deliverer.stop(grace=self._grace)

    async def _go_on(self) -> None:
        while not self._closing.is_set():
            more = await self._checker.round()
            await self._deliverer.round()
            if not more:
                await self._pause(self._poll)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)
