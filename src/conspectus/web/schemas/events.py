"""Events of streams, and who and what is in them."""

from typing import Annotated

from pydantic import Field

from conspectus.model.streams import EntitySpan, EventSpan, NewEvent
from conspectus.text.times import StreamClock
from conspectus.web.schemas.base import (
    Count,
    JsonObject,
    Label,
    RequestModel,
    ResponseModel,
    Text,
)
from conspectus.web.schemas.streams import MOST_ENTITIES, When, timed

MOST_EVENTS = 10_000


class EventBody(RequestModel):
    """Something that happened; with a key that is stored already, it takes the place of that."""

    type: Annotated[Label, Field(min_length=1)] = Field(examples=["fall"])
    start: When
    end: When | None = None
    description: Text = Field("", examples=["A man falls on the stairs."])
    entities: list[Label] = Field(default=[], max_length=MOST_ENTITIES)
    key: Label | None = None
    metadata: JsonObject = Field(default={})

    def event(self) -> NewEvent:
        """The event as the engine takes it."""
        given = {name: getattr(self, name) for name in self.model_fields_set | {"type", "start"}}
        return NewEvent(**{**given, "entities": tuple(self.entities)})


class EventsBody(RequestModel):
    """Events to store in a stream, any number of times."""

    events: list[EventBody] = Field(max_length=MOST_EVENTS)


class SpanAnswer(ResponseModel):
    """From when to when: in seconds on the stream's clock, and as a timecode or an instant in its zone."""

    stream: str
    start: float
    end: float
    start_text: str
    end_text: str
    documents: list[str]


class EventSpanAnswer(SpanAnswer):
    """Reports of one type that overlap, or are close, as one event."""

    type: str
    descriptions: list[str]
    entities: list[str]

    @classmethod
    def of(cls, event: EventSpan, clock: StreamClock) -> "EventSpanAnswer":
        """The event with its times as people read them."""
        return cls(
            stream=event.stream,
            type=event.type,
            descriptions=list(event.descriptions),
            entities=list(event.entities),
            documents=list(event.documents),
            **timed(event.start, event.end, clock),
        )


class EntitiesAnswer(ResponseModel):
    """Names with in how many captions and events they are, the most first."""

    entities: dict[str, Count]


class EntitySpanAnswer(SpanAnswer):
    """A stretch in which somebody or something is seen, said to be there, or named."""

    entity: str

    @classmethod
    def of(cls, span: EntitySpan, clock: StreamClock) -> "EntitySpanAnswer":
        """The stretch with its times as people read them."""
        return cls(
            stream=span.stream,
            entity=span.entity,
            documents=list(span.documents),
            **timed(span.start, span.end, clock),
        )
