"""Deliver due matches of alerts to their webhooks."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from conspectus.errors import ConspectusError, FetchFailed, InvalidInput
from conspectus.model.retries import RetryPolicy
from conspectus.ports import Clock
from conspectus.ports.jobs import Lock
from conspectus.ports.streams import AlertMatch, Alerts, Delivery, Poster

logger = logging.getLogger(__name__)


HIDDEN: Final = "its caption can no longer be seen by whom the alert is for"
Body = Callable[[AlertMatch], Awaitable[bytes | None]]
"""Returns the webhook body of an event; None if the owner of the alert may no longer read it."""


class Deliverer:
    """Delivers due events. Events of one alert are sent in sequence, different alerts concurrently."""

    def __init__(
        self, alerts: Alerts, poster: Poster, *, body: Body, retry_policy: RetryPolicy, clock: Clock
    ) -> None:
        self._alerts = alerts
        self._poster = poster
        self._body = body
        self._retry_policy = retry_policy
        self._clock = clock
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._stopping = False

    async def round(self, hold: Lock) -> None:
        """Start a delivery for every alert with due events, unless one is running."""
        self._sending = {alert: task for alert, task in self._sending.items() if not task.done()}
        for alert in await self._alerts.list_due_alerts(now=self._clock()):
            if alert not in self._sending:
                self._sending[alert] = asyncio.create_task(self._send_events(alert, hold))

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

    async def _send_events(self, alert: str, hold: Lock) -> None:
        try:
            while not self._stopping:
                event = await self._alerts.due(alert, now=self._clock())
                if event is None:
                    return
                await self._alerts.set_delivery(event.number, await self._send(event, hold))
        except ConspectusError as fault:
            logger.warning("webhook_failed code=%(code)s", {"code": fault.code})

    async def _send(self, event: AlertMatch, hold: Lock) -> Delivery:
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
        if not passing or attempts >= self._retry_policy.attempts:
            return Delivery("failed", attempts, str(fault))
        wait = timedelta(seconds=self._retry_policy.wait(attempts - 1, None))
        return Delivery("pending", attempts, str(fault), self._clock() + wait)
