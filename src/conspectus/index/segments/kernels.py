"""Search kernels of a segment: compiled, or in NumPy if the compiled module is missing.

Both return the same results to the last bit. Arrays are passed as the segment's files hold them. Rows and
scores are returned as bytes of int64 and float64; rows are sorted if the given ones are.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from conspectus.index.bm25 import best, cosines, count_shared
from conspectus.ports import Floats, Ids, Vectors

Mask = NDArray[np.bool_]
RowsAndScores = tuple[bytes, bytes]


class PostingArrays(NamedTuple):
    """Rows and counts of all postings, the length of each row, and the start of each term's posting."""

    rows: NDArray[np.uint32]
    counts: NDArray[np.unsignedinteger[Any]]
    lengths: NDArray[np.uint32]
    starts: Ids


class TermArrays(NamedTuple):
    """Terms in summation order: position (-1: missing), weight, and upper bound of their contribution."""

    positions: Ids
    weights: Floats
    bounds: Floats


class Kernels(Protocol):
    """The functions of the compiled module and of `NumpyKernels`. Raises IndexError for an invalid array."""

    def positions(self, blob: NDArray[np.uint8], offsets: Ids, names: tuple[bytes, ...], /) -> bytes:
        """Return the position of each name among the sorted strings of `pack`; -1 if it is missing."""
        ...

    def documents(
        self, rows: NDArray[np.uint32], starts: Ids, positions: Ids, subset: NDArray[np.uint32], /
    ) -> bytes:
        """Return as int64 how many rows of the subset each posting has; 0 at position -1."""
        ...

    def words(
        self,
        postings: PostingArrays,
        terms: TermArrays,
        norm: tuple[float, float],
        subset: Ids | None,
        allowed: Mask | None,
        limit: int,
        /,
    ) -> RowsAndScores:
        """Return the BM25 of the best `limit` rows, ties by row; of the whole subset if `limit` is negative.

        Args:
            norm: the norm of a row without terms, and the increase per term (see `Bm25.norm`).
            subset: the rows to score; all allowed rows if None.
        """
        ...

    def cosines(
        self, vectors: NDArray[np.float16], query: Vectors, rows: Ids, limit: int, /
    ) -> RowsAndScores:
        """Return the cosines of the best `limit` rows, ties by row; of all rows if `limit` is negative."""
        ...


class NumpyKernels:
    """The kernels in NumPy."""

    def positions(self, blob: NDArray[np.uint8], offsets: Ids, names: tuple[bytes, ...]) -> bytes:
        """See `Kernels.positions`."""
        found_positions = np.full(len(names), -1)
        text, ends = blob.data, offsets.data
        for number, name in enumerate(names):
            low, high = 0, len(ends) - 1
            while low < high:
                middle = (low + high) // 2
                string = text[ends[middle] : ends[middle + 1]].tobytes()
                if string == name:
                    found_positions[number] = middle
                    break
                low, high = (middle + 1, high) if string < name else (low, middle)
        return found_positions.tobytes()

    def documents(
        self, rows: NDArray[np.uint32], starts: Ids, positions: Ids, subset: NDArray[np.uint32]
    ) -> bytes:
        """See `Kernels.documents`."""
        postings = [rows[starts[at] : starts[at + 1]] if at >= 0 else rows[:0] for at in positions.tolist()]
        return np.array([count_shared(posting, subset) for posting in postings], np.int64).tobytes()

    def words(
        self,
        postings: PostingArrays,
        terms: TermArrays,
        norm: tuple[float, float],
        subset: Ids | None,
        allowed: Mask | None,
        limit: int,
    ) -> RowsAndScores:
        """See `Kernels.words`. Without a subset, scores are accumulated over all postings."""
        if subset is None:
            scores = _score_all(postings, terms, norm)
            rows = np.flatnonzero(scores if allowed is None else scores * allowed)
            return _best_rows(rows, scores[rows], limit)
        scores = _subset_scores(postings, terms, norm, subset)
        positive = scores > 0.0
        return _bytes(subset, scores) if limit < 0 else _best_rows(subset[positive], scores[positive], limit)

    def cosines(self, vectors: NDArray[np.float16], query: Vectors, rows: Ids, limit: int) -> RowsAndScores:
        """See `Kernels.cosines`."""
        scores = cosines(vectors[rows], query)
        return _bytes(rows, scores) if limit < 0 else _best_rows(rows, scores, limit)


def _score_all(postings: PostingArrays, terms: TermArrays, norm: tuple[float, float]) -> Floats:
    scores = np.zeros(len(postings.lengths))
    for rows, counts, weight in _postings(postings, terms):
        scores[rows] += weight * counts / (counts + (norm[0] + norm[1] * postings.lengths[rows]))
    return scores


def _subset_scores(
    postings: PostingArrays, terms: TermArrays, norm: tuple[float, float], subset: Ids
) -> Floats:
    scores = np.zeros(len(subset))
    norms = norm[0] + norm[1] * postings.lengths[subset]
    for rows, counts, weight in _postings(postings, terms):
        positions = rows.searchsorted(subset.astype(np.uint32))
        hits = np.flatnonzero(rows.take(positions, mode="clip") == subset)
        term_counts = counts[positions[hits]]
        scores[hits] += weight * term_counts / (term_counts + norms[hits])
    return scores


def _postings(
    postings: PostingArrays, terms: TermArrays
) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.unsignedinteger[Any]], np.float64]]:
    for position, weight in zip(terms.positions, terms.weights, strict=True):
        first, end = postings.starts[position : position + 2] if position >= 0 else (0, 0)
        if first < end:
            yield postings.rows[first:end], postings.counts[first:end], weight


def _best_rows(rows: Ids, scores: Floats, limit: int) -> RowsAndScores:
    order = np.sort(best(rows, scores, limit))
    return _bytes(rows[order], scores[order])


def _bytes(rows: Ids, scores: Floats) -> RowsAndScores:
    return rows.tobytes(), scores.tobytes()


def as_arrays(rows_and_scores: RowsAndScores) -> tuple[Ids, Floats]:
    """Return the result of a kernel as read-only arrays."""
    rows, scores = rows_and_scores
    return np.frombuffer(rows, np.int64), np.frombuffer(scores, np.float64)


def _load_kernels() -> Kernels:
    try:
        return cast(Kernels, import_module("conspectus.index.segments._kernels"))
    except ImportError:
        return NumpyKernels()


KERNELS = _load_kernels()
