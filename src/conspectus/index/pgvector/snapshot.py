"""The live rows of the pgvector index, as arrays by row number."""

from threading import Lock

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass
from conspectus.index.bm25 import Corpus
from conspectus.index.pgvector.database import Rows
from conspectus.index.pgvector.state import PgvectorState
from conspectus.index.pgvector.tables import Tables
from conspectus.ports import Ids


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
        if before is not None and _is_same_version(before.state, state):
            return before
        if before is not None and not _is_followed_by(before.state, state):
            before = None
        view = _read(cursor, tables, state, before or empty_view(state))
        with self._lock:
            if self._newest is None or not _is_followed_by(state, self._newest.state):
                self._newest = view
        return view


def _is_same_version(one: PgvectorState, other: PgvectorState) -> bool:
    return (one.generation, one.version) == (other.generation, other.version)


def _is_followed_by(before: PgvectorState, state: PgvectorState) -> bool:
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
    alive[read_packed_rows(cursor)] = False
    return PgvectorSnapshot(state, np.concatenate(chunks), np.concatenate(lengths), alive)


def read_packed_rows(cursor: Rows) -> NDArray[np.int64]:
    """Return the row numbers that a statement returns in packed form."""
    row = cursor.fetchone()
    return np.frombuffer(row[0] if row else b"", ">i4").astype(np.int64)
