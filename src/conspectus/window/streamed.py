"""Captions and events of streams: what stands before them, and where something is missing between two."""

from datetime import UTC, datetime, timedelta
from typing import Final

from conspectus.model.records import Document
from conspectus.model.video import EVENT_TYPE, TRACK
from conspectus.text.clocks import EPOCH, timecode

_KINDS: Final = frozenset({"caption", "event"})
_PAUSE: Final = timedelta(seconds=5)
"""So long nobody says anything without a caption being missing."""


def is_streamed(document: Document) -> bool:
    """Whether it is a caption or an event."""
    return document.kind in _KINDS


def track(document: Document) -> tuple[str, ...]:
    """What it is kept together with, in the order of time: the captions and events of its stream."""
    other = () if document.thread in {None, TRACK} else (document.thread or "",)
    return ("stream", document.source, *other)


def event_type(document: Document) -> str:
    """Which kind of event it is; empty for a caption."""
    told = document.metadata.get(EVENT_TYPE)
    return told if document.kind == "event" and isinstance(told, str) else ""


def stretch(document: Document, before: Document | None = None) -> str:
    """From when to when: timecodes of a recording, else instants, without the day if that is known before.

    Only one time where it is an instant; nothing where it has no time.
    """
    if document.occurred is None:
        return ""
    start, end = (each.astimezone(UTC) for each in (document.occurred.start, document.occurred.end))
    if start.year == EPOCH.year:
        shown = [timecode((each - EPOCH).total_seconds()) for each in (start, end)]
    else:
        told = before.occurred.start.astimezone(UTC) if before and before.occurred else None
        shown = [_instant(start, told), _instant(end, start)]
    return shown[0] if start == end else " - ".join(shown)


def apart(document: Document, before: Document | None) -> bool:
    """Whether something of the stream may be missing between two that follow each other."""
    if before is None or not is_streamed(before) or before.source != document.source:
        return False
    if document.sequence is not None and before.sequence is not None:
        return document.sequence > before.sequence + 1
    if document.occurred is None or before.occurred is None:
        return False
    return document.occurred.start - before.occurred.end > _PAUSE


def _instant(moment: datetime, told: datetime | None) -> str:
    time = moment.replace(tzinfo=None, microsecond=moment.microsecond // 1_000 * 1_000)
    shown = time.isoformat(sep=" ", timespec="milliseconds" if time.microsecond else "seconds")
    return shown.partition(" ")[2] if told is not None and told.date() == moment.date() else shown
