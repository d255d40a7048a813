"""How similar related and unrelated texts are to an embedding model."""

from dataclasses import dataclass

from conspectus.model.records import EmbeddingSpace


@dataclass(frozen=True, slots=True)
class Percentiles:
    """The 5th, 50th and 95th percentile of cosine similarities."""

    p5: float
    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Similarity:
    """Similarities of a query and a text that answers it, and of a query and a random other text."""

    related: Percentiles
    unrelated: Percentiles


MINILM = Similarity(related=Percentiles(0.23, 0.55, 0.77), unrelated=Percentiles(-0.07, 0.11, 0.35))
"""All nine sets of docs/models.md together, by `conspectus eval similarity`."""


def measured(space: EmbeddingSpace | None) -> Similarity | None:
    """What was measured for the embedding model of a space; None for all but the shipped one."""
    return MINILM if space is not None and space.model == "all-MiniLM-L6-v2" else None
