"""Background work of the leader process: it checks alerts and calls their webhooks."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final

from conspectus.errors import ConspectusError, FetchFailed, InvalidInput
from conspectus.model.jobs import RetryPolicy
from conspectus.ports import Clock
from conspectus.ports.jobs import Lock, Turn
from conspectus.ports.streams import AlertMatch, Alerts, Delivery, Poster
from conspectus.streams.alert_checker import Checker

HIDDEN: Final = "its caption can no longer be seen by whom the alert is for"
Body = Callable[[AlertMatch], Awaitable[bytes | None]]
"""Returns the webhook body of an event; None if the owner of the alert may no longer read it."""


class Deliverer:
    """Delivers due events. Events of one alert are sent in sequence, different alerts concurrently."""

    def __init__(
        self, alerts: Alerts, poster: Poster, *, body: Body, patience: RetryPolicy, clock: Clock
    ) -> None:
        self._alerts = alerts
        self._poster = poster
        self._body = body
        self._patience = patience
        self._clock = clock
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._stopping = False

    async def round(self, hold: Lock) -> None:
        """Start a delivery for every alert with due events, unless one is running."""
        self._sending = {alert: task for alert, task in self._sending.items() if not task.done()}
        for alert in await self._alerts.waiting(now=self._clock()):
            if alert not in self._sending:
                self._sending[alert] = asyncio.create_task(self._send(alert, hold))

    async def stop(self, *, grace: float) -> None:
        """Wait up to `grace` seconds for running deliveries, then cancel them; they are repeated later."""
        self._stopping = True
        sending = list(self._sending.values())
        if sending:
            await asyncio.wait(sending, timeout=grace)
        for task in sending:
            task.cancel()
        await asyncio.gather(*sending, return_exceptions=True)
        self._sending.clear()
        self._stopping = False

    async def _send(self, alert: str, hold: Lock) -> None:
        try:
            while not self._stopping:
                event = await self._alerts.due(alert, now=self._clock())
                if event is None:
                    return
                await self._alerts.set_delivery(event.number, await self._sent(event, hold))
        except ConspectusError as fault:
            logger.warning("webhook_failed code=%(code)s", {"code": fault.code})

    async def _sent(self, event: AlertMatch, hold: Lock) -> Delivery:
        """Send an event and return the outcome. Raises LockLost if another process has taken over."""
        body = await self._body(event)
        await hold.confirm()
        if body is None:
            return Delivery("failed", event.attempts, HIDDEN)
        attempts = event.attempts + 1
        try:
            await self._poster.post(event.alert.webhook or "", body, id=event.id)
        except (FetchFailed, InvalidInput) as fault:
            return self._again(fault, attempts)
        return Delivery("delivered", attempts)

    def _again(self, fault: ConspectusError, attempts: int) -> Delivery:
        passing = isinstance(fault, FetchFailed) and fault.passing
        if not passing or attempts >= self._patience.attempts:
            return Delivery("failed", attempts, str(fault))
        wait = timedelta(seconds=self._patience.wait(attempts - 1, None))
        return Delivery("pending", attempts, str(fault), self._clock() + wait)


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


class AlertWorker(Leadership):
    """Checks alerts and delivers their events in one process per store: the process that holds the lock.

    It polls every `poll` seconds. When it stops, running deliveries have `grace` seconds to finish.
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
        """Check and deliver until the worker is closed, if this process gets the lock."""
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
