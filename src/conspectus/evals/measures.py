"""Measures of a ranking, from 0 to 1."""

import math
from collections.abc import Mapping, Sequence, Set
from typing import TypeAlias

Figures: TypeAlias = dict[str, dict[str, float]]
"""The measures of each question, from 0 to 1."""


def ndcg(ranking: Sequence[str], grades: Mapping[str, float], *, depth: int) -> float:
    """Return the normalized discounted cumulative gain of the first `depth` distinct documents, 0 to 1.

    The gain of a document is its grade, discounted by log2(rank + 1) with ranks from 1 (Järvelin and
    Kekäläinen 2002, with the linear gain of trec_eval). `grades` has at least one positive grade.
    """
    ideal = _discount(sorted(grades.values(), reverse=True)[:depth])
    return _discount([grades.get(document, 0.0) for document in ranking[:depth]]) / ideal


def recall(ranking: Sequence[str], relevant: Set[str], *, depth: int) -> float:
    """Return the share of relevant documents (not empty) among the first `depth`, from 0 to 1."""
    return len(relevant & set(ranking[:depth])) / len(relevant)


def percent(values: Sequence[float]) -> float:
    """Return the mean of values from 0 to 1 as a percentage with two decimals; 0 without values."""
    return round(100 * math.fsum(values) / len(values), 2) if values else 0.0


def _discount(gains: Sequence[float]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))
