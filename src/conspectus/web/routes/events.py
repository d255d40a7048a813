"""Events of streams, and who and what is in them."""

from collections.abc import Sequence
from typing import Annotated, Final

from fastapi import Query

from conspectus.model.records import Written
from conspectus.text.times import clock_of
from conspectus.web.deps import EngineOf, NamedInQuery, Unhurried
from conspectus.web.openapi import Section, problems
from conspectus.web.schemas.base import NAME
from conspectus.web.schemas.events import (
    EntitiesAnswer,
    EntitySpanAnswer,
    EventsBody,
    EventSpanAnswer,
)
from conspectus.web.schemas.records import WrittenAnswer
from conspectus.web.streams import STREAM, FoundStream, InCollection, StreamName, Within, found_by

router = Section("streams")
EVENTS: Final = f"{STREAM}/events"


@router.post(
    EVENTS,
    response_model=list[WrittenAnswer],
    status_code=201,
    responses=problems(),
    dependencies=[Unhurried],
)
async def add_events(
    stream: StreamName, body: EventsBody, engine: EngineOf, *, collection: InCollection = "default"
) -> Sequence[Written]:
    """Store events, any number of times; the stream is made if it is new."""
    events = [each.event() for each in body.events]
    return await engine.events.add(events, stream=stream, collection=collection)


@router.get(EVENTS, response_model=list[EventSpanAnswer], responses=problems())
async def list_events(
    found: FoundStream, within: Within, engine: EngineOf, *, type: NamedInQuery = None
) -> Sequence[EventSpanAnswer]:
    """Events in the order of time; those of one type that overlap, or are close, are one."""
    clock = clock_of(found.source)
    events = await engine.events.list(**found_by(found), within=within, type=type)
    return [EventSpanAnswer.of(each, clock) for each in events]


@router.get(f"{STREAM}/entities", response_model=EntitiesAnswer, responses=problems())
async def list_entities(found: FoundStream, within: Within, engine: EngineOf) -> EntitiesAnswer:
    """Who and what is in captions and events, with in how many, the most first."""
    return EntitiesAnswer(entities=dict(await engine.events.entities(**found_by(found), within=within)))


@router.get(f"{STREAM}/timeline", response_model=list[EntitySpanAnswer], responses=problems())
async def entity_timeline(
    found: FoundStream,
    within: Within,
    engine: EngineOf,
    *,
    entity: Annotated[str, Query(min_length=1, max_length=NAME)],
) -> Sequence[EntitySpanAnswer]:
    """When somebody or something is seen, said to be there, or named."""
    clock = clock_of(found.source)
    spans = await engine.events.entity_timeline(entity, **found_by(found), within=within)
    return [EntitySpanAnswer.of(each, clock) for each in spans]
