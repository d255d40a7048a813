"""Confidence: the signals of a search, the probability they give, and the minimum."""

import math
from dataclasses import replace

import numpy as np
import pytest

import conspectus
from conspectus.engine import Engine
from conspectus.errors import InvalidInput
from conspectus.model.index import TermStatistic
from conspectus.model.query import EVERYWHERE
from conspectus.retrieval.confidence import INTERCEPT, WEIGHTS, Passage, confidence_of, confidence_signals
from conspectus.retrieval.ranked_candidates import RankedCandidates

TEXTS = (
    "The release train leaves every Tuesday at nine in the morning.",
    "Lunch is served in the canteen on the second floor.",
    "Badges are printed at the reception desk near the entrance.",
)
NOWHERE = "Who was the third emperor of the Tang dynasty?"


@pytest.fixture
async def engine(tmp_path: object) -> Engine:
    async with conspectus.open(str(tmp_path)) as opened:
        await opened.add([conspectus.NewDocument(text) for text in TEXTS])
        await opened.documents.wait_until_embedded()
        yield opened


def rank_two(cosine: float, words: float) -> RankedCandidates:
    terms = (TermStatistic("castl", 1, 2.0), TermStatistic("moat", 3, 1.0))
    ids = np.array([1, 2], dtype=np.int64)
    scores = np.array([words, 0.0]), np.array([cosine, np.nan])
    return RankedCandidates(ids, *scores, terms, 10, parts={}, rows={}, keyword_weight=0.5)


def test_signals_tell_what_the_best_passages_cover() -> None:
    best = [Passage("Bodiam Castle (Sussex)", "Bodiam Castle has a wide moat.")]
    signals = confidence_signals(
        "Is the wide moat at Bodiam Castle deep", rank_two(0.5, 3.0), best, readable_texts=[best[0].text]
    )
    assert signals["best_cosine"] == 0.5
    assert signals["terms_covered"] == pytest.approx(1.0)
    assert signals["pairs"] == pytest.approx(2 / 3)
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


async def test_a_question_without_an_answer_has_less_confidence(engine: Engine) -> None:
    good = await engine.retrieve("When does the release train leave?")
    bad = await engine.retrieve(NOWHERE)
    assert good.confidence > 0.6 > 0.3 > bad.confidence > 0
    assert good.signals.keys() <= WEIGHTS.keys()
    window = await engine.window(NOWHERE, 500)
    assert (window.confidence, window.signals) == (bad.confidence, bad.signals)


@pytest.mark.parametrize("collection", ["default", EVERYWHERE])
async def test_below_the_minimum_nothing_is_found_and_says_why(engine: Engine, collection: str) -> None:
    retrieval = await engine.retrieve(NOWHERE, min_confidence=0.5, collection=collection)
    assert (retrieval.outcome, retrieval.hits) == ("no_match", ())
    assert retrieval.plan["min_confidence"] == "0.50"
    assert f"{retrieval.confidence:.2f} is below the minimum 0.50" in retrieval.notices[-1]
    assert (
        retrieval.below_min_confidence == (await engine.retrieve(NOWHERE, collection=collection)).hits != ()
    )
    window = await engine.window(NOWHERE, 500, min_confidence=0.5, collection=collection)
    assert {candidate.status for candidate in window.trace} == {"below_min_confidence"}
    assert [candidate.rank for candidate in window.trace] == list(range(1, len(window.trace) + 1))
    assert window.trace[0].reason.endswith("of all candidates is below the minimum 0.50")
    assert (window.outcome, window.text, window.notices) == ("no_match", "", retrieval.notices)
    quoted = await engine.retrieve(TEXTS[0], min_confidence=0.5, collection=collection)
    assert (len(quoted.hits), quoted.notices) == (3, ())


async def test_an_empty_store_has_no_confidence(tmp_path: object) -> None:
    async with conspectus.open(str(tmp_path)) as empty:
        await empty.collections.get_or_create()
        retrieval = await empty.retrieve("anything", min_confidence=0.9)
    assert (retrieval.confidence, retrieval.signals, retrieval.outcome) == (0.0, {}, "no_match")
    assert not any("confidence" in notice for notice in retrieval.notices)


@pytest.mark.parametrize("min_confidence", [-0.1, 1.1, float("nan")])
async def test_a_minimum_is_a_probability(engine: Engine, min_confidence: float) -> None:
    with pytest.raises(InvalidInput, match="min_confidence"):
        await engine.retrieve("when", min_confidence=min_confidence)
