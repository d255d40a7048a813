"""Events of streams of a server."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from conspectus.client.operations import derive_client, request_for
from conspectus.client.transport import RemoteService
from conspectus.engine.events import EventService
from conspectus.model.records import Written
from conspectus.model.stream_events import NewEvent

MAX_EVENTS_PER_REQUEST: Final = 500
"""Number of events per request."""


@derive_client
class RemoteEvents(RemoteService, EventService):
    """Events of streams of a server."""

    async def add(
        self, events: NewEvent | Iterable[NewEvent], *, stream: str, collection: str = "default"
    ) -> Sequence[Written]:
        remaining_events = iter([events] if isinstance(events, NewEvent) else events)
        requests = (
            request_for(EventService.add, events=batch, stream=stream, collection=collection)
            for batch in iter(lambda: list(islice(remaining_events, MAX_EVENTS_PER_REQUEST)), [])
        )
        return await self._in_batches(Written, requests, "writing")
