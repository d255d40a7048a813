"""Bounded boosts that a message has by its thread: its best messages, and the messages before and after it.

Every boost returns one share for each candidate, in the order given.
"""

from collections.abc import Sequence

import numpy as np

from conspectus.retrieval.arrays import Floats, Ids
from conspectus.retrieval.boosts import asks

THREAD = 0.3
REPLY = 0.3
NEIGHBORS = 0.3
BEST_OF_THREAD = 3
CLOSE_HOURS = 1.0
"""Maximum time in hours between two messages of an exchange."""


def from_thread(scores: Floats, threads: Sequence[str | None], *, weight: float = THREAD) -> Floats:
    """Return, for each text of a thread, how far its best three scores exceed the median candidate.

    If a thread has fewer than three candidates, the median fills the missing places, so a single good text
    raises a thread less than three do. Texts without a thread get 0. Bounded by the weight times the range of
    scores.
    """
    shares = np.zeros(len(scores))
    numbers: dict[str, int] = {}
    own = np.array([-1 if each is None else numbers.setdefault(each, len(numbers)) for each in threads])
    if not numbers:
        return shares
    above = scores - np.median(scores)
    order = np.lexsort((-above, own))
    grouped = own[order]
    best = (np.arange(len(own)) - np.searchsorted(grouped, grouped) < BEST_OF_THREAD) & (grouped >= 0)
    sums = np.bincount(grouped[best], weights=above[order][best])
    shares[own >= 0] = weight * sums[own[own >= 0]] / BEST_OF_THREAD
    return shares


def from_question_before(
    scores: Floats,
    ids: Ids,
    links: Ids,
    *,
    authors: Sequence[str | None],
    texts: Sequence[str],
    weight: float = REPLY,
) -> Floats:
    """Return, for each answer, how far the preceding question by another author exceeds the median.

    A short answer contains few terms of its subject; the question before it has them. Questions below the
    median have no effect. `links` are pairs in the order of the thread. Bounded by the weight times the range
    of scores.
    """
    shares = np.zeros(len(scores))
    if not len(scores) or not len(links):
        return shares
    first, second = _distinct(_places(ids, links), len(ids))
    above = np.maximum(scores - np.median(scores), 0.0)
    for asking, answering in zip(first.tolist(), second.tolist(), strict=True):
        if authors[asking] != authors[answering] and asks(texts[asking]):
            shares[answering] = weight * above[asking]
    return shares


def from_neighbors(scores: Floats, ids: Ids, links: Ids, *, weight: float = NEIGHBORS) -> Floats:
    """Return, for each candidate, how far its neighbors in the thread score above the median candidate.

    `ids` are the distinct ids of the candidates in ascending order. `links` are pairs of ids (shape (n, 2)),
    of which one directly follows the other. Duplicate pairs count once. Pairs with an unknown id or with
    equal ids are ignored. Because scores are compared with the median, a text without neighbors keeps its
    rank among texts with typical neighbors. With two neighbors, a share is at most twice the weight times the
    range of scores, positive or negative.
    """
    if not len(scores) or not len(links):
        return np.zeros(len(scores))
    first, second = _distinct(np.sort(_places(ids, links), axis=1), len(ids))
    one, other = np.concatenate((first, second)), np.concatenate((second, first))
    shares = np.bincount(one, weight * (scores - np.median(scores))[other], len(scores))
    return np.asarray(shares, np.float64)


def from_exchange(
    scores: Floats, ids: Ids, links: Ids, *, authors: Sequence[str | None], hours: Floats, weight: float
) -> Floats:
    """Return, for each message, how far the adjacent messages by other authors score above the median.

    Messages count only within an hour, if both times are known (`hours`, NaN if unknown). Scores below the
    median have no effect. `links` are pairs in the order of the thread. At most twice the weight times the
    range of scores.
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
    """Return, for each message, how far the messages two steps before and after score above the median.

    If the rest of a reply chain is about the subject of the query, the message is part of a conversation
    about it. `links` are pairs in the order of the thread. At most twice the weight times the range of
    scores, positive or negative.
    """
    shares = np.zeros(len(scores))
    if not len(scores) or not len(links):
        return shares
    above = np.append(scores - np.median(scores), 0.0)
    for beside in _steps(ids, links):
        shares += weight * above[beside[beside[:-1]]]
    return shares


def _steps(ids: Ids, links: Ids) -> tuple[Ids, Ids]:
    """Return the positions of the texts before and after each candidate; the number of candidates if none."""
    nowhere = len(ids)
    before, after = np.full(nowhere + 1, nowhere), np.full(nowhere + 1, nowhere)
    first, second = _places(ids, links).T
    after[first], before[second] = second, first
    return before, after


def _places(ids: Ids, pairs: Ids) -> Ids:
    """Return the positions of both candidates of each pair, without pairs of others or of equal ids."""
    places = np.minimum(np.searchsorted(ids, pairs), len(ids) - 1)
    found = (ids[places] == pairs).all(axis=1) & (pairs[:, 0] != pairs[:, 1])
    known: Ids = places[found]
    return known


def _distinct(places: Ids, number: int) -> tuple[Ids, Ids]:
    """Return both columns of the distinct pairs of positions below a number, in order."""
    return np.divmod(np.unique(places[:, 0] * number + places[:, 1]), number)
