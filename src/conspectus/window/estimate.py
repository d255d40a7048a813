"""What a passage will cost, before it is rendered: cheap, nearly right, and corrected by real counts."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from conspectus.model.results import Hit
from conspectus.text.clean import graphemes_prefix, sentence_end_before
from conspectus.window.arrange import Passage
from conspectus.window.render import CUT, Renderer
from conspectus.window.threads import Threads

LEAST_TEXT = 4
"""A cut text of fewer tokens says nothing."""

MANY = 88
"""Messages left out, for what counting them costs."""

_MOST_PROBES = 12
_GUESSES = 5


class Estimator:
    """Token costs of the parts of a rendering, each counted once and remembered.

    With `counted`, chunks carry their own token count of this very tokenizer. `frame` is what stands
    around everything.
    """

    def __init__(
        self,
        renderer: Renderer,
        count: Callable[[str], int],
        *,
        counted: bool,
        sample: Hit,
        threads: Threads,
    ) -> None:
        self._renderer = renderer
        self._threads = threads
        self._count = count
        self._counted = counted
        self._texts: dict[int, int] = {}
        self._heads: dict[tuple[object, ...], int] = {}
        self._ground = (self._empty(sample, 1),)
        self._ground_cost = self._cost(self._ground)
        two = self._cost(self._ground, (self._empty(sample, 2),))
        self.frame = 2 * self._ground_cost - two
        self.cut_mark = count(CUT)

    def least(self, hit: Hit) -> int:
        """What the chunk costs at least, known without looking at its text; 0 if nothing is known."""
        return hit.chunk.tokens if self._counted else 0

    def text(self, hit: Hit) -> int:
        """Tokens of the chunk's text as it will be shown."""
        chunk = hit.chunk
        if chunk.id not in self._texts:
            shown = self._renderer.show(chunk.text)
            if self._counted and chunk.text:
                self._texts[chunk.id] = -(-chunk.tokens * len(shown) // len(chunk.text))
            else:
                self._texts[chunk.id] = self._count(shown)
        return self._texts[chunk.id]

    def head(self, hit: Hit, *, beside: bool) -> int:
        """Tokens of what stands around the first passage of a document.

        With `beside`, of one that stands in its group beside another of the same day and title.
        """
        key = (hit.document.id, beside, hit.chunk.page, hit.chunk.heading)
        if key not in self._heads:
            alone = (self._empty(hit, 2),)
            if beside:
                self._heads[key] = self._cost((*alone, self._empty(hit, 3))) - self._cost(alone)
            else:
                self._heads[key] = self._cost(self._ground, alone) - self._ground_cost
        return self._heads[key]

    def gap(self, hit: Hit) -> int:
        """Tokens of what stands between a passage of a document and the next one, this."""
        key = (hit.chunk.page, hit.chunk.heading)
        if key not in self._heads:
            next_one = replace(self._empty(hit, 2), follows=1)
            self._heads[key] = self._cost((*self._ground, next_one)) - self._ground_cost
        return self._heads[key]

    @cached_property
    def left_out(self) -> int:
        """Tokens of the mark that stands for messages left out."""
        ground = self._ground[0]
        return self._cost((replace(ground, left_out=MANY),)) - self._ground_cost

    def end_of_text(self, hit: Hit, begin: int, *, tokens: int, spare: int) -> int:
        """Where to cut the chunk's text so that its characters from `begin` on cost at most `tokens`.

        The end of a sentence where that wastes no more than `spare` tokens, else of a word where that
        wastes no more than twice as much, else a grapheme border; `begin` if not even that fits.
        """
        text = hit.chunk.text
        limit = self._longest(hit, begin, tokens)
        ends = ((sentence_end_before(text, limit), spare), (_word_end(text, begin, limit), 2 * spare))
        for end, most in ends:
            if (limit - end) * tokens <= most * (limit - begin):
                return max(end, begin)
        return max(len(graphemes_prefix(text, limit)), begin)

    def _longest(self, hit: Hit, begin: int, tokens: int) -> int:
        text = hit.chunk.text
        low, high = begin, len(text)
        guess = begin + len(text) * tokens // max(self.text(hit), 1)
        for probe in range(_MOST_PROBES):
            guess = max(low + 1, min(guess, high))
            used = self._count(self._renderer.show(text[begin:guess]))
            if used > tokens:
                high = guess - 1
            else:
                low = guess
            if low >= high or tokens - 1 <= used <= tokens:
                break
            guess = (
                begin + (guess - begin) * tokens // max(used, 1)
                if probe < _GUESSES
                else (low + high + 1) // 2
            )
        return low

    def _cost(self, *layout: tuple[Passage, ...]) -> int:
        return self._renderer.render(layout).tokens(self._count)

    def _empty(self, hit: Hit, number: int) -> Passage:
        chunk, document = hit.chunk, hit.document
        answers = self._threads.answers(document)
        passage = Passage(number, document, 0, 0, "", (), page=chunk.page, heading=chunk.heading)
        stream, zone = self._threads.stream(document), self._threads.zone(document)
        return replace(passage, answers=answers, stream=stream, zone=zone)


def _word_end(text: str, begin: int, limit: int) -> int:
    if limit >= len(text) or text[limit].isspace():
        return len(graphemes_prefix(text, limit))
    space = max(text.rfind(space, begin, limit) for space in " \n\t")
    return len(graphemes_prefix(text, begin + len(text[begin : max(space, begin)].rstrip())))
