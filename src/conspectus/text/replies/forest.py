"""Decision trees that rate earlier messages, and the choice among them."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass
from conspectus.text.replies.features import UNKNOWN, Features, Figures
from conspectus.text.replies.past import Floats


class Forest:
    """Decision trees of at most eight levels; each level compares one feature with a threshold.

    Args:
        names: the features that are read.
        features: the index of the feature, for each tree and level.
        thresholds: the threshold, for each tree and level.
        leaves: for each tree the value of each combination of comparisons; the first is the highest bit.
    """

    def __init__(
        self,
        names: Sequence[str],
        features: Sequence[Sequence[int]],
        *,
        thresholds: Sequence[Sequence[float]],
        leaves: Sequence[Sequence[float]],
    ) -> None:
        self.names = tuple(names)
        self._features = np.array(features, dtype=np.int64).T
        self._thresholds = np.array(thresholds, dtype=np.float32).T[..., np.newaxis]
        values = np.array(leaves, dtype=np.float32)
        self._offsets = np.arange(len(values))[:, np.newaxis] * values.shape[1]
        self._values = values.ravel()

    def sum_trees(self, figures: Mapping[str, Figures], rows: int) -> Floats:
        """Return the sum over all trees for each row."""
        over = np.take(tabulate(figures, self.names, rows), self._features, axis=0) > self._thresholds
        leaf = np.zeros(over.shape[1:], dtype=np.uint8)
        for answers in over.view(np.uint8):
            leaf = leaf << 1 | answers
        sums: Floats = np.take(self._values, self._offsets + leaf).sum(axis=0, dtype=np.float64)
        return sums


def tabulate(figures: Mapping[str, Figures], names: Sequence[str], rows: int) -> NDArray[np.float32]:
    """Return the named features as rows of a matrix; unknown values are -1."""
    table = np.empty((len(names), rows), dtype=np.float32)
    for row, name in enumerate(names):
        table[row] = figures[name]
    np.copyto(table, UNKNOWN, where=np.isnan(table))
    return table


@dataclass(frozen=True, slots=True)
class Judge:
    """Chooses the message that a new one answers: `answer` rates earlier messages, `start` no answer."""

    answer: Forest
    start: Forest

    def choose(self, features: Features, count: int) -> tuple[int | None, float]:
        """Return the index of the answered message (None: none), and the probability of this choice."""
        rated = self.answer.sum_trees(features.answer, count)
        begun = float(self.start.sum_trees(features.start, 1)[0])
        best = int(rated.argmax())
        highest = max(float(rated[best]), begun)
        confidence = 1 / float(np.exp(rated - highest).sum() + np.exp(begun - highest))
        return (best if rated[best] > begun else None), confidence


def judge(weights: Mapping[str, Mapping[str, Any]]) -> Judge:
    """Load both forests from their JSON form."""
    return Judge(**{name: Forest(**parts) for name, parts in weights.items()})


@cache
def default_judge() -> Judge:
    """Load the included model, trained by `scripts/train_replies.py`."""
    text = (resources.files("conspectus.text.replies") / "weights.json").read_text(encoding="utf-8")
    return judge(json.loads(text))
