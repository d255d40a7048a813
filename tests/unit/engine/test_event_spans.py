"""Reports of events put together: what is one event, and what is not."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.engine.event_spans import Report, entity_spans, event_spans, group_reports
from conspectus.model.ids import SourceId
from conspectus.text.intervals import GAP_SECONDS, continues_interval
from conspectus.text.stream_clocks import StreamClock

STREAM = SourceId("s")


def build_report(start: float, end: float, of: str = "fall", document: str = "", **more) -> Report:
    return Report(of, start, end, document or f"{of}{start}-{end}", **more)


def list_spans(*reports: Report) -> list[tuple[str, float, float]]:
    return [(event.subject, event.start, event.end) for event in group_reports(reports)]


def test_a_gap_of_up_to_four_seconds_is_none() -> None:
    assert list_spans(build_report(0, 5), build_report(8, 10)) == [("fall", 0, 10)]
    assert list_spans(build_report(0, 5), build_report(9, 10)) == [("fall", 0, 10)]


def test_a_larger_gap_is_one() -> None:
    assert list_spans(build_report(0, 5), build_report(10, 12)) == [("fall", 0, 5), ("fall", 10, 12)]
    assert list_spans(build_report(0, 5), build_report(9.001, 12)) == [("fall", 0, 5), ("fall", 9.001, 12)]


def test_other_types_are_other_events() -> None:
    events = list_spans(build_report(0, 5), build_report(1, 4, "Fall"), build_report(2, 3, "fire"))
    assert events == [("fall", 0, 5), ("Fall", 1, 4), ("fire", 2, 3)]


@pytest.mark.parametrize(
    ("first", "second", "union"),
    [
        ((0, 5), (5, 9), (0, 9)),
        ((0, 9), (2, 3), (0, 9)),
        ((3, 3), (3, 3), (3, 3)),
        ((3, 3), (7, 7), (3, 7)),
        ((0, 5), (4.99, 6), (0, 6)),
        ((-3, -2), (1, 2), (-3, 2)),
    ],
)
def test_touching_contained_and_instants(first, second, union) -> None:
    assert list_spans(build_report(*second), build_report(*first)) == [("fall", *union)]


def test_what_is_contained_does_not_end_what_contains_it() -> None:
    assert list_spans(build_report(0, 100), build_report(1, 2), build_report(103, 104)) == [("fall", 0, 104)]


def test_a_chain_is_one_event_with_all_that_was_said_once() -> None:
    reports = [
        build_report(0, 1, document="a", text="a man falls", entities=("Ann",)),
        build_report(4, 5, document="b", text="he lies there", entities=("Bo", "Ann")),
        build_report(8, 9, document="c", text="a man falls"),
        build_report(8, 9, document="c", text="a man falls"),
    ]
    [event] = event_spans(STREAM, reversed(reports), StreamClock())
    assert (event.start, event.end, event.stream) == (0, 9, STREAM)
    assert event.descriptions == ("a man falls", "he lies there")
    assert event.entities == ("Ann", "Bo")
    assert event.documents == ("a", "b", "c")


def test_an_entity_has_stretches() -> None:
    reports = [build_report(20, 21, "Ann"), build_report(0, 1, "Ann"), build_report(3, 4, "Ann")]
    spans = entity_spans(STREAM, reports, StreamClock())
    assert [(span.entity, span.start, span.end, len(span.documents)) for span in spans] == [
        ("Ann", 0, 4, 2),
        ("Ann", 20, 21, 1),
    ]


def test_without_reports_there_is_nothing() -> None:
    assert group_reports([]) == []


def test_a_gap_of_none_still_joins_what_overlaps_or_touches() -> None:
    assert continues_interval(5, 4, gap=0)
    assert continues_interval(5, 5, gap=0)
    assert not continues_interval(5, 5.1, gap=0)


times = st.floats(0, 60).map(lambda seconds: round(seconds, 2))
reports = st.lists(
    st.builds(
        lambda of, start, length: build_report(start, start + length, of),
        st.sampled_from("ab"),
        times,
        st.floats(0, 9).map(lambda seconds: round(seconds, 2)),
    ),
    max_size=12,
)


@given(reports, st.randoms())
def test_the_order_of_reports_does_not_matter(given_reports, chance) -> None:
    shuffled = list(given_reports)
    chance.shuffle(shuffled)
    assert group_reports(shuffled) == group_reports(given_reports)


@given(reports)
def test_events_are_apart_and_hold_every_report(given_reports) -> None:
    events = group_reports(given_reports)
    assert sorted(r.document for event in events for r in event.reports) == sorted(
        r.document for r in given_reports
    )
    for of in "ab":
        mine = [event for event in events if event.subject == of]
        for before, after in pairwise(mine):
            assert after.start - before.end > GAP_SECONDS
    assert all(event.start <= r.start <= r.end <= event.end for event in events for r in event.reports)
