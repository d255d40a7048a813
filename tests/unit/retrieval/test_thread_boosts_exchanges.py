"""Boosts of exchanges and of reply chains."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.retrieval import thread_boosts
from conspectus.retrieval.thread_boosts import exchange_boost, preceding_question_boost

NO_LINKS = np.zeros((0, 2), dtype=np.int64)


def chain_of(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Ids 10, 11, ... of which each follows the one before."""
    ids = np.arange(10, 10 + number)
    return ids, np.stack([ids[:-1], ids[1:]], axis=1)


def above_median(scores) -> np.ndarray:
    return np.maximum(np.array(scores) - np.median(scores), 0.0) if len(scores) else np.zeros(0)


def chain_boost(scores, *ids_and_links, weight):
    return thread_boosts.chain_boost(above_median(scores), *ids_and_links, weight=weight)


def exchange_shares(scores, authors, hours=None, links=None):
    ids, following = chain_of(len(scores))
    times = np.zeros(len(scores)) if hours is None else np.array(hours)
    links = following if links is None else links
    return exchange_boost(above_median(scores), ids, links, authors=authors, hours=times, weight=0.1)


def test_what_others_said_right_before_and_after_counts() -> None:
    shares = exchange_shares([0.9, 0.1, 0.5, 0.1, 0.1], ["a", "b", "a", "b", "a"])
    np.testing.assert_allclose(shares, [0.0, 0.1 * (0.8 + 0.4), 0.0, 0.1 * 0.4, 0.0])


def test_what_the_same_person_said_does_not() -> None:
    np.testing.assert_array_equal(exchange_shares([0.9, 0.1, 0.1], ["a", "a", "a"]), np.zeros(3))
    assert exchange_shares([0.9, 0.1, 0.1], ["a", None, None])[1] > 0.0


def test_what_was_said_hours_before_is_another_exchange() -> None:
    authors = ["a", "b", "c"]
    assert exchange_shares([0.9, 0.1, 0.1], authors, [0.0, 1.5, 1.6])[1] == 0.0
    assert exchange_shares([0.9, 0.1, 0.1], authors, [0.0, 0.9, 1.6])[1] > 0.0
    assert exchange_shares([0.9, 0.1, 0.1], authors, [np.nan, 0.9, 1.6])[1] > 0.0


def test_bad_company_takes_nothing_away() -> None:
    assert (exchange_shares([0.5, 0.1, 0.5, 0.5], ["a", "b", "c", "d"]) >= 0.0).all()


def test_a_link_given_twice_counts_once() -> None:
    _, links = chain_of(4)
    scores, authors = [0.9, 0.1, 0.1, 0.1], ["a", "b", "c", "d"]
    twice = np.concatenate([links, links])
    np.testing.assert_array_equal(
        exchange_shares(scores, authors, links=twice), exchange_shares(scores, authors)
    )
    ids, _ = chain_of(4)
    both = chain_boost(np.array(scores), ids, twice, weight=0.1)
    np.testing.assert_array_equal(both, chain_boost(np.array(scores), ids, links, weight=0.1))


def test_the_chain_two_steps_away_counts_and_neighbors_do_not() -> None:
    ids, links = chain_of(6)
    scores = np.array([0.9, 0.1, 0.1, 0.1, 0.1, 0.0])
    np.testing.assert_allclose(
        chain_boost(scores, ids, links, weight=0.1), [0.0, 0.0, 0.08, 0.0, 0.0, 0.0], atol=1e-12
    )


def test_a_chain_that_has_a_gap_ends_there() -> None:
    ids, links = chain_of(5)
    scores = np.array([0.9, 0.1, 0.1, 0.1, 0.1])
    broken = np.delete(links, 1, axis=0)
    np.testing.assert_array_equal(chain_boost(scores, ids, broken, weight=0.1), np.zeros(5))


@pytest.mark.parametrize("links", [NO_LINKS, np.array([[1, 2], [11, 11], [10, 99]])])
def test_links_to_nowhere_and_to_oneself_do_nothing(links: np.ndarray) -> None:
    scores = np.array([0.9, 0.1, 0.1])
    ids, _ = chain_of(3)
    np.testing.assert_array_equal(chain_boost(scores, ids, links, weight=0.1), np.zeros(3))
    np.testing.assert_array_equal(exchange_shares(scores, ["a", "b", "c"], links=links), np.zeros(3))


def test_no_candidates() -> None:
    empty, ids = np.zeros(0), np.zeros(0, dtype=np.int64)
    assert len(chain_boost(empty, ids, NO_LINKS, weight=0.1)) == 0
    assert len(exchange_boost(empty, ids, NO_LINKS, authors=[], hours=empty, weight=0.1)) == 0


@given(st.lists(st.tuples(st.floats(-1.0, 1.0), st.sampled_from(["a", "b", None])), max_size=12))
def test_shares_are_bounded_by_twice_the_weight_times_the_range(candidates) -> None:
    scores = np.array([score for score, _ in candidates])
    ids, links = chain_of(len(scores))
    maximum = 0.2 * float(np.ptp(scores)) + 1e-12 if len(scores) else 0.0
    authors = [author for _, author in candidates]
    assert (np.abs(exchange_shares(scores, authors)) <= maximum).all()
    assert (np.abs(chain_boost(scores, ids, links, weight=0.1)) <= maximum).all()


def test_an_answer_gets_credit_for_the_question_right_before_it() -> None:
    ids, links = chain_of(5)
    above, texts = above_median([0.9, 0.1, 0.1, 0.5, 0.1]), ["Where to?", "Rome.", "Why?", "Who?", "He."]
    arguments = {"ids": ids, "links": np.concatenate([links, links]), "texts": texts, "weight": 0.5}
    shares = preceding_question_boost(above, authors=["a", "b", "a", "a", "b"], **arguments)
    np.testing.assert_allclose(shares, [0.0, 0.5 * 0.8, 0.0, 0.0, 0.5 * 0.4])
    np.testing.assert_array_equal(
        preceding_question_boost(above, authors=["a"] * 5, **arguments), np.zeros(5)
    )
    nowhere = {**arguments, "links": NO_LINKS}
    np.testing.assert_array_equal(
        preceding_question_boost(above, authors=["a", "b"] * 2 + ["a"], **nowhere), np.zeros(5)
    )
