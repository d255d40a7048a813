"""Near duplicates among memories."""

import math
from collections.abc import Iterable

from conspectus.ports import Candidates
from conspectus.text.analyzer import analyzer_for

MIN_SIMILARITY = 0.8
"""Minimum Jaccard similarity of the terms of near duplicates."""
MAX_CHARACTERS = 4_000
"""Longer texts are not compared: they are rarely repeated, and the comparison is expensive."""


def least_score(candidates: Candidates, terms: int) -> float:
    """Return the least keyword score of a near duplicate of a query with so many distinct terms.

    It lacks at most a fifth of the terms, here those with the largest weights, and is at most twice as long.
    """
    lacking = terms - math.ceil(MIN_SIMILARITY * terms)
    weights = sorted(term.weight for term in candidates.terms)
    # A sum in another order may differ in its last bits.
    return 0.999 * candidates.least * sum(weights[: max(len(weights) - lacking, 0)])


class NearDuplicates:
    """Finds near duplicates by the set of their terms. Terms with digits must be equal."""

    def __init__(self, language: str | None) -> None:
        self._analyzer = analyzer_for(language)

    def terms(self, text: str) -> frozenset[str]:
        """Return the terms of a text; none if the text is too long to be compared."""
        if len(text) <= MAX_CHARACTERS:
            return frozenset(self._analyzer.terms(text))
        return frozenset()

    def find_near_duplicates(self, terms: frozenset[str], others: Iterable[tuple[str, str]]) -> list[str]:
        """Return the names of `others` (name, text) that are near duplicates of a text with these terms."""
        return [name for name, other in others if _are_near(terms, self.terms(other))]


def _are_near(one: frozenset[str], other: frozenset[str]) -> bool:
    """Texts with different numbers are never near duplicates."""
    numbers = {term for term in one ^ other if any(map(str.isdigit, term))}
    return not numbers and len(one & other) >= MIN_SIMILARITY * len(one | other) > 0
