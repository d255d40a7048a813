"""BM25 and cosine similarity. Every adapter calls these functions, so scores are equal to the last bit.

The formula is that of Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond"
(2009), with the non-negative idf of Lucene. Arithmetic is float64 and each row is computed alone, so a score
does not depend on which rows are scored together.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass
from conspectus.errors import TEXT_FAULTS, InvalidInput, UnindexableText
from conspectus.model.index import ANALYZED_TEXT, TermStatistic
from conspectus.ports import Floats, Ids, Probe, Vectors

Analyse: TypeAlias = Callable[[str], Sequence[str]]
"""Splits a text into its terms, in order. Chunks and queries use the same function."""

MAX_OCCURRENCES = 65_535
"""Largest stored count of a term in a chunk, 16 bits; more occurrences count as this many."""
AUTHOR_TERMS = 16
"""Number of terms that a chunk is assumed to have from its author and title, for `Bm25.least`."""
_SIGN_AND_REST = ~np.int32(0x70000000)
_EXPONENT = np.float32(2.0**112)
"""Mask and factor that convert half to single precision, see `single`."""
_SAMPLE = (
    "Searching the 1st naïve café's HTTP_404 parseURL v2.3.1 a@b.example https://x.example/y_z the running"
    " ΣΊΣΥΦΟΣ Straße ёлка المكتبات लड़कियाँ 東京都 ไทย १२ don't C++ 👩‍👩‍👧 1,000.5 __init__ re-open"
)


@dataclass(frozen=True, slots=True)
class Bm25:
    """Parameters of BM25: `k1` is the saturation of term frequencies, `b` the length normalization (0 to 1).

    If a probe names sources with at most `max_source_chunks` chunks together, idf is computed over these, and
    the length normalization is `source_b`: in a conversation, long messages say more.
    """

    k1: float = 1.2
    b: float = 0.75
    max_source_chunks: int = 10_000
    source_b: float = 0.5

    def for_terms(self, terms: Sequence[TermStatistic]) -> "Bm25":
        """Return the parameters of a query: those for sources if its terms have an idf in sources."""
        if any(term.source_idf is not None for term in terms):
            return replace(self, b=self.source_b)
        return self

    def max_ratio(self, other: "Bm25") -> float:
        """Return the most by which a contribution exceeds that of `other`, which differs in `b` only."""
        return max(_ratio(1.0 - other.b, 1.0 - self.b), _ratio(other.b, self.b), 1.0)

    def contributions(self, weight: float, counts: Floats, lengths: Floats, average: float) -> Floats:
        """Return what one term adds to the scores of rows in which it occurs `counts` times (at least 1)."""
        return (weight * (self.k1 + 1.0)) * counts / (counts + self.norms(lengths, average))

    def norms(self, lengths: Floats, average: float) -> Floats:
        """Return k1 · (1 - b + b · length / average): the length-dependent part of the denominator."""
        base, slope = self.norm(average)
        return base + slope * lengths

    def least(self, terms: Sequence[TermStatistic], average: float) -> float:
        """Return the least that one term adds to the score of a short chunk, see `Candidates.least`."""
        base, slope = self.norm(average)
        longest = 2 * sum(term.count for term in terms) + AUTHOR_TERMS
        return (self.k1 + 1.0) / (1.0 + base + slope * longest)

    def norm(self, average: float) -> tuple[float, float]:
        """Return the norm of a chunk of length 0, and the increase per term."""
        return self.k1 * (1.0 - self.b), self.k1 * self.b / average


@dataclass(frozen=True, slots=True)
class Corpus:
    """Corpus statistics of all live chunks: their number, and their mean length in terms."""

    total: int
    length: int

    @property
    def average(self) -> float:
        """The mean number of terms of a chunk; 1 for an empty corpus, to avoid a division by zero."""
        return self.length / self.total if self.length else 1.0

    def statistic(self, term: str, documents: int, count: int = 1) -> TermStatistic:
        """Return the term, its count in the query, and its inverse document frequency."""
        return TermStatistic(term, documents, idf(self.total, documents), count)


def with_sources(
    terms: Sequence[TermStatistic], total: int, documents: Sequence[int]
) -> tuple[TermStatistic, ...]:
    """Return the terms with their idf in sources, from the sources' chunk count and document frequencies."""
    return tuple(
        TermStatistic(statistic.term, statistic.documents, statistic.idf, statistic.count, idf(total, count))
        for statistic, count in zip(terms, documents, strict=True)
    )


