"""Captions as people and files read them: times on their stream's clock, and one line of JSON for each."""

import json
from datetime import UTC, datetime, timedelta

from conspectus.model.records import Json
from conspectus.model.streams import ENTITIES, EPOCH_YEAR, Caption
from conspectus.text.times import StreamClock, timecode


def shown(seconds: float, clock: StreamClock) -> str:
    """A time of a stream: a timecode, or the instant in its zone where it is one of the calendar."""
    moment = clock.origin + timedelta(seconds=seconds)
    return timecode(seconds) if moment.year == EPOCH_YEAR else _local(moment, clock).isoformat()


def line_of(caption: Caption) -> str:
    """A caption as one line of JSON for an import, without the time at which it was stored."""
    document = caption.document
    metadata = dict(document.metadata)
    start, end = _times(caption)
    told: dict[str, Json] = {
        "text": caption.text,
        "start": start,
        "end": end,
        "index": document.sequence,
        "key": None if document.key == str(document.sequence) else document.key,
        "speaker": document.author,
        "entities": metadata.pop(ENTITIES, None),
        "metadata": metadata,
    }
    given = {name: each for name, each in told.items() if each not in (None, {}, [])}
    return json.dumps(given, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _times(caption: Caption) -> tuple[Json, Json]:
    """Seconds of a recording, but instants of the calendar as such: they mean the same on every clock."""
    occurred = caption.document.occurred
    if occurred is None or occurred.start.year == EPOCH_YEAR:
        return caption.start, caption.end
    return occurred.start.astimezone(UTC).isoformat(), occurred.end.astimezone(UTC).isoformat()


def _local(moment: datetime, clock: StreamClock) -> datetime:
    try:
        return moment.astimezone(clock.zone)
    except OverflowError:
        return moment
