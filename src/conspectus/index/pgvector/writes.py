"""Writes of the pgvector index: changes, drafts and bulk builds."""

import asyncio
import secrets
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from typing import Any, TypeAlias

from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.numeric import Int4, Int8
from sqlalchemy import Connection

from conspectus.deferred import dataclass
from conspectus.errors import StorageBusy
from conspectus.index.bm25 import Analyse
from conspectus.index.changes import CHANGES, Range, merged, put_ranges, read, touched_ranges, with_vector_of
from conspectus.index.pgvector.compaction import compact
from conspectus.index.pgvector.database import (
    COLUMNS,
    KINDS,
    STATES,
    PgvectorOptions,
    PgvectorState,
    Rows,
    Run,
    Tables,
    drop_all_but,
    is_free,
    lock,
    lock_shared,
    make_states,
    read_state,
    require_vectors,
    rows_of,
    stop,
    write_state,
)
from conspectus.index.pgvector.rows import Prepared, Preparing, packed, sent
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Change
from conspectus.ports import Progress, Reader

FEW = 16
"""Number of rows up to which single inserts are as fast as COPY."""
MERGED_FROM = 16
"""Number of batches of one level that are merged into one of the next level."""


@dataclass(slots=True)
class PgvectorDraft:
    """A planned write: rows that replace all rows in certain ranges, up to a change."""

    applied: int
    ranges: Sequence[Range] = ()
    rows: dict[int, Prepared] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Old:
    chunk: int
    row: int
    words: int
    vector: int | None
    length: int
    in_thread: bool
    odd: bool


def write(cursor: Rows, tables: Tables, state: PgvectorState, draft: PgvectorDraft) -> PgvectorState:
    """Write a draft in the transaction of the cursor. Returns the new state."""
    old = {old_row.chunk: old_row for old_row in _delete_rows(cursor, tables, draft.ranges)}
    numbered, end = _numbered(draft, old, state.rows)
    fresh = {row: prepared for row, prepared in numbered.items() if row >= state.rows}
    version = state.version + 1
    gone = [old_row.row for old_row in old.values() if old_row.row not in numbered]
    if gone:
        cursor.execute(f"INSERT INTO {tables.dead} SELECT %s, unnest(%s::integer[])", (version, gone))
    loose = _put_vectors(cursor, tables, numbered, old, version=version)
    _insert(cursor, tables.rows, [KINDS[name] for name in COLUMNS], list(_table_rows(numbered)), COLUMNS)
    if fresh:
        _put_words(cursor, tables, fresh, end)
    _put_values(cursor, tables, draft.rows.values())
    return replace(_counted(state, draft, old.values(), version, end), loose=state.loose + loose)


def merge(cursor: Rows, tables: Tables) -> None:
    """Merge batches, so that a query reads few. Row numbers do not change."""
    level = 0
    while True:
        cursor.execute(
            f"SELECT min(first), max(last), count(*) FROM {tables.batches} WHERE level = %s", (level,)
        )
        first, last, count = cursor.fetchone() or (0, 0, 0)
        if count < MERGED_FROM:
            return
        level += 1
        parameters = {"first": first, "last": last, "level": level}
        cursor.execute(_MERGED_POSTINGS.format(table=tables.postings), parameters)
        cursor.execute(_MERGED_BATCHES.format(table=tables.batches), parameters)


_MERGED_POSTINGS = """
WITH gone AS (
    DELETE FROM {table} WHERE first BETWEEN %(first)s AND %(last)s RETURNING first, term, rows, counts
)
INSERT INTO {table} (first, term, rows, counts)
SELECT %(first)s, term, string_agg(rows, '' ORDER BY first), string_agg(counts, '' ORDER BY first)
FROM gone GROUP BY term
"""
_MERGED_BATCHES = """
WITH gone AS (
    DELETE FROM {table} WHERE first BETWEEN %(first)s AND %(last)s RETURNING first, chunks, lengths
)
INSERT INTO {table} (first, last, level, chunks, lengths)
SELECT %(first)s, %(last)s, %(level)s,
    string_agg(chunks, '' ORDER BY first), string_agg(lengths, '' ORDER BY first)
FROM gone
"""


