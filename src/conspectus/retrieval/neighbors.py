"""What stands before and after a text in its thread or stream is evidence about the text."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

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
