"""Background work that only one process does: alerts are checked and delivered by the leader."""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from conspectus.errors import ConspectusError
from conspectus.ports.jobs import Lock, Turn
from conspectus.streams.alert_checker import Checker
from conspectus.streams.webhook_delivery import Deliverer

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
                logger.warning(
                    "leader_task_failed task=%(task)s reason=%(reason)s",
                    {"task": self._what, "reason": fault.code},
                )
                pause = self._again
            except OSError as fault:
                logger.warning(
                    "leader_task_failed task=%(task)s reason=%(reason)s",
                    {"task": self._what, "reason": fault.strerror},
                )
                pause = self._again
            await self._pause(pause)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)


class AlertWorker(Leadership):
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
        super().__init__(turn, "checking alerts")
        self._checker = checker
        self._deliverer = deliverer
        self._poll = poll
        self._grace = grace

    async def _lead(self) -> None:
        """Check and deliver to the end of the service, if it is this process's turn."""
        async with self._turn() as mine:
            if not mine:
                return
            try:
                await self._go_on(mine)
            finally:
                await self._deliverer.stop(grace=self._grace)

    async def _go_on(self, hold: Lock) -> None:
        while not self._closing.is_set():
            more = await self._checker.round()
            await self._deliverer.round(hold)
            if not more:
                await self._pause(self._poll)
