"""Measures of links and conversations, compared with values computed by hand."""

import math
from itertools import permutations

import numpy as np
import pytest
from benchmarks.threads import best_pairs, exact_match, information_kept, link_scores, one_to_one
from hypothesis import given
from hypothesis import strategies as st

LABELS = st.integers(1, 30).flatmap(
    lambda size: st.tuples(*[st.lists(st.integers(0, 5), min_size=size, max_size=size)] * 2)
)


def test_each_link_counts_once_and_a_start_is_a_link_to_itself() -> None:
    true = {1: {1}, 2: {1}, 3: {1, 2}, 4: {4}}
    predicted = {1: {1}, 2: {2}, 3: {2}, 4: {3}, 9: {1}}
    scores = link_scores(true, predicted)
    assert (scores.precision, scores.recall) == (2 / 4, 2 / 5)
    assert scores.f1 == pytest.approx(4 / 9)


def test_no_links_are_no_success() -> None:
    assert link_scores({}, {}) == (0.0, 0.0, 0.0)


def test_conversations_are_paired_so_that_most_messages_agree() -> None:
    """Taking the largest overlap first (a with x) would leave b nothing: 3 in all, and not 4."""
    true = ["a"] * 5 + ["b"] * 2
    predicted = ["x", "x", "x", "y", "y", "x", "x"]
    assert one_to_one(true, predicted) == pytest.approx(4 / 7)
    assert one_to_one(true, true) == 1.0
    assert one_to_one([1, 2, 3, 4], [0, 0, 0, 0]) == 0.25


@given(st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=1, max_size=5))
def test_no_other_pairs_have_more(rows: list[list[int]]) -> None:
    gains = np.array(rows)
    pairs = best_pairs(gains)
    assert len({row for row, _ in pairs}) == len({column for _, column in pairs}) == min(gains.shape)
    wide = gains if gains.shape[0] <= gains.shape[1] else gains.T
    best = max(
        sum(wide[row, column] for row, column in enumerate(columns))
        for columns in permutations(range(wide.shape[1]), wide.shape[0])
    )
    assert sum(gains[row, column] for row, column in pairs) == best


def test_single_messages_are_no_exact_matches() -> None:
    true, predicted = [1, 1, 2, 2, 2, 3], ["a", "a", "b", "b", "c", "d"]
    assert exact_match(true, predicted).f1 == pytest.approx(0.5)
    assert exact_match([1, 2, 3], [4, 5, 6]).f1 == 0.0


def test_information_is_what_the_entropies_say() -> None:
    assert information_kept([1, 1, 2, 2], [5, 5, 6, 6]) == pytest.approx(1.0)
    assert information_kept([1, 1, 2, 2], [1, 2, 1, 2]) == pytest.approx(0.0)
    assert information_kept([1, 1, 2, 2], [1, 1, 1, 1]) == pytest.approx(1 - math.log(2) / math.log(4))
    assert information_kept([1], [2]) == 1.0


@given(LABELS)
def test_shares_stay_between_none_and_all_and_do_not_depend_on_names(
    labels: tuple[list[int], list[int]],
) -> None:
    true, predicted = labels
    renamed = [chr(65 + label) for label in predicted]
    for measure in (one_to_one, information_kept, lambda *both: exact_match(*both).f1):
        share = measure(true, predicted)
        assert -1e-9 <= share <= 1 + 1e-9
        assert measure(true, renamed) == pytest.approx(share)
        assert measure(predicted, true) == pytest.approx(share)
