"""Events of streams to documents."""

from typing import Final

from conspectus.errors import InvalidInput
from conspectus.ingest.captions import caption_id
from conspectus.model.ids import SourceId
from conspectus.model.records import NewDocument, Period, Source
from conspectus.model.streams import ENTITIES, EVENT_TYPE, TITLE, NewEvent
from conspectus.text.clean import clean
from conspectus.text.clocks import StreamClock
from conspectus.text.hashing import content_hash
from conspectus.text.times import canonical

PREFIX: Final = "event:"
"""Begins the keys of events, so that they are apart from those of the captions of the same stream."""
LONGEST_TYPE: Final = 1_000


def event_document(new: NewEvent, stream: Source, clock: StreamClock) -> NewDocument:
    """The document of an event. Raises InvalidInput for a type or times that cannot be."""
    if not new.type.strip() or len(new.type) > LONGEST_TYPE:
        raise InvalidInput("type", f"must have 1 to {LONGEST_TYPE} characters")
    occurred = clock.period(new.start, new.end)
    title = stream.metadata.get(TITLE)
    entities = {ENTITIES: list(new.entities)} if new.entities else {}
    return NewDocument(
        text=new.description if new.description.strip() else new.type,
        title=title if isinstance(title, str) else "",
        kind="event",
        key=PREFIX + (_content(new, occurred) if new.key is None else new.key),
        metadata={**new.metadata, EVENT_TYPE: new.type, **entities},
        occurred=occurred,
    )


def event_id(stream: SourceId, key: str) -> str:
    """The id of the event whose document has that key."""
    return caption_id(stream, clean(key))


def _content(new: NewEvent, occurred: Period) -> str:
    """The name that the same event has again."""
    times = (canonical(occurred.start), canonical(occurred.end))
    return content_hash("\0".join((*times, clean(new.type), clean(new.description))))
