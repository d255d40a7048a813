"""Postings of terms for BM25, cached and continued by what was written since."""

from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass
from conspectus.index.pgvector.database import Rows
from conspectus.index.pgvector.tables import Tables

MAX_BYTES: Final = 64_000_000
"""Maximum bytes of cached postings of an index in this process."""
_READ = """
SELECT wanted.number::integer, p.rows, p.counts
FROM unnest(%(terms)s::bytea[], %(since)s::integer[]) WITH ORDINALITY AS wanted (term, since, number)
JOIN {batches} b ON b.last >= wanted.since
JOIN {postings} p ON p.first = b.first AND p.term = wanted.term
ORDER BY wanted.number, p.first
"""


@dataclass(frozen=True, slots=True)
class PgvectorPosting:
    """The sorted rows below `end` that have a term, dead ones included, and their counts."""

    rows: NDArray[np.uint32]
    counts: NDArray[np.uint16]
    end: int

    def up_to(self, end: int) -> "PgvectorPosting":
        """Return the posting restricted to rows below a number."""
        if end >= self.end:
            return self
        position = int(np.searchsorted(self.rows, end))
        return PgvectorPosting(self.rows[:position], self.counts[:position], end)

    @property
    def size(self) -> int:
        """Size in bytes."""
        return 200 + self.rows.nbytes + self.counts.nbytes


EMPTY: Final = PgvectorPosting(np.zeros(0, np.uint32), np.zeros(0, np.uint16), 0)


class Postings:
    """Caches postings, and reads what was written since. Cached data stays valid."""

    def __init__(self, maximum: int = MAX_BYTES) -> None:
        self._maximum = maximum
        self._postings: OrderedDict[tuple[int, bytes], PgvectorPosting] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def of(
        self, cursor: Rows, tables: Tables, terms: Sequence[bytes], end: int
    ) -> dict[bytes, PgvectorPosting]:
        """Return the posting of each term for rows below `end`."""
        postings = {term: self._get_cached(tables.generation, term) for term in terms}
        stale = [term for term, posting in postings.items() if posting.end < end]
        if stale:
            fresh = _read(cursor, tables, {term: postings[term].end for term in stale})
            for term in stale:
                postings[term] = _continue_posting(postings[term], fresh.get(term, []), end)
                self._cache(tables.generation, term, postings[term])
        return {term: posting.up_to(end) for term, posting in postings.items()}

    def _get_cached(self, generation: int, term: bytes) -> PgvectorPosting:
        with self._lock:
            if (generation, term) not in self._postings:
                return EMPTY
            self._postings.move_to_end((generation, term))
            return self._postings[generation, term]

    def _cache(self, generation: int, term: bytes, posting: PgvectorPosting) -> None:
        with self._lock:
            before = self._postings.pop((generation, term), None)
            self._postings[generation, term] = posting
            self._size += posting.size - (before.size if before else 0)
            while self._size > self._maximum:
                self._size -= self._postings.popitem(last=False)[1].size


def pack_postings(counts: Mapping[int, Mapping[bytes, int]]) -> list[tuple[bytes, bytes, bytes]]:
    """Invert the terms of each row to the rows and counts of each term."""
    postings: dict[bytes, tuple[array[int], array[int]]] = {}
    for row, terms in counts.items():
        for term, count in terms.items():
            rows, numbers = postings.setdefault(term, (array("I"), array("H")))
            rows.append(row)
            numbers.append(count)
    return [(term, rows.tobytes(), numbers.tobytes()) for term, (rows, numbers) in sorted(postings.items())]


def _read(cursor: Rows, tables: Tables, since: Mapping[bytes, int]) -> dict[bytes, list[tuple[bytes, bytes]]]:
    terms = list(since)
    parameters = {"terms": terms, "since": list(since.values())}
    cursor.execute(_READ.format(batches=tables.batches, postings=tables.postings), parameters)
    pieces: dict[bytes, list[tuple[bytes, bytes]]] = {}
    for number, rows, counts in cursor:
        pieces.setdefault(terms[number - 1], []).append((rows, counts))
    return pieces


def _continue_posting(
    before: PgvectorPosting, pieces: Sequence[tuple[bytes, bytes]], end: int
) -> PgvectorPosting:
    """Return the posting continued by new pieces, whose first rows it may already contain."""
    rows = np.concatenate([np.zeros(0, np.uint32), *(np.frombuffer(piece, "<u4") for piece, _ in pieces)])
    counts = np.concatenate([np.zeros(0, np.uint16), *(np.frombuffer(piece, "<u2") for _, piece in pieces)])
    fresh = slice(int(np.searchsorted(rows, before.end)), int(np.searchsorted(rows, end)))
    return PgvectorPosting(
        np.concatenate([before.rows, rows[fresh].astype(np.uint32, copy=False)]),
        np.concatenate([before.counts, counts[fresh].astype(np.uint16, copy=False)]),
        end,
    )
