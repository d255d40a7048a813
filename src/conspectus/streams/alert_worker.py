"""Background work that only one process does: the leader checks alerts and calls their webhooks."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final

from conspectus.errors import ConspectusError, FetchFailed, InvalidInput
from conspectus.model.retry_policy import RetryPolicy
from conspectus.ports import Clock
from conspectus.ports.jobs import Lock, Turn
from conspectus.ports.streams import AlertMatch, Alerts, Delivery, Poster
from conspectus.streams.alert_checker import Checker

HIDDEN: Final = "its caption can no longer be seen by whom the alert is for"
Body = Callable[[AlertMatch], Awaitable[bytes | None]]
"""What is sent of an event; None if its owner may not see it any more."""


class Deliverer:
    """Sends what is due. The events of one alert are sent one after the other, those of others meanwhile."""

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
        """Begin to send for every alert with something due that is not being sent for."""
        self._sending = {alert: task for alert, task in self._sending.items() if not task.done()}
        for alert in await self._alerts.waiting(now=self._clock()):
            if alert not in self._sending:
                self._sending[alert] = asyncio.create_task(self._send(alert, hold))

    async def stop(self, *, grace: float) -> None:
        """Let what is being sent come to its end for so many seconds; what is left is sent another time."""
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
        """What became of one sending. Raises LockLost if another process sends by now."""
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
