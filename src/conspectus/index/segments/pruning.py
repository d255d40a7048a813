"""Which rows may be among the best by words: a quick estimate with a bound, never a wrong exclusion.

The terms that can add most come first. Once all further terms together add less than the score that the
last of the best has already, rows without one of the former terms are out of reach; the further terms
are then only looked up for the rows still in question. This is the MaxScore idea of Turtle and Flood,
"Query evaluation: strategies and optimizations" (1995), over arrays.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from conspectus.index.bm25 import Bm25
from conspectus.index.segments.postings import SegmentPosting, saturation
from conspectus.index.segments.row_filter import Allowed
from conspectus.index.segments.vectors import RowNumbers

_SLACK = 1e-4
_LOOKUP = 16
_LOOK = 16


@dataclass(frozen=True, slots=True)
class Weighted:
    """A term of the question in one segment; no row gains more than `weight` times the posting's bound."""

    posting: SegmentPosting
    weight: float

    @property
    def most(self) -> float:
        """The most that the term adds to a score."""
        return self.weight * self.posting.bound


class Chooser:
    """Finds the rows of one segment that can be among the best `limit`."""

    def __init__(self, lengths: NDArray[np.uint32], bm25: Bm25, average: float) -> None:
        self._lengths = lengths
        self._bm25 = bm25
        self._average = average

    def choose(self, terms: Sequence[Weighted], limit: int, allowed: Allowed) -> RowNumbers:
        """Every allowed row whose score may be among the `limit` best, sorted, and few others."""
        if not terms or not limit or not allowed.count:
            return np.zeros(0, np.int64)
        ordered = sorted(terms, key=_most, reverse=True)
        postings = sum(len(term.posting.rows) for term in terms)
        if _LOOKUP * allowed.count < postings + allowed.size:
            rows = allowed.rows
            return self._finish(ordered, _Leaders(rows, np.zeros(len(rows), np.float32), limit), limit)
        scores = np.zeros(len(self._lengths), np.float32)
        leaders = _Leaders(np.zeros(0, np.int64), np.zeros(0, np.float32), limit)
        for done, term in enumerate(ordered, start=1):
            scores[term.posting.rows] += self._estimate(term, term.posting.rows, slice(None))
            if done == len(ordered) or self._worth_a_look(ordered, done):
                rows = np.asarray(allowed.among(np.flatnonzero(scores > 0.0)), np.int64)
                leaders = _Leaders(rows, scores[rows], limit)
                if sum(map(_most, ordered[done:])) < leaders.threshold:
                    return self._finish(ordered[done:], leaders, limit)
        return leaders.rows

    def _finish(self, terms: Sequence[Weighted], leaders: "_Leaders", limit: int) -> RowNumbers:
        for done, term in enumerate(terms):
            leaders = leaders.within(sum(map(_most, terms[done:])))
            wanted = leaders.rows.astype(np.uint32)
            place = np.searchsorted(term.posting.rows, wanted)
            place[place == len(term.posting.rows)] = 0
            found = np.flatnonzero(term.posting.rows[place] == wanted)
            values = leaders.values
            values[found] += self._estimate(term, wanted[found], place[found])
            leaders = _Leaders(leaders.rows, values, limit)
        return leaders.within(0.0).rows

    def _worth_a_look(self, ordered: Sequence[Weighted], done: int) -> bool:
        """Whether the further terms could be in vain at all, and are worth more than finding out."""
        rest = ordered[done:]
        postings = sum(len(term.posting.rows) for term in rest)
        in_reach = sum(map(_most, ordered[:done])) > sum(map(_most, rest))
        return in_reach and _LOOK * postings > len(self._lengths)

    def _estimate(
        self, term: Weighted, rows: NDArray[np.integer], place: NDArray[np.intp] | slice
    ) -> NDArray[np.float32]:
        shares = saturation(self._bm25, term.posting.counts[place], self._lengths[rows], self._average)
        shares *= np.float32(term.weight)
        return shares


def _most(term: Weighted) -> float:
    return term.most


class _Leaders:
    """Rows with a score so far, and the score that the last of the best has at least."""

    def __init__(self, rows: RowNumbers, values: NDArray[np.float32], limit: int) -> None:
        self.rows = rows
        self.values = values
        self._limit = limit
        self.threshold = 0.0
        if len(rows) > limit:
            place = len(rows) - limit
            self.threshold = float(np.partition(values, place)[place]) * (1.0 - _SLACK)

    def within(self, reach: float) -> "_Leaders":
        """Those that reach the threshold when they gain as much."""
        kept = self.values >= self.threshold - reach * (1.0 + _SLACK)
        return _Leaders(self.rows[kept], self.values[kept], self._limit)
