"""The rows whose vectors are nearest: every admitted one looked at, or by the graph where they are many."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from conspectus.index.pgvector.database import Rows
from conspectus.index.pgvector.row_filter import Allowed, RowNumbers
from conspectus.index.pgvector.rows import as_literal
from conspectus.index.pgvector.tables import Tables
from conspectus.ports import Vectors

EF_SEARCH = 400
MOST_SCANNED = 40_000
"""Vectors that the graph offers before the others are looked at one by one."""
_BATCH = 400
_MARGIN = 16
_SETTINGS = (
    "SELECT set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', 'relaxed_order', true),"
    " set_config('hnsw.max_scan_tuples', %s, true), set_config('enable_seqscan', 'off', true),"
    " set_config('enable_sort', 'off', true)"
)
_DONE = "SELECT set_config('enable_seqscan', 'on', true), set_config('enable_sort', 'on', true)"


@dataclass(frozen=True, slots=True)
class Near:
    """Looks for neighbours of one vector."""

    cursor: Rows
    tables: Tables
    query: Vectors

    def exact(self, allowed: Allowed, limit: int) -> RowNumbers:
        """Rows that certainly hold the `limit` best admitted ones with all ties, and few others."""
        slack = _lost(self.query)
        count = limit + limit // 2 + _MARGIN
        while True:
            rows, products = self._best(allowed, count)
            if len(rows) < count or products[limit - 1] - slack > products[-1]:
                return rows
            count *= 8

    def by_graph(self, allowed: Allowed, limit: int) -> RowNumbers | None:
        """Rows that hold nearly all of the best admitted ones; None if the graph offers too few."""
        # More than asked for: which of two that are equally near is better is not the graph's to say.
        limit += _MARGIN
        linked = self._linked(allowed, limit)
        self.cursor.execute(_DONE)
        if linked is None:
            return None
        loose, _ = self._best(allowed, limit, "v.version > %(graph)s")
        return np.concatenate([linked, loose])

    def _linked(self, allowed: Allowed, limit: int) -> RowNumbers | None:
        """Of the rows that are in the graph."""
        self._set(limit)
        if allowed.condition.admits_all:
            self.cursor.execute(f"{self._ordered()} LIMIT {limit}", {"query": as_literal(self.query)})
            rows = np.array([row for (row,) in self.cursor], np.int64)
            return rows if len(rows) == limit else None
        kept = np.zeros(0, np.int64)
        for offered in self._offered(limit):
            kept = np.concatenate([kept, allowed.among(offered)])
            if len(kept) >= limit:
                return kept
        return None

    def _offered(self, limit: int) -> Iterator[RowNumbers]:
        """What the graph offers, nearest first, in batches."""
        self.cursor.execute(
            f"DECLARE near NO SCROLL CURSOR FOR {self._ordered()}", {"query": as_literal(self.query)}
        )
        offered = 0
        while offered < MOST_SCANNED:
            self.cursor.execute(f"FETCH {max(_BATCH, 2 * limit)} FROM near")
            rows = np.array([row for (row,) in self.cursor], np.int64)
            if not len(rows):
                return
            offered += len(rows)
            yield rows

    def _set(self, limit: int) -> None:
        self.cursor.execute(_SETTINGS, (str(min(1_000, max(EF_SEARCH, 2 * limit))), str(MOST_SCANNED)))

    def _ordered(self) -> str:
        return (
            f"SELECT row FROM {self.tables.vectors} WHERE version <= {self.tables.graph}"
            " ORDER BY vector <#> %(query)s::halfvec"
        )

    def _best(
        self, allowed: Allowed, count: int, among: str = "true"
    ) -> tuple[RowNumbers, NDArray[np.float64]]:
        """The best of those that are admitted, with their products, in the order of these."""
        given = {"query": as_literal(self.query), "graph": self.tables.graph}
        chosen, where = f"{self.tables.vectors} v", "true"
        if allowed.listed is not None:
            where, given = "v.row = ANY(%(rows)s::integer[])", {**given, "rows": allowed.listed.tolist()}
        elif not allowed.condition.admits_all:
            chosen += f" JOIN {self.tables.rows} r ON r.row = v.row"
            where = f"(r.odd IS NULL AND ({allowed.condition.sql})) OR r.row = ANY(%(odd)s::integer[])"
            given = {**given, **allowed.condition.given, "odd": allowed.odd.tolist()}
        self.cursor.execute(
            f"SELECT v.row, -(v.vector <#> %(query)s::halfvec) AS product FROM {chosen}"
            f" WHERE {among} AND ({where}) ORDER BY product DESC LIMIT {count}",
            given,
        )
        found = self.cursor.fetchall()
        rows, products = [row for row, _ in found], [product for _, product in found]
        return np.array(rows, np.int64), np.array(products, np.float64)


def _lost(query: Vectors) -> float:
    """What two products may differ by because the database has the question in half precision."""
    single = query.astype(np.float64)
    halved = query.astype(np.float16).astype(np.float64)
    return 2.0 * float(np.linalg.norm(single - halved)) + 2.0**-22 * len(query)
