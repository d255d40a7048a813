"""Standing alerts and what they told."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from conspectus.model.filter import EVERYTHING, filter_from_json, filter_to_json
from conspectus.model.records import Json
from conspectus.model.streams import Alert, NewAlert
from conspectus.web.schemas.base import (
    Count,
    Finite,
    JsonObject,
    Name,
    Question,
    RequestModel,
    ResponseModel,
    Where,
)
from conspectus.web.schemas.streams import MOST_STREAMS

LONGEST_ADDRESS = 2_000
DEFAULT = NewAlert("")


class AlertBody(RequestModel):
    """A standing question: every new caption of the streams is held against it."""

    name: Name = Field(examples=["Fire at the gate"])
    query: Question = Field("", description="All of its words, or what is as similar as the floor.")
    collection: Name = "default"
    streams: list[Name] = Field(
        default=[], max_length=MOST_STREAMS, description="None: all that can be seen."
    )
    where: Where | None = None
    floor: Annotated[Finite, Field(ge=-1.0, le=1.0)] | None = Field(
        DEFAULT.floor, description="The least similarity; null: only words count."
    )
    gap_seconds: Annotated[Finite, Field(ge=0.0, le=366 * 86_400.0)] = Field(
        DEFAULT.gap_seconds, description="Matches with no more than so much between them are told once."
    )
    webhook: Annotated[str, Field(min_length=1, max_length=LONGEST_ADDRESS)] | None = Field(
        None, description="Where what it tells is sent as JSON.", examples=["https://example.com/alerts"]
    )

    def alert(self) -> NewAlert:
        """The alert as the engine takes it."""
        where = EVERYTHING if self.where is None else filter_from_json(self.where)
        given = self.model_dump(exclude={"where", "streams"})
        return NewAlert(**given, streams=tuple(self.streams), where=where)


class AlertAnswer(ResponseModel):
    """An alert; `checked` is the change of its collection up to which captions were looked at."""

    id: str
    owner: str
    collection: str
    name: str
    query: str
    streams: list[str]
    where: JsonObject
    floor: float | None
    gap_seconds: float
    webhook: str | None
    created: datetime
    checked: Count

    @classmethod
    def of(cls, alert: Alert) -> "AlertAnswer":
        """The alert with its filter as JSON."""
        told: dict[str, Json] = {name: getattr(alert, name) for name in cls.model_fields if name != "where"}
        return cls.model_validate({**told, "where": filter_to_json(alert.where)})


class AlertEventAnswer(ResponseModel):
    """One time that an alert went off; `number` is where to go on, and the id of its server-sent event."""

    number: int
    alert: str
    name: str
    stream: str
    start: float | None
    end: float | None
    document: str
    text: str
    reason: str
    created: datetime
    delivery: Literal["none", "pending", "delivered", "failed"]
    attempts: Count
    error: str | None
