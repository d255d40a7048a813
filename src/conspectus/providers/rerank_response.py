"""Reading the ranking that a reranker sent, and trusting none of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from conspectus.errors import ProviderError

ROUNDING: Final = 1e-4


@dataclass(frozen=True, slots=True)
class RerankFormat:
    """The name under which an entry has its relevance, next to its `index`."""

    provider: str
    score: str

    def read(self, entries: Any, count: int, *, least: int) -> list[tuple[int, float]]:
        """The places of `count` texts with relevance, at least `least` of them, in the order they came.

        Raises ProviderError for anything else.
        """
        if not isinstance(entries, list):
            raise ProviderError(self.provider, "sent no list of results")
        ranking = [self._entry(entry, count) for entry in entries]
        if len({place for place, _ in ranking}) != len(ranking):
            raise ProviderError(self.provider, "ranked a text twice")
        if len(ranking) < least:
            raise ProviderError(self.provider, f"ranked {len(ranking)} texts, not {least}")
        return ranking

    def _entry(self, entry: Any, count: int) -> tuple[int, float]:
        place = entry.get("index") if isinstance(entry, dict) else None
        score = entry.get(self.score) if isinstance(entry, dict) else None
        if isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < count:
            raise ProviderError(self.provider, f"ranked text {place!r:.40} of {count}")
        if isinstance(score, bool) or not isinstance(score, int | float):
            raise ProviderError(self.provider, "sent a result without a relevance")
        if not -ROUNDING <= score <= 1 + ROUNDING:
            raise ProviderError(self.provider, f"sent the relevance {score}, which is not between 0 and 1")
        return place, min(1.0, max(0.0, float(score)))


def best(ranking: Sequence[tuple[int, float]], top_n: int) -> list[tuple[int, float]]:
    """The most relevant `top_n`, best first, in the order of the texts where they are equal."""
    return sorted(ranking, key=lambda each: (-each[1], each[0]))[:top_n]
