"""The rows that have a term, as arrays: packed in the database, and kept here once they were read."""

from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from conspectus.index.pgvector.database import Rows
from conspectus.index.pgvector.tables import Tables

MOST_BYTES: Final = 64_000_000
"""What postings may take in this process, for each index."""
_READ = """
SELECT wanted.number::integer, p.rows, p.counts
FROM unnest(%(terms)s::bytea[], %(since)s::integer[]) WITH ORDINALITY AS wanted (term, since, number)
JOIN {batches} b ON b.last >= wanted.since
JOIN {postings} p ON p.first = b.first AND p.term = wanted.term
ORDER BY wanted.number, p.first
"""


@dataclass(frozen=True, slots=True)
class PgvectorPosting:
    """The sorted numbers of the rows that have a term, dead ones too, with how often; up to row `end`."""

    rows: NDArray[np.uint32]
    counts: NDArray[np.uint16]
    end: int

    def up_to(self, end: int) -> "PgvectorPosting":
        """As it was when there were only so many rows."""
        if end >= self.end:
            return self
        place = int(np.searchsorted(self.rows, end))
        return PgvectorPosting(self.rows[:place], self.counts[:place], end)

    @property
    def size(self) -> int:
        """Bytes it takes."""
        return 200 + self.rows.nbytes + self.counts.nbytes


EMPTY: Final = PgvectorPosting(np.zeros(0, np.uint32), np.zeros(0, np.uint16), 0)


class Postings:
    """Reads what came since it last looked. What was read stays true: row numbers never change."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._held: OrderedDict[tuple[int, bytes], PgvectorPosting] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def of(
        self, cursor: Rows, tables: Tables, terms: Sequence[bytes], end: int
    ) -> dict[bytes, PgvectorPosting]:
        """For each term its rows before `end`."""
        found = {term: self._known(tables.generation, term) for term in terms}
        stale = [term for term, posting in found.items() if posting.end < end]
        if stale:
            fresh = _read(cursor, tables, {term: found[term].end for term in stale})
            for term in stale:
                found[term] = _continued(found[term], fresh.get(term, []), end)
                self._keep(tables.generation, term, found[term])
        return {term: posting.up_to(end) for term, posting in found.items()}

    def _known(self, generation: int, term: bytes) -> PgvectorPosting:
        with self._lock:
            if (generation, term) not in self._held:
                return EMPTY
            self._held.move_to_end((generation, term))
            return self._held[generation, term]

    def _keep(self, generation: int, term: bytes, posting: PgvectorPosting) -> None:
        with self._lock:
            before = self._held.pop((generation, term), None)
            self._held[generation, term] = posting
            self._size += posting.size - (before.size if before else 0)
            while self._size > self._most:
                self._size -= self._held.popitem(last=False)[1].size


def packed(counts: Mapping[int, Mapping[bytes, int]]) -> list[tuple[bytes, bytes, bytes]]:
    """For each term the rows that have it and how often, from the terms of each row."""
    found: dict[bytes, tuple[array[int], array[int]]] = {}
    for row, terms in counts.items():
        for term, count in terms.items():
            rows, numbers = found.setdefault(term, (array("I"), array("H")))
            rows.append(row)
            numbers.append(count)
    return [(term, rows.tobytes(), numbers.tobytes()) for term, (rows, numbers) in sorted(found.items())]


def _read(cursor: Rows, tables: Tables, since: Mapping[bytes, int]) -> dict[bytes, list[tuple[bytes, bytes]]]:
    terms = list(since)
    given = {"terms": terms, "since": list(since.values())}
    cursor.execute(_READ.format(batches=tables.batches, postings=tables.postings), given)
    found: dict[bytes, list[tuple[bytes, bytes]]] = {}
    for number, rows, counts in cursor:
        found.setdefault(terms[number - 1], []).append((rows, counts))
    return found


def _continued(before: PgvectorPosting, pieces: Sequence[tuple[bytes, bytes]], end: int) -> PgvectorPosting:
    """With what came since; a piece may begin with rows that are there already."""
    rows = np.concatenate([np.zeros(0, np.uint32), *(np.frombuffer(piece, "<u4") for piece, _ in pieces)])
    counts = np.concatenate([np.zeros(0, np.uint16), *(np.frombuffer(piece, "<u2") for _, piece in pieces)])
    fresh = slice(int(np.searchsorted(rows, before.end)), int(np.searchsorted(rows, end)))
    return PgvectorPosting(
        np.concatenate([before.rows, rows[fresh].astype(np.uint32, copy=False)]),
        np.concatenate([before.counts, counts[fresh].astype(np.uint16, copy=False)]),
        end,
    )
