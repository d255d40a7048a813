"""Names in a text, found by rules: known ones, capitals, quotation marks and forms such as dates and code."""

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from conspectus.graph.capitals import Capitals
from conspectus.graph.gazetteer import Gazetteer
from conspectus.graph.name_keys import key_of
from conspectus.graph.patterns import Span, fenced, forms, numbers, quoted
from conspectus.graph.word_lists import FUNCTION_WORDS
from conspectus.model.graph import Mention

RULES: Final = "rules"
LONGEST_PHRASE: Final = 5
"""A name that is looked up has at most so many words."""
_WORDS: Final = re.compile(r"\S+")


class RuleExtractor:
    """Finds names without a model; the same text has the same names, whatever it stands with.

    Args:
        known: names that are looked for beside what is found by form.
        with_numbers: plain numbers count, too, not amounts of something alone.
    """

    def __init__(self, known: Gazetteer | None = None, *, with_numbers: bool = False) -> None:
        self._known = known
        self._with_numbers = with_numbers

    @property
    def name(self) -> str:
        """What it is called in settings and reports."""
        return RULES

    async def extract(self, texts: Sequence[str]) -> Sequence[Sequence[Mention]]:
        """For each text its names, in order and without overlaps."""
        return await asyncio.to_thread(self.found, texts)

    def found(self, texts: Sequence[str]) -> list[list[Mention]]:
        """What `extract` does, at once."""
        return [names_in(text, self._known, with_numbers=self._with_numbers) for text in texts]

    async def close(self) -> None:
        """Nothing to do: it holds nothing."""


def names_in(text: str, known: Gazetteer | None = None, *, with_numbers: bool = False) -> list[Mention]:
    """The names of a text, in order and without overlaps."""
    exact = chain(fenced(text), forms(text))
    by_hand = _known_spans(text, known) if known is not None else ()
    capitals = Capitals(text).spans()
    rest = numbers(text) if with_numbers else ()
    chosen = _without_overlaps(exact, quoted(text), by_hand, capitals, rest)
    return _named(text, chosen)


def with_known(text: str, found: Iterable[Mention], known: Gazetteer) -> list[Mention]:
    """The names that were found, and the known ones of the text; of those that overlap the longest."""
    before = [Span(each.start, each.end, each.type, each.score) for each in found]
    return _named(text, _without_overlaps(_known_spans(text, known), before))


def phrases(text: str, *, most: int = LONGEST_PHRASE) -> list[str]:
    """The keys of everything in a text that may be a name, up to so many words, each once."""
    words = [word[0] for word in _WORDS.finditer(text)]
    keys: dict[str, None] = {}
    for first in range(len(words)):
        if words[first].lower() in FUNCTION_WORDS and words[first].islower():
            continue
        for last in range(first, min(first + most, len(words))):
            keys.setdefault(key_of(" ".join(words[first : last + 1])))
    return [key for key in keys if key]


def _known_spans(text: str, known: Gazetteer) -> Iterator[Span]:
    for each in known.find(text):
        kind = each.spelling.type
        yield Span(each.start, each.end, kind, 0.95)


def _without_overlaps(*ranks: Iterable[Span]) -> list[Span]:
    """Those that lie in no longer one; of equally long ones that of the earlier rank."""
    spans = [(span.start - span.end, rank, span) for rank, each in enumerate(ranks) for span in each]
    spans.sort(key=lambda ranked: (ranked[2].start, ranked[0], ranked[1]))
    chosen: list[Span] = []
    for _, _, span in spans:
        if not chosen or span.start >= chosen[-1].end:
            chosen.append(span)
        elif span.end - span.start > chosen[-1].end - chosen[-1].start:
            chosen[-1] = span
    return chosen


def _named(text: str, spans: Iterable[Span]) -> list[Mention]:
    """Spans as names, without those of nothing that could be compared."""
    written = ((span, text[span.start : span.end]) for span in spans)
    keyed = ((span, said, key_of(said)) for span, said in written)
    return [
        Mention(span.start, span.end, said, key, span.type, span.score) for span, said, key in keyed if key
    ]
