"""Confidence: the signals of a search, and the probability they give."""

import math
from dataclasses import replace

import numpy as np
import pytest

from conspectus.model.index import TermStatistic
from conspectus.retrieval.confidence import (
    Passage,
    confidence_of,
    confidence_signals,
    describe_confidence,
    log_odds_of,
)
from conspectus.retrieval.confidence_weights import INTERCEPT, WEIGHTS
from conspectus.retrieval.ranked_candidates import RankedCandidates


def rank_two(cosine: float, words: float) -> RankedCandidates:
    terms = (TermStatistic("castl", 1, 2.0), TermStatistic("moat", 3, 1.0))
    ids = np.array([1, 2], dtype=np.int64)
    bm25, similarities = np.array([words, 0.0]), np.array([cosine, np.nan])
    return RankedCandidates(
        ids,
        bm25,
        similarities,
        terms,
        10,
        parts={},
        rows={},
        keyword_weight=0.5,
        all_bm25=bm25,
        all_cosine=similarities,
    )


def test_signals_tell_what_the_best_passages_cover() -> None:
    best = [Passage("Bodiam Castle (Sussex)", "Bodiam Castle has a wide moat.")]
    signals = confidence_signals(
        "Is the wide moat at Bodiam Castle deep", rank_two(0.5, 3.0), best, readable_texts=[best[0].text]
    )
    assert signals["best_cosine"] == 0.5
    assert "cosine_lead" not in signals, "there is no other text with a vector"
    assert signals["bm25_lead"] == pytest.approx(1.0)
    assert signals["terms_covered"] == pytest.approx(1.0)
    assert signals["pairs"] == pytest.approx(2 / 6)
    assert signals["names"] == 1.0
    assert signals["titles"] == 1.0


def test_a_word_inside_another_is_no_name() -> None:
    signals = confidence_signals(
        "about Ann", rank_two(0.5, 3.0), [Passage("", "An annual meeting")], readable_texts=[]
    )
    assert signals["names"] == 0.0


def test_a_word_that_only_hidden_texts_hold_is_as_one_that_none_holds() -> None:
    best = [Passage("Bodiam", "A castle.")]
    hidden, nowhere = (
        replace(rank_two(0.5, 3.0), terms=(TermStatistic("castl", 1, 2.0), TermStatistic("moat", *statistic)))
        for statistic in ((3, 1.0), (0, math.log(22.0)))
    )
    signals = confidence_signals("castle moat", hidden, best, readable_texts=["A castle."])
    assert signals == confidence_signals("castle moat", nowhere, best, readable_texts=["A castle."])
    assert signals != confidence_signals(
        "castle moat", hidden, best, readable_texts=["A castle", "without a moat."]
    )


def test_missing_signals_count_as_their_mean() -> None:
    none = np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
    nothing = RankedCandidates(*none, (), 0, parts={}, rows={}, keyword_weight=0.5)
    signals = confidence_signals("", nothing, [], readable_texts=[])
    assert signals == {"titles": 0.0}
    typical = {name: weight.mean for name, weight in WEIGHTS.items()}
    assert confidence_of({}) == pytest.approx(confidence_of(typical))
    assert confidence_of({}) == pytest.approx(1 / (1 + np.exp(-INTERCEPT)))


def test_more_of_any_signal_is_more_probable() -> None:
    usual = confidence_of({})
    assert all(confidence_of({name: weight.mean + 0.1}) > usual for name, weight in WEIGHTS.items())


def test_the_lead_is_over_the_next_best_of_all_candidates() -> None:
    scores = np.array([3.0, 1.5, 1.5]), np.array([0.8, 0.3, np.nan])
    ranked = replace(rank_two(0.8, 3.0), all_bm25=scores[0], all_cosine=scores[1])
    signals = confidence_signals("castle moat", ranked, [], readable_texts=["castle moat"])
    assert signals["best_cosine"] == 0.8
    assert signals["cosine_lead"] == pytest.approx(0.5)
    assert signals["bm25_lead"] == pytest.approx((3.0 - 3.0 / 9) / 3.0)


def test_what_a_confidence_rests_on_is_said_most_first() -> None:
    signals = {name: weight.mean for name, weight in WEIGHTS.items()}
    signals["best_cosine"] += 0.1
    signals["titles"] += 1.0
    assert list(log_odds_of(signals)) == list(WEIGHTS)
    parts = describe_confidence(signals).split(", ")
    assert parts[0] == f"titles {WEIGHTS['titles'].weight:+.2f}"
    assert parts[1] == f"best_cosine {0.1 * WEIGHTS['best_cosine'].weight:+.2f}"
    assert describe_confidence({}) == ""
