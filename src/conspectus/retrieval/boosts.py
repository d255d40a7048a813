"""Bounded boosts that a text has by itself: identifiers, author, role, and questions.

Every boost returns one share for each candidate, in the order given.
"""

import re
from collections.abc import Sequence

import numpy as np

from conspectus.retrieval.arrays import Floats, Ids
from conspectus.text.analyzer import ALL_STOP_WORDS

IDENTIFIER_WEIGHT = 2.0
"""More than the range of fused scores."""
SPEAKER_WEIGHT = 0.08
QUESTION_WEIGHT = 0.08
ROLE_WEIGHT = 0.1
_WORD = re.compile(r"\w+")
_ROLES = (["user"], ["assistant"], ["system"], ["tool"], ["agent"], ["bot"], ["human"], ["ai"])
_NO_NAMES = ALL_STOP_WORDS.union(*_ROLES)
_QUESTION_MARKS = frozenset("?\uff1f\u061f\u037e")


def identifier_boost(ids: Ids, exact: Ids, *, weight: float = IDENTIFIER_WEIGHT) -> Floats:
    """Return `weight` for chunks that contain a rare identifier of the query.

    Fused scores range from -1 to 1, so every such chunk outranks all others.
    """
    return weight * np.isin(ids, exact).astype(np.float64)


def speaker_boost(query: str, authors: Sequence[str | None], *, weight: float = SPEAKER_WEIGHT) -> Floats:
    """Return `weight` for texts by the author that the query names, if it names exactly one.

    An author is named by full name or first word, in any case. Roles such as "user" and "assistant" are not
    names, nor is "The" of "The Editor".
    """
    words = _words(query)
    named = {author for author in set(authors) if author is not None and _is_named(author, words)}
    if len(named) != 1:
        return np.zeros(len(authors))
    return weight * np.array([float(author in named) for author in authors])


def question_penalty(texts: Sequence[str], *, weight: float = QUESTION_WEIGHT) -> Floats:
    """Return minus `weight` for texts that end with a question: they rarely contain an answer."""
    return 0.0 - weight * np.array([float(ends_with_question(text)) for text in texts], dtype=np.float64)


def role_boost(roles: Sequence[str | None], *, role: str = "user", weight: float = ROLE_WEIGHT) -> Floats:
    """Return `weight` for texts with the given role."""
    return weight * np.array([float(text_role == role) for text_role in roles], dtype=np.float64)


def ends_with_question(text: str) -> bool:
    """Return whether the last sign of a text, except for quotes and brackets, is a question mark."""
    for character in reversed(text):
        if character in _QUESTION_MARKS or character.isalnum():
            return not character.isalnum()
    return False


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _is_named(author: str, words: Sequence[str]) -> bool:
    name = _words(author)
    if not name or name in _ROLES:
        return False
    first = name[0] in words and name[0] not in _NO_NAMES
    return first or any(words[start : start + len(name)] == name for start in range(len(words)))
