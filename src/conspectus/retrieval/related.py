"""Which other channels are about the same thing."""

from collections.abc import Iterable

from conspectus.model.results import Hit

MOST = 3
SHARE = 0.6
"""A channel is about the same thing if its best hit scores at least this share of the best of all."""


def related(hits: Iterable[Hit], here: str) -> list[str]:
    """The sources, at most three, whose best hits come near the best of all; `here` is not among them."""
    best: dict[str, float] = {}
    for hit in hits:
        source = hit.document.source
        best[source] = max(best.get(source, 0.0), hit.score)
    least = SHARE * max(best.values(), default=0.0)
    near = sorted((-score, source) for source, score in best.items() if score >= least and source != here)
    return [source for _, source in near[:MOST]]