def _delete_rows(cursor: Rows, tables: Tables, ranges: Sequence[Range]) -> list[_Old]:
    if not ranges:
        return []
    cursor.execute(
        f"DELETE FROM {tables.rows} r USING unnest(%s::bigint[], %s::bigint[]) AS gone (first, last)"
        " WHERE r.chunk BETWEEN gone.first AND gone.last"
        " RETURNING r.chunk, r.row, r.words, r.vector, r.length, r.thread IS NOT NULL, r.odd IS NOT NULL",
        ([first for first, _ in ranges], [last for _, last in ranges]),
    )
    return [_Old(*row) for row in cursor]


def _numbered(draft: PgvectorDraft, old: Mapping[int, _Old], end: int) -> tuple[dict[int, Prepared], int]:
    """Number the rows: the number of the replaced row if its terms are equal, else a new one."""
    numbered = {}
    for chunk in sorted(draft.rows):
        prepared, before = draft.rows[chunk], old.get(chunk)
        if before is not None and before.words == prepared.columns["words"]:
            numbered[before.row] = prepared
        else:
            numbered[end] = prepared
            end += 1
    return numbered, end


def _put_vectors(
    cursor: Rows, tables: Tables, numbered: Mapping[int, Prepared], old: Mapping[int, _Old], *, version: int
) -> int:
    """Write new and changed vectors. Returns the number written."""
    if not tables.dimensions:
        return 0
    stored = {old_row.row: old_row.vector for old_row in old.values() if old_row.vector is not None}
    vectors = {
        row: prepared.columns["vector"] for row, prepared in numbered.items() if prepared.vector is not None
    }
    gone = [row for row, vector in stored.items() if vectors.get(row) != vector]
    if gone:
        cursor.execute(f"DELETE FROM {tables.vectors} WHERE row = ANY(%s::integer[])", (gone,))
    changed = [row for row in vectors if stored.get(row) != vectors[row]]
    fresh = [(row, version, sent(numbered[row].vector or b"")) for row in changed]
    _insert(cursor, tables.vectors, ["integer", "bigint", "halfvec"], fresh, ("row", "version", "vector"))
    return len(fresh)


def _put_words(cursor: Rows, tables: Tables, fresh: Mapping[int, Prepared], end: int) -> None:
    first = end - len(fresh)
    chunks = array("q", (prepared.chunk for prepared in fresh.values())).tobytes()
    lengths = array("I", (prepared.length for prepared in fresh.values())).tobytes()
    cursor.execute(
        f"INSERT INTO {tables.batches} VALUES (%s, %s, 0, %s, %s)", (first, end - 1, chunks, lengths)
    )
    postings = packed({row: prepared.counts for row, prepared in fresh.items()})
    if not postings:
        return
    if len(fresh) <= FEW:
        statement = (
            f"INSERT INTO {tables.postings} SELECT %s, * FROM unnest(%s::bytea[], %s::bytea[], %s::bytea[])"
        )
        cursor.execute(statement, (Int4(first), *map(list, zip(*postings, strict=True))))
        return
    kinds, names = ["integer", "bytea", "bytea", "bytea"], ("first", "term", "rows", "counts")
    _insert(cursor, tables.postings, kinds, [(first, *posting) for posting in postings], names)


def _put_values(cursor: Rows, tables: Tables, rows: Iterable[Prepared]) -> None:
    values = {value.fact: value for row in rows for value in row.facts.values}
    if values:
        listed = list(values.values())
        cursor.execute(
            f"INSERT INTO {tables.values} SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::numeric[],"
            " %s::bytea[], %s::bigint[], %s::smallint[]) ON CONFLICT DO NOTHING",
            (
                [value.fact for value in listed],
                [value.path for value in listed],
                [value.number for value in listed],
                [value.text for value in listed],
                [value.moment for value in listed],
                [value.truth for value in listed],
            ),
        )


def _table_rows(numbered: Mapping[int, Prepared]) -> Iterable[tuple[Any, ...]]:
    for row, prepared in numbered.items():
        columns = {**prepared.columns, "row": row}
        yield tuple(columns[name] for name in COLUMNS)


