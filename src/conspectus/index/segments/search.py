"""Search over several segments: BM25 with pruning, vectors, and the union of both."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from pathlib import Path

import numpy as np

from conspectus.deferred import dataclass
from conspectus.index.bm25 import Bm25, Corpus, best, with_sources
from conspectus.index.filter_terms import encode_text
from conspectus.index.segments.columns import RowNumbers
from conspectus.index.segments.segment import SegmentView
from conspectus.model.index import TermStatistic
from conspectus.ports import Candidates, Floats, Ids, Probe, Vectors

Scored = tuple[RowNumbers, Floats]
_NO_IDS, _NO_SCORES = np.zeros(0, np.int64), np.zeros(0)
_NONE: Scored = (_NO_IDS, _NO_SCORES)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The segments that queries read. Immutable: it is replaced as a whole."""

    views: tuple[SegmentView, ...]
    applied: int
    bm25: Bm25
    corpus: Corpus = field(init=False)
    _last: list["SegmentsQuery"] = field(init=False, repr=False, compare=False, default_factory=list)

    def __post_init__(self) -> None:
        total = sum(view.live for view in self.views)
        object.__setattr__(self, "corpus", Corpus(total, sum(view.length for view in self.views)))

    @property
    def paths(self) -> list[Path]:
        """The folders of the segments on disk."""
        return [view.segment.path for view in self.views if view.segment.path is not None]

    def search(self, probe: Probe, terms: Mapping[str, int], *, threads: int = 1) -> Candidates:
        """Return the best hits of each retriever. Approximate for vectors of segments with codes.

        With several threads, each searches segments of its own: most of the time is spent without the
        interpreter lock.
        """
        query, limit = self._query_of(probe, terms), max(probe.limit, 0)

        def best_of(number: int) -> tuple[Scored, Scored]:
            return query.best_words(number, limit), query.find_nearest(number, limit)

        numbers = range(len(self.views))
        if min(threads, len(numbers)) > 1:
            with ThreadPoolExecutor(threads) as pool:
                hits = list(pool.map(best_of, numbers))
        else:
            hits = [best_of(number) for number in numbers]
        by_words = self._best([words for words, _ in hits], limit)
        by_vector = self._best([vectors for _, vectors in hits], limit)
        return query.candidates(list(map(_union, by_words, by_vector)))

    def score(self, ids: Ids, probe: Probe, terms: Mapping[str, int]) -> Candidates:
        """Return the exact scores of those ids that are live and allowed."""
        query = self._query_of(probe, terms)
        sorted_ids = np.array(sorted({*ids.tolist()}), np.int64)
        rows_by_view = [view.segment.rows_of(sorted_ids)[0] for view in self.views]
        allowed_rows = [
            np.asarray(permission.words.among(rows), np.int64)
            for permission, rows in zip(query.permissions, rows_by_view, strict=True)
        ]
        return query.candidates(allowed_rows)

    def _query_of(self, probe: Probe, terms: Mapping[str, int]) -> "SegmentsQuery":
        """Return the query of a probe. The last one is kept: a search scores more chunks with its probe."""
        last = self._last[:1]
        if not last or last[0].probe is not probe:
            last = self._last[:] = [SegmentsQuery(self, probe, terms)]
        return last[0]

    def _best(self, scored_by_view: Sequence[Scored], limit: int) -> list[RowNumbers]:
        """Return for each view its rows among the best of all views."""
        if len(scored_by_view) == 1:
            return [scored_by_view[0][0]]
        ids = [view.segment.ids[rows] for view, (rows, _) in zip(self.views, scored_by_view, strict=True)]
        scores = [scores for _, scores in scored_by_view]
        is_best = np.zeros(sum(map(len, ids)), np.bool_)
        is_best[best(np.concatenate([_NO_IDS, *ids]), np.concatenate([_NO_SCORES, *scores]), limit)] = True
        ends = np.cumsum([len(rows) for rows, _ in scored_by_view])
        return [
            rows[is_best[end - len(rows) : end]] for (rows, _), end in zip(scored_by_view, ends, strict=True)
        ]


