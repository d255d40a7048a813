"""Captions and events of a stream: their group, their times, and missing captions."""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from conspectus.model.captions import TRACK
from conspectus.model.records import Document
from conspectus.model.stream_events import EVENT_TYPE
from conspectus.text.stream_clocks import timecode
from conspectus.text.times import EPOCH

_STREAMED_KINDS: Final = frozenset({"caption", "event"})
_MAX_PAUSE: Final = timedelta(seconds=5)
"""Longest pause without assuming a missing caption."""


def is_streamed(document: Document) -> bool:
    """Return whether the document is a caption or an event."""
    return document.kind in _STREAMED_KINDS


def stream_group(document: Document) -> tuple[str, ...]:
    """Return the group key of a caption or event: its stream."""
    other = () if document.thread in {None, TRACK} else (document.thread or "",)
    return ("stream", document.source, *other)


def event_type(document: Document) -> str:
    """Return the type of an event; empty for a caption."""
    name = document.metadata.get(EVENT_TYPE)
    return name if document.kind == "event" and isinstance(name, str) else ""


def time_range(document: Document, before: Document | None = None, zone: tzinfo = UTC) -> str:
    """Format a time range: timecodes of a recording, else instants without a repeated day.

    A range without duration is one time; without times it is empty. A time zone other than UTC follows the
    day.
    """
    if document.occurred is None:
        return ""
    start, end = document.occurred.start, document.occurred.end
    if start.astimezone(UTC).year == EPOCH.year:
        codes = [timecode((moment - EPOCH).total_seconds()) for moment in (start, end)]
        return codes[0] if start == end else " - ".join(codes)
    previous = _local(before.occurred.start, zone) if before and before.occurred else None
    begins, ends = _local(start, zone), _local(end, zone)
    times = [_instant(begins, previous), *([] if start == end else [_instant(ends, begins)])]
    repeats_day = previous is not None and previous.date() == begins.date()
    return " - ".join(times) + ("" if zone is UTC or repeats_day else f" {zone}")


def has_gap_before(document: Document, before: Document | None) -> bool:
    """Return whether captions may be missing between two consecutive captions."""
    if before is None or not is_streamed(before) or before.source != document.source:
        return False
    if document.sequence is not None and before.sequence is not None:
        return document.sequence > before.sequence + 1
    if document.occurred is None or before.occurred is None:
        return False
    return document.occurred.start - before.occurred.end > _MAX_PAUSE


def _local(moment: datetime, zone: tzinfo) -> datetime:
    """Convert an instant to a time zone, or to UTC if the result is out of range."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment.astimezone(UTC)


def _instant(moment: datetime, previous: datetime | None) -> str:
    time = moment.replace(tzinfo=None, microsecond=moment.microsecond // 1_000 * 1_000)
    text = time.isoformat(sep=" ", timespec="milliseconds" if time.microsecond else "seconds")
    if previous is not None and previous.date() == moment.date():
        return text.partition(" ")[2]
    return text
