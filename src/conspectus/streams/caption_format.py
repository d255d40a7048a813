"""Captions as text: times on the clock of their stream, and JSON Lines."""

import json
from datetime import UTC, datetime, timedelta

from conspectus.model.captions import EPOCH_YEAR, Caption
from conspectus.model.records import Json
from conspectus.model.stream_events import ENTITIES
from conspectus.text.stream_clocks import StreamClock, timecode


def format_time(seconds: float, clock: StreamClock) -> str:
    """Format a time of a stream: a timecode, or an instant in the time zone of the stream."""
    moment = clock.origin + timedelta(seconds=seconds)
    if moment.year == EPOCH_YEAR:
        return timecode(seconds)
    return _in_zone(moment, clock).isoformat()


def line_of(caption: Caption) -> str:
    """Return a caption as a JSON line for an import, without the time it was stored."""
    document = caption.document
    metadata = dict(document.metadata)
    start, end = _format_times(caption)
    values: dict[str, Json] = {
        "text": caption.text,
        "start": start,
        "end": end,
        "index": document.sequence,
        "key": document.key,
        "speaker": document.author,
        "entities": metadata.pop(ENTITIES, None),
        "metadata": metadata,
        "read_by": None if document.read_by == "text" else document.read_by,
    }
    fields = {name: content for name, content in values.items() if content not in (None, {}, [])}
    return json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _format_times(caption: Caption) -> tuple[Json, Json]:
    """Return seconds for a recording and an ISO instant for calendar time."""
    occurred = caption.document.occurred
    if occurred is None or occurred.start.year == EPOCH_YEAR:
        return caption.start, caption.end
    return occurred.start.astimezone(UTC).isoformat(), occurred.end.astimezone(UTC).isoformat()


def _in_zone(moment: datetime, clock: StreamClock) -> datetime:
    try:
        return moment.astimezone(clock.zone)
    except OverflowError:
        return moment
