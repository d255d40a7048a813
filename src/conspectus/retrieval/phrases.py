"""Runs of a question's words that a text holds in the same order: quotations, titles, error messages."""

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from conspectus.text.analyzer import STOP_WORDS

PHRASE: Final = 1.0
SHORTEST: Final = 5
"""Fewer words in a row than these are no quotation, but for a whole question of at least three."""
FEWEST, MOST = 3, 64
_EMPTY: Final = frozenset().union(*STOP_WORDS.values())
_WORD: Final = re.compile(r"\w+")


def phrase_words(question: str) -> tuple[str, ...]:
    """The words in which runs are looked for; none where the question is too short or too long for it."""
    words = tuple(_WORD.findall(question.casefold()))
    return words if FEWEST <= len(words) <= MOST else ()


def from_phrases(
    words: Sequence[str], texts: Sequence[str], *, weight: float = PHRASE
) -> NDArray[np.float64]:
    """A share for each text: what its longest run of the question's words is of the question, to the third.

    Stop words are not counted. By the third power a quotation is lifted, and a turn of phrase hardly.
    """
    saying = [word not in _EMPTY for word in words]
    shares = []
    for text in texts:
        start, end = longest_run(words, text)
        shares.append(sum(saying[start:end]) / max(sum(saying), 1))
    return weight * np.array(shares, dtype=np.float64) ** 3


def longest_run(words: Sequence[str], text: str) -> tuple[int, int]:
    """The first and the end of the words that follow each other in a text as they do in the question.

    Equal numbers where no run is long enough.
    """
    least = min(SHORTEST, len(words))
    folded = text.casefold()
    here = [word in folded for word in words]
    # Splitting a text into words takes long, and most texts hold no run that would be worth it.
    if not any(all(here[start : start + least]) for start in range(len(words) - least + 1)):
        return 0, 0
    spoken = f" {' '.join(_WORD.findall(folded))} "
    found = 0, 0
    start = 0
    for end in range(1, len(words) + 1):
        while start < end and f" {' '.join(words[start:end])} " not in spoken:
            start += 1
        found = max(found, (start, end), key=lambda run: run[1] - run[0])
    return found if found[1] - found[0] >= least else (0, 0)
