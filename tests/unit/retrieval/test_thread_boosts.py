"""Neighbor boost: neighbors of a good text rise, all others stay."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.retrieval.thread_boosts import neighbor_boost

SCORES = st.lists(st.floats(-1.0, 1.0), max_size=20)


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
