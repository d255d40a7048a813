"""Questions that ask for a number: what they count was said in several conversations."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np

from conspectus.retrieval.arrays import Floats, Ids
from conspectus.retrieval.boosts import ends_with_question
from conspectus.text.late_patterns import re_pattern

REPEATED_THREAD_WEIGHT: Final = 0.03
MAX_BETTER_TEXTS: Final = 3
"""Most better texts of a thread that lower the others."""
COUNTING_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "en": r"how (?:many|much|often)|in total|altogether",
        "de": r"wie ?viele?n?|wie oft|insgesamt",
        "fr": r"combien|au total|en tout",
        "es": r"cuánt[oa]s?|en total",
    }
)
"""The words with which a question asks for a number, by language, as regular expressions."""
_COUNTING: Final = re_pattern(rf"\b(?:{'|'.join(COUNTING_WORDS.values())})\b", re.IGNORECASE)
_MAX_QUESTION_CHARACTERS: Final = 1_000


def asks_for_number(query: str) -> bool:
    """Return whether a question asks for a number of things or times, or for an amount.

    It begins with the words for that, or ends with a question mark: "I forgot how much I like it" is none.
    """
    if len(query) > _MAX_QUESTION_CHARACTERS:
        return False
    words = _COUNTING.search(query)
    return words is not None and (not query[: words.start()].strip(" ¿") or ends_with_question(query))


def repeated_thread_penalty(
    scores: Floats, threads: Sequence[str | None], ids: Ids, *, weight: float = REPEATED_THREAD_WEIGHT
) -> Floats:
    """Return minus `weight` for each better text of the same thread, of at most three.

    So the best texts of several threads stand before many of one. Texts without a thread get 0. Of equal
    scores, the text with the lower id is better.
    """
    penalties = np.zeros(len(scores))
    better: dict[str, int] = {}
    for position in np.lexsort((ids, -scores)).tolist():
        thread = threads[position]
        if thread is not None:
            number = better.get(thread, 0)
            penalties[position] = 0.0 - weight * min(number, MAX_BETTER_TEXTS)
            better[thread] = number + 1
    return penalties
