"""BM25 and cosine, written once: every adapter calls these, so scores agree to the last bit.

The formula is that of Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond"
(2009), with the idf that Lucene uses, which is never negative. Arithmetic is float64, one operation
after the other on each row alone, so no result depends on which rows are scored together.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from conspectus.errors import InvalidInput
from conspectus.model.index import IndexedChunk, TermStatistic
from conspectus.ports import Floats, Ids, Probe, Vectors

Analyse: TypeAlias = Callable[[str], Sequence[str]]
"""Splits a text into its terms, in order; the same function for chunks and queries."""

MAX_OCCURRENCES = 65_535
_SAMPLE = (
    "Searching the 1st naïve café's HTTP_404 parseURL v2.3.1 a@b.example https://x.example/y_z the running"
    " ΣΊΣΥΦΟΣ Straße ёлка المكتبات लड़कियाँ 東京都 ไทย १२ don't C++ 👩‍👩‍👧 1,000.5 __init__ re-open"
)


@dataclass(frozen=True, slots=True)
class Bm25:
    """`k1` says how soon further occurrences stop to count, `b` how much long chunks are held back (0..1).

    The term frequencies of a probe's sources count if these have at most `most_in_sources` chunks together.
    """

    k1: float = 1.2
    b: float = 0.75
    max_source_chunks: int = 10_000

    def contributions(self, weight: float, counts: Floats, lengths: Floats, average: float) -> Floats:
        """The contribution of one term to the score of rows that have it `counts` times (at least once)."""
        return (weight * (self.k1 + 1.0)) * counts / (counts + self.norms(lengths, average))

    def norms(self, lengths: Floats, average: float) -> Floats:
        """How many occurrences in chunks of those lengths are worth half of what any number can be."""
        base, slope = self.norm(average)
        return base + slope * lengths

    def norm(self, average: float) -> tuple[float, float]:
        """The norm of a chunk without terms, and what each of its terms adds."""
        return self.k1 * (1.0 - self.b), self.k1 * self.b / average


@dataclass(frozen=True, slots=True)
class Corpus:
    """The statistics that BM25 needs of all live chunks: their number, and their mean length in terms."""

    total: int
    length: int

    @property
    def average(self) -> float:
        """The mean number of terms in a chunk; 1 where there are none, so that it may divide."""
        return self.length / self.total if self.length else 1.0

    def statistic(self, term: str, documents: int, count: int = 1) -> TermStatistic:
        """The term, asked so often, with its inverse document frequency."""
        return TermStatistic(term, documents, idf(self.total, documents), count)


def with_sources(
    terms: Sequence[TermStatistic], total: int, documents: Sequence[int]
) -> tuple[TermStatistic, ...]:
    """The terms with their idf in sources of so many chunks, and as many with each term."""
    return tuple(
        TermStatistic(each.term, each.documents, each.idf, each.count, idf(total, count))
        for each, count in zip(terms, documents, strict=True)
    )


def shared(one: NDArray[np.unsignedinteger[Any]], other: NDArray[np.unsignedinteger[Any]]) -> int:
    """How many values two sorted arrays without repetitions have in common."""
    few, many = sorted((one, other), key=len)
    if not len(few):
        return 0
    places = many.searchsorted(few)
    return int(np.count_nonzero(many.take(places, mode="clip") == few))


def idf(total: int, documents: int) -> float:
    """The inverse document frequency of a term that so many of all chunks have."""
    return math.log(1.0 + (total - documents + 0.5) / (documents + 0.5))


def identity_of(analyse: Analyse, dimensions: int, bm25: Bm25) -> str:
    """The configuration of rows; the analysis is identified by its results, not by its name."""
    sample = hashlib.sha256(repr(list(analyse(_SAMPLE))).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{sample[:16]} {dimensions} {bm25.k1} {bm25.b}"


def occurrences(chunk: IndexedChunk, analyse: Analyse) -> tuple[Counter[str], int]:
    """How often each term occurs in title and text together, and how many occurrences there are."""
    terms = analyse(chunk.passage)
    counts = Counter(terms)
    if len(terms) > MAX_OCCURRENCES:
        counts = Counter({term: min(count, MAX_OCCURRENCES) for term, count in counts.items()})
    return counts, len(terms)


def question_terms(probe: Probe, analyse: Analyse, dimensions: int) -> Mapping[str, int]:
    """The distinct terms of a query in order of first appearance, and their counts.

    Raises InvalidInput for a vector of another size than those of the index.
    """
    if probe.vector is not None and probe.vector.shape != (dimensions,):
        raise InvalidInput("vector", f"has shape {probe.vector.shape}, not {dimensions}")
    return Counter(probe.terms or analyse(probe.words or ""))


_SIGN_AND_REST = ~np.int32(0x70000000)
_EXPONENT = np.float32(2.0**112)


def single(vectors: NDArray[np.float16]) -> Vectors:
    """Finite half-precision values in single precision, exactly; NumPy takes twenty times as long.

    The sign is spread over the bits that a half does not have, and taken from there; multiplying puts the
    exponent right, of the smallest values too.
    """
    bits = vectors.view(np.int16).astype(np.int32)
    bits <<= 13
    bits &= _SIGN_AND_REST
    rows: Vectors = bits.view(np.float32)
    rows *= _EXPONENT
    return rows


def cosines(vectors: NDArray[np.float16], query: Vectors) -> Floats:
    """The cosine of each unit row with a unit vector, from the stored half-precision values."""
    rows = single(vectors)
    rows *= query.astype(np.float32)
    scores: Floats = rows.sum(axis=1).astype(np.float64)
    return scores


def best(ids: Ids, scores: Floats, limit: int) -> NDArray[np.intp]:
    """Positions of the `limit` highest scores, best first; of equal ones the smaller id comes first."""
    if len(ids) > 4 * limit > 0:
        threshold = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        kept = np.flatnonzero(scores >= threshold)
    else:
        kept = np.arange(len(ids))
    return kept[np.lexsort((ids[kept], -scores[kept]))[: max(limit, 0)]]
