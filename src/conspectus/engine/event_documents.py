"""Documents that store events of streams."""

from collections.abc import Iterator
from typing import Final

from conspectus.engine.event_spans import Report
from conspectus.errors import InvalidInput
from conspectus.ingest.captions import caption_id
from conspectus.model.captions import TITLE, Caption
from conspectus.model.ids import SourceId
from conspectus.model.records import NewDocument, Period, Source
from conspectus.model.stream_events import ENTITIES, EVENT_TYPE, NewEvent
from conspectus.text.clean import clean
from conspectus.text.hashing import content_hash
from conspectus.text.stream_clocks import StreamClock
from conspectus.text.times import canonical

PREFIX: Final = "event:"
"""The prefix of event keys, which distinguishes them from caption keys of the same stream."""
MAX_TYPE_LENGTH: Final = 1_000


def event_document(new: NewEvent, stream: Source, clock: StreamClock) -> NewDocument:
    """Return the document of an event. Raises InvalidInput for an invalid type or time."""
    if not new.type.strip() or len(new.type) > MAX_TYPE_LENGTH:
        raise InvalidInput("type", f"must have 1 to {MAX_TYPE_LENGTH} characters")
    occurred = clock.period(new.start, new.end)
    title = stream.metadata.get(TITLE)
    entities = {ENTITIES: list(new.entities)} if new.entities else {}
    return NewDocument(
        text=new.description if new.description.strip() else new.type,
        title=title if isinstance(title, str) else "",
        kind="event",
        key=PREFIX + (_content_key(new, occurred) if new.key is None else new.key),
        metadata={**new.metadata, EVENT_TYPE: new.type, **entities},
        occurred=occurred,
    )


def event_id(stream: SourceId, key: str) -> str:
    """Return the id of the event whose document has that key."""
    return caption_id(stream, clean(key))


def _content_key(new: NewEvent, occurred: Period) -> str:
    """Return a key derived from the content, equal for equal events."""
    times = (canonical(occurred.start), canonical(occurred.end))
    return content_hash("\0".join((*times, clean(new.type), clean(new.description))))


def event_reports(event: Caption) -> Iterator[Report]:
    """Yield the text of a stored event with its time, if it has one."""
    if event.start is None or event.end is None:
        return
    metadata = event.document.metadata
    entities = metadata.get(ENTITIES)
    yield Report(
        subject=str(metadata.get(EVENT_TYPE, "")),
        start=event.start,
        end=event.end,
        document=event.document.id,
        text=event.text,
        entities=tuple(map(str, entities)) if isinstance(entities, list) else (),
    )
