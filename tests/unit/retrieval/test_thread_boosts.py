"""Neighbor boost: neighbors of a good text rise, all others stay."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.retrieval import thread_boosts
from conspectus.retrieval.thread_boosts import above_typical

SCORES = st.lists(st.floats(-1.0, 1.0), max_size=20)


def neighbor_boost(scores, *ids_and_links, **options):
    """The boost of scores that are compared with their median."""
    above = np.maximum(scores - np.median(scores), 0.0) if len(scores) else scores
    return thread_boosts.neighbor_boost(above, *ids_and_links, **options)


def id_array(*values):
    return np.array(values, dtype=np.int64)


def link_array(*pairs):
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def test_a_neighbor_of_a_good_text_rises_by_its_share():
    scores = np.array([0.1, 0.9, 0.1, 0.1])
    shares = neighbor_boost(scores, id_array(10, 11, 12, 40), link_array((10, 11), (11, 12)), weight=0.5)
    np.testing.assert_allclose(shares, [0.4, 0.0, 0.4, 0.0])


def test_a_typical_neighbor_changes_nothing():
    shares = neighbor_boost(np.array([0.5, 0.5, 0.9]), id_array(1, 2, 3), link_array((1, 2)))
    np.testing.assert_array_equal(shares, [0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    "repeated_links",
    [link_array((1, 2), (1, 2)), link_array((1, 2), (2, 1)), link_array((1, 2), (2, 9), (0, 1), (2, 2))],
)
def test_repeated_turned_unknown_and_self_links_count_once_or_not_at_all(repeated_links):
    scores, chunk_ids = np.array([0.2, 0.8, 0.5]), id_array(1, 2, 3)
    np.testing.assert_array_equal(
        neighbor_boost(scores, chunk_ids, repeated_links),
        neighbor_boost(scores, chunk_ids, link_array((1, 2))),
    )


def test_nothing_to_rank_and_nothing_linked():
    assert len(neighbor_boost(np.zeros(0), id_array(), link_array((1, 2)))) == 0
    np.testing.assert_array_equal(neighbor_boost(np.array([0.7]), id_array(5), link_array()), [0.0])
    np.testing.assert_array_equal(neighbor_boost(np.array([0.7]), id_array(5), link_array((5, 6))), [0.0])


@given(SCORES, st.floats(0.0, 1.0))
def test_shares_are_bounded_in_a_thread(scores, weight):
    values, chunk_ids = np.array(scores), np.arange(len(scores), dtype=np.int64)
    chain = np.stack([chunk_ids[:-1], chunk_ids[1:]], axis=1)
    shares = neighbor_boost(values, chunk_ids, chain, weight=weight)
    reach = float(np.ptp(values)) if len(values) else 0.0
    assert (np.abs(shares) <= 2 * weight * reach + 1e-12).all()


@given(SCORES, st.floats(-0.5, 0.5))
def test_only_differences_between_scores_matter(scores, shift):
    values, chunk_ids = np.array(scores), np.arange(len(scores), dtype=np.int64)
    chain = np.stack([chunk_ids[:-1], chunk_ids[1:]], axis=1)
    moved = neighbor_boost(values + shift, chunk_ids, chain)
    np.testing.assert_allclose(moved, neighbor_boost(values, chunk_ids, chain), atol=1e-9)


@given(SCORES, st.randoms(use_true_random=False))
def test_the_order_of_links_does_not_matter(scores, random):
    chunk_ids = np.arange(len(scores), dtype=np.int64)
    chain = np.stack([chunk_ids[:-1], chunk_ids[1:]], axis=1)
    order = list(range(len(chain)))
    random.shuffle(order)
    np.testing.assert_array_equal(
        neighbor_boost(np.array(scores), chunk_ids, chain[order]),
        neighbor_boost(np.array(scores), chunk_ids, chain),
    )


def test_answers_do_not_change_what_a_message_is_compared_with():
    alone = above_typical(np.array([0.9, 0.2, 0.3, 0.4]), ["m", "a", "b", "c"])
    answered = above_typical(np.array([0.9, 0.2, 0.3, 0.4, 0.8, 0.1]), ["m", "a", "b", "c", "m", "m"])
    assert alone[0] == answered[0] == pytest.approx(0.6)


def test_one_thread_is_compared_with_the_median_of_itself():
    np.testing.assert_allclose(above_typical(np.array([0.9, 0.1, 0.5]), ["a"] * 3), [0.4, 0.0, 0.0])
    assert len(above_typical(np.zeros(0), [])) == 0


@given(st.lists(st.tuples(st.floats(-1.0, 1.0), st.sampled_from(["a", "b", "c", None])), max_size=15))
def test_the_typical_candidate_is_the_median_outside_of_the_thread(candidates):
    scores = np.array([score for score, _ in candidates])
    threads = [thread for _, thread in candidates]
    for position, above in enumerate(above_typical(scores, threads)):
        outside = [
            score
            for other, (score, thread) in enumerate(candidates)
            if other != position and (thread is None or thread != threads[position])
        ]
        typical = np.median(outside or scores)
        assert above == pytest.approx(max(scores[position] - typical, 0.0))
