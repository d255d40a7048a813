"""Events in streams, and time ranges of events and entities."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example
from conspectus.model.captions import When
from conspectus.model.checks import Checked
from conspectus.model.ids import SourceId
from conspectus.model.parameters import (
    EndText,
    Key,
    ListedEntities,
    Name,
    StartText,
    Text,
)

ENTITIES = "entities"
EVENT_TYPE = "type"
"""Metadata of captions and events: names of entities, and the type of an event."""


@dataclass(frozen=True, slots=True)
class NewEvent(Checked):
    """Something that happened in a stream, with a type; times have the form of caption times."""

    type: Annotated[Name, "Type of the event.", Example("arrival")]
    start: Annotated[When, Example("00:12:30")]
    end: Annotated[When | None, "End; without one it is an instant."] = None
    description: Annotated[Text, "Description of the event.", Example("A train arrives.")] = ""
    entities: ListedEntities = ()
    key: Annotated[Key, "Name that the caller gives it."] | None = None
    metadata: Annotated[Mapping[str, object], "Metadata as JSON."] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EventSpan:
    """An event: reports of one type that overlap or are close to each other, merged.

    `start` and `end` are seconds on the clock of the stream; `start_text` and `end_text` are timecodes, or
    instants in its zone. `documents` are the merged reports.
    """

    stream: SourceId
    type: Annotated[str, Example("arrival")]
    start: float
    end: float
    start_text: StartText
    end_text: EndText
    descriptions: Annotated[tuple[str, ...], Example(["A train arrives."])]
    entities: Annotated[tuple[str, ...], Example(["backup"])]
    documents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EntitySpan:
    """A time range in which an entity is present or mentioned."""

    stream: SourceId
    entity: Annotated[str, Example("backup")]
    start: float
    end: float
    start_text: StartText
    end_text: EndText
    documents: tuple[str, ...]
