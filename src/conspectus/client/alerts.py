"""Alerts of a server."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import fields
from typing import Final

from conspectus.client.encode import encoded
from conspectus.client.operations import derived
from conspectus.client.request import get, path_of, post, remove
from conspectus.client.service import RemoteService
from conspectus.client.subscriptions import live, read_event
from conspectus.engine.alerts import AlertService
from conspectus.model.filter import filter_to_json
from conspectus.model.records import Json
from conspectus.model.streams import (
    Alert,
    AlertEvent,
    NewAlert,
)

ALERT: Final = "alert"
"""The name of the server's events that tell of an alert."""


@derived
class RemoteAlerts(RemoteService, AlertService):
    """Alerts of a server."""

    async def put(self, alert: NewAlert) -> Alert:
        told = {each.name: getattr(alert, each.name) for each in fields(alert) if each.name != "where"}
        body: dict[str, Json] = {name: encoded(value) for name, value in told.items()}
        body["where"] = filter_to_json(alert.where)
        return await self._channel.one(Alert, post("/alerts", body))

    async def list(self, *, collection: str | None = None) -> Sequence[Alert]:
        return await self._channel.several(Alert, get("/alerts", collection=collection))

    async def get(self, alert: str) -> Alert:
        return await self._channel.one(Alert, get(path_of("alerts", ("alert", alert))))

    async def delete(self, alert: str) -> None:
        await self._channel.answer(remove(path_of("alerts", ("alert", alert))))

    async def events(
        self, *, alert: str | None = None, after: int = 0, limit: int = 100
    ) -> Sequence[AlertEvent]:
        request = get("/alerts/events", alert=alert, after=after, limit=limit)
        return await self._channel.several(AlertEvent, request)

    async def subscribe(
        self, *, alert: str | None = None, after: int | None = None
    ) -> AsyncGenerator[AlertEvent, None]:
        query = {} if alert is None else {"alert": alert}
        async with aclosing(live(self._channel, "/alerts/listen", query, after=after)) as events:
            async for event in events:
                if event.name == ALERT:
                    yield read_event(self._channel, AlertEvent, event)
