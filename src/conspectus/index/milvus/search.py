"""Searches the Milvus index, and checks it against the records."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import TypeAlias

import numpy as np

from conspectus.deferred import dataclass
from conspectus.errors import IndexReplaced
from conspectus.index.bm25 import Bm25, Corpus, best, cosines, with_sources
from conspectus.index.changes import Range, select_unexplained
from conspectus.index.filter_terms import compute_signed_checksum
from conspectus.index.milvus.connection import MAX_RESULTS, MilvusServer, Row, Turn, compile_tenants, tenant
from conspectus.index.milvus.distinct_values import DistinctValues
from conspectus.index.milvus.filter_expressions import EVERY, Compiler, either, find_enumerated_fields
from conspectus.index.milvus.rows import ROWS, Weights, collection_name, dense, dimension, source_number
from conspectus.index.milvus.state import MilvusState, Notes
from conspectus.index.milvus.term_statistics import Block, Terms
from conspectus.model.filter import Filter, In, matches
from conspectus.model.ids import ChunkId
from conspectus.model.index import Disagreement, IndexedChunk
from conspectus.ports import Candidates, Floats, Ids, Probe, Reader, Vectors

RowsByChunk: TypeAlias = Mapping[int, Row]
IsCurrent: TypeAlias = Callable[[], Awaitable[bool]]
"""Returns whether a version is still the current one."""
_SearchTo: TypeAlias = Callable[[int], Awaitable[Sequence[Row]]]
_Score: TypeAlias = Callable[[Sequence[Row]], Floats]

_TERMS = ("length", "large", "terms")
_SPARE_ROWS = 16
"""Rows that are retrieved beyond the limit at first."""
_DEPTH_FACTOR = 4
_MAX_DEPTH_ROWS = 4_096
_SLACK = 1e-5
"""Bound of the rounding error of a distance that Milvus returns."""
_IDS_AT_ONCE = 1_000
_MAX_CACHED_FREQUENCIES = 10_000


@dataclass(frozen=True, slots=True)
class MilvusSnapshot:
    """One version of the index, and its location."""

    server: MilvusServer
    name: str
    state: MilvusState
    blocks: Sequence[Block]
    bm25: Bm25

    @property
    def rows(self) -> str:
        """The name of the collection of rows."""
        return collection_name(self.name, self.state.generation, ROWS)

    def documents(self, term: str) -> int:
        """Return the number of chunks with a term."""
        return sum(block.documents(dimension(term)) for block in self.blocks)

    def chunks_of(self, sources: Iterable[str]) -> int:
        """Return the number of chunks of sources."""
        numbers = {source_number(tenant(source)) for source in sources}
        return sum(block.documents(number) for number in numbers for block in self.blocks)


@dataclass(frozen=True, slots=True)
class Visible:
    """The expression of the visible rows, and the counts of the sources that the query names."""

    where: str
    sources: "SourceCounts | None" = None


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """The number of chunks of sources, and their document frequencies of the terms of a query."""

    total: int = 0
    documents: Mapping[str, int] = field(default_factory=dict)


class MilvusQuery:
    """Queries a snapshot, restricted to the rows that an expression selects.

    Results are None if the snapshot was no longer current when its last row was read.
    """

    def __init__(
        self,
        view: MilvusSnapshot,
        visible: Visible,
        terms: Mapping[str, int],
        vector: Vectors | None,
        *,
        is_current: IsCurrent,
    ) -> None:
        self._view = view
        self._where = visible.where
        self._vector = vector if view.state.vectors else None
        self._is_current = is_current
        self._corpus = Corpus(view.state.total, view.state.length)
        self._weights = Weights(view.bm25, view.state.average)
        self.terms = tuple(
            self._corpus.statistic(term, view.documents(term), count) for term, count in terms.items()
        )
        if visible.sources is not None:
            source_counts = visible.sources
            documents = [source_counts.documents.get(term.term, 0) for term in self.terms]
            self.terms = with_sources(self.terms, source_counts.total, documents)
        self._bm25 = view.bm25.for_terms(self.terms)
        self._stored_terms = sorted(
            (term for term in self.terms if term.documents > 0), key=lambda statistic: statistic.term
        )
        self._fields = ["chunk", "has_vector"]
        self._fields += _TERMS if self._stored_terms else ()
        self._fields += ["vector"] if self._vector is not None else ()

    async def search(self, limit: int) -> Candidates | None:
        """Return the best rows of both retrievers as one union, each with both scores."""
        words, vectors = await asyncio.gather(self._search_words(limit), self._search_vectors(limit))
        # Rows of a key never change, so the state can be read after them.
        return self.candidates({**words, **vectors}) if await self._is_current() else None

    async def score(self, ids: Ids) -> Candidates | None:
        """Return the scores of the chunks that are visible."""
        numbers = [int(number) for number in np.unique(ids)]
        rows_by_chunk: dict[int, Row] = {}
        for start in range(0, len(numbers), _IDS_AT_ONCE):
            where = f"({self._where}) and {either(numbers[start : start + _IDS_AT_ONCE])}"
            rows = await self._view.server.query(self._view.rows, where, self._fields)
            rows_by_chunk |= {row["chunk"]: row for row in rows}
        return self.candidates(rows_by_chunk) if await self._is_current() else None

    def candidates(self, rows_by_chunk: RowsByChunk) -> Candidates:
        """Return rows with their exact scores, by id."""
        rows = [rows_by_chunk[number] for number in sorted(rows_by_chunk)]
        cosine = np.full(len(rows), np.nan)
        if self._vector is not None:
            with_vector = [position for position, row in enumerate(rows) if row["has_vector"]]
            cosine[with_vector] = self._cosine([rows[position] for position in with_vector])
        return Candidates(
            ids=np.array(sorted(rows_by_chunk), np.int64),
            words=self._words(rows),
            cosine=cosine,
            terms=self.terms,
            total=self._corpus.total,
            threads=self._view.state.threads > 0,
            least=self._bm25.least(self.terms, self._corpus.average),
        )

    async def _search_words(self, limit: int) -> RowsByChunk:
        k1 = self._bm25.k1
        query = {dimension(term.term): term.weight * (k1 + 1.0) for term in self._stored_terms}
        if not query or not limit:
            return {}

        async def search_to(depth: int) -> Sequence[Row]:
            sparse = {"data": [query], "anns_field": "terms", "limit": depth}
            return await self._search_rows(self._where, sparse)

        slack = self._weights.max_score_ratio(self._corpus.average) * self._bm25.max_ratio(self._view.bm25)
        return await _search_deep_enough(search_to, self._words, limit=limit, slack=slack)

    async def _search_vectors(self, limit: int) -> RowsByChunk:
        vector = self._vector
        if vector is None or not limit:
            return {}

        async def search_to(depth: int) -> Sequence[Row]:
            near = {"data": [vector.tolist()], "anns_field": "vector", "limit": depth}
            return await self._search_rows(f"({self._where}) and has_vector == true", near)

        return await _search_deep_enough(search_to, self._cosine, limit=limit, least=-np.inf)

    async def _search_rows(self, where: str, query: Mapping[str, object]) -> Sequence[Row]:
        return await self._view.server.search(self._view.rows, where, self._fields, query)

    def _words(self, rows: Sequence[Row]) -> Floats:
        scores = np.zeros(len(rows))
        if not self._stored_terms:
            return scores
        lengths = np.array([row["length"] for row in rows], np.float64)
        for term in self._stored_terms:
            counts = self._weights.counts(rows, dimension(term.term))
            has_term = counts > 0
            scores[has_term] += self._bm25.contributions(
                term.weight, counts[has_term], lengths[has_term], self._corpus.average
            )
        return scores

    def _cosine(self, rows: Sequence[Row]) -> Floats:
        if self._vector is None or not rows:
            return np.zeros(0)
        return cosines(dense(rows), self._vector)


async def _search_deep_enough(
    search_to: _SearchTo, score: _Score, *, limit: int, slack: float = 1.0, least: float = 0.0
) -> RowsByChunk:
    """Return the best rows by exact score. The search is repeated deeper until no omitted row can be among
    them.

    If more than `_MAX_DEPTH_ROWS` rows have nearly equal scores, Milvus chooses which of them are returned.
    """
    depth = min(limit + _SPARE_ROWS, MAX_RESULTS)
    deepest = min(max(_MAX_DEPTH_ROWS, limit + _SPARE_ROWS), MAX_RESULTS)
    while True:
        rows = {row["chunk"]: row for row in await search_to(depth)}
        ids = np.array(list(rows), np.int64)
        scores = score(list(rows.values()))
        order = best(ids, scores, limit)
        if len(rows) < depth or depth >= deepest:
            break
        max_omitted_score = min(row["distance"] for row in rows.values()) * slack
        if scores[order[-1]] > max_omitted_score + _SLACK:
            break
        depth = min(_DEPTH_FACTOR * depth, deepest)
    return {int(ids[position]): rows[int(ids[position])] for position in order if scores[position] > least}


Ask: TypeAlias = Callable[[MilvusQuery], Awaitable[Candidates | None]]


@dataclass(frozen=True, slots=True)
class MilvusLocation:
    """Location of an index: connection, name, lock, and vector size (0: none)."""

    server: MilvusServer
    name: str
    turn: Turn
    dimensions: int = 0
    bm25: Bm25 = field(default_factory=Bm25)

    def view(self, state: MilvusState, blocks: Sequence[Block] = ()) -> MilvusSnapshot:
        """Return a snapshot of a version with its statistics."""
        return MilvusSnapshot(self.server, self.name, state, blocks, self.bm25)


class MilvusReader:
    """Queries versions of the index, and caches what it reads for the next query."""

    def __init__(self, location: MilvusLocation, notes: Notes, reader: Reader) -> None:
        self._location = location
        self._notes = notes
        self._reader = reader
        self._terms = Terms(notes)
        self._distinct = DistinctValues(notes)
        self._odd: tuple[MilvusState | None, Sequence[IndexedChunk]] = (None, ())
        self._sources: tuple[MilvusState | None, dict[tuple[tuple[str, ...], str], int]] = (None, {})

    async def answer(
        self, state: MilvusState, probe: Probe, terms: Mapping[str, int], ask: Ask
    ) -> Candidates | None:
        """Return the result of a version; None if it is no longer the current one."""
        is_current = partial(self.is_current, state)
        if not state.generation:
            visible = Visible(EVERY, SourceCounts() if probe.sources else None)
            answer = MilvusQuery(
                self._location.view(state), visible, terms, None, is_current=is_current
            ).candidates({})
            return answer if await is_current() else None
        try:
            where = await self._expression(state, probe.filter)
            blocks = await self._terms.blocks(state)
            if blocks is None:
                return None
            view = self._location.view(state, blocks)
            visible = Visible(where, await self._in_sources(view, probe, terms))
            return await ask(MilvusQuery(view, visible, terms, probe.vector, is_current=is_current))
        except IndexReplaced:
            return None

    async def _in_sources(
        self, view: MilvusSnapshot, probe: Probe, terms: Iterable[str]
    ) -> SourceCounts | None:
        """Return the counts of the sources of a probe; None if it names none or they have too many chunks."""
        total = view.chunks_of(probe.sources)
        if not probe.sources or total > view.bm25.max_source_chunks:
            return None
        if not total:
            return SourceCounts()
        documents: Mapping[str, int] = {term: view.documents(term) for term in terms}
        if total < view.state.total:
            documents = await self._documents_in(view, probe.sources, documents, limit=total)
        return SourceCounts(total, documents)

    async def _documents_in(
        self, view: MilvusSnapshot, sources: tuple[str, ...], everywhere: Mapping[str, int], *, limit: int
    ) -> Mapping[str, int]:
        """Return the document frequencies of terms in sources; terms that occur nowhere are not looked up."""
        state, frequencies = self._sources
        if state is None or not state.same_rows(view.state) or len(frequencies) > _MAX_CACHED_FREQUENCIES:
            frequencies = {}
            self._sources = view.state, frequencies
        fresh = [term for term, count in everywhere.items() if count and (sources, term) not in frequencies]
        if fresh:
            where = await self._expression(view.state, In("source", sources))
            query = {"data": [{dimension(term): 1.0} for term in fresh], "anns_field": "terms"}
            hits_by_term = await view.server.searches(view.rows, where, ["chunk"], {**query, "limit": limit})
            for term, rows in zip(fresh, hits_by_term, strict=True):
                frequencies[sources, term] = sum(row["distance"] > 0.0 for row in rows)
        return {term: frequencies.get((sources, term), 0) for term in everywhere}

    async def is_current(self, state: MilvusState) -> bool:
        """Return whether the rows of this state are still the visible ones."""
        return (await self._notes.read()).same_rows(state)

    async def _expression(self, state: MilvusState, where: Filter) -> str:
        """Return the expression of the rows of a version that match the filter."""
        visible = await self._notes.visible(state)
        distinct_values = await self._distinct.read(state, find_enumerated_fields(where))
        condition = Compiler(distinct_values, state.facts_as_text).compile(where)
        if state.odd:
            odd_chunks = await self._odd_chunks(state, visible)
            odd = [chunk.chunk.id for chunk in odd_chunks if matches(where, chunk.row())]
            condition = f"(odd == false and ({condition})) or (odd == true and {either(odd)})"
        parts = [compile_tenants(where), visible, None if condition == EVERY else f"({condition})"]
        return " and ".join(part for part in parts if part)

    async def _odd_chunks(self, state: MilvusState, visible: str) -> Sequence[IndexedChunk]:
        """Return the chunks whose facts do not fit into Milvus, and which are filtered here."""
        cached_state, chunks = self._odd
        if cached_state is None or not cached_state.same_rows(state):
            name = self._location.view(state).rows
            rows = await self._location.server.query_by_halves(
                name, f"{visible} and odd == true", ["chunk"], along="chunk", span=(0, state.last + 1)
            )
            numbers = [ChunkId(row["chunk"]) for row in rows]
            chunks = [chunk for number in numbers for chunk in await self._reader.chunks(number, number)]
            self._odd = state, chunks
        return chunks


_CHUNKS_PER_COMPARISON = 2_000
_AFTER_LAST_ID = 2**63 - 1


async def differences(view: MilvusSnapshot, where: str, reader: Reader) -> list[Disagreement]:
    """Compare every visible row with the records. Changes after the version are skipped.

    If there are more rows between two chunks of the records than Milvus lists at once, only some are
    reported.
    """
    disagreements: list[Disagreement] = []
    last = -1
    async for batch in reader.scan():
        for start in range(0, len(batch), _CHUNKS_PER_COMPARISON):
            chunks = batch[start : start + _CHUNKS_PER_COMPARISON]
            end = chunks[-1].chunk.id
            disagreements += await _compare_range(view, where, (last + 1, end), chunks)
            last = end
    disagreements += await _compare_range(view, where, (last + 1, _AFTER_LAST_ID), ())
    return await select_unexplained(view.state.applied, disagreements, reader)


async def _compare_range(
    view: MilvusSnapshot, where: str, span: Range, chunks: Sequence[IndexedChunk]
) -> list[Disagreement]:
    expression = f"{where} and chunk >= {span[0]} and chunk <= {span[1]}"
    rows = await view.server.query(view.rows, expression, ["chunk", "checksum"])
    stored = {row["chunk"]: row["checksum"] for row in rows}
    disagreements = []
    for chunk in chunks:
        checksum = stored.pop(chunk.chunk.id, None)
        if checksum is None:
            disagreements.append(Disagreement(chunk.chunk.id, "missing", "not in the index"))
        elif checksum != compute_signed_checksum(chunk):
            disagreements.append(Disagreement(chunk.chunk.id, "stale", "the records hold another version"))
    return disagreements + [Disagreement(ChunkId(number), "ghost", "not in the records") for number in stored]
