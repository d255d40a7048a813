"""Comparisons of two evaluations, and minimums that fail."""

from typing import Any

import pytest

from conspectus.errors import InvalidInput
from conspectus.evals.compare import compare_reports, too_low


def build_report(*values: float) -> dict[str, Any]:
    by_question = {f"q{n}": {"ndcg@10": score} for n, score in enumerate(values)}
    return {"hybrid": {"ndcg@10": 50.0, "by_question": by_question}}


def test_the_interval_is_of_the_paired_difference() -> None:
    first = build_report(*(n % 10 / 10 for n in range(100)))
    second = build_report(*((n % 10) / 10 + 0.05 for n in range(100)))
    [(name, comparison)] = compare_reports(first, second).items()
    assert (name, comparison["questions"]) == ("hybrid.ndcg@10", 100)
    assert (comparison["first"], comparison["second"], comparison["difference"]) == (45.0, 50.0, 5.0)
    assert (comparison["low"], comparison["high"]) == (5.0, 5.0)


def test_few_questions_leave_the_sign_open_and_the_result_is_the_same_again() -> None:
    first, second = build_report(0.0, 1.0, 0.5, 0.0), build_report(1.0, 0.0, 0.5, 0.5)
    comparison = compare_reports(first, second)["hybrid.ndcg@10"]
    assert comparison["low"] < 0 < comparison["high"]
    assert compare_reports(first, second) == compare_reports(first, second)
    turned = compare_reports(second, first)["hybrid.ndcg@10"]
    assert (turned["difference"], turned["low"]) == (-comparison["difference"], -comparison["high"])


def test_only_questions_of_both_are_compared() -> None:
    comparison = compare_reports(build_report(0.0, 1.0), build_report(1.0))["hybrid.ndcg@10"]
    assert (comparison["questions"], comparison["difference"]) == (1, 100.0)


@pytest.mark.parametrize(
    "other",
    [{}, {"by_question": []}, {"by_question": {"q0": {"x": 1}}}, {"hybrid": {"by_question": {"q0": 1}}}],
)
def test_without_a_common_question_there_is_nothing_to_compare(other: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="no measure of the same question"):
        compare_reports(build_report(1.0), other)


def test_a_minimum_fails_only_below_it() -> None:
    assert too_low(build_report(), ["hybrid.ndcg@10=50"]) == []
    assert too_low(build_report(), ["hybrid.ndcg@10=50.1"]) == ["hybrid.ndcg@10 is 50, less than 50.1"]
    assert too_low({"turn_recall@10": float("nan")}, ["turn_recall@10=0"]) != []


@pytest.mark.parametrize("minimum", ["ndcg@10=1", "hybrid.ndcg@10", "hybrid.ndcg@10=high", ""])
def test_a_minimum_names_a_measure_and_a_number(minimum: str) -> None:
    with pytest.raises(InvalidInput, match="fail_under"):
        too_low(build_report(), [minimum])
