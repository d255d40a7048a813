"""Row filters of the pgvector index: a snapshot of the live rows, and filters compiled to SQL."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass
from conspectus.index.bm25 import Corpus
from conspectus.index.filter_compiler import ColumnValue, FilterCompiler
from conspectus.index.filter_terms import TEXTS, encoded, exists
from conspectus.index.pgvector.database import PgvectorState, Rows, Tables
from conspectus.index.pgvector.rows import ALWAYS, LARGEST, odd_row
from conspectus.model.filter import (
    Between,
    FieldName,
    Filter,
    Scalar,
    instant,
    matches,
)
from conspectus.ports import Ids
from conspectus.text.times import to_microseconds


@dataclass(frozen=True, slots=True)
class PgvectorSnapshot:
    """Immutable arrays by row number, of one version."""

    state: PgvectorState
    chunks: Ids
    lengths: NDArray[np.uint32]
    alive: NDArray[np.bool_]

    @property
    def corpus(self) -> Corpus:
        """The corpus statistics for BM25."""
        return Corpus(self.state.total, self.state.length)

    @property
    def all_alive(self) -> bool:
        """Whether no row is dead."""
        return self.state.total == len(self.chunks)


class Views:
    """Caches the snapshot, and reads what was written since."""

    def __init__(self) -> None:
        self._newest: PgvectorSnapshot | None = None
        self._lock = Lock()

    def of(self, cursor: Rows, tables: Tables, state: PgvectorState) -> PgvectorSnapshot:
        """Return the snapshot of a state. The transaction of the cursor must see the tables of the state."""
        before = self._newest
        if before is not None and _same(before.state, state):
            return before
        if before is not None and not _follows(before.state, state):
            before = None
        view = _read(cursor, tables, state, before or empty_view(state))
        with self._lock:
            if self._newest is None or not _follows(state, self._newest.state):
                self._newest = view
        return view


def _same(one: PgvectorState, other: PgvectorState) -> bool:
    return (one.generation, one.version) == (other.generation, other.version)


def _follows(before: PgvectorState, state: PgvectorState) -> bool:
    return before.generation == state.generation and before.version < state.version


def empty_view(state: PgvectorState) -> PgvectorSnapshot:
    """Return a snapshot without rows."""
    none = PgvectorState(state.identity, state.generation)
    return PgvectorSnapshot(none, np.zeros(0, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.bool_))


def _read(cursor: Rows, tables: Tables, state: PgvectorState, before: PgvectorSnapshot) -> PgvectorSnapshot:
    first_new = before.state.rows
    chunks, lengths = [before.chunks], [before.lengths]
    if state.rows > first_new:
        cursor.execute(
            f"SELECT first, chunks, lengths FROM {tables.batches} WHERE last >= %s ORDER BY first",
            (first_new,),
        )
        for first, some_chunks, some_lengths in cursor:
            skipped = max(0, first_new - first)
            chunks.append(np.frombuffer(some_chunks, "<i8")[skipped:])
            lengths.append(np.frombuffer(some_lengths, "<u4")[skipped:])
    alive = np.ones(state.rows, np.bool_)
    alive[:first_new] = before.alive
    cursor.execute(
        f"SELECT coalesce(string_agg(int4send(row), ''), '') FROM {tables.dead} WHERE version > %s",
        (before.state.version,),
    )
    alive[packed_rows(cursor)] = False
    return PgvectorSnapshot(state, np.concatenate(chunks), np.concatenate(lengths), alive)


def packed_rows(cursor: Rows) -> NDArray[np.int64]:
    """Return the row numbers that a statement returns in packed form."""
    row = cursor.fetchone()
    return np.frombuffer(row[0] if row else b"", ">i4").astype(np.int64)


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

        compiler = Compiler(tables.values, facts)
        return cls(where, compiler.compiled(where), compiler.parameters)

    @property
    def admits_all(self) -> bool:
        """Whether the filter matches every row."""
        return self.sql == Compiler.every


@dataclass(frozen=True, slots=True)
class _Listing:
    state: PgvectorState
    rows: RowNumbers | None

    def serves(self, state: PgvectorState, *, exactly: bool) -> bool:
        """Return whether the result is valid for a state. With `exactly`, only for the same rows."""
        if self.state.generation != state.generation:
            return False
        return self.state.version == state.version or (
            not exactly and self.rows is None and state.total <= 2 * self.state.total
        )


class Listings:
    """Caches the results of the last filters, because permission filters repeat. At most `most` rows are
    listed.

    Without `exactly`, a filter that matched more rows is not evaluated again after each write.
    """

    def __init__(self, maximum: int, *, exactly: bool = False) -> None:
        self.maximum = maximum
        self._exactly = exactly
        self._held: OrderedDict[str, _Listing] = OrderedDict()
        self._lock = Lock()

    def of(
        self, state: PgvectorState, where: Filter, count: Callable[[], RowNumbers | None]
    ) -> RowNumbers | None:
        """Return the rows that a filter matches in a state; None if there are too many."""
        # Filters whose values are equal but differ in type, as 1 and True, compare equal in Python; texts do
        # not.
        name = repr(where)
        cached = self._held.get(name)
        if cached is not None and cached.serves(state, exactly=self._exactly):
            return cached.rows
        listing = _Listing(state, count())
        with self._lock:
            self._held[name] = listing
            self._held.move_to_end(name)
            if len(self._held) > _MAX_CACHED_FILTERS:
                self._held.popitem(last=False)
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
        self.listed: RowNumbers | None = None

    @cached_property
    def condition(self) -> Condition:
        """The compiled filter."""
        return Condition.of(self._where, self._cursor, self._tables)

    def count(self) -> None:
        """Find out whether few rows match, and which."""
        if not self.condition.admits_all:
            self.listed = self.few()

    def few(self) -> RowNumbers | None:
        """The numbers of the matching rows; None if they are many."""
        return self._listings.of(self._view.state, self._where, self._counted)

    def _counted(self) -> RowNumbers | None:
        """Return the matching rows; None if they are many."""
        admitted = f"r.odd IS NULL AND ({self.condition.sql})"
        maximum = self._listings.maximum
        few = f"SELECT r.row FROM {self._tables.rows} r WHERE {admitted} LIMIT {maximum + 1}"
        self._cursor.execute(
            f"SELECT coalesce(string_agg(int4send(row), ''), '') FROM ({few}) AS few",
            self.condition.parameters,
        )
        rows = packed_rows(self._cursor)
        return None if len(rows) > maximum else np.sort(np.concatenate([rows, self.odd]))

    @cached_property
    def odd(self) -> RowNumbers:
        """The matching rows among all odd rows."""
        return self._odd("true", {})

    def among(self, rows: RowNumbers) -> RowNumbers:
        """Return the live rows among these that match, sorted."""
        if self.listed is not None:
            return np.intersect1d(rows, self.listed)
        if self.condition.admits_all or not len(rows):
            return np.sort(rows)
        return self._select("r.row = ANY(%(wanted)s::integer[])", rows)

    def of_chunks(self, chunks: Ids) -> RowNumbers:
        """Return the matching rows of these chunks, sorted."""
        return self._select("r.chunk = ANY(%(wanted)s::bigint[])", chunks)

    def _select(self, which: str, rows: NDArray[np.int64]) -> RowNumbers:
        parameters = {"wanted": rows.tolist()}
        self._cursor.execute(
            f"WITH r AS MATERIALIZED (SELECT * FROM {self._tables.rows} r WHERE {which})"
            " SELECT coalesce(string_agg(int4send(r.row), ''), '') FROM r"
            f" WHERE r.odd IS NULL AND ({self.condition.sql})",
            {**self.condition.parameters, **parameters},
        )
        return np.sort(np.concatenate([packed_rows(self._cursor), self._odd(which, parameters)]))

    def _odd(self, which: str, parameters: dict[str, Any]) -> RowNumbers:
        """Return the odd rows that match, evaluated in this process."""
        if not self._view.state.odd:
            return np.zeros(0, np.int64)
        self._cursor.execute(
            f"SELECT r.row, r.odd FROM {self._tables.rows} r WHERE r.odd IS NOT NULL AND {which}", parameters
        )
        where = self.condition.where
        return np.array([row for row, body in self._cursor if matches(where, odd_row(body))], np.int64)


MAX_NAMED = 100
"""Maximum number of facts that are looked up in the index of facts; more are compared row by row."""
_HASHED = "(held IN ({})) IS TRUE"
"""With plain `IN`, the planner would evaluate the join for each row."""


@dataclass(slots=True)
class Compiler(FilterCompiler):
    """Compiles filters to conditions on rows `r`. `facts_of` runs a statement that selects facts.

    `values` is the table of distinct values. User input is only ever passed in `parameters`.
    """

    every, none, largest = "true", "false", LARGEST
    values: str
    facts_of: Callable[[str, Mapping[str, Any]], Sequence[int]]
    parameters: dict[str, Any] = field(default_factory=dict)

    def present(self, field: FieldName) -> str:
        """Return the condition: the column is not null."""
        return (
            self.every if field in ALWAYS else f"r.{'starts' if field == 'occurred' else field} IS NOT NULL"
        )

    def any_fact(self, facts: Sequence[int]) -> str:
        """Return the condition: the row has at least one of these facts."""
        return f"r.facts && {self._name(list(facts), 'bigint[]')}"

    def among(self, field: FieldName, values: Sequence[str] | Sequence[int]) -> str:
        """Return the condition: the column has one of these values."""
        kind = "bytea[]" if field in TEXTS else "bigint[]"
        operands = [encoded(value) if isinstance(value, str) else value for value in values]
        return self._all_of([self.present(field), f"r.{field} = ANY({self._name(operands, kind)})"])

    def compared(self, column: str, sign: str, value: ColumnValue) -> str:
        """Return the condition: the value of the column compares so with the bound."""
        return self._bound(f"r.{column}", sign, value)

    def values_between(self, leaf: Between) -> str:
        """Return the condition: the row has a value at the path within the bounds."""
        path = exists(leaf.field)
        parts = [f"path = {self._name(path, 'bigint')}"]
        for sign, bound in ((">=", leaf.low), ("<", leaf.high)):
            if bound is not None:
                parts.append(self._ordered(sign, bound))
        query = f"SELECT fact FROM {self.values} WHERE {' AND '.join(parts)}"
        few = self.facts_of(f"{query} LIMIT {MAX_NAMED + 1}", self.parameters)
        if len(few) <= MAX_NAMED:
            return self.any_fact(few) if few else self.none
        condition = f"EXISTS (SELECT FROM unnest(r.facts) AS held WHERE {_HASHED.format(query)})"
        return self._all_of([self.any_fact([path]), condition])

    def _ordered(self, sign: str, bound: Scalar) -> str:
        match bound:
            case datetime():
                moment = instant(bound)
                return self.none if moment is None else self._bound("moment", sign, to_microseconds(moment))
            case bool():
                return f"truth {sign} {self._name(int(bound), 'smallint')}"
            case str():
                return self._bound("text", sign, bound)
            case _:
                return self._bound("number", sign, bound) if bound == bound else self.none

    def _bound(self, column: str, sign: str, value: ColumnValue) -> str:
        if isinstance(value, str):
            return f"{column} {sign} {self._name(encoded(value), 'bytea')}"
        if isinstance(value, int) and abs(value) <= LARGEST:
            return f"{column} {sign} {self._name(value, 'bigint')}"
        return f"{column} {sign} {self._name(Decimal(value), 'numeric')}"

    def _name(self, value: object, kind: str) -> str:
        name = f"f{len(self.parameters)}"
        self.parameters[name] = value
        return f"%({name})s::{kind}"
