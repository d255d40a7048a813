"""Entity extraction by rules: patterns, capitals and word lists, without a model."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from conspectus.graph.capitalized_names import Capitals
from conspectus.graph.english_words import FUNCTION_WORDS
from conspectus.graph.gazetteer import Gazetteer
from conspectus.graph.written_forms import Span, find_fenced, find_quoted, forms, numbers
from conspectus.model.records import Mention
from conspectus.text.late_patterns import re_pattern
from conspectus.text.name_keys import key_of

MAX_PHRASE_WORDS: Final = 5
"""Maximum number of words in a name that is looked up."""
_WORDS: Final = re_pattern(r"\S+")


class RuleExtractor:
    """Extracts entities without a model. The result for a text does not depend on other texts."""

    @property
    def name(self) -> str:
        """The name of the extractor in settings and reports."""
        return "rules"

    async def extract(self, texts: Sequence[str]) -> Sequence[Sequence[Mention]]:
        """Return the mentions in each text, in order and without overlaps."""
        return await asyncio.to_thread(self.extract_sync, texts)

    def extract_sync(self, texts: Sequence[str]) -> list[list[Mention]]:
        """Extract synchronously, otherwise like `extract`."""
        return [names_in(text) for text in texts]

    async def close(self) -> None:
        """Do nothing: the extractor holds no resources."""


def names_in(text: str, gazetteer: Gazetteer | None = None, *, with_numbers: bool = False) -> list[Mention]:
    """Return the mentions in a text, in order and without overlaps.

    Names of the gazetteer are found too and, `with_numbers`, plain numbers besides amounts with a unit.
    """
    exact = chain(find_fenced(text), forms(text))
    by_hand = _find_known_spans(text, gazetteer) if gazetteer is not None else ()
    capitals = Capitals(text).spans()
    rest = numbers(text) if with_numbers else ()
    spans = _remove_overlaps(exact, find_quoted(text), by_hand, capitals, rest)
    return _make_mentions(text, spans)


def with_gazetteer(text: str, mentions: Iterable[Mention], gazetteer: Gazetteer) -> list[Mention]:
    """Add known names to extracted mentions. Of overlapping mentions, the longest is kept."""
    before = [Span(mention.start, mention.end, mention.type, mention.score) for mention in mentions]
    return _make_mentions(text, _remove_overlaps(_find_known_spans(text, gazetteer), before))


def phrases(text: str, *, maximum: int = MAX_PHRASE_WORDS) -> list[str]:
    """Return the distinct keys of all phrases of up to `most` words that may be a name."""
    words = [word[0] for word in _WORDS.finditer(text)]
    keys: dict[str, None] = {}
    for first in range(len(words)):
        if words[first].lower() in FUNCTION_WORDS and words[first].islower():
            continue
        for last in range(first, min(first + maximum, len(words))):
            keys.setdefault(key_of(" ".join(words[first : last + 1])))
    return [key for key in keys if key]


def _find_known_spans(text: str, gazetteer: Gazetteer) -> Iterator[Span]:
    for span in gazetteer.find(text):
        kind = span.spelling.type
        yield Span(span.start, span.end, kind, 0.95)


def _remove_overlaps(*ranks: Iterable[Span]) -> list[Span]:
    """Remove overlaps. The longest span is kept; of equal lengths, the one with the better rank."""
    spans = [
        (span.start - span.end, rank, span)
        for rank, ranked_spans in enumerate(ranks)
        for span in ranked_spans
    ]
    spans.sort(key=lambda ranked: (ranked[2].start, ranked[0], ranked[1]))
    separate: list[Span] = []
    for _, _, span in spans:
        if not separate or span.start >= separate[-1].end:
            separate.append(span)
        elif span.end - span.start > separate[-1].end - separate[-1].start:
            separate[-1] = span
    return separate


def _make_mentions(text: str, spans: Iterable[Span]) -> list[Mention]:
    """Return spans as mentions, without those whose key is empty."""
    written = ((span, text[span.start : span.end]) for span in spans)
    keyed = ((span, name, key_of(name)) for span, name in written)
    return [
        Mention(span.start, span.end, name, key, span.type, span.score) for span, name, key in keyed if key
    ]
