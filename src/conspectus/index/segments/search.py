"""Search a view of segments: BM25 with pruning, vectors, and the union of both."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from conspectus.index.bm25 import Bm25, Corpus, best
from conspectus.index.segments.columns import Allowed
from conspectus.index.segments.ivf import RowNumbers
from conspectus.index.segments.postings import Counts, SegmentPosting, saturation
from conspectus.index.segments.segment import SegmentView
from conspectus.ports import Candidates, Floats, Ids, Probe, Vectors


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that queries see. A new one replaces it whole; it never changes itself."""

    views: tuple[SegmentView, ...]
    applied: int
    bm25: Bm25
    corpus: Corpus = field(init=False)

    def __post_init__(self) -> None:
        total = sum(view.live for view in self.views)
        object.__setattr__(self, "corpus", Corpus(total, sum(view.length for view in self.views)))

    @property
    def paths(self) -> list[Path]:
        """The folders of the segments that are on disk."""
        return [view.segment.path for view in self.views if view.segment.path is not None]

    def search(self, probe: Probe, terms: Sequence[str]) -> Candidates:
        """The best of each arm and their scores. Exact, but for vectors of segments with codes."""
        faiss.omp_set_num_threads(1)
        question = SegmentsQuery(self, probe, terms)
        limit = max(probe.limit, 0)
        by_words = _best([_words_arm(question, number, limit) for number in range(len(self.views))], limit)
        by_vector = _best([_vector_arm(question, number, limit) for number in range(len(self.views))], limit)
        chosen = [np.union1d(a, b) for a, b in zip(by_words, by_vector, strict=True)]
        return question.candidates(chosen)

    def score(self, ids: Ids, probe: Probe, terms: Sequence[str]) -> Candidates:
        """Exact scores of those of the ids that are live and allowed."""
        question = SegmentsQuery(self, probe, terms)
        wanted = np.unique(ids)
        chosen = []
        for view in self.views:
            rows, _ = view.segment.rows_of(wanted)
            chosen.append(np.asarray(view.permission(probe.where).words.among(rows), np.int64))
        return question.candidates(chosen)


class SegmentsQuery:
    """A probe against one snapshot: its terms looked up in every view."""

    def __init__(self, snapshot: Snapshot, probe: Probe, terms: Sequence[str]) -> None:
        self.snapshot = snapshot
        self.probe = probe
        self.vector: Vectors | None = None
        if probe.vector is not None:
            self.vector = np.ascontiguousarray(probe.vector, np.float32)
        average = snapshot.corpus.average
        found = [
            {term: posting for term in terms if (posting := view.segment.postings.find(term, average))}
            for view in snapshot.views
        ]
        self.terms = tuple(
            snapshot.corpus.statistic(term, _documents(snapshot.views, found, term)) for term in terms
        )
        ordered = sorted(self.terms, key=lambda statistic: statistic.term)
        self.postings = [[(term, held[term.term]) for term in ordered if term.term in held] for held in found]

    def words(self, number: int, rows: RowNumbers) -> Floats:
        """Exact BM25 of rows of the numbered view."""
        snapshot = self.snapshot
        return snapshot.views[number].words(rows, self.postings[number], snapshot.bm25, snapshot.corpus)

    def candidates(self, chosen: Sequence[RowNumbers]) -> Candidates:
        """The chosen rows of each view as one, sorted by id."""
        views = self.snapshot.views
        ids = [view.segment.ids[rows] for view, rows in zip(views, chosen, strict=True)]
        words = [self.words(number, rows) for number, rows in enumerate(chosen)]
        cosine = [view.cosines(rows, self.vector) for view, rows in zip(views, chosen, strict=True)]
        every = np.concatenate([np.zeros(0, np.int64), *ids])
        order = np.argsort(every)
        return Candidates(
            ids=every[order],
            words=np.concatenate([np.zeros(0), *words])[order],
            cosine=np.concatenate([np.zeros(0), *cosine])[order],
            terms=self.terms,
            total=self.snapshot.corpus.total,
            threads=any(view.has_threads for view in views),
        )


@dataclass(frozen=True, slots=True)
class _Arm:
    """Rows of one view that one arm proposes."""

    rows: RowNumbers
    ids: Ids
    scores: Floats


