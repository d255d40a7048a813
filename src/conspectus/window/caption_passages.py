"""Captions and events of streams: what stands before them, and where something is missing between two."""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from conspectus.model.records import Document
from conspectus.model.streams import EVENT_TYPE, TRACK
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


def stretch(document: Document, before: Document | None = None, zone: tzinfo = UTC) -> str:
    """From when to when: timecodes of a recording, else instants, without the day if that is known before.

    Only one time where it is an instant; nothing where it has no time. A zone other than UTC stands behind
    the day.
    """
    if document.occurred is None:
        return ""
    start, end = document.occurred.start, document.occurred.end
    if start.astimezone(UTC).year == EPOCH.year:
        shown = [timecode((each - EPOCH).total_seconds()) for each in (start, end)]
        return shown[0] if start == end else " - ".join(shown)
    told = _local(before.occurred.start, zone) if before and before.occurred else None
    begins, ends = _local(start, zone), _local(end, zone)
    shown = [_instant(begins, told), *([] if start == end else [_instant(ends, begins)])]
    same = zone is UTC or (told is not None and told.date() == begins.date())
    return " - ".join(shown) + ("" if same else f" {zone}")


def apart(document: Document, before: Document | None) -> bool:
    """Whether something of the stream may be missing between two that follow each other."""
    if before is None or not is_streamed(before) or before.source != document.source:
        return False
    if document.sequence is not None and before.sequence is not None:
        return document.sequence > before.sequence + 1
    if document.occurred is None or before.occurred is None:
        return False
    return document.occurred.start - before.occurred.end > _PAUSE


def _local(moment: datetime, zone: tzinfo) -> datetime:
    """The moment in a zone, where that is in the calendar."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment.astimezone(UTC)


def _instant(moment: datetime, told: datetime | None) -> str:
    time = moment.replace(tzinfo=None, microsecond=moment.microsecond // 1_000 * 1_000)
    shown = time.isoformat(sep=" ", timespec="milliseconds" if time.microsecond else "seconds")
    return shown.partition(" ")[2] if told is not None and told.date() == moment.date() else shown
