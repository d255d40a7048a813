"""Weights of the signals of a confidence. `scripts/train_confidence.py` writes this file."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Weight(NamedTuple):
    """The weight of a signal in the log odds, per unit above its `mean`."""

    weight: float
    mean: float


INTERCEPT: Final = -0.039
WEIGHTS: Final[Mapping[str, Weight]] = {
    "best_cosine": Weight(1.878, 0.514),
    "cosine_lead": Weight(2.108, 0.274),
    "bm25_lead": Weight(1.459, 0.347),
    "terms_covered": Weight(1.332, 0.523),
    "pairs": Weight(1.013, 0.151),
    "names": Weight(0.620, 0.575),
    "titles": Weight(0.690, 0.108),
    "author": Weight(8.529, 0.856),
}
