"""Events of streams and standing alerts of a server."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Final

from conspectus.client.encode import encoded, metadata_json
from conspectus.client.request import get, path_of, post, remove, work
from conspectus.client.streaming import in_stream, range_query
from conspectus.client.subscriptions import live, read_event
from conspectus.client.summarising import Summarising
from conspectus.model.filter_json import filter_to_json
from conspectus.model.records import Json, Written
from conspectus.model.streams import (
    WHOLE,
    Alert,
    AlertEvent,
    CaptionRange,
    EntitySpan,
    EventSpan,
    NewAlert,
    NewEvent,
)

BATCH: Final = 500
ALERT: Final = "alert"
"""The name of the server's events that tell of an alert."""


@dataclass(frozen=True, slots=True)
class _Named:
    """Names with how often they are given."""

    entities: Mapping[str, int]


class Alerting(Summarising):
    """What happened, who was there, and being told of what is waited for."""

    async def add_events(
        self, events: NewEvent | Iterable[NewEvent], *, stream: str, collection: str = "default"
    ) -> list[Written]:
        """Store events of a stream, which is made if it is new.

        One without a key is named by what it says and when, so that the same again is unchanged; one of a
        stored key takes its place. Raises InvalidInput, TooLarge or Conflict; the batch at fault is not
        written.
        """
        given = iter([events] if isinstance(events, NewEvent) else events)
        written: list[Written] = []
        while batch := list(islice(given, BATCH)):
            body: Json = {"events": [_event_json(each) for each in batch]}
            request = replace(work(in_stream(stream, "events"), body), query={"collection": collection})
            written += await self._channel.several(Written, request)
        return written

    async def events(
        self,
        *,
        stream: str,
        collection: str = "default",
        within: CaptionRange = WHOLE,
        type: str | None = None,
    ) -> list[EventSpan]:
        """Events in the order of time: those of one type that overlap, or are close, are one.

        Those that share an instant with the range, or lie in it, are given whole.
        """
        told = {**range_query(within), "collection": collection, "type": type}
        return await self._channel.several(EventSpan, get(in_stream(stream, "events"), **told))

    async def entities(
        self, *, stream: str, collection: str = "default", within: CaptionRange = WHOLE
    ) -> Mapping[str, int]:
        """In how many captions and events each name is among the entities or the speaker, the most first.

        Spellings that differ in capitals alone are one name, in its most frequent form.
        """
        told = {**range_query(within), "collection": collection}
        return (await self._channel.one(_Named, get(in_stream(stream, "entities"), **told))).entities

    async def entity_timeline(
        self, entity: str, *, stream: str, collection: str = "default", within: CaptionRange = WHOLE
    ) -> list[EntitySpan]:
        """When somebody or something is there: among the entities, as the speaker, or named in a caption.

        Capitals do not matter, and a name is a whole word. Stretches that overlap, or are close, are one.
        """
        told = {**range_query(within), "collection": collection, "entity": entity}
        return await self._channel.several(EntitySpan, get(in_stream(stream, "timeline"), **told))

    async def put_alert(self, alert: NewAlert) -> Alert:
        """Keep a standing question, or change the own one of that name in that collection.

        A new one looks at what is written from now on. Raises InvalidInput, TooLarge, NotFound for streams
        that cannot be seen, and ForbiddenAddress for a webhook that leads where nothing may be sent.
        """
        told = {each.name: getattr(alert, each.name) for each in fields(alert) if each.name != "where"}
        body: dict[str, Json] = {name: encoded(value) for name, value in told.items()}
        body["where"] = filter_to_json(alert.where)
        return await self._channel.one(Alert, post("/alerts", body))

    async def alerts(self, *, collection: str | None = None) -> list[Alert]:
        """The person's own alerts, by name."""
        return await self._channel.several(Alert, get("/alerts", collection=collection))

    async def find_alert(self, alert: str) -> Alert:
        """The own alert of that id. Raises NotFound."""
        return await self._channel.one(Alert, get(path_of("alerts", ("alert", alert))))

    async def delete_alert(self, alert: str) -> None:
        """Forget an own alert and all that it told. Raises NotFound."""
        await self._channel.answer(remove(path_of("alerts", ("alert", alert))))

    async def alert_events(
        self, *, alert: str | None = None, after: int = 0, limit: int = 100
    ) -> list[AlertEvent]:
        """What the person's alerts, or one of them, told after an event's number, in order.

        Only of captions that are there and can be seen at this moment.
        """
        request = get("/alerts/events", alert=alert, after=after, limit=limit)
        return await self._channel.several(AlertEvent, request)

    async def listen(
        self, *, alert: str | None = None, after: int | None = None
    ) -> AsyncGenerator[AlertEvent, None]:
        """What alerts tell, as they tell it: after an event's number, or from now on.

        Goes on until it is closed, over as many connections as it takes. Raises NotFound, also when the alert
        is deleted.
        """
        query = {} if alert is None else {"alert": alert}
        async with aclosing(live(self._channel, "/alerts/listen", query, after=after)) as events:
            async for event in events:
                if event.name == ALERT:
                    yield read_event(self._channel, AlertEvent, event)


def _event_json(event: NewEvent) -> Json:
    return {
        "type": encoded(event.type),
        "start": encoded(event.start),
        "end": encoded(event.end),
        "description": encoded(event.description),
        "entities": encoded(event.entities),
        "key": encoded(event.key),
        "metadata": dict(metadata_json(event.metadata)),
    }
