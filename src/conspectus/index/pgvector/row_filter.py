"""Row filters of the pgvector index: the rows that match a filter, listed if they are few."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass
from conspectus.index.pgvector.database import Rows
from conspectus.index.pgvector.rows import odd_row
from conspectus.index.pgvector.snapshot import PgvectorSnapshot, read_packed_rows
from conspectus.index.pgvector.sql_filters import Compiler
from conspectus.index.pgvector.state import PgvectorState
from conspectus.index.pgvector.tables import Tables
from conspectus.model.filter import EVERYTHING, And, Filter, In, matches
from conspectus.ports import Ids

RowNumbers = NDArray[np.int64]

_MAX_CACHED_FILTERS = 64


@dataclass(frozen=True, slots=True)
class Condition:
    """A filter as SQL over live rows `r` that are not odd, with its parameters."""

    where: Filter
    sql: str
    parameters: dict[str, Any]

    @classmethod
    def of(cls, where: Filter, cursor: Rows, tables: Tables) -> "Condition":
        """Compile a filter."""

        def facts(statement: str, parameters: Mapping[str, Any]) -> list[int]:
            return [fact for (fact,) in cursor.execute(statement, parameters)]

        def texts(statement: str, parameters: Mapping[str, Any]) -> list[tuple[int, bytes]]:
            return [(fact, bytes(text)) for fact, text in cursor.execute(statement, parameters)]

        compiler = Compiler(tables.values, facts, texts)
        return cls(where, compiler.compile(where), compiler.parameters)

    @property
    def admits_all(self) -> bool:
        """Whether the filter matches every row."""
        return self.sql == Compiler.every


@dataclass(frozen=True, slots=True)
class _Listing:
    """The rows that a filter matched in a state; None if they were too many."""

    state: PgvectorState
    rows: RowNumbers | None

    def is_valid_for(self, state: PgvectorState, *, exactly: bool) -> bool:
        """Return whether the result is valid for a state. With `exactly`, only for the same rows."""
        if self.state.generation != state.generation:
            return False
        return self.state.version == state.version or (
            not exactly and self.rows is None and state.total <= 2 * self.state.total
        )


class Listings:
    """Caches the results of the last filters, because permission filters repeat.

    At most `maximum` rows are listed. Without `exactly`, a filter that matched more rows is not evaluated
    again after each write.
    """

    def __init__(self, maximum: int, *, exactly: bool = False) -> None:
        self.maximum = maximum
        self._exactly = exactly
        self._listings_by_filter: OrderedDict[str, _Listing] = OrderedDict()
        self._lock = Lock()

    def of(
        self, state: PgvectorState, where: Filter, count: Callable[[], RowNumbers | None]
    ) -> RowNumbers | None:
        """Return the rows that a filter matches in a state; None if there are too many."""
        # The key is a text: values that differ in type only, as 1 and True, compare equal in Python.
        name = repr(where)
        cached = self._listings_by_filter.get(name)
        if cached is not None and cached.is_valid_for(state, exactly=self._exactly):
            return cached.rows
        listing = _Listing(state, count())
        with self._lock:
            self._listings_by_filter[name] = listing
            self._listings_by_filter.move_to_end(name)
            if len(self._listings_by_filter) > _MAX_CACHED_FILTERS:
                self._listings_by_filter.popitem(last=False)
        return listing.rows


class Allowed:
    """The rows of a snapshot that match a filter. `listed` are their numbers, if they are few."""

    def __init__(
        self, cursor: Rows, tables: Tables, view: PgvectorSnapshot, where: Filter, *, listings: "Listings"
    ) -> None:
        self._cursor = cursor
        self._tables = tables
        self._view = view
        self._where = where
        self._listings = listings
        self._many_sources, self._other_where = split_many_sources(where)
        self.listed: RowNumbers | None = None

    @cached_property
    def condition(self) -> Condition:
        """The compiled filter, but for many sources, which are compared in this process."""
        return Condition.of(self._other_where, self._cursor, self._tables)

    @property
    def admits_all(self) -> bool:
        """Whether the filter matches every row."""
        return self._many_sources is None and self.condition.admits_all

    @property
    def compares_sources(self) -> bool:
        """Whether rows that are not listed are compared with many sources in this process."""
        return self._many_sources is not None and self.listed is None

    def has_source(self, source: bytes) -> bool:
        """Return whether rows of this source match the filter, if they match its condition."""
        many_sources = self._many_sources
        return many_sources is None or matches(many_sources, {"source": source.decode()})

    def list_if_few(self) -> None:
        """Set `listed` if few rows match."""
        if not self.admits_all:
            self.listed = self.find_few()

    def find_few(self) -> RowNumbers | None:
        """Return the numbers of the matching rows; None if they are many."""
        return self._listings.of(self._view.state, self._where, self._find_rows)

    def _find_rows(self) -> RowNumbers | None:
        """Return the matching rows; None if they are many."""
        condition = Condition.of(self._where, self._cursor, self._tables)
        admitted = f"r.odd IS NULL AND ({condition.sql})"
        maximum = self._listings.maximum
        few = f"SELECT r.row FROM {self._tables.rows} r WHERE {admitted} LIMIT {maximum + 1}"
        self._cursor.execute(
            f"SELECT coalesce(string_agg(int4send(row), ''), '') FROM ({few}) AS few",
            condition.parameters,
        )
        rows = read_packed_rows(self._cursor)
        return None if len(rows) > maximum else np.sort(np.concatenate([rows, self.odd]))

    @cached_property
    def odd(self) -> RowNumbers:
        """The matching rows among all odd rows."""
        return self._odd("true", {})

    def among(self, rows: RowNumbers) -> RowNumbers:
        """Return the live rows among these that match, sorted."""
        if self.listed is not None:
            return np.intersect1d(rows, self.listed)
        if self.admits_all or not len(rows):
            return np.sort(rows)
        return self._select("r.row = ANY(%(wanted)s::integer[])", rows)

    def select_chunks(self, chunks: Ids) -> RowNumbers:
        """Return the matching rows of these chunks, sorted."""
        return self._select("r.chunk = ANY(%(wanted)s::bigint[])", chunks)

    def _select(self, which: str, rows: NDArray[np.int64]) -> RowNumbers:
        parameters = {"wanted": rows.tolist()}
        column = "coalesce(string_agg(int4send(r.row), ''), '')"
        self._cursor.execute(
            f"WITH r AS MATERIALIZED (SELECT * FROM {self._tables.rows} r WHERE {which})"
            f" SELECT {column if self._many_sources is None else 'r.row, r.source'} FROM r"
            f" WHERE r.odd IS NULL AND ({self.condition.sql})",
            {**self.condition.parameters, **parameters},
        )
        if self._many_sources is None:
            matching = read_packed_rows(self._cursor)
        else:
            matching = np.array([row for row, source in self._cursor if self.has_source(source)], np.int64)
        return np.sort(np.concatenate([matching, self._odd(which, parameters)]))

    def _odd(self, which: str, parameters: dict[str, Any]) -> RowNumbers:
        """Return the odd rows that match, evaluated in this process."""
        if not self._view.state.odd:
            return np.zeros(0, np.int64)
        self._cursor.execute(
            f"SELECT r.row, r.odd FROM {self._tables.rows} r WHERE r.odd IS NOT NULL AND {which}", parameters
        )
        return np.array([row for row, body in self._cursor if matches(self._where, odd_row(body))], np.int64)


def split_many_sources(where: Filter) -> tuple[In | None, Filter]:
    """Return the condition on many sources that a filter has beside others, and the filter without it."""
    match where:
        case In() if where.digest:
            return where, EVERYTHING
        case And(inner):
            for position, part in enumerate(inner):
                many_sources, others = split_many_sources(part)
                if many_sources is not None:
                    return many_sources, And((*inner[:position], others, *inner[position + 1 :]))
    return None, where
