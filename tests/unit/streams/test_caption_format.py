"""Captions formatted for people and for files."""

import json
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from conspectus.model.captions import Caption
from conspectus.model.ids import CollectionId, DocumentId, SourceId
from conspectus.model.records import Document, Period, Source
from conspectus.streams.caption_format import format_time, line_of
from conspectus.text.stream_clocks import StreamClock, clock_of
from conspectus.text.times import EPOCH

NOW = datetime(2026, 3, 2, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


def make_stream(**metadata: str) -> Source:
    return Source(SourceId("s"), CollectionId("c"), "cam", metadata, "stream")


def make_caption(
    text: str, start: float | None, end: float | None, clock: StreamClock, **fields: object
) -> Caption:
    occurred = None
    if start is not None and end is not None:
        occurred = Period(clock.origin + timedelta(seconds=start), clock.origin + timedelta(seconds=end))
    fixed = {"key": "k", "title": "", "content_hash": "h", "fingerprint": "f", **fields}
    document = Document(
        DocumentId("d"), CollectionId("c"), SourceId("s"), "caption",
        recorded=NOW, updated=NOW, occurred=occurred, **fixed,
    )  # fmt: skip
    return Caption(document, text, start, end)


def test_a_clock_is_that_of_the_metadata() -> None:
    assert clock_of(make_stream()) == StreamClock(EPOCH)
    clock = clock_of(make_stream(start_time="2026-03-02T08:00:00", time_zone="Europe/Berlin"))
    assert clock == StreamClock(datetime(2026, 3, 2, 7, tzinfo=UTC), BERLIN)


@pytest.mark.parametrize(
    ("seconds", "clock", "text"),
    [
        (0.0, StreamClock(), "00:00:00"),
        (750.5, StreamClock(), "00:12:30.500"),
        (750.0, StreamClock(datetime(2026, 3, 2, 7, tzinfo=UTC), BERLIN), "2026-03-02T08:12:30+01:00"),
        (1_772_438_400.0, StreamClock(), "2026-03-02T08:00:00+00:00"),
        (0.0, StreamClock(datetime(9999, 12, 31, 23, tzinfo=UTC), BERLIN), "9999-12-31T23:00:00+00:00"),
    ],
)
def test_times_are_shown_on_their_clock(seconds: float, clock: StreamClock, text: str) -> None:
    assert format_time(seconds, clock) == text


def test_a_line_holds_what_was_said_and_no_more() -> None:
    full = make_caption(
        "Grüße\n🎉", 1.5, 3.0, StreamClock(), key="7", sequence=7, author="ann",
        metadata={"entities": ["red car"], "confidence": 0.5},
    )  # fmt: skip
    assert line_of(full) == (
        '{"end":3.0,"entities":["red car"],"index":7,"key":"7","metadata":{"confidence":0.5},"speaker":"ann",'
        '"start":1.5,"text":"Grüße\\n🎉"}'
    )
    assert json.loads(line_of(make_caption("x", None, None, StreamClock()))) == {"text": "x", "key": "k"}


def test_instants_of_the_calendar_are_given_as_such() -> None:
    clock = StreamClock(datetime(2026, 3, 2, 7, tzinfo=UTC), BERLIN)
    exported = json.loads(line_of(make_caption("x", 60.0, 61.0, clock)))
    assert (exported["start"], exported["end"]) == ("2026-03-02T07:01:00+00:00", "2026-03-02T07:01:01+00:00")
