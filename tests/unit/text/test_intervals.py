"""Intervals that belong together: gaps, overlaps and chains of them."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.text.intervals import GAP_SECONDS, OVERLAP_SECONDS, continues_interval, runs

INTERVALS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), max_size=8).map(
    lambda pairs: [(float(start), float(start + length)) for start, length in pairs]
)


@pytest.mark.parametrize(
    ("end", "start", "expected"),
    [
        (10.0, 10.0 + GAP_SECONDS, True),
        (10.0, 10.1 + GAP_SECONDS, False),
        (10.0, 10.0, True),
        (10.0, 3.0, True),
        (0.0, 4.0, True),
        (0.0, 4.5, False),
    ],
)
def test_what_follows_within_the_gap_belongs_to_what_was_before(
    end: float, start: float, expected: bool
) -> None:
    assert continues_interval(end, start) is expected


def test_an_overlap_joins_whatever_the_gap_and_a_touch_does_not() -> None:
    assert continues_interval(10.0, 10.0 - OVERLAP_SECONDS - 0.01, gap=-5.0)
    assert not continues_interval(10.0, 9.95, gap=-5.0)
    assert continues_interval(OVERLAP_SECONDS, 0.0, gap=-5.0)


def test_a_long_interval_holds_what_lies_in_it_together() -> None:
    assert runs([(20.0, 21.0), (0.0, 30.0), (1.0, 2.0), (40.0, 41.0)]) == [[1, 2, 0], [3]]
    assert runs([(0.0, 1.0), (6.0, 7.0)]) == [[0], [1]]
    assert runs([(0.0, 1.0), (6.0, 7.0)], gap=5.0) == [[0, 1]]
    assert runs([]) == []


@given(INTERVALS, st.integers(0, 6))
def test_intervals_are_together_if_a_chain_of_near_ones_joins_them(
    intervals: list[tuple[float, float]], gap: int
) -> None:
    groups = runs(intervals, gap=gap)
    assert sorted(position for run in groups for position in run) == list(range(len(intervals)))
    borders = [
        (min(intervals[index][0] for index in run), max(intervals[index][1] for index in run))
        for run in groups
    ]
    assert all(later[0] - earlier[1] > gap for earlier, later in pairwise(borders))
    for run in groups:
        reached = intervals[run[0]][1]
        for index in run[1:]:
            assert intervals[index][0] - reached <= gap
            reached = max(reached, intervals[index][1])
