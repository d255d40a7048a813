"""Which memories say nearly the same: by their words alone, so that storing waits for no model."""

from collections.abc import Iterable, Sequence

from conspectus.text.analyzer import Analyzer

ALIKE = 0.8
"""The share of the terms of both (Jaccard) from which on two texts say nearly the same."""
MOST_CHARACTERS = 4_000
"""Longer texts are rarely said twice, and dear to compare."""


class Alike:
    """Compares texts by the set of their terms, and by every number and name in them."""

    def __init__(self, language: str | None) -> None:
        self._analyzer = Analyzer(language)

    def terms(self, text: str) -> frozenset[str]:
        """The terms of a text; none where it is not to be compared."""
        return frozenset(self._analyzer.terms(text)) if len(text) <= MOST_CHARACTERS else frozenset()

    def near(self, text: str, others: Iterable[tuple[str, str]]) -> list[str]:
        """The names of those others (name, text) that say nearly the same as a text, in the order given."""
        own = self.terms(text)
        return [name for name, other in others if _alike(own, self.terms(other))] if own else []

    def within(self, texts: Sequence[str]) -> list[list[int]]:
        """For each text the places of earlier ones that have exactly its terms."""
        seen: dict[frozenset[str], list[int]] = {}
        found: list[list[int]] = []
        for place, text in enumerate(texts):
            own = self.terms(text)
            same = seen.setdefault(own, []) if own else []
            found.append(list(same))
            same.append(place)
        return found


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Texts that differ in a number differ in what they say."""
    numbers = {term for term in one ^ other if any(map(str.isdigit, term))}
    return not numbers and len(one & other) >= ALIKE * len(one | other) > 0
