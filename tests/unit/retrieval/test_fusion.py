"""Fusion: the parts add up, order does not matter, and a missing retriever has no effect."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.model.index import TermStatistic
from conspectus.retrieval.fusion import (
    CONVERSATION_FUSION,
    DEFAULT_FUSION,
    FusionProfile,
    fuse,
    fusion_signals,
)

BM25 = st.floats(0.0, 60.0).map(lambda score: round(score, 3))
COSINE = st.one_of(st.just(float("nan")), st.floats(-1.0, 1.0).map(lambda score: round(score, 3)))
CANDIDATES = st.lists(st.tuples(BM25, COSINE), max_size=30)


def as_arrays(candidates):
    columns = np.array(candidates, dtype=np.float64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


@given(CANDIDATES, st.integers(0, 50))
def test_scores_are_finite_bounded_and_the_sum_of_their_parts(candidates, terms):
    fused = fuse(*as_arrays(candidates), terms=terms)
    assert np.isfinite(fused.score).all()
    assert (np.abs(fused.score) <= 1.0 + 1e-12).all()
    assert 0.0 <= fused.words_weight <= 1.0
    np.testing.assert_array_equal(fused.score, fused.words + fused.vectors)


@given(CANDIDATES, st.randoms(use_true_random=False))
def test_the_order_of_candidates_does_not_matter(candidates, random):
    order = list(range(len(candidates)))
    random.shuffle(order)
    words, cosine = as_arrays(candidates)
    straight = fuse(words, cosine, terms=4)
    shuffled = fuse(words[order], cosine[order], terms=4)
    np.testing.assert_allclose(shuffled.score, straight.score[order], rtol=0, atol=1e-9)


@given(CANDIDATES, st.floats(0.0, 5.0))
def test_more_of_either_arm_never_lowers_a_candidate_against_another(candidates, more):
    words, cosine = as_arrays([*candidates, (3.0, 0.4), (3.0 + more, 0.4 + more / 10)])
    score = fuse(words, cosine, terms=4).score
    assert score[-1] >= score[-2]


def test_no_candidates_at_all():
    empty = np.zeros(0)
    assert len(fuse(empty, empty, terms=3).score) == 0


def test_one_candidate():
    fused = fuse(np.array([7.0]), np.array([0.5]), terms=2)
    assert fused.words[0] == pytest.approx(fused.words_weight)
    assert fused.vectors[0] == pytest.approx((1 - fused.words_weight) * 0.5)


def test_without_vectors_words_decide_alone():
    fused = fuse(np.array([2.0, 8.0, 0.0]), np.full(3, np.nan), terms=2)
    np.testing.assert_array_equal(fused.score, [0.25, 1.0, 0.0])


def test_without_words_vectors_decide_alone():
    cosine = np.array([0.2, -0.1, 0.9])
    np.testing.assert_array_equal(fuse(np.zeros(3), cosine, terms=0).score, cosine)


def test_with_neither_arm_nothing_is_claimed():
    np.testing.assert_array_equal(fuse(np.zeros(2), np.full(2, np.nan), terms=1).score, [0.0, 0.0])


def test_a_candidate_without_a_vector_is_taken_as_typical():
    words, cosine = np.array([5.0, 5.0, 5.0, 5.0]), np.array([0.1, 0.3, 0.8, np.nan])
    score = fuse(words, cosine, terms=3).score
    assert score[0] < score[3] == score[1] < score[2]


def test_words_found_only_where_vectors_are_missing_count_as_much_as_vectors():
    fused = fuse(np.array([9.0, 0.0]), np.array([np.nan, 0.3]), terms=2)
    assert fused.words_weight == 0.5
    assert fused.score[0] > fused.score[1]


def test_equal_scores_stay_equal():
    fused = fuse(np.full(12, 4.0), np.full(12, 0.5), terms=3)
    assert len(set(fused.score.tolist())) == 1


def test_words_that_stand_out_weigh_more():
    cosine = np.linspace(0.5, 0.3, 20)
    flat = fuse(np.linspace(10.0, 9.0, 20), cosine, terms=4)
    sharp = fuse(np.array([10.0, *np.linspace(2.0, 1.0, 19)]), cosine, terms=4)
    assert sharp.words_weight > flat.words_weight


def test_a_very_near_text_lowers_the_weight_of_words():
    words = np.linspace(10.0, 5.0, 20)
    far = fuse(words, np.linspace(0.3, 0.2, 20), terms=4)
    near = fuse(words, np.linspace(0.9, 0.2, 20), terms=4)
    assert near.words_weight < far.words_weight


def test_signals_look_at_the_ten_best_only():
    words, cosine = np.linspace(20.0, 10.0, 11), np.linspace(0.9, 0.6, 11)
    deeper = np.concatenate([words, np.full(200, 1.0)]), np.concatenate([cosine, np.full(200, 0.1)])
    assert fusion_signals(words, cosine, terms=5) == fusion_signals(*deeper, terms=5)


def test_signals_say_what_their_names_say():
    seen = fusion_signals(np.array([8.0, 2.0]), np.array([0.2, 0.6]), terms=5)
    assert seen.words_lead == pytest.approx(0.75)
    assert seen.cosine_lead == pytest.approx(0.4)
    assert seen.best_cosine == 0.6
    assert seen.cosine_apart == pytest.approx(0.0)
    assert seen.words_apart == pytest.approx(0.75)
    assert seen.terms == 5


@pytest.mark.parametrize("odds", [-1e9, 1e9])
def test_extreme_weights_do_not_overflow(odds):
    fused = fuse(np.array([1.0, 2.0]), np.array([0.1, 0.2]), terms=1, profile=FusionProfile(intercept=odds))
    assert np.isfinite(fused.score).all()


def test_a_profile_of_nothing_but_zeros_weighs_both_arms_alike():
    plain = FusionProfile(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert fuse(np.array([3.0, 1.0]), np.array([0.2, 0.3]), terms=9, profile=plain).words_weight == 0.5
    assert plain != DEFAULT_FUSION


@given(
    st.lists(st.tuples(st.floats(0.1, 60.0), st.floats(-1.0, 1.0)), min_size=1, max_size=30),
    st.integers(0, 50),
)
def test_in_conversations_the_weight_is_the_same_for_every_question(candidates, terms):
    fused = fuse(*as_arrays(candidates), terms=terms, profile=CONVERSATION_FUSION)
    assert fused.words_weight == pytest.approx(0.445, abs=0.001)


def terms_of(**weights):
    """Terms that four of nine texts have, by their weights."""
    return [TermStatistic(term, 4, weight) for term, weight in weights.items()]


PROFILE = FusionProfile(*[0.0] * 7, unreached=-10.0, reached=2.0, digits=4.0)


@pytest.mark.parametrize(
    ("best_bm25", "log_odds"),
    [(0.0, -2.5), (0.8, -0.5), (1.0, 0.0), (2.0, 0.0), (3.0, 0.5), (4.0, 1.0), (9.0, 1.0)],
)
def test_keywords_weigh_by_the_reached_share_of_the_possible_score(best_bm25, log_odds):
    profile = PROFILE.with_terms(terms_of(lake=1.0, house=3.0), best_bm25)
    assert profile.intercept == pytest.approx(log_odds)


def test_a_text_with_the_only_term_says_nothing():
    assert PROFILE.with_terms(terms_of(lake=1.0), 1.0).intercept == 0.0


@pytest.mark.parametrize(("weight", "log_odds"), [(0.5, 0.0), (1.0, 0.0), (3.0, 1.0), (1e9, 2.0)])
def test_keywords_weigh_more_if_the_query_is_a_number(weight, log_odds):
    assert PROFILE.with_terms(
        terms_of(pep=1.0, n420=weight), 0.4 * (1.0 + weight)
    ).intercept == pytest.approx(log_odds, abs=1e-6)


def test_a_number_that_no_text_has_counts_as_any_other_term():
    unknown = TermStatistic("4711", 0, 9.0)
    assert PROFILE.with_terms([*terms_of(pep=1.0), unknown], 4.0).intercept == 0.0


@pytest.mark.parametrize("terms", [(), terms_of(the=0.0)])
def test_terms_without_weight_change_nothing(terms):
    assert PROFILE.with_terms(terms, 0.0) is PROFILE


def test_unknown_terms_count_only_where_they_have_a_weight():
    unknown = [TermStatistic("fox", 0, 1.0)]
    assert replace(PROFILE, short=1.0).with_terms(unknown, 1.0).short == 1.0
    assert replace(PROFILE, short=1.0, unknown=-1.0).with_terms(unknown, 1.0).short == 0.0


def test_keywords_weigh_more_the_fewer_terms_a_query_has():
    words, cosine = np.array([3.0, 1.0]), np.array([0.2, 0.3])
    plain = FusionProfile(*[0.0] * 7)
    short = [
        fuse(words, cosine, terms=terms, profile=replace(plain, short=1.0)).words_weight
        for terms in (1, 2, 3, 4, 9)
    ]
    assert short == sorted(short, reverse=True)
    assert short[0] > short[1] > short[2] > short[3] == short[4] == 0.5
