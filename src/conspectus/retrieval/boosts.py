"""Bounded parts of a score: identifiers, neighbors, threads, speakers and roles.

Every function returns one share for each candidate, in the order given, and is bounded by its weight.
The weights suit fused scores, which run from about 0 to 1; they were chosen on three conversations and
confirmed on two others (docs/adr/0002).
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from conspectus.text.analyzer import STOP_WORDS

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


NEIGHBOURS = 0.3
CLOSE_HOURS = 1.0
"""Messages further apart are no exchange."""


def from_neighbours(scores: Floats, ids: Ids, links: Ids, *, weight: float = NEIGHBOURS) -> Floats:
    """Each candidate's share of how far its neighbours score above the typical candidate.

    `ids` are the candidates' distinct ids in ascending order, `links` pairs of ids (shape (n, 2)) of which
    one directly follows the other; a pair given twice counts once, and a pair with an id that is no
    candidate, or with twice the same, not at all. The typical score is the median, so that a text without
    neighbours stays where it is among texts that have them. With two neighbours a share is at most
    twice the weight times the range of the scores, up or down.
    """
    shares = np.zeros(len(scores))
    if not len(scores) or not len(links):
        return shares
    above = scores - np.median(scores)
    pairs = np.unique(np.sort(links, axis=1), axis=0)
    first, second = _places(ids, pairs).T
    np.add.at(shares, first, weight * above[second])
    np.add.at(shares, second, weight * above[first])
    return shares


def from_exchange(
    scores: Floats, ids: Ids, links: Ids, *, authors: Sequence[str | None], hours: Floats, weight: float
) -> Floats:
    """Each candidate's share of how far what others said right before and after it is above the typical.

    Only messages of another author count, and only within an hour, where both times are known (`hours`,
    NaN where one is not); what scores below the typical takes nothing away. `links` are pairs in the order
    of the thread. At most twice the weight times the range of the scores.
    """
    shares = np.zeros(len(scores))
    if not len(scores) or not len(links):
        return shares
    above = np.append(np.maximum(scores - np.median(scores), 0.0), 0.0)
    wrote = np.array([each or "" for each in authors] + [""])
    when = np.append(hours, np.nan)
    for beside in _steps(ids, links):
        other = beside[:-1]
        close = (wrote[other] != wrote[:-1]) & ~(np.abs(when[other] - when[:-1]) > CLOSE_HOURS)
        shares += weight * above[other] * close
    return shares


def from_chain(scores: Floats, ids: Ids, links: Ids, *, weight: float) -> Floats:
    """Each candidate's share of how far the texts two steps before and after it are above the typical.

    What a message answers and what follows it is its chain: where the rest of the chain is about the
    question too, the message is one of a conversation about it. `links` are pairs in the order of the
    thread. At most twice the weight times the range of the scores, up or down.
    """
    shares = np.zeros(len(scores))
    if not len(scores) or not len(links):
        return shares
    above = np.append(scores - np.median(scores), 0.0)
    for beside in _steps(ids, links):
        shares += weight * above[beside[beside[:-1]]]
    return shares


def _steps(ids: Ids, links: Ids) -> tuple[Ids, Ids]:
    """The place of the text before each candidate, and of the one after it; past the last for none."""
    nowhere = len(ids)
    before, after = np.full(nowhere + 1, nowhere), np.full(nowhere + 1, nowhere)
    first, second = _places(ids, links).T
    after[first], before[second] = second, first
    return before, after


def _places(ids: Ids, pairs: Ids) -> Ids:
    """Where both of a pair stand among the candidates; of other pairs, or one and the same, nothing."""
    places = np.minimum(np.searchsorted(ids, pairs), len(ids) - 1)
    found = (ids[places] == pairs).all(axis=1) & (pairs[:, 0] != pairs[:, 1])
    known: Ids = places[found]
    return known