def _insert(
    cursor: Rows, table: str, kinds: Sequence[str], rows: Sequence[tuple[Any, ...]], names: Sequence[str]
) -> None:
    """Insert rows: a few by statements, which a pipeline may hold, and more by COPY, which it may not."""
    columns = f"{table} ({', '.join(names)})"
    if len(rows) <= FEW:
        statement = f"INSERT INTO {columns} VALUES ({', '.join(['%b'] * len(names))})"
        cursor.adapters.register_dumper(_Halfvec, _HalfvecDumper)
        for row in rows:
            cursor.execute(statement, [_typed(kind, cell) for kind, cell in zip(kinds, row, strict=True)])
        return
    with cursor.copy(f"COPY {columns} FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(["bytea" if kind == "halfvec" else kind for kind in kinds])
        for row in rows:
            copy.write_row(row)


class _Halfvec(bytes):
    """A vector in the binary format of pgvector."""


class _HalfvecDumper(Dumper):
    """Sends the bytes as they are; the server knows the type from the column."""

    format = Format.BINARY

    def dump(self, obj: bytes) -> bytes:
        return obj


_TYPES: Mapping[str, Callable[[Any], Any]] = {
    "integer": Int4,
    "bigint": Int8,
    "halfvec": _Halfvec,
    "bigint[]": lambda numbers: [Int8(number) for number in numbers],
    "bytea": bytes,
}
"""Values whose types do not depend on their size, so that one prepared statement fits all."""


def _typed(kind: str, value: Any) -> Any:
    return None if value is None else _TYPES[kind](value)


def _counted(
    state: PgvectorState, draft: PgvectorDraft, old: Iterable[_Old], version: int, end: int
) -> PgvectorState:
    """Return the counts of the new state."""
    old, rows = list(old), draft.rows.values()
    return replace(
        state,
        version=version,
        applied=max(state.applied, draft.applied),
        rows=end,
        total=state.total + len(rows) - len(old),
        length=state.length + sum(row.length for row in rows) - sum(old_row.length for old_row in old),
        vectors=state.vectors
        + sum(row.vector is not None for row in rows)
        - sum(old_row.vector is not None for old_row in old),
        threads=state.threads
        + sum(row.columns["thread"] is not None for row in rows)
        - sum(old_row.in_thread for old_row in old),
        odd=state.odd
        + sum(row.columns["odd"] is not None for row in rows)
        - sum(old_row.odd for old_row in old),
        replaced=state.replaced + len(old),
    )


_ATTEMPTS = 10


class Drafting:
    """Makes drafts from chunks."""

    def __init__(self, analyse: Analyse, dimensions: int) -> None:
        self._analyse = analyse
        self._dimensions = dimensions

    def prepared(self, chunks: Iterable[IndexedChunk]) -> dict[int, Prepared]:
        """Return rows to write. Raises InvalidInput for a vector of another size."""
        preparing = Preparing(self._analyse)
        return {
            chunk.chunk.id: preparing.prepared(with_vector_of(self._dimensions, chunk)) for chunk in chunks
        }

    def draft(
        self, changes: Sequence[Change], chunks: Iterable[IndexedChunk], *, fresh: bool = False
    ) -> PgvectorDraft:
        """Return a draft from chunks in the state of the changes; no index has those that are `fresh`."""
        old = [change for change in changes if change.operation == "remove" or not fresh]
        return PgvectorDraft(changes[-1].sequence, touched_ranges(old), self.prepared(chunks))


class PgvectorDrafting:
    """Makes drafts by reading the chunks of changes from the records."""

    def __init__(self, reader: Reader, drafting: Drafting) -> None:
        self._reader = reader
        self._drafting = drafting

    async def draft(self, changes: Sequence[Change]) -> PgvectorDraft:
        """Return the current rows of the changed chunks.

        Rows that were replaced meanwhile, and their replacements, are missing. So later changes are added
        too, as long as rows were removed.
        """
        draft = await self._read(changes)
        for _ in range(_ATTEMPTS):
            later = await self._reader.changes_since(draft.applied, limit=CHANGES)
            removed = any(change.operation == "remove" for change in later)
            if not removed or len(later) >= CHANGES:
                break
            draft = followed_by(draft, await self._read(later))
        return draft

    async def _read(self, changes: Sequence[Change]) -> PgvectorDraft:
        chunks = [chunk async for batch in read(self._reader, put_ranges(changes)) for chunk in batch]
        return await asyncio.to_thread(self._drafting.draft, changes, chunks)


def followed_by(draft: PgvectorDraft, later: PgvectorDraft) -> PgvectorDraft:
    """Combine two drafts, the second after the first."""
    earlier = {
        number: row
        for number, row in draft.rows.items()
        if not any(first <= number <= last for first, last in later.ranges)
    }
    return PgvectorDraft(later.applied, merged([*draft.ranges, *later.ranges]), {**earlier, **later.rows})


Unless: TypeAlias = Callable[[PgvectorState], bool]

LINKING = "link"
"""The lock that all builds of graphs share."""
_CHUNKS_PER_TRANSACTION = 10_000
_GENERATION_BITS = 40
_SET_TIMEOUTS = (
    "SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true),"
    " set_config('idle_in_transaction_session_timeout', %s, true)"
)


class Building:
    """Builds generations, one at a time among all processes."""

    def __init__(self, options: PgvectorOptions, drafting: Drafting, reader: Reader) -> None:
        self._options = options
        self._drafting = drafting
        self._record_drafting = PgvectorDrafting(reader, drafting)
        self._reader = reader

    async def build(
        self, identity: str, progress: Progress | None = None, *, unless: Unless | None = None
    ) -> PgvectorState:
        """Rebuild everything, unless another process has made an equivalent state meanwhile."""
        await self._options.database.write(self._prepared)
        async with self._options.database.lasting() as run:
            before: PgvectorState = await run(lambda connection: self._begun(connection, identity))
            if unless is not None and unless(before):
                return before
            state = PgvectorState(identity, secrets.randbits(_GENERATION_BITS) + 1)
            tables = self._options.tables(state)
            await run(lambda connection: tables.create(rows_of(connection)))
            state = await self._filled(run, tables, state, progress)
            await run(lambda connection: tables.finish(rows_of(connection)))
            await run(lambda connection: lock(rows_of(connection), f"write {self._options.name}"))
            state = await self._caught_up(run, tables, state)
            await run(lambda connection: write_state(rows_of(connection), self._options.name, state))
        await self._options.database.write(self._swept)
        if self._options.has_graph(state.vectors):
            # A purge stops this; the graph is then built with the next maintenance.
            with suppress(StorageBusy):
                state = await self.link(identity, unless=partial(self._options.is_linked, quiet=True))
        if progress:
            progress("index", state.total, state.total)
        return state

    async def compact(self, identity: str) -> PgvectorState:
        """Replace every table by a copy of what is alive. Graphs that are being built are stopped."""
        await self._options.database.write(stop_linking)
        async with self._options.database.lasting() as run:
            before: PgvectorState = await run(lambda connection: self._begun(connection, identity))
            if before.generation:
                before = await run(lambda connection: self._locked(connection, identity))
                before = await self._caught_up(run, self._options.tables(before), before)
                generation = secrets.randbits(_GENERATION_BITS) + 1
                state: PgvectorState = await run(partial(compact, self._options, before, generation))
        if not before.generation:
            return await self.build(identity)
        await self._options.database.write(self._swept)
        return state

    async def link(self, identity: str, *, unless: Unless) -> PgvectorState:
        """Build the HNSW graph of all vectors, unless another process has done so meanwhile.

        The graph is built on a copy, so that writers only wait for the swap.
        """
        async with self._options.database.lasting() as run:
            state: PgvectorState = await run(lambda connection: self._begun(connection, identity))
            if not state.generation or unless(state):
                return state
            await run(lambda connection: lock_shared(rows_of(connection), LINKING))
            before, after = (
                self._options.tables(state),
                self._options.tables(replace(state, graph=state.version)),
            )
            await run(lambda connection: after.copy_vectors(rows_of(connection), before))
            state = await run(partial(self._linked, before, after, identity))
        await self._options.database.write(self._swept)
        return state

    def _linked(self, before: Tables, after: Tables, identity: str, connection: Connection) -> PgvectorState:
        """Return the state with the graph, and with the vectors written while it was built."""
        cursor = rows_of(connection)
        state = self._locked(connection, identity)
        loose = after.follow_vectors(cursor, before)
        state = replace(state, graph=after.graph, loose=loose)
        write_state(cursor, self._options.name, state)
        return state

    def _prepared(self, connection: Connection) -> None:
        """Create the objects that all indexes of the database share."""
        cursor = rows_of(connection)
        lock(cursor, "extensions")
        if self._options.dimensions:
            require_vectors(cursor)
        make_states(cursor)

    def _begun(self, connection: Connection, identity: str) -> PgvectorState:
        """Wait for the build lock, and return the state."""
        cursor = rows_of(connection)
        cursor.execute(_SET_TIMEOUTS, (f"{self._options.idle_seconds}s",))
        lock(cursor, f"build {self._options.name}")
        return read_state(cursor, self._options.name, identity)

    def _locked(self, connection: Connection, identity: str) -> PgvectorState:
        """Wait for the write lock, and return the state."""
        cursor = rows_of(connection)
        lock(cursor, f"write {self._options.name}")
        return read_state(cursor, self._options.name, identity)

    async def _filled(
        self, run: Run, tables: Tables, state: PgvectorState, progress: Progress | None
    ) -> PgvectorState:
        """Write all chunks. Returns the state, and the sequence after which changes may be missing."""
        state = replace(state, applied=await self._reader.last_sequence())
        waiting: list[IndexedChunk] = []
        async for chunks in self._reader.scan():
            waiting += chunks
            if len(waiting) >= _CHUNKS_PER_TRANSACTION:
                state = await self._written(run, tables, state, waiting)
                waiting = []
                if progress:
                    progress("index", state.total, 0)
        return await self._written(run, tables, state, waiting)

    async def _written(
        self, run: Run, tables: Tables, state: PgvectorState, chunks: list[IndexedChunk]
    ) -> PgvectorState:
        rows = await asyncio.to_thread(self._drafting.prepared, chunks)
        written: PgvectorState = await run(
            partial(_written, tables, state, PgvectorDraft(state.applied, (), rows))
        )
        return written

    async def _caught_up(self, run: Run, tables: Tables, state: PgvectorState) -> PgvectorState:
        """Apply the changes made meanwhile. Raises NotFound if the collection was deleted."""
        while changes := await self._reader.changes_since(state.applied, limit=CHANGES):
            draft = await self._record_drafting.draft(changes)
            state = await run(partial(_written, tables, state, draft))
        await self._reader.last_sequence()
        return state

    def _swept(self, connection: Connection) -> None:
        """Drop all tables except those of the current state."""
        cursor = rows_of(connection)
        lock(cursor, f"write {self._options.name}")
        cursor.execute(f"SELECT generation, graph FROM {STATES} WHERE name = %s", (self._options.name,))
        if row := cursor.fetchone():
            generation, graph = row
            tables = self._options.tables(PgvectorState("", generation, graph=graph))
            drop_all_but(cursor, self._options.name, tables.names)


def stop_linking(connection: Connection) -> None:
    """Stop all builds of HNSW graphs, whose transactions would keep deleted rows in every table."""
    stop(rows_of(connection), LINKING)


def forget(connection: Connection, name: str) -> None:
    """Delete an index with all its tables. A running build is aborted."""
    cursor = rows_of(connection)
    stop(cursor, f"build {name}")
    lock(cursor, f"build {name}")
    lock(cursor, f"write {name}")
    make_states(cursor)
    cursor.execute(f"DELETE FROM {STATES} WHERE name = %s", (name,))
    drop_all_but(cursor, name, ())


def forget_unless_built(connection: Connection, name: str) -> None:
    """Delete an index as `forget` does, unless it is being built."""
    if is_free(rows_of(connection), f"build {name}"):
        forget(connection, name)


def _written(
    tables: Tables, state: PgvectorState, draft: PgvectorDraft, connection: Connection
) -> PgvectorState:
    cursor = rows_of(connection)
    after = write(cursor, tables, state, draft)
    merge(cursor, tables)
    return after
