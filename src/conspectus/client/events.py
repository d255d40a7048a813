"""Events of streams of a server."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from conspectus.client.encode import encoded, metadata_json
from conspectus.client.operations import derived
from conspectus.client.request import get, work
from conspectus.client.service import RemoteService
from conspectus.client.streams import in_stream, range_query
from conspectus.engine.events import EventService
from conspectus.model.records import Json, Written
from conspectus.model.streams import (
    WHOLE,
    CaptionRange,
    EntitySpan,
    EventSpan,
    NewEvent,
)

BATCH: Final = 500


@dataclass(frozen=True, slots=True)
class _Named:
    """Names with how often they are given."""

    entities: Mapping[str, int]


@derived
class RemoteEvents(RemoteService, EventService):
    """Events of streams of a server."""

    async def add(
        self, events: NewEvent | Iterable[NewEvent], *, stream: str, collection: str = "default"
    ) -> Sequence[Written]:
        given = iter([events] if isinstance(events, NewEvent) else events)
        written: list[Written] = []
        while batch := list(islice(given, BATCH)):
            body: Json = {"events": [_event_json(each) for each in batch]}
            request = replace(work(in_stream(stream, "events"), body), query={"collection": collection})
            written += await self._channel.several(Written, request)
        return written

    async def list(
        self,
        *,
        stream: str,
        collection: str = "default",
        within: CaptionRange = WHOLE,
        type: str | None = None,
    ) -> Sequence[EventSpan]:
        told = {**range_query(within), "collection": collection, "type": type}
        return await self._channel.several(EventSpan, get(in_stream(stream, "events"), **told))

    async def entities(
        self, *, stream: str, collection: str = "default", within: CaptionRange = WHOLE
    ) -> Mapping[str, int]:
        told = {**range_query(within), "collection": collection}
        return (await self._channel.one(_Named, get(in_stream(stream, "entities"), **told))).entities

    async def entity_timeline(
        self, entity: str, *, stream: str, collection: str = "default", within: CaptionRange = WHOLE
    ) -> Sequence[EntitySpan]:
        told = {**range_query(within), "collection": collection, "entity": entity}
        return await self._channel.several(EntitySpan, get(in_stream(stream, "timeline"), **told))


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