def _union(first: RowNumbers, second: RowNumbers) -> RowNumbers:
    """Return the sorted union of two sorted arrays without duplicates."""
    rows = np.concatenate((first, second))
    rows.sort()
    is_first = np.ones(len(rows), np.bool_)
    np.not_equal(rows[1:], rows[:-1], out=is_first[1:])
    return rows[is_first]


class SegmentsQuery:
    """A probe against one snapshot, with its terms and filter resolved in every view."""

    def __init__(self, snapshot: Snapshot, probe: Probe, terms: Mapping[str, int]) -> None:
        self.probe = probe
        # The snapshot keeps its last query: a reference to it would keep files open.
        self._views, self._total = snapshot.views, snapshot.corpus.total
        self.vector: Vectors | None = None
        if probe.vector is not None:
            self.vector = np.ascontiguousarray(probe.vector, np.float32)
        self.permissions = [view.permission(probe.filter) for view in snapshot.views]
        # Scores are summed in the order of names, so that rounding is the same everywhere.
        query_terms = list(terms)
        order = sorted(range(len(query_terms)), key=query_terms.__getitem__)
        names = tuple(encode_text(query_terms[position]) for position in order)
        self._terms = [view.terms(names, snapshot.corpus.average) for view in snapshot.views]
        documents = np.zeros(len(terms), np.int64)
        documents[order] = sum(segment_terms.documents for segment_terms in self._terms)
        self.terms = tuple(map(snapshot.corpus.statistic, query_terms, documents.tolist(), terms.values()))
        if probe.sources:
            self.terms = self._with_sources(probe.sources, order, snapshot.bm25.max_source_chunks)
        bm25 = snapshot.bm25.for_terms(self.terms)
        if bm25 is not snapshot.bm25:
            ratio = bm25.max_ratio(snapshot.bm25)
            self._terms = [replace(terms, bounds=terms.bounds * ratio) for terms in self._terms]
        factor = bm25.k1 + 1.0
        self._weights = np.array([self.terms[position].weight * factor for position in order], np.float64)
        self._norm = bm25.norm(snapshot.corpus.average)
        self._least = bm25.least(self.terms, snapshot.corpus.average)

    def _with_sources(
        self, names: tuple[str, ...], order: Sequence[int], maximum: int
    ) -> tuple[TermStatistic, ...]:
        """Return the terms with idf over these sources, if they are small enough."""
        sources = [view.sources(names, maximum) for view in self._views]
        total = sum(source_rows.count for source_rows in sources)
        if total > maximum:
            return self.terms
        documents = [0] * len(order)
        for source_rows, segment_terms in zip(sources, self._terms, strict=True):
            for number, position in zip(order, segment_terms.positions.tolist(), strict=True):
                documents[number] += source_rows.documents(position)
        return with_sources(self.terms, total, documents)

    def best_words(self, number: int, limit: int) -> Scored:
        """Return the best rows of the numbered view by BM25, with positive scores."""
        allowed = self.permissions[number].words
        if not self.terms or not limit or not allowed.count:
            return _NONE
        postings = self._views[number].segment.postings
        return postings.scores(self._terms[number], self._weights, self._norm, allowed=allowed, limit=limit)

    def find_nearest(self, number: int, limit: int) -> Scored:
        """Return the best rows of the numbered view by cosine."""
        allowed = self.permissions[number].vectors
        if self.vector is None or not limit or not allowed.count:
            return _NONE
        return self._views[number].segment.find_nearest(self.vector, limit, allowed)

    def candidates(self, rows_by_view: Sequence[RowNumbers]) -> Candidates:
        """Return the candidates for these rows of the views, sorted by id."""
        ids, words, cosine = [_NO_IDS], [_NO_SCORES], [_NO_SCORES]
        for view, rows, terms in zip(self._views, rows_by_view, self._terms, strict=True):
            ids.append(view.segment.ids[rows])
            words.append(view.segment.postings.scores(terms, self._weights, self._norm, rows=rows)[1])
            cosine.append(view.cosines(rows, self.vector))
        all_ids = np.concatenate(ids)
        order = np.argsort(all_ids)
        return Candidates(
            ids=all_ids[order],
            words=np.concatenate(words)[order],
            cosine=np.concatenate(cosine)[order],
            terms=self.terms,
            total=self._total,
            threads=any(view.has_threads for view in self._views),
            least=self._least,
        )
