"""The share of evidence in a window, and the interval of a mean."""

import pytest

from conspectus.engine.experiment_measures import covers, mean_interval, share_of_evidence
from conspectus.model.experiments import Evidence, Passage


@pytest.mark.parametrize(
    ("spans", "is_covered"),
    [
        ([(0, 10)], True),
        ([(6, 12), (0, 6)], True),
        ([(0, 5), (6, 12)], False),
        ([(3, 12)], False),
        ([(0, 9)], False),
        ([], False),
    ],
)
def test_spans_cover_what_they_leave_no_gap_in(spans: list[tuple[int, int]], is_covered: bool) -> None:
    assert covers(spans, 2, 10) is is_covered


def test_passages_of_other_documents_do_not_count() -> None:
    evidence = [Evidence("a", 0, 5), Evidence("b", 0, 5)]
    assert share_of_evidence(evidence, [Passage("a", 0, 9)]) == 0.5
    assert share_of_evidence(evidence, [Passage("a", 0, 9), Passage("b", 1, 9)]) == 0.5
    assert share_of_evidence(evidence, [Passage("a", 0, 9), Passage("b", 0, 9)]) == 1.0


def test_an_interval_is_around_its_mean_and_a_point_for_equal_values() -> None:
    low, high = mean_interval([0.0, 100.0] * 20)
    assert 25 < low < 50 < high < 75
    assert mean_interval([70.0, 70.0]) == (70.0, 70.0)
    assert mean_interval([0.0, 100.0] * 20) == (low, high)
