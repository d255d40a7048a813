"""Small, bounded reasons to move a candidate up or down; none of them can bring back what a floor kept out.

Every function returns one share for each candidate, in the order given, and is bounded by its weight.
The weights suit fused scores, which run from about 0 to 1; they were chosen on three conversations and
confirmed on two others (docs/adr/0002).
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from conspectus.text.stopwords import STOP_WORDS

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

IDENTIFIER = 2.0
THREAD = 0.3
SPEAKER = 0.08
QUESTION = 0.08
ROLE = 0.1
BEST_OF_THREAD = 3

_WORD = re.compile(r"\w+")
_ROLES = (["user"], ["assistant"], ["system"], ["tool"], ["agent"], ["bot"], ["human"], ["ai"])
_NO_NAMES = frozenset().union(*STOP_WORDS.values(), *_ROLES)
_QUESTION_MARKS = frozenset("?\uff1f\u061f\u037e")


def from_identifiers(ids: Ids, exact: Ids, *, weight: float = IDENTIFIER) -> Floats:
    """`weight` for the chunks that hold a rare identifier of the query.

    Fused scores run from -1 to 1, so every such chunk outranks all others.
    """
    return weight * np.isin(ids, exact).astype(np.float64)


def from_thread(scores: Floats, threads: Sequence[str | None], *, weight: float = THREAD) -> Floats:
    """How far a thread's best three stand above the typical candidate, for each text of the thread.

    Where a thread has fewer than three candidates, typical ones fill its place, so that one good text does
    not lift a thread as three do. Texts without a thread get 0. Bounded by weight times the range of scores.
    """
    shares = np.zeros(len(scores))
    places: dict[str, list[int]] = {}
    for place, thread in enumerate(threads):
        if thread is not None:
            places.setdefault(thread, []).append(place)
    if not places:
        return shares
    above = scores - np.median(scores)
    for members in places.values():
        best = np.sort(above[members])[::-1][:BEST_OF_THREAD]
        shares[members] = weight * float(best.sum()) / BEST_OF_THREAD
    return shares


def from_speaker(question: str, authors: Sequence[str | None], *, weight: float = SPEAKER) -> Floats:
    """`weight` for texts by the one author whom the question names, if it names exactly one of them.

    An author is named by the whole name or by its first word, in any case; "user", "assistant" and the
    like are roles and not names, and "The" of "The Editor" is no name either.
    """
    words = _words(question)
    named = {author for author in set(authors) if author is not None and _is_named(author, words)}
    if len(named) != 1:
        return np.zeros(len(authors))
    return weight * np.array([float(author in named) for author in authors])


def from_asking(texts: Sequence[str], *, weight: float = QUESTION) -> Floats:
    """Minus `weight` for texts that end in a question: they ask for what others answer."""
    return 0.0 - weight * np.array([float(asks(text)) for text in texts], dtype=np.float64)


def from_role(roles: Sequence[str | None], *, role: str = "user", weight: float = ROLE) -> Floats:
    """`weight` for texts of the given role."""
    return weight * np.array([float(each == role) for each in roles], dtype=np.float64)


def asks(text: str) -> bool:
    """Whether a text ends in a question."""
    last = next((each for each in reversed(text) if each.isalnum() or each in _QUESTION_MARKS), "")
    return last in _QUESTION_MARKS


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _is_named(author: str, words: Sequence[str]) -> bool:
    name = _words(author)
    if not name or name in _ROLES:
        return False
    first = name[0] in words and name[0] not in _NO_NAMES
    return first or any(words[start : start + len(name)] == name for start in range(len(words)))
