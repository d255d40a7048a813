"""Whether a caption is what a standing question waits for."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from conspectus.model.filter import Filter, document_row, matches
from conspectus.model.records import Document
from conspectus.ports import Vectors
from conspectus.text.analyzer import Analyzer

ANCHOR: Final = "anchor"
"""A word that is one term and no stop word: beside it, a text of nothing but stop words has no terms."""


class Language:
    """The terms of texts in one language."""

    def __init__(self, language: str | None) -> None:
        self._telling = Analyzer(language)
        self._all = Analyzer(language, stop_words=False)

    def telling(self, text: str) -> list[str]:
        """The terms that say something, in the order of the text."""
        return self._telling.terms(f"{text} {ANCHOR}")[:-1]

    def all(self, text: str) -> list[str]:
        """All terms, stop words among them."""
        return self._all.terms(text)


@dataclass(frozen=True, slots=True)
class AlertQuery:
    """What is waited for: all of the `words`, or where there are none the `phrase` as it stands.

    `vector` is that of the question in the captions' space, None where there is none to compare.
    """

    where: Filter
    asks: bool
    words: frozenset[str]
    phrase: tuple[str, ...]
    floor: float | None = None
    vector: Vectors | None = None


@dataclass(frozen=True, slots=True)
class Heard:
    """A caption as questions look at it: its terms, and the vectors of its pieces that there are so far.

    `chunk` is the number of a piece of it, which is higher than those of all that was written before.
    """

    document: Document
    chunk: int
    words: Collection[str]
    sequence: Sequence[str]
    vectors: Sequence[bytes] = ()


def question(
    text: str, where: Filter, language: Language, *, floor: float | None, vector: Vectors | None
) -> AlertQuery:
    """A question ready to be compared."""
    words = frozenset(language.telling(text))
    phrase = () if words else tuple(language.all(text))
    return AlertQuery(where, bool(text.strip()), words, phrase, floor, vector)


def heard(
    document: Document, text: str, language: Language, *, chunk: int = 0, vectors: Sequence[bytes] = ()
) -> Heard:
    """A caption ready to be compared with many questions."""
    return Heard(document, chunk, frozenset(language.telling(text)), language.all(text), vectors)


def reason(asked: AlertQuery, caption: Heard) -> str | None:
    """Why the caption is what is waited for; None if it is not."""
    if not matches(asked.where, document_row(caption.document)):
        return None
    if not asked.asks:
        return "its fields"
    if asked.words and asked.words <= set(caption.words):
        return f"words: {', '.join(sorted(asked.words))}"
    if asked.phrase and _holds(caption.sequence, asked.phrase):
        return f"phrase: {' '.join(asked.phrase)}"
    similarity = _similarity(asked, caption)
    if similarity is None or asked.floor is None or similarity < asked.floor:
        return None
    return f"similarity: {similarity:.2f}"


def _similarity(asked: AlertQuery, caption: Heard) -> float | None:
    """The cosine of the question with the piece of the caption that is nearest to it."""
    if asked.vector is None or not caption.vectors:
        return None
    rows = np.stack([np.frombuffer(each, dtype="<f2").astype(np.float32) for each in caption.vectors])
    return float((rows @ asked.vector).max())


def _holds(terms: Sequence[str], phrase: Sequence[str]) -> bool:
    """Whether the phrase stands somewhere in the terms without a gap."""
    wide = len(phrase)
    return any(tuple(terms[at : at + wide]) == tuple(phrase) for at in range(len(terms) - wide + 1))
