"""What of a passage matched the question: its sentences, and how much each says of what was asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from conspectus.model.results import Hit, QueryTerms
from conspectus.text.analyzer import Analyzer
from conspectus.text.positions import headings_in
from conspectus.text.sentences import sentences

_OF_HEADING = 0.5
_OF_NEIGHBOR = 0.25


@dataclass(frozen=True, slots=True)
class Sentence:
    """Characters [start, end) of a passage up to the next sentence, and the weight of the query's terms.

    `section` numbers the sections of the passage.
    """

    start: int
    end: int
    weight: float
    section: int


class Focus:
    """Weighs the sentences of hits by the terms of one query, else by their similarity where it is known."""

    def __init__(
        self, terms: Mapping[str, QueryTerms], nearest: Mapping[int, Sequence[float]] | None = None
    ) -> None:
        self._terms = terms
        self._nearest = nearest or {}
        self._sentences: dict[int, Sequence[Sentence]] = {}

    def sentences(self, hit: Hit) -> Sequence[Sentence]:
        """The sentences of a hit's text; none where nothing of it matched."""
        if hit.chunk.id not in self._sentences:
            asked = self._terms.get(hit.document.collection)
            found = _weighed(hit, asked) if asked else []
            if not any(each.weight for each in found):
                near = self._nearest.get(hit.chunk.id)
                found = _near(found, near) if near else []
            self._sentences[hit.chunk.id] = found
        return self._sentences[hit.chunk.id]


def run_around_best(found: Sequence[Sentence], costs: Sequence[int], tokens: int) -> tuple[int, int]:
    """The sentences [first, last] that cost at most `tokens`, grown from the best one.

    First its own section is completed, then the neighbor with more weight is taken, and of equal ones the
    following one.
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


def _weighed(hit: Hit, asked: QueryTerms) -> list[Sentence]:
    """Each sentence counts the distinct terms in it, and in part those of its heading and neighbors."""
    text = hit.chunk.text
    headings = {place.start for place in headings_in(text, hit.document.syntax)}
    analyzer = Analyzer(asked.language)
    spans = list(sentences(text))
    own = [_weight(analyzer, asked, text[start:end]) for start, end in spans]
    ends = [*(start for start, _ in spans[1:]), len(text)]
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
    """The sentences with their similarities as weights; those that were not compared have none."""
    weights = [*near, *[0.0] * (len(found) - len(near))]
    return [replace(each, weight=max(weight, 0.0)) for each, weight in zip(found, weights, strict=True)]


def _weight(analyzer: Analyzer, asked: QueryTerms, text: str) -> float:
    return sum(asked.idf.get(term, 0.0) for term in set(analyzer.terms(text)))
