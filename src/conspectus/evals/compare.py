"""Compare two evaluations by question, and check results against minimums."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypedDict

import numpy as np

from conspectus.engine.experiment_measures import mean_interval
from conspectus.errors import InvalidInput

BY_QUESTION: Final = "by_question"
WINDOWS: Final = "windows"
"""The windows of each question in a report, for people to look at."""


class Comparison(TypedDict):
    """The means of a measure, from 0 to 100, and the 95 % confidence interval of their difference."""

    first: float
    second: float
    difference: float
    low: float
    high: float
    questions: int


def compare_reports(first: Mapping[str, object], second: Mapping[str, object]) -> dict[str, Comparison]:
    """Compare every measure that two reports have for the same questions, by name.

    The interval is from a paired bootstrap: 10,000 samples of the questions, with a fixed seed. Raises
    InvalidInput if the reports share no measure.
    """
    others = dict(_by_question(second))
    comparisons: dict[str, Comparison] = {}
    for name, values in _by_question(first):
        both = [question for question in values if question in others.get(name, {})]
        if both:
            comparisons[name] = _compare_pairs(
                [values[question] for question in both], [others[name][question] for question in both]
            )
    if not comparisons:
        raise InvalidInput(
            "reports", "have no measure of the same question; compare two outputs of one command"
        )
    return comparisons


def _compare_pairs(first: Sequence[float], second: Sequence[float]) -> Comparison:
    differences = 100 * (np.array(second) - np.array(first))
    low, high = mean_interval(differences)
    return {
        "first": round(100 * float(np.mean(first)), 2),
        "second": round(100 * float(np.mean(second)), 2),
        "difference": round(float(differences.mean()), 2),
        "low": round(low, 2),
        "high": round(high, 2),
        "questions": len(differences),
    }


def _by_question(report: object, above: tuple[str, ...] = ()) -> Iterator[tuple[str, dict[str, float]]]:
    """Return the values of each measure by question, at all levels of a report."""
    if not isinstance(report, Mapping):
        return
    for name, value in report.items():
        if name != BY_QUESTION:
            yield from _by_question(value, (*above, str(name)))
        elif isinstance(value, Mapping):
            yield from _values_by_measure(value, above)


def _values_by_measure(
    questions: Mapping[str, object], above: tuple[str, ...]
) -> Iterator[tuple[str, dict[str, float]]]:
    measures: dict[str, dict[str, float]] = {}
    for question, values in questions.items():
        for name, value in values.items() if isinstance(values, Mapping) else ():
            if isinstance(value, int | float):
                measures.setdefault(".".join((*above, name)), {})[question] = float(value)
    yield from measures.items()


def too_low(report: Mapping[str, object], minimums: Sequence[str]) -> list[str]:
    """Return a message for each measure below its minimum `MEASURE=VALUE`.

    Measures are named as in the report, with dots between levels. Raises InvalidInput for an invalid minimum,
    and for an unknown measure with the list of known ones.
    """
    means = dict(_means(report))
    below = []
    for minimum in minimums:
        name, _, value = minimum.rpartition("=")
        try:
            least = float(value)
        except ValueError:
            raise InvalidInput("fail_under", f"{minimum!r} is not MEASURE=VALUE") from None
        if name not in means:
            raise InvalidInput("fail_under", f"{name!r} is unknown; expected one of {', '.join(means)}")
        if not means[name] >= least:
            below.append(f"{name} is {means[name]:g}, less than {least:g}")
    return below


def _means(report: Mapping[str, object], above: tuple[str, ...] = ()) -> Iterator[tuple[str, float]]:
    for name, value in report.items():
        if isinstance(value, Mapping) and name != BY_QUESTION:
            yield from _means(value, (*above, name))
        elif isinstance(value, int | float):
            yield ".".join((*above, name)), float(value)
