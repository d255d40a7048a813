"""Measures of links between messages and of the conversations that they form, all from 0 to 1."""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence, Set
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Labels = Sequence[Hashable]
Message = TypeVar("Message", bound=Hashable)


class LinkScores(NamedTuple):
    """How many of the links found are true, how many of the true ones were found, and the harmonic mean."""

    precision: float
    recall: float
    f1: float


def link_scores(true: Mapping[Message, Set[Message]], found: Mapping[Message, Set[Message]]) -> LinkScores:
    """Compare what messages answer, for the messages of `true`.

    A start of a conversation is a link to itself and counts (Kummerfeld et al., ACL 2019).
    """
    right = sum(len(answered & found[message]) for message, answered in true.items())
    return _scores(
        right, sum(len(found[message]) for message in true), sum(len(answered) for answered in true.values())
    )


def one_to_one(true: Labels, found: Labels) -> float:
    """The share of messages in conversations that are paired so that as many as possible agree.

    Each true conversation is paired with at most one that was found (Elsner and Charniak, ACL 2008).
    """
    overlap = _overlap(true, found)
    pairs = best_pairs(overlap)
    return float(sum(overlap[row, column] for row, column in pairs)) / len(true) if len(true) else 0.0


def exact_match(true: Labels, found: Labels) -> LinkScores:
    """The conversations of at least two messages that were found exactly (Kummerfeld et al., ACL 2019)."""
    ours, theirs = _conversations(found), _conversations(true)
    return _scores(len(ours & theirs), len(ours), len(theirs))


def information_kept(true: Labels, found: Labels) -> float:
    """1 minus the variation of information over its bound log(n); 1 for the same conversations."""
    if len(true) < 2:
        return 1.0
    both = _entropy(list(zip(true, found, strict=True)))
    return 1 - (2 * both - _entropy(true) - _entropy(found)) / math.log(len(true))


def best_pairs(gains: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Pair rows with columns, each at most once, so that the sum of the gains is highest.

    The Hungarian method with shortest augmenting paths: rows are added one by one, and each keeps prices
    under which no pair could gain by changing.
    """
    if gains.shape[0] > gains.shape[1]:
        return [(row, column) for column, row in best_pairs(gains.T)]
    rows, columns = gains.shape
    row_price, column_price = np.zeros(rows), np.zeros(columns)
    partner = np.full(columns, -1)
    for row in range(rows):
        _augment(row, -gains.astype(np.float64), (row_price, column_price), partner)
    return [(int(row), column) for column, row in enumerate(partner) if row >= 0]


def _augment(
    row: int,
    costs: NDArray[np.float64],
    prices: tuple[NDArray[np.float64], NDArray[np.float64]],
    partner: NDArray[np.int64],
) -> None:
    """Give one more row a column along the cheapest path of changes."""
    row_price, column_price = prices
    cheapest = np.full(len(partner), math.inf)
    before = np.full(len(partner), -1)
    visited = np.zeros(len(partner), dtype=bool)
    column, at = -1, row
    while True:
        slack = costs[at] - row_price[at] - column_price
        better = ~visited & (slack < cheapest)
        cheapest[better], before[better] = slack[better], column
        column = int(np.where(visited, math.inf, cheapest).argmin())
        step = cheapest[column]
        row_price[partner[visited]] += step
        row_price[row] += step
        column_price[visited] -= step
        cheapest[~visited] -= step
        visited[column] = True
        if partner[column] < 0:
            break
        at = int(partner[column])
    while column >= 0:
        earlier = int(before[column])
        partner[column] = partner[earlier] if earlier >= 0 else row
        column = earlier


def _overlap(true: Labels, found: Labels) -> NDArray[np.int64]:
    rows = {label: number for number, label in enumerate(dict.fromkeys(true))}
    columns = {label: number for number, label in enumerate(dict.fromkeys(found))}
    counts = np.zeros((len(rows), len(columns)), dtype=np.int64)
    for one, other in zip(true, found, strict=True):
        counts[rows[one], columns[other]] += 1
    return counts


def _conversations(labels: Labels) -> set[frozenset[int]]:
    members: dict[Hashable, set[int]] = defaultdict(set)
    for place, label in enumerate(labels):
        members[label].add(place)
    return {frozenset(each) for each in members.values() if len(each) > 1}


def _entropy(labels: Labels) -> float:
    total = len(labels)
    return -math.fsum(count / total * math.log(count / total) for count in Counter(labels).values())


def _scores(right: int, found: int, true: int) -> LinkScores:
    precision, recall = right / found if found else 0.0, right / true if true else 0.0
    return LinkScores(precision, recall, 2 * right / (found + true) if found + true else 0.0)
