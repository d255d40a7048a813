"""Bounded boosts that a message has by its thread: its best messages, and the messages before and after it.

Every boost returns one share for each candidate, in the order given. It is made of how far scores are `above`
the typical candidate, and never negative: a message that is answered or thanked does not score below the same
message alone.
"""

from bisect import bisect_right
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


def above_typical(scores: Floats, threads: Sequence[str | None]) -> Floats:
    """Return how far each score exceeds that of the typical candidate; 0 if it does not.

    The typical candidate is the median one outside of the thread, so answers in a thread do not change what
    its messages are compared with. If all candidates are of one thread, it is the median of all.
    """
    positions: dict[str | int, list[int]] = {}
    for position, thread in enumerate(threads):
        positions.setdefault(position if thread is None else thread, []).append(position)
    ranks = np.empty(len(scores), dtype=np.int64)
    ranks[np.argsort(scores, kind="stable")] = np.arange(len(scores))
    ordered = np.sort(scores).tolist()
    typical = np.zeros(len(scores))
    for members in positions.values():
        inside = sorted(ranks[members].tolist()) if len(members) < len(scores) else []
        typical[members] = _median_without(ordered, inside)
    return np.maximum(scores - typical, 0.0)


def thread_boost(above: Floats, threads: Sequence[str | None], *, weight: float = THREAD_WEIGHT) -> Floats:
    """Return, for each text of a thread, the mean by which its best three scores are above the typical one.

    A thread with fewer than three candidates has zeros in their place, so a single good text raises a thread
    less than three do. Texts without a thread get 0. Bounded by the weight times the range of scores.
    """
    shares = np.zeros(len(above))
    numbers: dict[str, int] = {}
    thread_numbers = np.array(
        [-1 if thread is None else numbers.setdefault(thread, len(numbers)) for thread in threads]
    )
    if not numbers:
        return shares
    order = np.lexsort((-above, thread_numbers))
    grouped = thread_numbers[order]
    ranks_in_thread = np.arange(len(grouped)) - np.searchsorted(grouped, grouped)
    best = (ranks_in_thread < MAX_THREAD_TEXTS) & (grouped >= 0)
    sums = np.bincount(grouped[best], weights=above[order][best])
    inside = thread_numbers >= 0
    shares[inside] = weight * sums[thread_numbers[inside]] / MAX_THREAD_TEXTS
    return shares


def preceding_question_boost(
    above: Floats,
    ids: Ids,
    links: Ids,
    *,
    authors: Sequence[str | None],
    texts: Sequence[str],
    weight: float = PRECEDING_QUESTION_WEIGHT,
) -> Floats:
    """Return, for each answer, how far the preceding question by another author is above the typical score.

    A short answer contains few terms of its subject; the question before it has them. `links` are pairs in
    the order of the thread. Bounded by the weight times the range of scores.
    """
    shares = np.zeros(len(above))
    if not len(above) or not len(links):
        return shares
    first, second = _distinct_pairs(_positions_of_pairs(ids, links), len(ids))
    for asking, answering in zip(first.tolist(), second.tolist(), strict=True):
        if authors[asking] != authors[answering] and ends_with_question(texts[asking]):
            shares[answering] = weight * above[asking]
    return shares


def neighbor_boost(above: Floats, ids: Ids, links: Ids, *, weight: float = NEIGHBOR_WEIGHT) -> Floats:
    """Return, for each candidate, how far its neighbors in the thread are above the typical score.

    `ids` are the distinct ids of the candidates in ascending order. `links` are pairs of ids (shape (n, 2)),
    of which one directly follows the other. Duplicate pairs count once. Pairs with an unknown id or with
    equal ids are ignored. With two neighbors, a share is at most twice the weight times the range of scores.
    """
    if not len(above) or not len(links):
        return np.zeros(len(above))
    first, second = _distinct_pairs(np.sort(_positions_of_pairs(ids, links), axis=1), len(ids))
    one, other = np.concatenate((first, second)), np.concatenate((second, first))
    return np.asarray(np.bincount(one, weight * above[other], len(above)), np.float64)


def exchange_boost(
    above: Floats, ids: Ids, links: Ids, *, authors: Sequence[str | None], hours: Floats, weight: float
) -> Floats:
    """Return, for each message, how far the adjacent messages by other authors are above the typical score.

    Messages count only within an hour, if both times are known (`hours`, NaN if unknown). `links` are pairs
    in the order of the thread. At most twice the weight times the range of scores.
    """
    shares = np.zeros(len(above))
    if not len(above) or not len(links):
        return shares
    above = np.append(above, 0.0)
    names = np.array([author or "" for author in authors] + [""])
    times = np.append(hours, np.nan)
    for adjacent in _adjacent_positions(ids, links):
        other = adjacent[:-1]
        is_close = ~(np.abs(times[other] - times[:-1]) > MAX_EXCHANGE_HOURS)
        shares += weight * above[other] * ((names[other] != names[:-1]) & is_close)
    return shares


def chain_boost(above: Floats, ids: Ids, links: Ids, *, weight: float) -> Floats:
    """Return, for each message, how far the messages two steps before and after are above the typical score.

    If the rest of a reply chain is about the subject of the query, the message is part of a conversation
    about it. `links` are pairs in the order of the thread. At most twice the weight times the range of
    scores.
    """
    shares = np.zeros(len(above))
    if not len(above) or not len(links):
        return shares
    above = np.append(above, 0.0)
    for adjacent in _adjacent_positions(ids, links):
        shares += weight * above[adjacent[adjacent[:-1]]]
    return shares


def _median_without(ordered: Sequence[float], ranks: Sequence[int]) -> float:
    """Return the median of ascending numbers without those at some ascending ranks; 0 if there is none."""
    left = len(ordered) - len(ranks)
    if not left:
        return 0.0
    # The number of removed ranks below each remaining one.
    offsets = [rank - removed for removed, rank in enumerate(ranks)]
    low, high = ((left - 1) // 2, left // 2)
    return (ordered[low + bisect_right(offsets, low)] + ordered[high + bisect_right(offsets, high)]) / 2.0


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
