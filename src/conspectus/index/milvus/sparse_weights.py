"""Terms as the dimensions of a sparse vector, and their counts as its weights, from which they come back.

The weight of a term is its count's share of BM25 at a mean length that is fixed when the collection is
built. So Milvus ranks almost as BM25 does, how far off it can be is known, and the exact score follows
from the counts.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from conspectus.index.bm25 import Bm25
from conspectus.ports import Floats

DIMENSIONS = 2**32 - 2
_NO_TERM = 0
_EXACT_UP_TO = 500


def dimension(term: str) -> int:
    """The number of a term; that two of a million share one happens to one term in 4,000."""
    digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return 1 + int.from_bytes(digest, "little") % (DIMENSIONS - 1)


@dataclass(frozen=True, slots=True)
class Weights:
    """BM25's numbers and the mean length that the stored weights were made with."""

    bm25: Bm25
    average: float

    def encoded(self, counts: Mapping[int, int], length: int) -> dict[str, Any]:
        """The columns that hold the counts of a row; a row without terms has one that no question has."""
        norm = self._norm(float(length))
        terms = {number: float(np.float32(count / (count + norm))) for number, count in counts.items()}
        large = {str(number): count for number, count in counts.items() if count > _EXACT_UP_TO}
        return {"terms": terms or {_NO_TERM: 1.0}, "large": large}

    def counts(self, rows: Sequence[Mapping[str, Any]], number: int) -> Floats:
        """How often a term occurs in each of the rows."""
        weights = np.array([row["terms"].get(number, 0.0) for row in rows], np.float64)
        norms = np.array([self._norm(float(row["length"])) for row in rows], np.float64)
        counts = np.rint(norms * weights / (1.0 - np.minimum(weights, 0.999_999)))
        for place, row in enumerate(rows):
            counts[place] = row["large"].get(str(number), counts[place]) if row["large"] else counts[place]
        return np.asarray(counts, np.float64)

    def slack(self, average: float) -> float:
        """By how much an exact score can at most exceed one made with the fixed mean length."""
        return max(1.0, average / self.average) * (1.0 + 1e-5)

    def _norm(self, length: float) -> float:
        return self.bm25.k1 * (1.0 - self.bm25.b) + self.bm25.k1 * self.bm25.b * length / self.average
