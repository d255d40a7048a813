"""Phrases: sequences of query words in a text."""

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from conspectus.retrieval.arrays import Floats
from conspectus.text.analyzer import ALL_STOP_WORDS

PHRASE_WEIGHT: Final = 1.0
"""The score of a text that has the complete query."""
MIN_QUOTATION_WORDS: Final = 5
"""Minimum words of a quotation. A complete query of at least three words also counts."""
MIN_PHRASE_WORDS, MAX_PHRASE_WORDS = 3, 64
_WORD: Final = re.compile(r"\w{2,}")
"""Words of one character, such as articles or line numbers, are ignored in sequences."""


def phrase_words(query: str) -> tuple[str, ...]:
    """Return the words of a query for phrase matching; empty if the query is too short or too long."""
    words = tuple(_WORD.findall(query.casefold()))
    return words if MIN_PHRASE_WORDS <= len(words) <= MAX_PHRASE_WORDS else ()


def phrase_boost(words: Sequence[str], texts: Sequence[str], *, weight: float = PHRASE_WEIGHT) -> Floats:
    """Return, for each text, the cubed share of the query in its longest sequence of query words.

    Stop words are not counted. The cube raises quotations and hardly affects common phrases.
    """
    has_content = [word not in ALL_STOP_WORDS for word in words]
    shares = []
    for text in texts:
        start, end = longest_run(words, text)
        shares.append(sum(has_content[start:end]) / max(sum(has_content), 1))
    return weight * np.array(shares, dtype=np.float64) ** 3


def longest_run(words: Sequence[str], text: str) -> tuple[int, int]:
    """Return the start and end of the longest sequence of query words in a text.

    Both are equal if no sequence is long enough.
    """
    min_words = min(MIN_QUOTATION_WORDS, len(words))
    folded = text.casefold()
    # Splitting a text into words is slow, and most texts have too few query words in a row, even as
    # substrings. A search for a run of marks in a string is faster than a loop over all starts.
    marks = "".join(["x" if word in folded else " " for word in words])
    if "x" * min_words not in marks:
        return 0, 0
    text_words = f" {' '.join(_WORD.findall(folded))} "
    longest = 0, 0
    start = 0
    for end in range(1, len(words) + 1):
        while start < end and f" {' '.join(words[start:end])} " not in text_words:
            start += 1
        longest = max(longest, (start, end), key=lambda run: run[1] - run[0])
    return longest if longest[1] - longest[0] >= min_words else (0, 0)
