"""Which rows a filter admits: listed where they are few, asked for where they are many."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conspectus.index.pgvector.database import Rows
from conspectus.index.pgvector.filters import EVERY, Compiler
from conspectus.index.pgvector.rows import odd_row
from conspectus.index.pgvector.snapshot import PgvectorSnapshot, packed_rows
from conspectus.index.pgvector.state import PgvectorState
from conspectus.index.pgvector.tables import Tables
from conspectus.model.filter import Filter, matches
from conspectus.ports import Ids

RowNumbers = NDArray[np.int64]

_REMEMBERED = 64


@dataclass(frozen=True, slots=True)
class Condition:
    """A filter as SQL on rows `r` that are not odd, with what stands in it."""

    where: Filter
    sql: str
    given: dict[str, Any]

    @classmethod
    def of(cls, where: Filter, cursor: Rows, tables: Tables) -> "Condition":
        """Compile a filter."""

        def facts(statement: str, given: Mapping[str, Any]) -> list[int]:
            return [fact for (fact,) in cursor.execute(statement, given)]

        compiler = Compiler(tables.values, facts)
        return cls(where, compiler.compiled(where), compiler.given)

    @property
    def admits_all(self) -> bool:
        """Whether every row satisfies it."""
        return self.sql == EVERY


@dataclass(frozen=True, slots=True)
class _Listing:
    state: PgvectorState
    rows: RowNumbers | None

    def serves(self, state: PgvectorState) -> bool:
        """Whether it is what it would be in this state; of many rows nothing is said but that."""
        if self.state.generation != state.generation:
            return False
        return self.state.version == state.version or (
            self.rows is None and state.total <= 2 * self.state.total
        )


class Listings:
    """What the last few filters admitted, as permissions repeat; `most` rows are listed."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._held: OrderedDict[str, _Listing] = OrderedDict()
        self._lock = Lock()

    def of(
        self, state: PgvectorState, where: Filter, count: Callable[[], RowNumbers | None]
    ) -> RowNumbers | None:
        """The rows that a filter admits in a state; None if they are many."""
        # Filters of equal values but unequal types, as of 1 and True, are equal to Python: their text is not.
        name = repr(where)
        held = self._held.get(name)
        if held is not None and held.serves(state):
            return held.rows
        listing = _Listing(state, count())
        with self._lock:
            self._held[name] = listing
            self._held.move_to_end(name)
            if len(self._held) > _REMEMBERED:
                self._held.popitem(last=False)
        return listing.rows


class Allowed:
    """What a filter admits of a view. `listed` are the admitted rows if it is not all of them, and few."""

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
        """The filter, compiled when it is first needed."""
        return Condition.of(self._where, self._cursor, self._tables)

    def count(self) -> None:
        """Find out whether there are few, and which."""
        if not self.condition.admits_all:
            self.listed = self._listings.of(self._view.state, self._where, self._counted)

    def _counted(self) -> RowNumbers | None:
        """The admitted rows; None if they are many."""
        admitted = f"r.odd IS NULL AND ({self.condition.sql})"
        most = self._listings.most
        few = f"SELECT r.row FROM {self._tables.rows} r WHERE {admitted} LIMIT {most + 1}"
        self._cursor.execute(
            f"SELECT coalesce(string_agg(int4send(row), ''), '') FROM ({few}) AS few", self.condition.given
        )
        found = packed_rows(self._cursor)
        return None if len(found) > most else np.sort(np.concatenate([found, self.odd]))

    @cached_property
    def odd(self) -> RowNumbers:
        """The admitted ones of all odd rows."""
        return self._odd("true", {})

    def among(self, rows: RowNumbers) -> RowNumbers:
        """Those of the live rows that are admitted, sorted."""
        if self.listed is not None:
            return np.intersect1d(rows, self.listed)
        if self.condition.admits_all or not len(rows):
            return np.sort(rows)
        return self._found("r.row = ANY(%(wanted)s::integer[])", rows)

    def of_chunks(self, chunks: Ids) -> RowNumbers:
        """The admitted rows of these chunks, sorted."""
        return self._found("r.chunk = ANY(%(wanted)s::bigint[])", chunks)

    def _found(self, which: str, wanted: NDArray[np.int64]) -> RowNumbers:
        given = {"wanted": wanted.tolist()}
        self._cursor.execute(
            f"WITH r AS MATERIALIZED (SELECT * FROM {self._tables.rows} r WHERE {which})"
            " SELECT coalesce(string_agg(int4send(r.row), ''), '') FROM r"
            f" WHERE r.odd IS NULL AND ({self.condition.sql})",
            {**self.condition.given, **given},
        )
        return np.sort(np.concatenate([packed_rows(self._cursor), self._odd(which, given)]))

    def _odd(self, which: str, given: dict[str, Any]) -> RowNumbers:
        """Odd rows that are admitted, judged here."""
        if not self._view.state.odd:
            return np.zeros(0, np.int64)
        self._cursor.execute(
            f"SELECT r.row, r.odd FROM {self._tables.rows} r WHERE r.odd IS NOT NULL AND {which}", given
        )
        where = self.condition.where
        return np.array([row for row, body in self._cursor if matches(where, odd_row(body))], np.int64)
