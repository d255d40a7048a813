"""Whatever is asked of whatever stream: the grammar of time answers, and its range is one."""

from datetime import UTC, datetime

from hypothesis import example, given
from hypothesis import strategies as st

from conspectus.text.stream_clocks import StreamClock, zone_by_name
from conspectus.text.times import EPOCH
from conspectus.time_expressions import ClockFace, describe, find_time

_VOCABULARY = (
    "at before after until since from to between and in the first last five 5 minutes minute hour half an a "
    "second third of video 12:30 1:02:03 - 3pm 3 pm yesterday monday morning on 2026-01-05 2026-01-05T14:30 "
    "5 march 90s 1h2m ago into beginning end halfway within mark , . ? 99:59 24:00 999999999 0 week tonight "
    "noon midnight shortly around o'clock 31st february what said"
)
_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe")

moments = st.datetimes(timezones=st.just(UTC))
questions = st.one_of(
    st.text(max_size=200), st.lists(st.sampled_from(_VOCABULARY.split()), max_size=14).map(" ".join)
)


@st.composite
def faces(draw: st.DrawFn) -> ClockFace:
    zone = zone_by_name(draw(st.sampled_from(_ZONES)))
    first, last = sorted((draw(moments), draw(moments)))
    origin = draw(st.sampled_from((EPOCH, first)))
    is_bounded = draw(st.booleans())
    return ClockFace(
        StreamClock(origin, zone),
        wall=draw(st.booleans()),
        first=first if is_bounded else None,
        last=last if is_bounded else None,
        now=draw(moments),
        live=draw(st.booleans()),
    )


@given(questions, faces())
@example(
    "from monday to the last week", ClockFace(StreamClock(), wall=True, first=None, last=None, now=EPOCH)
)
def test_every_question_is_read_without_fault(question: str, face: ClockFace) -> None:
    expression = find_time(question, face)
    if expression is None:
        return
    assert (expression.start, expression.end) != (None, None)
    assert expression.start is None or expression.end is None or expression.start <= expression.end
    assert expression.phrase
    assert expression == find_time(question, face)
    description = describe(expression, face)
    assert description == describe(expression, face)
    assert expression.phrase in description


@given(questions, faces())
def test_what_is_left_has_no_more_words_than_the_question(question: str, face: ClockFace) -> None:
    expression = find_time(question, face)
    if expression is not None:
        assert len(expression.rest) <= len(question)
        assert set(expression.rest) <= set(question) | {" "}


@given(st.integers(0, 59), st.integers(0, 59), st.sampled_from(("before", "after", "at", "around", "until")))
def test_a_time_of_a_recording_is_its_second(minutes: int, seconds: int, relation: str) -> None:
    end = datetime(1970, 1, 1, 1, tzinfo=UTC)
    face = ClockFace(StreamClock(), wall=False, first=EPOCH, last=end, now=end)
    expression = find_time(f"What happened {relation} {minutes}:{seconds:02}?", face)
    assert expression is not None
    bounds = {
        face.clock.seconds(instant) for instant in (expression.start, expression.end) if instant is not None
    }
    widened = 30 if relation == "around" else 0
    assert minutes * 60 + seconds - widened in bounds
    assert expression.rest == ""
