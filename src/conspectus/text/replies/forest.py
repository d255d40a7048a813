"""Sums of small decision trees, for many rows at once, and the pair that is shipped."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from conspectus.text.replies.features import Features, Figures
from conspectus.text.replies.past import Floats

DEEPEST = 8
UNKNOWN = -1.0


class Forest:
    """Trees that ask one question at each level: is this figure over that threshold?

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
        self._features = np.array(features, dtype=np.int64)
        self._thresholds = np.array(thresholds, dtype=np.float64)[..., np.newaxis]
        values = np.array(leaves, dtype=np.float64)
        self._offsets = np.arange(len(values))[:, np.newaxis] * values.shape[1]
        self._values = values.ravel()
        self._unused_bits = DEEPEST - self._features.shape[1]

    def sums(self, figures: Mapping[str, Figures], rows: int) -> Floats:
        """For each row the sum over all trees."""
        over = tabulated(figures, self.names, rows)[self._features] > self._thresholds
        leaf = np.packbits(over, axis=1)[:, 0] >> self._unused_bits
        found: Floats = self._values[self._offsets + leaf].sum(axis=0)
        return found


def tabulated(figures: Mapping[str, Figures], names: Sequence[str], rows: int) -> Floats:
    """The named figures as one line each; what is not known is -1."""
    table = np.empty((len(names), rows))
    for place, name in enumerate(names):
        table[place] = figures[name]
    return np.nan_to_num(table, copy=False, nan=UNKNOWN)


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
