"""Queries of alerts, and why a caption matches one."""

from collections.abc import Awaitable, Callable, Sequence, Set
from typing import Final

import numpy as np

from conspectus.deferred import dataclass
from conspectus.model.filter import Filter, document_row, matches
from conspectus.model.records import Collection, Document
from conspectus.ports import Vectors
from conspectus.text.analyzer import Analyzer

ANCHOR: Final = "anchor"
"""A single term that is not a stop word. A text of only stop words would otherwise keep its terms."""


class Language:
    """Analyzes texts in one language."""

    def __init__(self, language: str | None) -> None:
        self._telling = Analyzer(language)
        self._all = Analyzer(language, stop_words=False)

    def content_terms(self, text: str) -> list[str]:
        """Return the terms of a text without stop words, in order."""
        return self._telling.terms(f"{text} {ANCHOR}")[:-1]

    def all(self, text: str) -> list[str]:
        """Return all terms of a text, including stop words."""
        return self._all.terms(text)


@dataclass(frozen=True, slots=True)
class AlertQuery:
    """A compiled query of an alert.

    A caption matches if it has all `words`. If the query has only stop words, it matches `phrase` instead.
    `vector` is the embedding of the query, None if similarity is not used.
    """

    filter: Filter
    asks: bool
    words: frozenset[str]
    phrase: tuple[str, ...]
    min_similarity: float | None = None
    vector: Vectors | None = None


@dataclass(frozen=True, slots=True)
class AnalyzedCaption:
    """A caption with its terms and the vectors that are available so far.

    `chunk` is the id of one of its chunks. Ids increase with every write.
    """

    document: Document
    chunk: int
    words: Set[str]
    sequence: Sequence[str]
    vectors: Sequence[bytes] = ()


def question(
    text: str, filter: Filter, language: Language, *, min_similarity: float | None, vector: Vectors | None
) -> AlertQuery:
    """Compile the query of an alert."""
    words = frozenset(language.content_terms(text))
    phrase = () if words else tuple(language.all(text))
    return AlertQuery(filter, bool(text.strip()), words, phrase, min_similarity, vector)


def analyze_caption(
    document: Document, text: str, language: Language, *, chunk: int = 0, vectors: Sequence[bytes] = ()
) -> AnalyzedCaption:
    """Analyze a caption once, to match it with many queries."""
    return AnalyzedCaption(
        document, chunk, frozenset(language.content_terms(text)), language.all(text), vectors
    )


def reason(query: AlertQuery, caption: AnalyzedCaption) -> str | None:
    """Return why a caption matches; None if it does not match."""
    if not matches(query.filter, document_row(caption.document)):
        return None
    if not query.asks:
        return "its fields"
    if query.words and query.words <= set(caption.words):
        return f"words: {', '.join(sorted(query.words))}"
    if query.phrase and _holds(caption.sequence, query.phrase):
        return f"phrase: {' '.join(query.phrase)}"
    similarity = _similarity(query, caption)
    if similarity is None or query.min_similarity is None or similarity < query.min_similarity:
        return None
    return f"similarity: {similarity:.2f}"


def _similarity(query: AlertQuery, caption: AnalyzedCaption) -> float | None:
    """Return the highest cosine similarity between the query and the chunks of the caption."""
    if query.vector is None or not caption.vectors:
        return None
    rows = np.stack([np.frombuffer(vector, dtype="<f2").astype(np.float32) for vector in caption.vectors])
    return float((rows @ query.vector).max())


def _holds(terms: Sequence[str], phrase: Sequence[str]) -> bool:
    """Return whether the terms contain the phrase without gaps."""
    wide = len(phrase)
    return any(tuple(terms[at : at + wide]) == tuple(phrase) for at in range(len(terms) - wide + 1))


EmbedQuery = Callable[[Collection, str], Awaitable[Vectors | None]]
"""Embeds a query with the model of a collection; None without a model. Raises ProviderError."""
