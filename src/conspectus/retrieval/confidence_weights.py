"""Weights of the signals of a confidence. `scripts/train_confidence.py` writes this file."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Weight(NamedTuple):
    """The weight of a signal in the log odds, per unit above its `mean`."""

    weight: float
    mean: float


INTERCEPT: Final = -0.011
WEIGHTS: Final[Mapping[str, Weight]] = {
    "best_cosine": Weight(1.985, 0.512),
    "cosine_lead": Weight(1.431, 0.273),
    "bm25_lead": Weight(2.364, 0.338),
    "terms_covered": Weight(1.007, 0.508),
    "pairs": Weight(0.258, 0.152),
    "names": Weight(0.231, 0.577),
    "titles": Weight(0.563, 0.108),
    "author": Weight(7.193, 0.856),
}
