"""The exact index in memory: nothing but NumPy and the filter's own meaning, the reference for all others."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from conspectus.index.bm25 import (
    Analyse,
    Bm25,
    Corpus,
    best,
    cosines,
    occurrences,
    query_terms,
    with_sources,
)
from conspectus.index.changes import find_obsolete_ranges, put_ranges, read
from conspectus.model.filter import matches
from conspectus.model.ids import ChunkId
from conspectus.model.index import Disagreement, IndexedChunk, IndexStatus, PutChunks, TermStatistic
from conspectus.model.records import Change
from conspectus.ports import Candidates, Floats, Ids, Probe, Progress, Reader, Vectors


@dataclass(frozen=True, slots=True)
class _Row:
    chunk: IndexedChunk
    counts: Counter[str]
    length: int
    vector: NDArray[np.float16] | None


class MemoryIndex:
    """Keeps every chunk in memory and looks at all of them for every probe."""

    def __init__(self, reader: Reader, analyse: Analyse, *, bm25: Bm25 | None = None) -> None:
        self._reader = reader
        self._analyse = analyse
        self._bm25 = bm25 or Bm25()
        self._rows: dict[int, _Row] = {}
        self._applied = 0

    def applied_sequence(self) -> int:
        """The sequence of the last change taken in."""
        return self._applied

    async def apply(self, changes: Sequence[Change], chunks: PutChunks | None = None) -> None:
        """Forget every touched chunk and read again what was put."""
        if not changes:
            return
        fresh = [chunk async for batch in read(self._reader, put_ranges(changes)) for chunk in batch]
        ranges = find_obsolete_ranges(changes)
        rows = {i: row for i, row in self._rows.items() if not any(a <= i <= b for a, b in ranges)}
        rows.update((chunk.chunk.id, self._row(chunk)) for chunk in fresh)
        self._rows = dict(sorted(rows.items()))
        self._applied = max(self._applied, changes[-1].sequence)

    async def search(self, probe: Probe) -> Candidates:
        """The best of each arm among the rows that match."""
        everything = self._candidates(list(self._rows), probe)
        matching = everything.words > 0.0
        with_vector = ~np.isnan(everything.cosine)
        ids = np.union1d(
            _best(everything.ids[matching], everything.words[matching], probe.limit),
            _best(everything.ids[with_vector], everything.cosine[with_vector], probe.limit),
        )
        selection = np.isin(everything.ids, ids)
        return Candidates(
            ids=everything.ids[selection],
            words=everything.words[selection],
            cosine=everything.cosine[selection],
            terms=everything.terms,
            total=everything.total,
            threads=everything.threads,
            least=everything.least,
        )

    async def score(self, ids: Ids, probe: Probe) -> Candidates:
        """Raw scores of those of the ids that exist and match."""
        return self._candidates([int(i) for i in np.unique(ids) if int(i) in self._rows], probe)

    async def check(self) -> Sequence[Disagreement]:
        """Compare every row with the records, what they changed since the last applied change left out."""
        actual = {chunk.chunk.id: chunk async for batch in self._reader.scan() for chunk in batch}
        later = find_obsolete_ranges(await self._reader.changes_since(self._applied, limit=1_000_000))
        differences = []
        for i in sorted(actual.keys() | self._rows.keys()):
            if not any(a <= i <= b for a, b in later):
                differences += _difference(i, actual.get(ChunkId(i)), self._rows.get(i))
        return differences

    async def rebuild(self, progress: Progress | None = None) -> None:
        """Read everything again."""
        sequence = await self._reader.last_sequence()
        rows: dict[int, _Row] = {
            chunk.chunk.id: self._row(chunk) async for batch in self._reader.scan() for chunk in batch
        }
        self._rows, self._applied = rows, max(sequence, self._applied)
        if progress:
            progress("index", len(rows), len(rows))

    async def purge(self) -> None:
        """Nothing to do: there are no files, and removed rows are gone."""

    async def status(self) -> IndexStatus:
        """Counts; the index has no files."""
        vectors = sum(row.vector is not None for row in self._rows.values())
        return IndexStatus(len(self._rows), vectors, bytes=0, segments=1, applied=self._applied)

    async def flush(self, *, least: int = 1, merge: bool = False) -> None:
        """Nothing is ever written down."""

    async def close(self) -> None:
        """Forget everything."""
        self._rows, self._applied = {}, 0

    def _row(self, chunk: IndexedChunk) -> _Row:
        counts, length = occurrences(chunk.term_text, self._analyse)
        vector = None if chunk.vector is None else np.frombuffer(chunk.vector, "<f2")
        return _Row(chunk, counts, length, vector)

    def _candidates(self, ids: Sequence[int], probe: Probe) -> Candidates:
        ids = [i for i in ids if matches(probe.filter, self._rows[i].chunk.row())]
        rows = [self._rows[i] for i in ids]
        corpus = Corpus(len(self._rows), sum(row.length for row in self._rows.values()))
        size = 0 if probe.vector is None else len(probe.vector)
        terms = tuple(
            corpus.statistic(term, sum(term in row.counts for row in self._rows.values()), count)
            for term, count in query_terms(probe, self._analyse, size).items()
        )
        if probe.sources:
            every = self._rows.values()
            named = [row.counts for row in every if row.chunk.document.source in probe.sources]
            if len(named) <= self._bm25.max_source_chunks:
                documents = [sum(term.term in counts for counts in named) for term in terms]
                terms = with_sources(terms, len(named), documents)
        return Candidates(
            ids=np.array(ids, np.int64),
            words=self._words(rows, terms, corpus),
            cosine=_cosine(rows, probe.vector),
            terms=terms,
            total=corpus.total,
            threads=any(row.chunk.document.thread is not None for row in self._rows.values()),
            least=self._bm25.for_terms(terms).least(terms, corpus.average),
        )

    def _words(self, rows: Sequence[_Row], terms: Sequence[TermStatistic], corpus: Corpus) -> Floats:
        scores = np.zeros(len(rows))
        bm25 = self._bm25.for_terms(terms)
        lengths = np.array([row.length for row in rows], np.float64)
        for term in sorted(terms, key=lambda statistic: statistic.term):
            counts = np.array([row.counts[term.term] for row in rows], np.float64)
            containing = counts > 0
            scores[containing] += bm25.contributions(
                term.weight, counts[containing], lengths[containing], corpus.average
            )
        return scores


def _best(ids: Ids, scores: Floats, limit: int) -> Ids:
    return ids[best(ids, scores, limit)]


def _cosine(rows: Sequence[_Row], query: Vectors | None) -> Floats:
    scores = np.full(len(rows), np.nan)
    present = [position for position, row in enumerate(rows) if row.vector is not None]
    if query is not None and present:
        stored = [vector for row in rows if (vector := row.vector) is not None]
        scores[present] = cosines(np.stack(stored), query)
    return scores


def _difference(chunk: int, actual: IndexedChunk | None, row: _Row | None) -> list[Disagreement]:
    if row is None:
        return [Disagreement(ChunkId(chunk), "missing", "in the records, not in the index")]
    if actual is None:
        return [Disagreement(ChunkId(chunk), "ghost", "in the index, not in the records")]
    if actual != row.chunk:
        return [Disagreement(ChunkId(chunk), "stale", "the records hold another version")]
    return []
