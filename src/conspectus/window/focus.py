"""The sentences of a hit, weighed by the query."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from conspectus.deferred import dataclass
from conspectus.model.results import Hit, QueryTerms
from conspectus.text.analyzer import Analyzer
from conspectus.text.positions import headings_in
from conspectus.text.sentences import sentences

_OF_HEADING = 0.5
_OF_NEIGHBOR = 0.25


@dataclass(frozen=True, slots=True)
class Sentence:
    """Characters [start, end) of a passage up to the next sentence, and the weight of the query terms in it.

    `section` is the number of the section in the passage.
    """

    start: int
    end: int
    weight: float
    section: int


class Focus:
    """Weighs the sentences of hits by query terms, or else by similarity."""

    def __init__(
        self, terms: Mapping[str, QueryTerms], nearest: Mapping[int, Sequence[float]] | None = None
    ) -> None:
        self._terms = terms
        self._nearest = nearest or {}
        self._sentences: dict[int, Sequence[Sentence]] = {}

    def sentences(self, hit: Hit) -> Sequence[Sentence]:
        """Return the weighted sentences of a hit; none if the query matches nothing in its text."""
        if hit.chunk.id not in self._sentences:
            terms = self._terms.get(hit.document.collection)
            found = _weighed(hit, terms) if terms else []
            if not any(each.weight for each in found):
                near = self._nearest.get(hit.chunk.id)
                found = _near(found, near) if near else []
            self._sentences[hit.chunk.id] = found
        return self._sentences[hit.chunk.id]


def run_around_best(found: Sequence[Sentence], costs: Sequence[int], tokens: int) -> tuple[int, int]:
    """Return the sentences [first, last] around the best one that use at most `tokens`.

    The section of the best sentence is completed first. Then the neighbor with more weight is added; of equal
    weights, the following one.
    """
    first = last = max(range(len(found)), key=lambda place: (found[place].weight, -place))
    section, used = found[first].section, costs[first]
    while True:
        around = [place for place in (first - 1, last + 1) if 0 <= place < len(found)]
        fitting = [place for place in around if used + costs[place] <= tokens]
        if not fitting:
            return first, last
        best = max(fitting, key=lambda at: (found[at].section == section, found[at].weight, at))
        used += costs[best]
        first, last = min(first, best), max(last, best)


def _weighed(hit: Hit, terms: QueryTerms) -> list[Sentence]:
    """Weigh sentences by their distinct query terms, plus a share of those of heading and neighbors."""
    text = hit.chunk.text
    headings = {place.start for place in headings_in(text, hit.document.syntax)}
    analyzer = Analyzer(terms.language)
    spans = list(sentences(text))
    own = [_weight(analyzer, terms, text[start:end]) for start, end in spans]
    ends = [*(start for start, _ in spans[1:]), len(text)][: len(spans)]
    found: list[Sentence] = []
    section, heading = 0, 0.0
    for place, ((start, _), end) in enumerate(zip(spans, ends, strict=True)):
        beside = own[place - 1] if place else 0.0
        if start in headings:
            section, heading = section + 1, own[place]
        weight = own[place] + (_OF_HEADING * heading + _OF_NEIGHBOR * beside)
        found.append(Sentence(start, end, weight, section))
    return found


def _near(found: Sequence[Sentence], near: Sequence[float]) -> list[Sentence]:
    """Return the sentences with their similarities as weights; 0 if not compared."""
    weights = [*near, *[0.0] * (len(found) - len(near))]
    return [replace(each, weight=max(weight, 0.0)) for each, weight in zip(found, weights, strict=True)]


def _weight(analyzer: Analyzer, terms: QueryTerms, text: str) -> float:
    return sum(terms.idf.get(term, 0.0) for term in dict.fromkeys(analyzer.terms(text)))
