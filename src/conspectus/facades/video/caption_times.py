"""Times and numbers of captions in their metadata."""

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from conspectus.errors import InvalidInput
from conspectus.ingest.captions import span_of
from conspectus.model.captions import CaptionRange
from conspectus.model.records import Period
from conspectus.text.stream_clocks import StreamClock

CLOCK: Final = StreamClock()
LOG: Final = logging.getLogger("conspectus.video")
Instant = datetime | str | float


def times_of(metadata: Mapping[str, Any]) -> tuple[Instant, Instant] | None:
    """Return the start and end of a document; a missing one equals the other.

    Returns None without times. Invalid or reversed times are logged: the document is stored and belongs to no
    range.
    """
    times = [metadata.get("start_time"), metadata.get("end_time")]
    known_times = [time for time in times if time is not None and time != ""]
    if not known_times:
        return None
    start, end = known_times[0], known_times[-1]
    try:
        CLOCK.period(start, end)
    except InvalidInput as fault:
        LOG.warning("stored without a time: start_time %r, end_time %r: %s", *times, fault)
        return None
    return start, end


def in_range(metadata: Mapping[str, Any], within: CaptionRange) -> bool:
    """Return whether the times of a document overlap a range, or with `contains` lie inside it."""
    span = span_of(within, CLOCK)
    times = times_of(metadata)
    if times is None:
        return span.start is None and span.end is None
    period: Period = CLOCK.period(*times)
    if not within.contains:
        return period.overlaps(span.start, span.end)
    starts = span.start is None or period.start >= span.start
    return starts and (span.end is None or period.end <= span.end)


def chunk_index(metadata: Mapping[str, Any]) -> float:
    """Return the number of a document in its stream, default 0."""
    value = metadata.get("chunk_idx")
    return value if isinstance(value, int | float) and value == value else 0


def sequence_of(metadata: Mapping[str, Any]) -> int | None:
    """Return the number of a document in its stream if it is an integer from 0 on, else None."""
    value = metadata.get("chunk_idx")
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < 2**63 else None


def open_ended(value: Instant | None) -> Instant | None:
    """Return a bound of a range, or None for an empty one."""
    return None if value is None or value == "" else value
