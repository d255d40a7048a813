"""BM25 by hand: the pieces every index adapter shares."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.journal import make_chunk

from conspectus.index.bm25 import Bm25, Corpus, best, cosines, occurrences, query_terms, with_sources
from conspectus.model.filter import EVERYTHING
from conspectus.ports import Probe


def test_a_score_worked_out_by_hand() -> None:
    corpus = Corpus(total=4, length=20)
    statistic = corpus.statistic("fox", 1)
    assert statistic.idf == pytest.approx(math.log(1 + 3.5 / 1.5))
    score = Bm25(k1=1.2, b=0.75).contributions(
        statistic.idf, np.array([2.0]), np.array([10.0]), corpus.average
    )
    assert score[0] == pytest.approx(statistic.idf * 2.2 * 2 / (2 + 1.2 * (0.25 + 0.75 * 2)))


def test_a_term_in_every_chunk_still_counts() -> None:
    assert Corpus(total=3, length=3).statistic("the", 3).idf > 0.0


def test_without_length_normalisation_length_does_not_matter() -> None:
    scores = Bm25(b=0.0).contributions(1.0, np.array([1.0, 1.0]), np.array([1.0, 900.0]), 7.0)
    assert scores[0] == scores[1]


LENGTHS = st.floats(1.0, 1e6)
SHARES = st.floats(0.0, 1.0)


@given(SHARES, SHARES, st.integers(1, 65_535), LENGTHS, LENGTHS)
def test_no_contribution_exceeds_the_largest_ratio(b, other_b, count, length, average):
    bm25, other = Bm25(b=b), Bm25(b=other_b)
    here, there = (
        float(parameters.contributions(1.0, np.array([float(count)]), np.array([length]), average)[0])
        for parameters in (bm25, other)
    )
    assert here <= there * bm25.max_ratio(other) * (1.0 + 1e-9)


def test_sources_have_their_own_length_normalization():
    bm25, corpus = Bm25(), Corpus(total=4, length=20)
    terms = [corpus.statistic("fox", 1), corpus.statistic("sun", 0)]
    assert bm25.for_terms(terms) is bm25
    assert bm25.for_terms(with_sources(terms, 2, [1, 0])).b == bm25.source_b < bm25.b


def test_an_empty_corpus_divides_by_nothing() -> None:
    assert Corpus(0, 0).average == 1.0
    assert Corpus(5, 0).average == 1.0


def test_title_and_text_are_counted_together() -> None:
    counts, length = occurrences(make_chunk(1, "fox sun", title="fox").passage, str.split)
    assert (counts["fox"], counts["sun"], length) == (2, 1, 3)


def test_counts_have_a_ceiling_and_lengths_have_none() -> None:
    counts, length = occurrences("a " * 70_000, str.split)
    assert (counts["a"], length) == (65_535, 70_000)


@pytest.mark.parametrize("words", [None, "", "  \n"])
def test_no_words_are_no_terms(words: str | None) -> None:
    assert query_terms(Probe(EVERYTHING, words, None, 1), str.split, 0) == {}


def test_terms_of_a_question_are_distinct_and_in_order() -> None:
    assert list(query_terms(Probe(EVERYTHING, "b a b c a", None, 1), str.split, 0).items()) == [
        ("b", 2),
        ("a", 2),
        ("c", 1),
    ]


def test_a_cosine_does_not_depend_on_the_rows_beside_it() -> None:
    vectors = np.random.default_rng(1).standard_normal((301, 387)).astype("<f2")
    query = np.random.default_rng(2).standard_normal(387).astype(np.float32)
    together = cosines(vectors, query)
    alone = [cosines(vectors[i : i + 1], query)[0] for i in range(len(vectors))]
    backwards = cosines(vectors[::-1], query)[::-1]
    assert together.tolist() == alone == backwards.tolist()


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 10])
def test_best_breaks_ties_by_id(limit: int) -> None:
    ids = np.array([9, 4, 7, 1] * 5) + np.arange(20) * 100
    scores = np.array([1.0, 2.0, 2.0, 1.0] * 5)
    expected = sorted(range(20), key=lambda i: (-scores[i], ids[i]))[:limit]
    assert best(ids, scores, limit).tolist() == expected


def test_a_term_that_is_asked_again_weighs_up_to_twice_as_much() -> None:
    corpus = Corpus(total=4, length=40)
    once, twice, often = (corpus.statistic("fox", 1, count).weight for count in (1, 2, 1_000))
    assert once == corpus.statistic("fox", 1).idf
    assert (twice / once, often / once) == (pytest.approx(4 / 3), pytest.approx(2.0, abs=0.01))
