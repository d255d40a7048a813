"""Measures of experiments: the share of evidence in a window, and the interval of a mean."""

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

BOOTSTRAP_SAMPLES: Final = 10_000
SEED: Final = 0


FloatArray: TypeAlias = npt.NDArray[np.float64]


class Characters(Protocol):
    """Characters of a document, from `start` to before `end`."""

    @property
    def document(self) -> str:
        """The id of the document."""

    @property
    def start(self) -> int:
        """The first character."""

    @property
    def end(self) -> int:
        """The character after the last one."""


def share_of_evidence(evidence: Sequence[Characters], passages: Sequence[Characters]) -> float:
    """Return the share of the pieces of evidence, at least one, all of whose characters are in passages."""
    return fmean(
        covers(
            [(passage.start, passage.end) for passage in passages if passage.document == piece.document],
            piece.start,
            piece.end,
        )
        for piece in evidence
    )


def covers(spans: Iterable[tuple[int, int]], start: int, end: int) -> bool:
    """Return whether spans of one document have every character from `start` to before `end`."""
    reached = start
    for span_start, span_end in sorted(spans):
        if span_start <= reached:
            reached = max(reached, span_end)
    return reached >= end


def mean_interval(values: Sequence[float] | FloatArray) -> tuple[float, float]:
    """Return the 95 % interval of a mean, from 10,000 samples of the values with a fixed seed."""
    array = np.array(values)
    chance = np.random.default_rng(SEED)
    count = len(array)
    means = [array[chance.integers(count, size=count)].mean() for _ in range(BOOTSTRAP_SAMPLES)]
    low, high = np.percentile(means, (2.5, 97.5))
    return float(low), float(high)
