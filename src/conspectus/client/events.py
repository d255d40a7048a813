"""Events of streams of a server."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from conspectus.client.operations import asked, derived
from conspectus.client.service import RemoteService
from conspectus.engine.events import EventService
from conspectus.model.records import Written
from conspectus.model.streams import NewEvent

BATCH: Final = 500


@derived
class RemoteEvents(RemoteService, EventService):
    """Events of streams of a server."""

    async def add(
        self, events: NewEvent | Iterable[NewEvent], *, stream: str, collection: str = "default"
    ) -> Sequence[Written]:
        given = iter([events] if isinstance(events, NewEvent) else events)
        written: list[Written] = []
        while batch := list(islice(given, BATCH)):
            request = asked(EventService.add, events=batch, stream=stream, collection=collection)
            written += await self._channel.several(Written, request)
        return written
