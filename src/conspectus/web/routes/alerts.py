"""Alerts: the operations of the table, and by hand the stream of what they tell."""

from typing import Annotated

from fastapi import Query, Request, Response

from conspectus.model.streams import AlertEvent
from conspectus.operations import ALERT_OPERATIONS
from conspectus.web.deps import EngineOf, without_limits
from conspectus.web.openapi import Section
from conspectus.web.operation_routes import add_routes
from conspectus.web.operation_schemas import response_model
from conspectus.web.schemas.base import IDENTIFIER
from conspectus.web.sse import frame
from conspectus.web.subscriptions import LastEvent, ListenersOf, LiveEvents, StillGood, resumed, streamed

router = Section("alerts")
OfAlert = Annotated[str | None, Query(min_length=1, max_length=IDENTIFIER, description="Only this alert's.")]


@router.get("/alerts/stream", response_class=Response, responses=streamed())
async def subscribe_alerts(
    request: Request,
    engine: EngineOf,
    listeners: ListenersOf,
    *,
    alert: OfAlert = None,
    last: LastEvent = None,
) -> Response:
    """Matches of alerts as events, from now on or after the event of Last-Event-ID."""
    listeners.require_room(request.state.person)
    if alert is not None:
        await engine.alerts.get(alert)
    newest = await engine.alerts.last_match()
    given = resumed(last)
    after = newest if given is None else given
    await without_limits(request)
    events = engine.alerts.subscribe(alert=alert, after=after)
    still_good: StillGood = request.state.still_good
    return LiveEvents(events, _event, listeners, after=after, still_good=still_good)


def _event(event: AlertEvent) -> bytes:
    body = response_model(AlertEvent).model_validate(event).model_dump_json()
    return frame(body, name="alert", id=str(event.number))


add_routes(router, ALERT_OPERATIONS)