def _ratio(numerator: float, denominator: float) -> float:
    if numerator == denominator:
        return 1.0
    return numerator / denominator if denominator else math.inf


def count_shared(one: NDArray[np.unsignedinteger[Any]], other: NDArray[np.unsignedinteger[Any]]) -> int:
    """Return the number of common values of two sorted arrays without duplicates."""
    few, many = sorted((one, other), key=len)
    if not len(few):
        return 0
    positions = many.searchsorted(few)
    return int(np.count_nonzero(many.take(positions, mode="clip") == few))


def idf(total: int, documents: int) -> float:
    """Return the inverse document frequency of a term that `documents` chunks contain."""
    return math.log(1.0 + (total - documents + 0.5) / (documents + 0.5))


def identity_of(analyse: Analyse, dimensions: int, bm25: Bm25) -> str:
    """Return the identity of an index: its analyzer (by its output on a sample), texts and parameters."""
    sample = hashlib.sha256(repr(list(analyse(_SAMPLE))).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{sample[:16]} {ANALYZED_TEXT} {dimensions} {bm25.k1} {bm25.b}"


def occurrences(text: str, analyse: Analyse) -> tuple[Counter[str], int]:
    """Return the frequency of each term in a text, and their sum. Raises UnindexableText."""
    try:
        terms = analyse(text)
    except TEXT_FAULTS as fault:
        raise UnindexableText(type(fault).__name__) from fault
    counts = Counter(terms)
    if len(terms) > MAX_OCCURRENCES:
        counts = Counter({term: min(count, MAX_OCCURRENCES) for term, count in counts.items()})
    return counts, len(terms)


def query_terms(probe: Probe, analyse: Analyse, dimensions: int) -> Mapping[str, int]:
    """Return the distinct terms of a query in order of first appearance, with their counts.

    Raises InvalidInput if the size of the vector differs from that of the index, or if the words cannot be
    analyzed.
    """
    if probe.vector is not None and probe.vector.shape != (dimensions,):
        raise InvalidInput("vector", f"has shape {probe.vector.shape}, but the index has {dimensions}")
    try:
        return Counter(probe.terms or analyse(probe.words or ""))
    except TEXT_FAULTS as fault:
        raise UnindexableText(type(fault).__name__, "query") from fault


def single(vectors: NDArray[np.float16]) -> Vectors:
    """Convert finite half-precision values to single precision exactly, about twenty times as fast as NumPy.

    The bits of the half are shifted into place with the sign extended; a multiplication then corrects the
    exponent, for subnormal values too.
    """
    bits = vectors.view(np.int16).astype(np.int32)
    bits <<= 13
    bits &= _SIGN_AND_REST
    rows: Vectors = bits.view(np.float32)
    rows *= _EXPONENT
    return rows


def cosines(vectors: NDArray[np.float16], query: Vectors) -> Floats:
    """Return the cosine of each unit row with a unit vector, from the stored half-precision values."""
    rows = single(vectors)
    rows *= query.astype(np.float32)
    scores: Floats = rows.sum(axis=1).astype(np.float64)
    return scores


def best(ids: Ids, scores: Floats, limit: int) -> NDArray[np.intp]:
    """Return the positions of the `limit` highest scores, best first; ties are ordered by id."""
    if len(ids) > 4 * limit > 0:
        threshold = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        positions = np.flatnonzero(scores >= threshold)
    else:
        positions = np.arange(len(ids))
    return positions[np.lexsort((ids[positions], -scores[positions]))[: max(limit, 0)]]
