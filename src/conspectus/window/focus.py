"""The sentences of a hit, weighed by the query."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from conspectus.deferred import dataclass
from conspectus.model.results import Hit, QueryTerms
from conspectus.text.analyzer import Analyzer
from conspectus.text.positions import headings_in
from conspectus.text.tables import sentences_and_rows, tables_in

HEADING_SHARE = 0.5
NEIGHBOR_SHARE = 0.25
"""Shares of the weights of its heading and of the sentence before that a sentence gets."""


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
            sentences = _weigh_by_terms(hit, terms) if terms else []
            if not any(sentence.weight for sentence in sentences):
                similarities = self._nearest.get(hit.chunk.id)
                sentences = _weigh_by_similarity(sentences, similarities) if similarities else []
            self._sentences[hit.chunk.id] = sentences
        return self._sentences[hit.chunk.id]


def run_around_best(sentences: Sequence[Sentence], costs: Sequence[int], tokens: int) -> tuple[int, int]:
    """Return the sentences [first, last] around the best one that use at most `tokens`.

    The section of the best sentence is completed first. Then the neighbor with more weight is added; of equal
    weights, the following one.
    """
    first = last = max(range(len(sentences)), key=lambda number: (sentences[number].weight, -number))
    section, used = sentences[first].section, costs[first]

    def preference(number: int) -> tuple[bool, float, int]:
        return sentences[number].section == section, sentences[number].weight, number

    while True:
        around = [number for number in (first - 1, last + 1) if 0 <= number < len(sentences)]
        fitting = [number for number in around if used + costs[number] <= tokens]
        if not fitting:
            return first, last
        best = max(fitting, key=preference)
        used += costs[best]
        first, last = min(first, best), max(last, best)


def _weigh_by_terms(hit: Hit, terms: QueryTerms) -> list[Sentence]:
    """Weigh sentences by their distinct query terms, plus a share of those of heading and neighbors.

    A row of a table is one sentence. Header rows have no weight of their own: they are shown with each row.
    """
    text, tables = hit.chunk.text, tables_in(hit.chunk, hit.document.syntax)
    table_starts = {table.start for table in tables if table.body}
    headings = {heading.start for heading in headings_in(text, hit.document.syntax)}
    analyzer = Analyzer(terms.language)
    spans = list(sentences_and_rows(text, tables))
    weights = [
        0.0 if start in table_starts else _weight(analyzer, terms, text[start:end]) for start, end in spans
    ]
    ends = [*(start for start, _ in spans[1:]), len(text)][: len(spans)]
    weighed: list[Sentence] = []
    section, heading_weight = 0, 0.0
    for number, ((start, _), end) in enumerate(zip(spans, ends, strict=True)):
        weight_before = weights[number - 1] if number else 0.0
        if start in headings:
            section, heading_weight = section + 1, weights[number]
        weight = weights[number] + (HEADING_SHARE * heading_weight + NEIGHBOR_SHARE * weight_before)
        weighed.append(Sentence(start, end, weight, section))
    return weighed


def _weigh_by_similarity(sentences: Sequence[Sentence], similarities: Sequence[float]) -> list[Sentence]:
    """Return the sentences with their similarities as weights; 0 if not compared."""
    weights = [*similarities, *[0.0] * (len(sentences) - len(similarities))]
    return [
        replace(sentence, weight=max(weight, 0.0))
        for sentence, weight in zip(sentences, weights, strict=True)
    ]


def _weight(analyzer: Analyzer, terms: QueryTerms, text: str) -> float:
    return sum(terms.idf.get(term, 0.0) for term in dict.fromkeys(analyzer.terms(text)))
