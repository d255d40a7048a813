"""Alerts of a server."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from conspectus.client.event_stream import follow, read_event
from conspectus.client.operations import derive_client
from conspectus.client.transport import RemoteService
from conspectus.engine.alerts import AlertService
from conspectus.model.alerts import AlertEvent

ALERT_EVENT: Final = "alert"
"""The name of the server-sent event of an alert match."""


@derive_client
class RemoteAlerts(RemoteService, AlertService):
    """Alerts of a server."""

    async def subscribe(
        self, *, alert: str | None = None, after: int | None = None
    ) -> AsyncGenerator[AlertEvent, None]:
        query = {} if alert is None else {"alert": alert}
        async with aclosing(follow(self._channel, "/alerts/stream", query, after=after)) as events:
            async for event in events:
                if event.name == ALERT_EVENT:
                    yield read_event(self._channel, AlertEvent, event)
