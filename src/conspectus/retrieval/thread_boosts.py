"""Bounded boosts that a message has by its thread: its best messages, and the messages before and after it.

Every boost returns one share for each candidate, in the order given.
"""

from collections.abc import Sequence

import numpy as np

from conspectus.retrieval.arrays import Floats, Ids
from conspectus.retrieval.boosts import ends_with_question

THREAD_WEIGHT = 0.3
PRECEDING_QUESTION_WEIGHT = 0.3
NEIGHBOR_WEIGHT = 0.3
MAX_THREAD_TEXTS = 3
MAX_EXCHANGE_HOURS = 1.0
"""Maximum time in hours between two messages of an exchange."""


def thread_boost(scores: Floats, threads: Sequence[str | None], *, weight: float = THREAD_WEIGHT) -> Floats:
    """Return, for each text of a thread, how far its best three scores exceed the median candidate.

    If a thread has fewer than three candidates, the median fills the missing places, so a single good text
    raises a thread less than three do. Texts without a thread get 0. Bounded by the weight times the range of
    scores.
    """
    shares = np.zeros(len(scores))
    numbers: dict[str, int] = {}
    thread_numbers = np.array(
        [-1 if thread is None else numbers.setdefault(thread, len(numbers)) for thread in threads]
    )
    if not numbers:
        return shares
    above = scores - np.median(scores)
    order = np.lexsort((-above, thread_numbers))
    grouped = thread_numbers[order]
    ranks_in_thread = np.arange(len(grouped)) - np.searchsorted(grouped, grouped)
    best = (ranks_in_thread < MAX_THREAD_TEXTS) & (grouped >= 0)
    sums = np.bincount(grouped[best], weights=above[order][best])
    inside = thread_numbers >= 0
    shares[inside] = weight * sums[thread_numbers[inside]] / MAX_THREAD_TEXTS
    return shares


def preceding_question_boost(
    scores: Floats,
    ids: Ids,
    links: Ids,
    *,
    authors: Sequence[str | None],
    texts: Sequence[str],
    weight: float = PRECEDING_QUESTION_WEIGHT,
) -> Floats:
    """Return, for each answer, how far the preceding question by another author exceeds the median.

    A short answer contains few terms of its subject; the question before it has them. Questions below the
    median have no effect. `links` are pairs in the order of the thread. Bounded by the weight times the range
    of scores.
    """
    shares = np.zeros(len(scores))
    if not len(scores) or not len(links):
        return shares
    first, second = _distinct_pairs(_positions_of_pairs(ids, links), len(ids))
    above = np.maximum(scores - np.median(scores), 0.0)
    for asking, answering in zip(first.tolist(), second.tolist(), strict=True):
        if authors[asking] != authors[answering] and ends_with_question(texts[asking]):
            shares[answering] = weight * above[asking]
    return shares


def neighbor_boost(scores: Floats, ids: Ids, links: Ids, *, weight: float = NEIGHBOR_WEIGHT) -> Floats:
    """Return, for each candidate, how far its neighbors in the thread score above the median candidate.

    `ids` are the distinct ids of the candidates in ascending order. `links` are pairs of ids (shape (n, 2)),
    of which one directly follows the other. Duplicate pairs count once. Pairs with an unknown id or with
    equal ids are ignored. Because scores are compared with the median, a text without neighbors keeps its
    rank among texts with typical neighbors. With two neighbors, a share is at most twice the weight times the
    range of scores, positive or negative.
    """
    if not len(scores) or not len(links):
        return np.zeros(len(scores))
    first, second = _distinct_pairs(np.sort(_positions_of_pairs(ids, links), axis=1), len(ids))
    one, other = np.concatenate((first, second)), np.concatenate((second, first))
    shares = np.bincount(one, weight * (scores - np.median(scores))[other], len(scores))
    return np.asarray(shares, np.float64)


def exchange_boost(
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
    names = np.array([author or "" for author in authors] + [""])
    times = np.append(hours, np.nan)
    for adjacent in _adjacent_positions(ids, links):
        other = adjacent[:-1]
        is_close = ~(np.abs(times[other] - times[:-1]) > MAX_EXCHANGE_HOURS)
        shares += weight * above[other] * ((names[other] != names[:-1]) & is_close)
    return shares


def chain_boost(scores: Floats, ids: Ids, links: Ids, *, weight: float) -> Floats:
    """Return, for each message, how far the messages two steps before and after score above the median.

    If the rest of a reply chain is about the subject of the query, the message is part of a conversation
    about it. `links` are pairs in the order of the thread. At most twice the weight times the range of
    scores, positive or negative.
    """
    shares = np.zeros(len(scores))
    if not len(scores) or not len(links):
        return shares
    above = np.append(scores - np.median(scores), 0.0)
    for adjacent in _adjacent_positions(ids, links):
        shares += weight * above[adjacent[adjacent[:-1]]]
    return shares


def _adjacent_positions(ids: Ids, links: Ids) -> tuple[Ids, Ids]:
    """Return the positions of the texts before and after each candidate; the number of candidates if none."""
    none = len(ids)
    before, after = np.full(none + 1, none), np.full(none + 1, none)
    first, second = _positions_of_pairs(ids, links).T
    after[first], before[second] = second, first
    return before, after


def _positions_of_pairs(ids: Ids, pairs: Ids) -> Ids:
    """Return the positions of both candidates of each pair, without pairs of others or of equal ids."""
    positions = np.minimum(np.searchsorted(ids, pairs), len(ids) - 1)
    is_pair = (ids[positions] == pairs).all(axis=1) & (pairs[:, 0] != pairs[:, 1])
    candidate_pairs: Ids = positions[is_pair]
    return candidate_pairs


def _distinct_pairs(pairs: Ids, number: int) -> tuple[Ids, Ids]:
    """Return both columns of the distinct pairs of positions below a number, in order."""
    return np.divmod(np.unique(pairs[:, 0] * number + pairs[:, 1]), number)
