"""Operations on events of streams, and on the entities in them."""

from typing import Final

from conspectus.engine.events import EventService
from conspectus.operations.operation import Operation

_STREAM: Final = "/streams/{stream}"
_EVENTS: Final = f"{_STREAM}/events"

EVENT_OPERATIONS: Final = (
    Operation(
        EventService.add,
        "POST",
        _EVENTS,
        query=("collection",),
        unhurried=True,
        status=201,
        id="add_events",
    ),
    Operation(EventService.list, "GET", _EVENTS, id="list_events"),
    Operation(EventService.count_entities, "GET", f"{_STREAM}/entities", wrapped="entities"),
    Operation(EventService.entity_timeline, "GET", f"{_STREAM}/timeline"),
)
