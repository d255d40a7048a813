"""What stands before and after a text in its thread or stream is evidence about the text."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

NEIGHBOURS = 0.3


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
    places = np.minimum(np.searchsorted(ids, pairs), len(ids) - 1)
    found = (ids[places] == pairs).all(axis=1) & (pairs[:, 0] != pairs[:, 1])
    first, second = places[found].T
    np.add.at(shares, first, weight * above[second])
    np.add.at(shares, second, weight * above[first])
    return shares
