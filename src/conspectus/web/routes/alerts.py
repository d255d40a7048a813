"""Standing alerts: what is waited for, and what came of it."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query, Request, Response

from conspectus.model.streams import AlertEvent
from conspectus.web.deps import EngineOf, IdInPath, Limit, NamedInQuery, without_limits
from conspectus.web.openapi import Section, problems
from conspectus.web.schemas.alerts import AlertAnswer, AlertBody, AlertEventAnswer
from conspectus.web.schemas.base import IDENTIFIER, INT64
from conspectus.web.sse import frame
from conspectus.web.subscriptions import LastEvent, ListenersOf, LiveEvents, StillGood, resumed, streamed

router = Section("alerts")
OfAlert = Annotated[str | None, Query(min_length=1, max_length=IDENTIFIER, description="Only this alert's.")]
AfterEvent = Annotated[int, Query(ge=0, lt=INT64, description="The number of the last event that is known.")]


@router.post("/alerts", response_model=AlertAnswer, responses=problems())
async def put_alert(body: AlertBody, engine: EngineOf) -> AlertAnswer:
    """Set an alert, or change the own one of that name in that collection."""
    return AlertAnswer.of(await engine.alerts.put(body.alert()))


@router.get("/alerts", response_model=list[AlertAnswer], responses=problems())
async def list_alerts(engine: EngineOf, *, collection: NamedInQuery = None) -> Sequence[AlertAnswer]:
    """The own alerts, by name."""
    return [AlertAnswer.of(each) for each in await engine.alerts.list(collection=collection)]


@router.get("/alerts/events", response_model=list[AlertEventAnswer], responses=problems())
async def list_alert_events(
    engine: EngineOf, *, alert: OfAlert = None, after: AfterEvent = 0, limit: Limit = 100
) -> Sequence[AlertEvent]:
    """What alerts told, in order, of captions that can be seen now."""
    return await engine.alerts.events(alert=alert, after=after, limit=limit)


@router.get("/alerts/listen", response_class=Response, responses=streamed())
async def listen(
    request: Request,
    engine: EngineOf,
    listeners: ListenersOf,
    *,
    alert: OfAlert = None,
    last: LastEvent = None,
) -> Response:
    """What alerts tell as events, from now on or after the event of Last-Event-ID."""
    listeners.require_room(request.state.person)
    if alert is not None:
        await engine.alerts.get(alert)
    newest = await engine.alerts.newest_event()
    given = resumed(last)
    after = newest if given is None else given
    without_limits(request)
    events = engine.alerts.subscribe(alert=alert, after=after)
    still_good: StillGood = request.state.still_good
    return LiveEvents(events, _event, listeners, after=after, still_good=still_good)


@router.get("/alerts/{alert}", response_model=AlertAnswer, responses=problems())
async def get_alert(alert: IdInPath, engine: EngineOf) -> AlertAnswer:
    """An own alert."""
    return AlertAnswer.of(await engine.alerts.get(alert))


@router.delete("/alerts/{alert}", status_code=204, responses=problems())
async def delete_alert(alert: IdInPath, engine: EngineOf) -> None:
    """Forget an own alert and all that it told."""
    await engine.alerts.delete(alert)


def _event(told: AlertEvent) -> bytes:
    body = AlertEventAnswer.model_validate(told).model_dump_json()
    return frame(body, name="alert", id=str(told.number))
