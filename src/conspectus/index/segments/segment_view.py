"""A segment as it is at one moment: with its dead rows, and what has been worked out about it."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from conspectus.index.bm25 import Bm25, Corpus, cosines
from conspectus.index.changes import Range
from conspectus.index.segments.columns import Mask
from conspectus.index.segments.postings import SegmentPosting
from conspectus.index.segments.row_filter import Allowed
from conspectus.index.segments.segment import Segment
from conspectus.index.segments.vectors import RowNumbers
from conspectus.model.filter import EVERYTHING, Exists, Filter
from conspectus.model.index import TermStatistic
from conspectus.ports import Floats, Vectors

_REMEMBERED = 16


@dataclass(frozen=True, slots=True)
class Permission:
    """What a filter allows in a segment, for words and for vectors."""

    words: Allowed
    vectors: Allowed


class SegmentView:
    """A segment and its dead rows, both unchanging; safe for many threads."""

    def __init__(self, segment: Segment, dead: Mask | None = None) -> None:
        self.segment = segment
        self.dead = dead if dead is not None and dead.any() else None
        self._dead_rows = np.zeros(0, np.int64) if self.dead is None else np.flatnonzero(self.dead)
        self._alive = None if self.dead is None else ~self.dead
        lost = segment.postings.lengths[self._dead_rows].sum(dtype=np.int64)
        self.live = len(segment) - len(self._dead_rows)
        self.length = segment.postings.length - int(lost)
        self._permissions: OrderedDict[str, Permission] = OrderedDict()
        self._lock = Lock()

    @property
    def vector_count(self) -> int:
        """Live rows with a vector."""
        present = self.segment.present
        if present is None:
            return self.live
        return self.segment.vector_count - int(np.count_nonzero(present[self._dead_rows]))

    def without(self, ranges: Iterable[Range]) -> "SegmentView":
        """The same segment with all rows of those ids dead."""
        rows = self.segment.rows_in(ranges)
        if self.dead is not None:
            rows = rows[~self.dead[rows]]
        if not len(rows):
            return self
        dead = np.zeros(len(self.segment), np.bool_) if self.dead is None else self.dead.copy()
        dead[rows] = True
        return SegmentView(self.segment, dead)

    @cached_property
    def has_threads(self) -> bool:
        """Whether a live row stands in a thread."""
        return self.permission(Exists("thread")).words.count > 0

    def live_ids(self) -> RowNumbers:
        """The ids of live rows."""
        return self.segment.ids if self._alive is None else self.segment.ids[self._alive]

    def live_checksums(self) -> NDArray[np.uint64]:
        """The checksums of live rows, in the order of `live_ids`."""
        checksums = self.segment.checksums
        return checksums if self._alive is None else checksums[self._alive]

    def documents(self, posting: SegmentPosting) -> int:
        """How many live rows have the term."""
        if self.dead is None:
            return len(posting.rows)
        if len(self._dead_rows) < len(posting.rows):
            place = np.searchsorted(posting.rows, self._dead_rows.astype(np.uint32))
            place[place == len(posting.rows)] = 0
            return len(posting.rows) - int(np.count_nonzero(posting.rows[place] == self._dead_rows))
        return len(posting.rows) - int(np.count_nonzero(self.dead[posting.rows]))

    def permission(self, where: Filter) -> Permission:
        """What the filter allows; the last few filters are remembered, as permissions repeat."""
        # Filters of equal values but unequal types, as of 1 and True, are equal to Python: their text is not.
        name = repr(where)
        with self._lock:
            if name in self._permissions:
                self._permissions.move_to_end(name)
                return self._permissions[name]
        permission = self._permission(where)
        with self._lock:
            self._permissions[name] = permission
            if len(self._permissions) > _REMEMBERED:
                self._permissions.popitem(last=False)
        return permission

    def _permission(self, where: Filter) -> Permission:
        mask = None if where == EVERYTHING else self.segment.columns.mask(where)
        words = Allowed(len(self.segment), mask).only(self._alive)
        return Permission(words, words.only(self.segment.present))

    def cosines(self, rows: RowNumbers, query: Vectors | None) -> Floats:
        """Exact cosines of rows; NaN for those without a vector."""
        scores = np.full(len(rows), np.nan)
        if query is not None:
            present = self.segment.present
            chosen = slice(None) if present is None else present[rows]
            scores[chosen] = cosines(self.segment.vectors[rows[chosen]], query)
        return scores

    def words(
        self,
        rows: RowNumbers,
        terms: Iterable[tuple[TermStatistic, SegmentPosting]],
        bm25: Bm25,
        corpus: Corpus,
    ) -> Floats:
        """Exact BM25 of rows; the terms are sorted by name, so that sums round the same everywhere."""
        scores = np.zeros(len(rows))
        lengths = self.segment.postings.lengths[rows].astype(np.float64)
        wanted = rows.astype(np.uint32)
        for statistic, posting in terms:
            place = np.searchsorted(posting.rows, wanted)
            place[place == len(posting.rows)] = 0
            found = np.flatnonzero(posting.rows[place] == wanted)
            counts = posting.counts[place[found]].astype(np.float64)
            scores[found] += bm25.contributions(statistic.idf, counts, lengths[found], corpus.average)
        return scores
