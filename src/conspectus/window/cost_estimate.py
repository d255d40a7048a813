"""Estimate the tokens of a passage before rendering, and cut it to the tokens left."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

from conspectus.model.results import Hit
from conspectus.text.graphemes import graphemes_prefix, next_border
from conspectus.text.sentences import sentence_end_before
from conspectus.text.tables import find_table_header
from conspectus.window.counting import RenderingCounter
from conspectus.window.focus import Focus, Sentence, run_around_best
from conspectus.window.passages import WindowPassage, names_of_successors
from conspectus.window.render import CUT, CUT_BEFORE, Renderer
from conspectus.window.threads import Threads

MIN_TEXT_TOKENS = 4
"""Minimum tokens of a truncated text. Less is not useful."""
TYPICAL_OMITTED_MESSAGES = 88
"""Assumed number of omitted messages when the cost of a mark is estimated."""
_WORD_START = re.compile(r"(?<=\s)\S")
_MAX_PROBES = 12
_MAX_GUESSES = 5


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
            escaped = self._renderer.escape(chunk.text)
            if self._counted and chunk.text:
                self._texts[chunk.id] = -(-chunk.tokens * len(escaped) // len(chunk.text))
            else:
                self._texts[chunk.id] = self._count(escaped)
        return self._texts[chunk.id]

    def head(self, hit: Hit, *, beside: bool) -> int:
        """Return the tokens around the first passage of a document.

        With `beside`, the group already has a document with the same day and title.
        """
        key = (hit.document.id, beside, hit.chunk.page, hit.chunk.heading, hit.chunk.table_header)
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
        key = (hit.chunk.page, hit.chunk.heading, hit.chunk.table_header)
        if key not in self._heads:
            next_one = replace(self._empty(hit, 2), follows=1)
            both = self._renderer.group((self._first, next_one))
            self._heads[key] = self._cost(both) - self._ground_cost
        return self._heads[key]

    @cached_property
    def left_out(self) -> int:
        """Return the tokens of a mark for omitted messages."""
        marked = self._renderer.group((replace(self._first, left_out=TYPICAL_OMITTED_MESSAGES),))
        return self._cost(marked) - self._ground_cost

    def part(self, hit: Hit, covered: int, *, tokens: int, max_waste: int) -> tuple[int, int]:
        """Return the most relevant characters [start, stop) of the chunk's text from `covered` on.

        They use at most `tokens`. They surround the match, or else start at the beginning. Borders are
        sentences if that wastes at most `max_waste` tokens, else words if that wastes at most twice as much,
        else graphemes. The range is empty if nothing fits.
        """
        sentences = [sentence for sentence in self._focus.sentences(hit) if sentence.start >= covered]
        if not any(sentence.weight for sentence in sentences):
            return covered, self._end_of_text(hit, covered, tokens=tokens, max_waste=max_waste)
        room = tokens - self._cut_before - self._header_tokens(hit, sentences)
        costs = [self._sentence_tokens(hit, sentence) for sentence in sentences]
        first, last = run_around_best(sentences, costs, room)
        used = sum(costs[first : last + 1])
        start = sentences[first].start if first else covered
        if last < len(sentences) - 1 or used > room:
            room_for_text = room if first else tokens
            return start, self._end_of_text(hit, start, tokens=room_for_text, max_waste=max_waste)
        if first and room - used > max_waste:
            start = self._start_of_text(hit, covered, tokens=room, max_waste=max_waste)
        return start, len(hit.chunk.text)

    def _header_tokens(self, hit: Hit, sentences: Sequence[Sentence]) -> int:
        """Return the tokens of the header rows in the chunk that its best sentence is shown with."""
        best = max(sentences, key=lambda sentence: sentence.weight)
        header = find_table_header(hit.chunk, hit.document.syntax, best.start)
        is_shown = header != hit.chunk.table_header and self._renderer.shows(header)
        return self._count(self._renderer.escape(header)) if is_shown else 0

    def _sentence_tokens(self, hit: Hit, sentence: Sentence) -> int:
        key = (hit.chunk.id, sentence.start)
        if key not in self._sentences:
            escaped = self._renderer.escape(hit.chunk.text[sentence.start : sentence.end])
            self._sentences[key] = self._count(escaped)
        return self._sentences[key]

    def _end_of_text(self, hit: Hit, begin: int, *, tokens: int, max_waste: int) -> int:
        text = hit.chunk.text
        limit = begin + self._longest(hit, lambda length: text[begin : begin + length], begin, tokens=tokens)
        ends = ((sentence_end_before(text, limit), max_waste), (_word_end(text, begin, limit), 2 * max_waste))
        for end, maximum in ends:
            if (limit - end) * tokens <= maximum * (limit - begin):
                return max(end, begin)
        return max(len(graphemes_prefix(text, limit)), begin)

    def _start_of_text(self, hit: Hit, covered: int, *, tokens: int, max_waste: int) -> int:
        text = hit.chunk.text
        limit = len(text) - self._longest(hit, lambda length: text[-length:], covered, tokens=tokens)
        if find_table_header(hit.chunk, hit.document.syntax, limit):
            return text.find("\n", limit) + 1
        word = _WORD_START.search(text, limit)
        if word and (word.start() - limit) * tokens <= 2 * max_waste * (len(text) - limit):
            return next_border(text, word.start())
        return next_border(text, limit)

    def _longest(self, hit: Hit, part: Callable[[int], str], covered: int, *, tokens: int) -> int:
        """Return approximately the greatest length of a part of the text that uses at most `tokens`."""
        length = len(hit.chunk.text)
        low, high = 0, length - covered
        guess = length * tokens // max(self.text(hit), 1)
        for probe in range(_MAX_PROBES):
            guess = max(low + 1, min(guess, high))
            used = self._count(self._renderer.escape(part(guess)))
            if used > tokens:
                high = guess - 1
            else:
                low = guess
            if low >= high or tokens - 1 <= used <= tokens:
                break
            guess = guess * tokens // max(used, 1) if probe < _MAX_GUESSES else (low + high + 1) // 2
        return low

    def _cost(self, *groups: str) -> int:
        return self._renderer.render_window(groups).tokens(self._count)

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
            table_header=chunk.table_header or "",
            answers=threads.is_reply(document),
            stream=threads.stream(document),
            zone=threads.zone(document),
            superseded_by=names_of_successors(hit),
        )


def _word_end(text: str, begin: int, limit: int) -> int:
    if limit >= len(text) or text[limit].isspace():
        return len(graphemes_prefix(text, limit))
    space = max(text.rfind(space, begin, limit) for space in " \n\t")
    return len(graphemes_prefix(text, begin + len(text[begin : max(space, begin)].rstrip())))
