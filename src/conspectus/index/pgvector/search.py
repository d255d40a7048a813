"""Searches the pgvector index: BM25 over postings, exact vector search and HNSW."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass
from conspectus.index.bm25 import Bm25, Corpus, best, cosines, count_shared, with_sources
from conspectus.index.filter_terms import encode_text
from conspectus.index.pgvector.database import Rows
from conspectus.index.pgvector.postings import EMPTY, PgvectorPosting
from conspectus.index.pgvector.row_filter import Allowed, RowNumbers
from conspectus.index.pgvector.rows import as_literal
from conspectus.index.pgvector.snapshot import PgvectorSnapshot
from conspectus.index.pgvector.tables import Tables
from conspectus.model.index import TermStatistic
from conspectus.ports import Candidates, Floats, Ids, Vectors


@dataclass(frozen=True, slots=True)
class Words:
    """The terms of a query in a snapshot, with their postings."""

    view: PgvectorSnapshot
    bm25: Bm25
    terms: tuple[TermStatistic, ...]
    postings: Mapping[str, PgvectorPosting]

    def with_sources(self, rows: RowNumbers | None) -> "Words":
        """Return the terms with idf over sources with these rows; unchanged if `rows` is None."""
        if rows is None:
            return self
        live = rows[self.view.alive[rows]].astype(np.uint32)
        documents = [count_shared(self.postings[term.term].rows, live) for term in self.terms]
        terms = with_sources(self.terms, len(live), documents)
        return replace(self, terms=terms, bm25=self.bm25.for_terms(terms))

    @classmethod
    def of(
        cls,
        view: PgvectorSnapshot,
        bm25: Bm25,
        terms: Mapping[str, int],
        encoded_postings: Mapping[bytes, PgvectorPosting],
    ) -> "Words":
        """Count the live rows of each term."""
        postings = {term: encoded_postings.get(encode_text(term), EMPTY) for term in terms}
        corpus = view.corpus
        statistics = tuple(
            corpus.statistic(term, _count_alive(view, postings[term]), count) for term, count in terms.items()
        )
        return cls(view, bm25, statistics, postings)

    def scores(self, rows: RowNumbers) -> Floats:
        """Return the exact BM25 of rows. Terms are added in the order of names, for reproducible rounding."""
        scores = np.zeros(len(rows))
        lengths = self.view.lengths[rows].astype(np.float64)
        row_numbers = rows.astype(np.uint32)
        for term, posting in self._sort_postings():
            positions = np.searchsorted(posting.rows, row_numbers)
            positions[positions == len(posting.rows)] = 0
            hits = np.flatnonzero(posting.rows[positions] == row_numbers)
            counts = posting.counts[positions[hits]].astype(np.float64)
            scores[hits] += self._add_term(term, counts, lengths[hits])
        return scores

    def score_all(self) -> tuple[RowNumbers, Floats]:
        """Return every live row that has a term, with its exact score."""
        scores = np.zeros(len(self.view.chunks))
        for term, posting in self._sort_postings():
            lengths = self.view.lengths[posting.rows].astype(np.float64)
            scores[posting.rows] += self._add_term(term, posting.counts.astype(np.float64), lengths)
        if not self.view.all_alive:
            scores[~self.view.alive] = 0.0
        rows = np.flatnonzero(scores)
        return rows, scores[rows]

    def _add_term(self, term: TermStatistic, counts: Floats, lengths: Floats) -> Floats:
        return self.bm25.contributions(term.weight, counts, lengths, self._corpus.average)

    @property
    def least(self) -> float:
        """See `Candidates.least`."""
        return self.bm25.least(self.terms, self._corpus.average)

    @property
    def _corpus(self) -> Corpus:
        return self.view.corpus

    def _sort_postings(self) -> list[tuple[TermStatistic, PgvectorPosting]]:
        ordered = sorted(self.terms, key=lambda statistic: statistic.term)
        return [(term, self.postings[term.term]) for term in ordered if len(self.postings[term.term].rows)]


class PgvectorQuery:
    """A query to a snapshot, in a transaction that sees the state of the snapshot."""

    def __init__(self, cursor: Rows, tables: Tables, words: Words, allowed: Allowed) -> None:
        self._cursor = cursor
        self._tables = tables
        self._words = words
        self._view = words.view
        self._allowed = allowed

    def search(self, vector: Vectors | None, limit: int) -> Candidates:
        """Return the best hits of each retriever."""
        nothing = np.zeros(0, np.int64)
        if limit <= 0 or (vector is None and not self._words.postings):
            return self._candidates(nothing, {}, vector)
        self._allowed.list_if_few()
        by_words = self._by_words(limit) if self._words.postings else nothing
        near = nothing if vector is None else self._near(vector, limit)
        vectors = {} if vector is None else self._vectors(np.union1d(by_words, near))
        if vector is not None:
            near = near[best(self._view.chunks[near], _cosine(near, vectors, vector), limit)]
        return self._candidates(np.union1d(by_words, near), vectors, vector)

    def score(self, ids: Ids, vector: Vectors | None) -> Candidates:
        """Return the exact scores of these chunks."""
        rows = self._allowed.select_chunks(np.unique(ids)) if len(ids) else np.zeros(0, np.int64)
        return self._candidates(rows, {} if vector is None else self._vectors(rows), vector)

    def _by_words(self, limit: int) -> RowNumbers:
        """Return the best rows by BM25: of the matching rows if few, else of all, filtered afterwards."""
        listed = self._allowed.listed
        if listed is not None:
            scores = self._words.scores(listed)
            rows, scores = listed[scores > 0.0], scores[scores > 0.0]
            return rows[best(self._view.chunks[rows], scores, limit)]
        rows, scores = self._words.score_all()
        examined = 2 * limit
        while True:
            order = best(self._view.chunks[rows], scores, examined)
            admitted = np.isin(rows[order], self._allowed.among(rows[order]))
            if np.count_nonzero(admitted) >= limit or len(order) == len(rows):
                return rows[order[admitted][:limit]]
            examined *= 8

    def _near(self, vector: Vectors, limit: int) -> RowNumbers:
        near = Near(self._cursor, self._tables, vector)
        uses_graph = self._tables.graph and self._allowed.listed is None
        rows = near.by_graph(self._allowed, limit) if uses_graph else None
        return near.exact(self._allowed, limit) if rows is None else rows

    def _vectors(self, rows: RowNumbers) -> dict[int, bytes]:
        """Return the stored vectors of the rows that have one, in the binary format of pgvector."""
        if not self._tables.dimensions or not len(rows):
            return {}
        self._cursor.execute(
            f"SELECT row, halfvec_send(vector) FROM {self._tables.vectors} WHERE row = ANY(%s::integer[])",
            (rows.tolist(),),
        )
        return dict(self._cursor.fetchall())

    def _candidates(
        self, rows: RowNumbers, vectors: Mapping[int, bytes], vector: Vectors | None
    ) -> Candidates:
        chunks = self._view.chunks[rows]
        order = np.argsort(chunks)
        rows = rows[order]
        cosine = np.full(len(rows), np.nan) if vector is None else _cosine(rows, vectors, vector)
        return Candidates(
            ids=chunks[order],
            words=self._words.scores(rows),
            cosine=cosine,
            terms=self._words.terms,
            total=self._view.state.total,
            threads=self._view.state.threads > 0,
            least=self._words.least,
        )


def _cosine(rows: RowNumbers, vectors: Mapping[int, bytes], query: Vectors) -> Floats:
    """Return the exact cosines of rows; NaN for those without a vector."""
    scores = np.full(len(rows), np.nan)
    present = [position for position, row in enumerate(rows.tolist()) if row in vectors]
    if present:
        stored = b"".join(vectors[row][4:] for row in rows[present].tolist())
        halves = np.frombuffer(stored, ">f2").astype(np.float16).reshape(len(present), -1)
        scores[present] = cosines(halves, query)
    return scores


def _count_alive(view: PgvectorSnapshot, posting: PgvectorPosting) -> int:
    if view.all_alive:
        return len(posting.rows)
    return int(np.count_nonzero(view.alive[posting.rows]))


EF_SEARCH = 400
"""Number of neighbors that a search of the graph keeps at first, pgvector's `hnsw.ef_search`."""
MAX_SCANNED = 40_000
"""Maximum number of vectors read from the graph before all matching ones are scanned."""
_ROWS_PER_FETCH = 400
_MARGIN_ROWS = 16
_SETTINGS = (
    "SELECT set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', 'relaxed_order', true),"
    " set_config('hnsw.max_scan_tuples', %s, true), set_config('enable_seqscan', 'off', true),"
    " set_config('enable_sort', 'off', true), set_config('plan_cache_mode', 'force_custom_plan', true)"
)
_RESET_SETTINGS = "SELECT set_config('enable_seqscan', 'on', true), set_config('enable_sort', 'on', true)"


