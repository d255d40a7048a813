"""Sums of small decision trees, for many rows at once, and the pair that is shipped."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conspectus.text.replies.features import UNKNOWN, Features, Figures
from conspectus.text.replies.history import Floats


class Forest:
    """Trees of at most eight levels that ask one question at each: is this figure over that threshold?

    Args:
        names: the figures that are read.
        features: for each tree and level, which of them.
        thresholds: for each tree and level, over what.
        leaves: for each tree, a value for each row of answers, the first answer being the highest bit.
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

    def sums(self, figures: Mapping[str, Figures], rows: int) -> Floats:
        """For each row the sum over all trees."""
        over = np.take(tabulated(figures, self.names, rows), self._features, axis=0) > self._thresholds
        leaf = np.zeros(over.shape[1:], dtype=np.uint8)
        for answers in over.view(np.uint8):
            leaf = leaf << 1 | answers
        found: Floats = np.take(self._values, self._offsets + leaf).sum(axis=0, dtype=np.float64)
        return found


def tabulated(figures: Mapping[str, Figures], names: Sequence[str], rows: int) -> NDArray[np.float32]:
    """The named figures as one line each; what is not known is -1."""
    table = np.empty((len(names), rows), dtype=np.float32)
    for place, name in enumerate(names):
        table[place] = figures[name]
    np.copyto(table, UNKNOWN, where=np.isnan(table))
    return table


@dataclass(frozen=True, slots=True)
class Judge:
    """Which message a new one answers: `answer` rates the remembered ones, `start` that it answers none."""

    answer: Forest
    start: Forest

    def choose(self, found: Features, count: int) -> int | None:
        """The place of the message that is answered, None for a start."""
        rated = self.answer.sums(found.answer, count)
        best = int(rated.argmax())
        return best if rated[best] > self.start.sums(found.start, 1)[0] else None


def judge(weights: Mapping[str, Mapping[str, Any]]) -> Judge:
    """Both forests from what was written of them."""
    return Judge(**{name: Forest(**parts) for name, parts in weights.items()})


@cache
def shipped() -> Judge:
    """What `scripts/train_replies.py` wrote."""
    text = (resources.files("conspectus.text.replies") / "weights.json").read_text(encoding="utf-8")
    return judge(json.loads(text))