def _words_arm(question: SegmentsQuery, number: int, limit: int) -> _Arm:
    snapshot, view = question.snapshot, question.snapshot.views[number]
    weighted = [
        Weighted(posting, term.idf * (snapshot.bm25.k1 + 1.0)) for term, posting in question.postings[number]
    ]
    rows = np.zeros(0, np.int64)
    if weighted and limit:
        chooser = Chooser(view.segment.postings.lengths, snapshot.bm25, snapshot.corpus.average)
        rows = chooser.choose(weighted, limit, view.permission(question.probe.where).words)
    scores = question.words(number, rows)
    found = scores > 0.0
    return _Arm(rows[found], view.segment.ids[rows[found]], scores[found])


def _vector_arm(question: SegmentsQuery, number: int, limit: int) -> _Arm:
    view, query = question.snapshot.views[number], question.vector
    rows = np.zeros(0, np.int64)
    if query is not None and limit and view.segment.vector_count:
        rows = view.segment.nearest(query, limit, view.permission(question.probe.where).vectors)
    return _Arm(rows, view.segment.ids[rows], view.cosines(rows, query))


def _best(arms: Sequence[_Arm], limit: int) -> list[RowNumbers]:
    """For each view the rows that are among the best of all."""
    ids = np.concatenate([np.zeros(0, np.int64), *(arm.ids for arm in arms)])
    scores = np.concatenate([np.zeros(0), *(arm.scores for arm in arms)])
    rows = np.concatenate([np.zeros(0, np.int64), *(arm.rows for arm in arms)])
    owner = np.repeat(np.arange(len(arms)), [len(arm.rows) for arm in arms])
    kept = best(ids, scores, limit)
    return [rows[kept[owner[kept] == number]] for number in range(len(arms))]


def _documents(views: Iterable[SegmentView], found: Iterable[dict[str, SegmentPosting]], term: str) -> int:
    return sum(view.documents(held[term]) for view, held in zip(views, found, strict=True) if term in held)


_SLACK = 1e-4
_LOOKUP = 16
_LOOK = 16
_PART = 32


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
        scores = np.zeros(-(-len(self._lengths) // _PART) * _PART, np.float32)
        leaders = _Leaders(np.zeros(0, np.int64), np.zeros(0, np.float32), limit)
        for done, term in enumerate(ordered, start=1):
            rows = term.posting.rows.astype(np.int64)
            np.add.at(scores, rows, self._estimate(term, rows, term.posting.counts))
            if done == len(ordered) or self._worth_a_look(ordered, done):
                reach = sum(map(_most, ordered[done:]))
                leaders = _leaders(scores, allowed, limit, reach)
                if reach < leaders.threshold:
                    return self._finish(ordered[done:], leaders, limit)
        return leaders.rows

    def _finish(self, terms: Sequence[Weighted], leaders: "_Leaders", limit: int) -> RowNumbers:
        for done, term in enumerate(terms):
            leaders = leaders.within(sum(map(_most, terms[done:])))
            found, counts = term.posting.counts_in(leaders.rows.astype(np.uint32))
            values = leaders.values
            values[found] += self._estimate(term, leaders.rows[found], counts)
            leaders = _Leaders(leaders.rows, values, limit)
        return leaders.within(0.0).rows

    def _worth_a_look(self, ordered: Sequence[Weighted], done: int) -> bool:
        """Whether the further terms could be in vain at all, and are worth more than finding out."""
        rest = ordered[done:]
        postings = sum(len(term.posting.rows) for term in rest)
        in_reach = sum(map(_most, ordered[:done])) > sum(map(_most, rest))
        return in_reach and _LOOK * postings > len(self._lengths)

    def _estimate(self, term: Weighted, rows: RowNumbers, counts: Counts) -> NDArray[np.float32]:
        shares = saturation(self._bm25, counts, self._lengths.take(rows), self._average)
        shares *= np.float32(term.weight)
        return shares


def _most(term: Weighted) -> float:
    return term.most


def _leaders(scores: NDArray[np.float32], allowed: Allowed, limit: int, reach: float) -> "_Leaders":
    """The allowed rows with a score that are among the best, or could be if they gained as much.

    The last of the `limit` best parts bounds the last of the best rows from below, and is found sooner.
    """
    usable = scores
    if allowed.mask is not None:
        usable = scores.copy()
        usable[: allowed.size] *= allowed.mask
    best = usable.reshape(_PART, -1).max(axis=0)
    least = 0.0
    if len(best) > limit:
        least = float(np.partition(best, -limit)[-limit]) * (1.0 - _SLACK) - reach * (1.0 + _SLACK)
    rows = np.flatnonzero(usable >= least if least > 0.0 else usable > 0.0)
    return _Leaders(rows, usable[rows], limit)


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
