"""Estimate the tokens of a passage before rendering, and select the sentences of a truncated passage."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from conspectus.deferred import dataclass
from conspectus.model.results import Hit, QueryTerms
from conspectus.text.analyzer import Analyzer
from conspectus.text.clean import graphemes_prefix, next_border, sentence_end_before, sentences
from conspectus.text.positions import headings_in
from conspectus.window.counting import RenderingCounter
from conspectus.window.passages import Threads, WindowPassage
from conspectus.window.render import CUT, CUT_BEFORE, Renderer

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


MIN_TEXT = 4
"""Minimum tokens of a truncated text. Less is not useful."""

MANY = 88
"""Assumed number of omitted messages when the cost of a mark is estimated."""

_WORD_START = re.compile(r"(?<=\s)\S")

_MAX_PROBES = 12
_GUESSES = 5


class Estimator:
    """Token costs of the parts of a rendering, each counted once and cached.

    `exact` counts, and says whether chunks carry counts of its tokenizer. `focus` selects the part of a
    truncated chunk. `frame` is the text around the whole rendering.
    """

    def __init__(
        self,
        sample: Hit,
        *,
        renderer: Renderer,
        exact: RenderingCounter,
        threads: Threads,
        focus: Focus,
    ) -> None:
        self._renderer = renderer
        self._threads = threads
        self._focus = focus
        self._count = exact.count
        self._counted = exact.counted
        self._texts: dict[int, int] = {}
        self._sentences: dict[tuple[int, int], int] = {}
        self._heads: dict[tuple[object, ...], int] = {}
        self._first = self._empty(sample, 1)
        self._ground = renderer.group((self._first,))
        self._ground_cost = self._cost(self._ground)
        second = renderer.group((self._empty(sample, 2),))
        more = self._cost(self._ground, second) - self._ground_cost
        self.frame = self._ground_cost - more
        self._between = more - self._count(second + renderer.after) if exact.divisible else None
        self.cut_mark = self._count(CUT)
        self._cut_before = self._count(CUT_BEFORE)

    def least(self, hit: Hit) -> int:
        """Return a lower bound of the chunk's cost without reading its text; 0 if unknown."""
        return hit.chunk.tokens if self._counted else 0

    def text(self, hit: Hit) -> int:
        """Return the tokens of the chunk's text as rendered."""
        chunk = hit.chunk
        if chunk.id not in self._texts:
            shown = self._renderer.show(chunk.text)
            if self._counted and chunk.text:
                self._texts[chunk.id] = -(-chunk.tokens * len(shown) // len(chunk.text))
            else:
                self._texts[chunk.id] = self._count(shown)
        return self._texts[chunk.id]

    def head(self, hit: Hit, *, beside: bool) -> int:
        """Return the tokens around the first passage of a document.

        With `beside`, the group already has a document with the same day and title.
        """
        key = (hit.document.id, beside, hit.chunk.page, hit.chunk.heading)
        if key not in self._heads:
            empty = self._empty(hit, 2)
            alone = self._renderer.group((empty,))
            if beside:
                both = self._renderer.group((empty, self._empty(hit, 3)))
                self._heads[key] = self._cost(both) - self._cost(alone)
            elif self._between is not None:
                self._heads[key] = self._count(alone + self._renderer.after) + self._between
            else:
                self._heads[key] = self._cost(self._ground, alone) - self._ground_cost
        return self._heads[key]

    def gap(self, hit: Hit) -> int:
        """Return the tokens between this passage and the previous one of its document."""
        key = (hit.chunk.page, hit.chunk.heading)
        if key not in self._heads:
            next_one = replace(self._empty(hit, 2), follows=1)
            both = self._renderer.group((self._first, next_one))
            self._heads[key] = self._cost(both) - self._ground_cost
        return self._heads[key]

    @cached_property
    def left_out(self) -> int:
        """Return the tokens of a mark for omitted messages."""
        marked = self._renderer.group((replace(self._first, left_out=MANY),))
        return self._cost(marked) - self._ground_cost

    def part(self, hit: Hit, covered: int, *, tokens: int, spare: int) -> tuple[int, int]:
        """Return the most relevant characters [start, stop) of the chunk's text from `covered` on.

        They use at most `tokens`. They surround the match, or else start at the beginning. Borders are
        sentences if that wastes at most `spare` tokens, else words if that wastes at most twice as much, else
        graphemes. The range is empty if nothing fits.
        """
        found = [each for each in self._focus.sentences(hit) if each.start >= covered]
        if not any(each.weight for each in found):
            return covered, self._end_of_text(hit, covered, tokens=tokens, spare=spare)
        room = tokens - self._cut_before
        costs = [self._sentence(hit, each) for each in found]
        first, last = run_around_best(found, costs, room)
        used = sum(costs[first : last + 1])
        start = found[first].start if first else covered
        if last < len(found) - 1 or used > room:
            return start, self._end_of_text(hit, start, tokens=room if first else tokens, spare=spare)
        if first and room - used > spare:
            start = self._start_of_text(hit, covered, tokens=room, spare=spare)
        return start, len(hit.chunk.text)

    def _sentence(self, hit: Hit, sentence: Sentence) -> int:
        key = (hit.chunk.id, sentence.start)
        if key not in self._sentences:
            shown = self._renderer.show(hit.chunk.text[sentence.start : sentence.end])
            self._sentences[key] = self._count(shown)
        return self._sentences[key]

    def _end_of_text(self, hit: Hit, begin: int, *, tokens: int, spare: int) -> int:
        text = hit.chunk.text
        limit = begin + self._longest(hit, lambda length: text[begin : begin + length], begin, tokens=tokens)
        ends = ((sentence_end_before(text, limit), spare), (_word_end(text, begin, limit), 2 * spare))
        for end, maximum in ends:
            if (limit - end) * tokens <= maximum * (limit - begin):
                return max(end, begin)
        return max(len(graphemes_prefix(text, limit)), begin)

    def _start_of_text(self, hit: Hit, covered: int, *, tokens: int, spare: int) -> int:
        text = hit.chunk.text
        limit = len(text) - self._longest(hit, lambda length: text[-length:], covered, tokens=tokens)
        word = _WORD_START.search(text, limit)
        if word and (word.start() - limit) * tokens <= 2 * spare * (len(text) - limit):
            return next_border(text, word.start())
        return next_border(text, limit)

    def _longest(self, hit: Hit, part: Callable[[int], str], covered: int, *, tokens: int) -> int:
        """Return approximately the greatest length of a part of the text that uses at most `tokens`."""
        length = len(hit.chunk.text)
        low, high = 0, length - covered
        guess = length * tokens // max(self.text(hit), 1)
        for probe in range(_MAX_PROBES):
            guess = max(low + 1, min(guess, high))
            used = self._count(self._renderer.show(part(guess)))
            if used > tokens:
                high = guess - 1
            else:
                low = guess
            if low >= high or tokens - 1 <= used <= tokens:
                break
            guess = guess * tokens // max(used, 1) if probe < _GUESSES else (low + high + 1) // 2
        return low

    def _cost(self, *groups: str) -> int:
        return self._renderer.whole(groups).tokens(self._count)

    def _empty(self, hit: Hit, number: int) -> WindowPassage:
        chunk, document, threads = hit.chunk, hit.document, self._threads
        return WindowPassage(
            number,
            document,
            0,
            0,
            "",
            (),
            page=chunk.page,
            heading=chunk.heading,
            answers=threads.answers(document),
            stream=threads.stream(document),
            zone=threads.zone(document),
        )


def _word_end(text: str, begin: int, limit: int) -> int:
    if limit >= len(text) or text[limit].isspace():
        return len(graphemes_prefix(text, limit))
    space = max(text.rfind(space, begin, limit) for space in " \n\t")
    return len(graphemes_prefix(text, begin + len(text[begin : max(space, begin)].rstrip())))
