"""Reports of events put together: what is one event, and what is not."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.engine.event_spans import Report, entity_spans, event_spans, group_reports
from conspectus.model.ids import SourceId
from conspectus.text.intervals import GAP_SECONDS, belongs
from conspectus.text.stream_clocks import StreamClock

STREAM = SourceId("s")


def report(start: float, end: float, of: str = "fall", document: str = "", **more) -> Report:
    return Report(of, start, end, document or f"{of}{start}-{end}", **more)


def spans(*reports: Report) -> list[tuple[str, float, float]]:
    return [(each.of, each.start, each.end) for each in group_reports(reports)]


def test_a_gap_of_up_to_four_seconds_is_none() -> None:
    assert spans(report(0, 5), report(8, 10)) == [("fall", 0, 10)]
    assert spans(report(0, 5), report(9, 10)) == [("fall", 0, 10)]


def test_a_larger_gap_is_one() -> None:
    assert spans(report(0, 5), report(10, 12)) == [("fall", 0, 5), ("fall", 10, 12)]
    assert spans(report(0, 5), report(9.001, 12)) == [("fall", 0, 5), ("fall", 9.001, 12)]


def test_other_types_are_other_events() -> None:
    found = spans(report(0, 5), report(1, 4, "Fall"), report(2, 3, "fire"))
    assert found == [("fall", 0, 5), ("Fall", 1, 4), ("fire", 2, 3)]


@pytest.mark.parametrize(
    ("first", "second", "whole"),
    [
        ((0, 5), (5, 9), (0, 9)),
        ((0, 9), (2, 3), (0, 9)),
        ((3, 3), (3, 3), (3, 3)),
        ((3, 3), (7, 7), (3, 7)),
        ((0, 5), (4.99, 6), (0, 6)),
        ((-3, -2), (1, 2), (-3, 2)),
    ],
)
def test_touching_contained_and_instants(first, second, whole) -> None:
    assert spans(report(*second), report(*first)) == [("fall", *whole)]


def test_what_is_contained_does_not_end_what_contains_it() -> None:
    assert spans(report(0, 100), report(1, 2), report(103, 104)) == [("fall", 0, 104)]


def test_a_chain_is_one_event_with_all_that_was_said_once() -> None:
    reports = [
        report(0, 1, document="a", text="a man falls", entities=("Ann",)),
        report(4, 5, document="b", text="he lies there", entities=("Bo", "Ann")),
        report(8, 9, document="c", text="a man falls"),
        report(8, 9, document="c", text="a man falls"),
    ]
    [event] = event_spans(STREAM, reversed(reports), StreamClock())
    assert (event.start, event.end, event.stream) == (0, 9, STREAM)
    assert event.descriptions == ("a man falls", "he lies there")
    assert event.entities == ("Ann", "Bo")
    assert event.documents == ("a", "b", "c")


def test_an_entity_has_stretches() -> None:
    reports = [report(20, 21, "Ann"), report(0, 1, "Ann"), report(3, 4, "Ann")]
    found = entity_spans(STREAM, reports, StreamClock())
    assert [(each.entity, each.start, each.end, len(each.documents)) for each in found] == [
        ("Ann", 0, 4, 2),
        ("Ann", 20, 21, 1),
    ]


def test_without_reports_there_is_nothing() -> None:
    assert group_reports([]) == []


def test_a_gap_of_none_still_joins_what_overlaps_or_touches() -> None:
    assert belongs(5, 4, gap=0)
    assert belongs(5, 5, gap=0)
    assert not belongs(5, 5.1, gap=0)


times = st.floats(0, 60).map(lambda each: round(each, 2))
reports = st.lists(
    st.builds(
        lambda of, start, length: report(start, start + length, of),
        st.sampled_from("ab"),
        times,
        st.floats(0, 9).map(lambda each: round(each, 2)),
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
    found = group_reports(given_reports)
    assert sorted(r.document for each in found for r in each.reports) == sorted(
        r.document for r in given_reports
    )
    for of in "ab":
        mine = [each for each in found if each.of == of]
        for before, after in pairwise(mine):
            assert after.start - before.end > GAP_SECONDS
    assert all(each.start <= r.start <= r.end <= each.end for each in found for r in each.reports)