@dataclass(frozen=True, slots=True)
class Near:
    """Finds the nearest neighbors of one vector."""

    cursor: Rows
    tables: Tables
    query: Vectors

    def exact(self, allowed: Allowed, limit: int) -> RowNumbers:
        """Return rows that contain the `limit` best matching ones with all ties, and few others."""
        slack = _bound_rounding_error(self.query)
        count = limit + limit // 2 + _MARGIN_ROWS
        while True:
            rows, products = self._best(allowed, count)
            if len(rows) < count or products[limit - 1] - slack > products[-1]:
                return rows
            count *= 8

    def by_graph(self, allowed: Allowed, limit: int) -> RowNumbers | None:
        """Return nearly all of the best matching rows; None if the graph returns too few."""
        # More than the limit: the graph does not order vectors of equal distance reproducibly.
        limit += _MARGIN_ROWS
        linked = self._search_graph(allowed, limit)
        self.cursor.execute(_RESET_SETTINGS)
        if linked is None:
            return None
        loose, _ = self._best(allowed, limit, "v.version > %(graph)s")
        return np.concatenate([linked, loose])

    def _search_graph(self, allowed: Allowed, limit: int) -> RowNumbers | None:
        """Return rows from the graph that match."""
        self._set(limit)
        if allowed.admits_all:
            self.cursor.execute(f"{self._nearest_rows()} LIMIT {limit}", {"query": as_literal(self.query)})
            rows = np.array([row for (row,) in self.cursor], np.int64)
            return rows if len(rows) == limit else None
        matching = np.zeros(0, np.int64)
        for offered in self._fetch_batches(limit):
            matching = np.concatenate([matching, allowed.among(offered)])
            if len(matching) >= limit:
                return matching
        return None

    def _fetch_batches(self, limit: int) -> Iterator[RowNumbers]:
        """Yield the results of the graph in batches, nearest first."""
        self.cursor.execute(
            f"DECLARE near NO SCROLL CURSOR FOR {self._nearest_rows()}",
            {"query": as_literal(self.query)},
        )
        offered = 0
        while offered < MAX_SCANNED:
            self.cursor.execute(f"FETCH {max(_ROWS_PER_FETCH, 2 * limit)} FROM near")
            rows = np.array([row for (row,) in self.cursor], np.int64)
            if not len(rows):
                return
            offered += len(rows)
            yield rows

    def _set(self, limit: int) -> None:
        self.cursor.execute(_SETTINGS, (str(min(1_000, max(EF_SEARCH, 2 * limit))), str(MAX_SCANNED)))

    def _nearest_rows(self) -> str:
        return (
            f"SELECT row FROM {self.tables.vectors} WHERE version <= {self.tables.graph}"
            " ORDER BY vector <#> %(query)s::halfvec"
        )

    def _best(
        self, allowed: Allowed, count: int, among: str = "true"
    ) -> tuple[RowNumbers, NDArray[np.float64]]:
        """Return the best of the rows that match with their inner products, best first.

        Many sources are compared here, so that more rows may have to be read.
        """
        examined = count
        while True:
            hits = self._read_best(allowed, examined, among)
            matching = hits
            if allowed.compares_sources:
                odd = set(allowed.odd.tolist())
                matching = [hit for hit in hits if hit[0] in odd or allowed.has_source(hit[2])]
            if len(matching) >= count or len(hits) < examined:
                rows, products = [hit[0] for hit in matching[:count]], [hit[1] for hit in matching[:count]]
                return np.array(rows, np.int64), np.array(products, np.float64)
            examined *= 8

    def _read_best(self, allowed: Allowed, count: int, among: str) -> list[tuple[int, float, bytes]]:
        """Return the best of the rows that match but for many sources, each with its product and source."""
        parameters = {"query": as_literal(self.query), "graph": self.tables.graph}
        relation, where, source = f"{self.tables.vectors} v", "true", "''::bytea"
        if allowed.listed is not None:
            where, parameters = (
                "v.row = ANY(%(rows)s::integer[])",
                {**parameters, "rows": allowed.listed.tolist()},
            )
        elif not allowed.admits_all:
            relation += f" JOIN {self.tables.rows} r ON r.row = v.row"
            source = "r.source"
            where = f"(r.odd IS NULL AND ({allowed.condition.sql})) OR r.row = ANY(%(odd)s::integer[])"
            parameters = {**parameters, **allowed.condition.parameters, "odd": allowed.odd.tolist()}
        self.cursor.execute(
            f"SELECT v.row, -(v.vector <#> %(query)s::halfvec) AS product, {source} FROM {relation}"
            f" WHERE {among} AND ({where}) ORDER BY product DESC LIMIT {count}",
            parameters,
        )
        return self.cursor.fetchall()


def _bound_rounding_error(query: Vectors) -> float:
    """Return the largest error of an inner product that rounding the query to half precision causes."""
    single = query.astype(np.float64)
    halved = query.astype(np.float16).astype(np.float64)
    return 2.0 * float(np.linalg.norm(single - halved)) + 2.0**-22 * len(query)
