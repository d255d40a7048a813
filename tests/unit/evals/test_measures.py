"""The measures against their definitions, written out the long way."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.evals.measures import ndcg, percent, recall

DOCUMENTS = st.lists(st.sampled_from("abcdefghijkl"), unique=True)
GRADES = st.dictionaries(st.sampled_from("abcdefghijkl"), st.integers(1, 4), min_size=1)


def compute_gain(ranking: list[str], grades: dict[str, int], depth: int) -> float:
    total = 0.0
    for position in range(min(depth, len(ranking))):
        if ranking[position] in grades:
            total += grades[ranking[position]] / math.log2(position + 2)
    return total


def rank_best(grades: dict[str, int]) -> list[str]:
    return sorted(grades, key=lambda document: -grades[document])


@given(DOCUMENTS, GRADES, st.integers(1, 12))
def test_ndcg_is_the_gain_divided_by_the_best_possible(ranking, grades, depth):
    best = compute_gain(rank_best(grades), grades, depth)
    assert ndcg(ranking, grades, depth=depth) == pytest.approx(compute_gain(ranking, grades, depth) / best)


@given(GRADES, DOCUMENTS)
def test_the_best_ranking_scores_one_whatever_follows(grades, more):
    best = rank_best(grades)
    rest = [document for document in more if document not in grades]
    assert ndcg(best + rest, grades, depth=10) == pytest.approx(1.0)


@given(DOCUMENTS, GRADES)
def test_moving_a_relevant_document_up_never_costs(ranking, grades):
    for position in range(1, len(ranking)):
        if grades.get(ranking[position], 0) >= grades.get(ranking[position - 1], 0):
            swapped = ranking.copy()
            swapped[position - 1], swapped[position] = ranking[position], ranking[position - 1]
            assert ndcg(swapped, grades, depth=10) >= ndcg(ranking, grades, depth=10) - 1e-12


def test_ndcg_of_a_known_case():
    # 3/log2(2) + 0 + 1/log2(4) = 3.5 against 3/log2(2) + 1/log2(3) = 3.6309
    assert ndcg(["a", "x", "b"], {"a": 3, "b": 1}, depth=10) == pytest.approx(3.5 / (3 + 1 / math.log2(3)))
    assert ndcg([], {"a": 1}, depth=10) == 0.0
    assert ndcg(["x"] * 10 + ["a"], {"a": 1}, depth=10) == 0.0


@given(DOCUMENTS, GRADES, st.integers(1, 12))
def test_recall_counts_what_is_there(ranking, grades, depth):
    hits = sum(document in ranking[:depth] for document in grades)
    assert recall(ranking, grades.keys(), depth=depth) == pytest.approx(hits / len(grades))


def test_percent_is_a_mean_between_0_and_100():
    assert percent([]) == 0.0
    assert percent([1.0, 0.0, 0.0]) == 33.33
    assert percent([1.0, 1.0]) == 100.0
