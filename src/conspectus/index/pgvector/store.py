"""The pgvector index of one collection: reads, writes, maintenance and consistency."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import psycopg
from psycopg import errors
from sqlalchemy import Connection

from conspectus.errors import ConspectusError, IndexReplaced, StorageBusy
from conspectus.index.bm25 import Analyse, identity_of, query_terms
from conspectus.index.changes import CHANGES, IndexedRows, Range, catch_up, differences, put_ranges
from conspectus.index.filter_terms import compute_signed_checksum, encode_text
from conspectus.index.pgvector.building import Building
from conspectus.index.pgvector.database import Result, Rows, rows_of
from conspectus.index.pgvector.drafts import Drafting, PgvectorDraft, PgvectorDrafting
from conspectus.index.pgvector.inserts import FEW
from conspectus.index.pgvector.options import PgvectorOptions
from conspectus.index.pgvector.postings import PgvectorPosting, Postings
from conspectus.index.pgvector.row_filter import Allowed, Listings
from conspectus.index.pgvector.search import PgvectorQuery, Words
from conspectus.index.pgvector.snapshot import Views, empty_view
from conspectus.index.pgvector.state import PgvectorState, ask_free_state, lock, read_state, write_state
from conspectus.index.pgvector.writes import MERGED_FROM, merge, write
from conspectus.model.filter import In
from conspectus.model.index import Disagreement, IndexedChunk, IndexStatus, PutChunks
from conspectus.model.records import Change
from conspectus.ports import Candidates, Ids, Probe, Progress, Reader

_ATTEMPTS = 20
_TOO_FAST = "the index was rebuilt while it was searched; try again"
_Ask: TypeAlias = Callable[[PgvectorQuery], Candidates]


class PgvectorIndex:
    """An index in the database of the records. Any number of processes may have it open."""

    def __init__(self, options: PgvectorOptions, reader: Reader, analyse: Analyse) -> None:
        self._options = options
        self._reader = reader
        self._analyse = analyse
        self._identity = identity_of(analyse, options.dimensions, options.bm25)
        drafting = Drafting(analyse, options.dimensions)
        self._drafting = PgvectorDrafting(reader, drafting)
        self._building = Building(options, drafting, reader)
        self._maintenance = PgvectorMaintenance(options, self._building, self._identity)
        self._postings = Postings()
        self._views = Views()
        self._listings = Listings(options.max_listed)
        self._sources = Listings(options.bm25.max_source_chunks, exactly=True)
        self._state = PgvectorState(self._identity)
        self._merged = 0

    @classmethod
    async def open(cls, options: PgvectorOptions, reader: Reader, analyse: Analyse) -> "PgvectorIndex":
        """Open the index; if there is none, it is empty at sequence 0.

        Raises:
            StorageBusy: the database does not answer.
            StorageTooNew: a newer version wrote the index.
        """
        index = cls(options, reader, analyse)
        await index._read_state()
        return index

    def applied_sequence(self) -> int:
        """Return the sequence up to which queries see the records."""
        return self._state.applied

    async def apply(self, changes: Sequence[Change], chunks: PutChunks | None = None) -> None:
        """Apply changes. The first ones build the index."""
        if not changes:
            return
        applied_before, target = self._state.applied, changes[-1].sequence
        for _ in range(_ATTEMPTS):
            state = await self._read_state()
            if not state.generation:
                state = self._state = await self._building.build(self._identity, unless=_is_there)
            if state.applied >= target:
                await self._tidy()
                return
            base, pending = applied_before, changes
            if state.applied < applied_before:
                base = state.applied
                pending = await self._reader.changes_since(base, limit=CHANGES)
            if not pending:
                return
            draft = await self._drafting.draft(pending)
            commit = partial(_commit_and_merge, self._options, state, draft=draft, base=base)
            self._state = await self._options.database.write(commit)
            self._maintenance.note_write(len(draft.rows))
            self._maintenance.start_if_due(self._state)
            if self._state.applied >= target:
                return
        raise StorageBusy("the index changed while it was written; try again")

    async def search(self, probe: Probe) -> Candidates:
        """Return the best hits of each retriever."""

        return await self._query(probe, lambda query: query.search(probe.vector, probe.limit))

    async def score(self, ids: Ids, probe: Probe) -> Candidates:
        """Return the exact scores of these chunks."""
        return await self._query(probe, lambda query: query.score(ids, probe.vector))

    async def check(self) -> Sequence[Disagreement]:
        """Compare every row with the records."""
        stored = partial(_read_stored, options=self._options, identity=self._identity)
        self._state, rows = await self._read(stored)
        return await differences(rows, self._reader, compute_signed_checksum)

    async def flush(self, *, least: int = 1, merge: bool = False) -> None:
        """Load what other processes wrote, and build an index that was never built."""
        state = await self._read_state()
        if least == 0 and not state.generation:
            self._state = await self._building.build(self._identity, unless=_is_there)

    async def rebuild(self, progress: Progress | None = None) -> None:
        """Rebuild everything in new tables, which then replace the old ones."""
        self._state = await self._building.build(self._identity, progress)

    async def purge(self) -> None:
        """Replace every table, because aborted writes may have left chunks that no state counts."""
        self._state = await self._building.compact(self._identity)

    async def status(self) -> IndexStatus:
        """Return sizes and counts."""
        return await self._read(self._status)

    async def close(self) -> None:
        """Stop a running build. The connections belong to the records."""
        await self._maintenance.close()

    async def _read_state(self) -> PgvectorState:
        """Return the current state."""
        self._state = await self._options.database.read(
            lambda connection: read_state(rows_of(connection), self._options.name, self._identity)
        )
        return self._state

    async def _tidy(self) -> None:
        """Start maintenance that is due."""
        self._maintenance.start_if_due(self._state)
        if (due := self._state.version // MERGED_FROM) > self._merged:
            self._merged = due
            await self._options.database.write(partial(_merge, self._options, self._state))

    def _status(self, connection: Connection) -> IndexStatus:
        cursor = rows_of(connection)
        self._state = state = read_state(cursor, self._options.name, self._identity)
        size, batches, start = 0, 0, ""
        if state.generation:
            tables = self._options.tables(state)
            start = tables.start
            cursor.execute(
                "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
                " WHERE relkind = 'r' AND starts_with(relname, %s)",
                (f"{start}_",),
            )
            size = (cursor.fetchone() or (0,))[0]
            batches = (cursor.execute(f"SELECT count(*) FROM {tables.batches}").fetchone() or (0,))[0]
        details = {"tables": start, "graph": "yes" if state.graph else "no", "loose": str(state.loose)}
        details |= {"building": "yes"} if self._maintenance.runs else {}
        details |= {"failure": self._maintenance.failure} if self._maintenance.failure else {}
        return IndexStatus(state.total, state.vectors, size, batches, state.applied, details)

    async def _query(self, probe: Probe, ask: _Ask) -> Candidates:
        """Query the current state of the database, which is never older than what a write has promised."""
        terms = query_terms(probe, self._analyse, self._options.dimensions)
        promised = self._state.applied
        for _ in range(_ATTEMPTS):
            answer = await self._read(partial(self._answer, probe, terms, ask))
            if self._state.applied >= promised:
                self._maintenance.start_if_due(self._state)
                return answer
            self._options.database.renew()
            await catch_up(self, self._reader, promised)
        raise StorageBusy(_TOO_FAST)

    def _answer(
        self, probe: Probe, terms: Mapping[str, int], ask: _Ask, connection: Connection
    ) -> Candidates:
        cursor = rows_of(connection)
        self._state = state = read_state(cursor, self._options.name, self._identity)
        tables = self._options.tables(state)
        view, postings = empty_view(state), dict[bytes, PgvectorPosting]()
        if state.generation:
            view = self._views.of(cursor, tables, state)
            postings = self._postings.of(cursor, tables, [encode_text(term) for term in terms], state.rows)
        words = Words.of(view, self._options.bm25, terms, postings)
        if probe.sources:
            named = Allowed(cursor, tables, view, In("source", probe.sources), listings=self._sources)
            words = words.with_sources(named.find_few() if state.generation else np.zeros(0, np.int64))
        allowed = Allowed(cursor, tables, view, probe.filter, listings=self._listings)
        query = PgvectorQuery(cursor, tables, words, allowed)
        return ask(query) if state.generation else query.score(np.zeros(0, np.int64), None)

    async def _read(self, work: Callable[[Connection], Result]) -> Result:
        """Read the tables of a state. If they are dropped meanwhile, read those of a newer state."""
        for _ in range(_ATTEMPTS):
            with suppress(IndexReplaced):
                return await self._options.database.read(partial(_run_in_one_state, work))
        raise StorageBusy(_TOO_FAST)


def _run_in_one_state(work: Callable[[Connection], Result], connection: Connection) -> Result:
    try:
        return work(connection)
    except errors.UndefinedTable as fault:
        raise IndexReplaced(str(fault)) from fault


def _commit_draft(
    options: PgvectorOptions,
    before: PgvectorState,
    connection: Connection,
    *,
    draft: PgvectorDraft,
    base: int,
) -> PgvectorState:
    """Return the state with a draft of all changes after `base`; without the draft if it is out of date."""
    cursor = rows_of(connection)
    lock(cursor, f"write {options.name}")
    state = read_state(cursor, options.name, before.identity)
    if state.generation != before.generation or not base <= state.applied < draft.applied:
        return state
    return write_draft(cursor, options, state, draft)


def write_draft(
    cursor: Rows, options: PgvectorOptions, state: PgvectorState, draft: PgvectorDraft
) -> PgvectorState:
    """Return the state with a draft that continues it. The caller has to exclude other writers."""
    state = write(cursor, options.tables(state), state, draft)
    write_state(cursor, options.name, state)
    return state


def _commit_and_merge(
    options: PgvectorOptions,
    before: PgvectorState,
    connection: Connection,
    *,
    draft: PgvectorDraft,
    base: int,
) -> PgvectorState:
    state = _commit_draft(options, before, connection, draft=draft, base=base)
    _merge(options, state, connection)
    return state


def _merge(options: PgvectorOptions, state: PgvectorState, connection: Connection) -> None:
    cursor = rows_of(connection)
    lock(cursor, f"write {options.name}")
    if state.generation == read_state(cursor, options.name, state.identity).generation > 0:
        merge(cursor, options.tables(state))


def _is_there(state: PgvectorState) -> bool:
    return state.generation > 0


def _read_stored(
    connection: Connection, options: PgvectorOptions, identity: str
) -> tuple[PgvectorState, IndexedRows]:
    """Read the rows to compare, in one snapshot."""
    cursor = rows_of(connection)
    state = read_state(cursor, options.name, identity)
    if not state.generation:
        nothing = np.zeros(0, np.int64)
        return state, IndexedRows(state.applied, nothing, nothing)
    tables = options.tables(state)
    joined, is_sound = "", "true"
    if tables.dimensions:
        joined = f"LEFT JOIN {tables.vectors} v ON v.row = r.row"
        is_sound = "(r.vector IS NULL) = (v.row IS NULL)"
    cursor.execute(
        "SELECT coalesce(string_agg(int8send(r.chunk) || int8send(r.checksum) ||"
        f" int8send(({is_sound})::integer::bigint), '' ORDER BY r.chunk), '') FROM {tables.rows} r {joined}"
    )
    row = cursor.fetchone()
    numbers = np.frombuffer(row[0] if row else b"", ">i8").astype(np.int64).reshape(-1, 3)
    chunks, checksums, sound = numbers.T
    damaged = frozenset(chunks[sound == 0].tolist())
    return state, IndexedRows(state.applied, chunks, checksums, damaged)


MANY_ROWS = 500
"""After a write of this many rows, more writes are likely."""
QUIET_SECONDS = 5.0
"""Seconds after such a write until writes are considered to be over."""
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 60.0, 3600.0


class PgvectorMaintenance:
    """Runs at most one maintenance task in this process. `Building` excludes other processes."""

    def __init__(self, options: PgvectorOptions, building: Building, identity: str) -> None:
        self._options = options
        self._building = building
        self._identity = identity
        self._task: asyncio.Task[None] | None = None
        self._quiet_from = 0.0
        self._not_before = 0.0
        self._pause = _FIRST_PAUSE_SECONDS
        self.failure = ""

    @property
    def runs(self) -> bool:
        """Whether a task is running."""
        return self._task is not None and not self._task.done()

    def note_write(self, rows: int) -> None:
        """Record a write."""
        if rows >= MANY_ROWS:
            self._quiet_from = time.monotonic() + QUIET_SECONDS

    def start_if_due(self, state: PgvectorState) -> None:
        """Start the task that a state needs, if any."""
        now = time.monotonic()
        is_linked = partial(self._options.is_linked, quiet=now >= self._quiet_from)
        if not state.generation or self.runs or now < self._not_before:
            return
        if not self._options.is_sound(state):
            work = self._building.build(self._identity, unless=self._options.is_sound)
        elif not is_linked(state):
            work = self._building.link(self._identity, unless=is_linked)
        else:
            return
        self._task = asyncio.create_task(self._finish_work(work))

    async def close(self) -> None:
        """Cancel the task; its transaction is rolled back."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _finish_work(self, work: Coroutine[Any, Any, PgvectorState]) -> None:
        try:
            await work
        except ConspectusError as fault:
            self.failure, self._not_before = str(fault), time.monotonic() + self._pause
            self._pause = min(2 * self._pause, _MAX_PAUSE_SECONDS)
        else:
            self.failure, self._pause = "", _FIRST_PAUSE_SECONDS


class TransactionalIndex:
    """An index within the transaction that writes the records."""

    def __init__(self, options: PgvectorOptions, analyse: Analyse) -> None:
        self._options = options
        self._identity = identity_of(analyse, options.dimensions, options.bm25)
        self._drafting = Drafting(analyse, options.dimensions)
        self._is_there = False

    def ask(self, connection: Connection) -> Callable[[], PgvectorState | None]:
        """Ask for the state of the index, locked until the transaction ends; None if it is not built.

        The answer can be read when the open pipeline ends, so that many indexes are asked in one round trip.
        """
        free_state = ask_free_state(
            rows_of(connection), self._options.name, self._identity, is_there=self._is_there
        )

        def state() -> PgvectorState | None:
            current = free_state()
            self._is_there = self._is_there or (current is not None and current.generation > 0)
            return current if current is not None and current.generation else None

        return state

    def chunks_to_read(self, changes: Sequence[Change]) -> list[Range]:
        """Return the ids of the chunks to read for these changes."""
        return put_ranges(changes)

    def prepare_write(
        self,
        state: PgvectorState,
        changes: Sequence[Change],
        chunks: Sequence[IndexedChunk],
        *,
        fresh: bool = False,
    ) -> "IndexWrite":
        """Prepare changes after a state with the chunks that they added; `fresh` ones are in no index."""
        return IndexWrite(self._options, state, self._drafting.draft(changes, chunks, fresh=fresh))


class IndexWrite(NamedTuple):
    """A draft that continues the state of an index."""

    options: PgvectorOptions
    state: PgvectorState
    draft: PgvectorDraft


def apply_writes(connection: Connection, prepared: Sequence[IndexWrite]) -> list[bool]:
    """Write drafts to their indexes. Returns for each whether nothing is left to do.

    If all drafts together fail, each is written alone. A draft that fails changes nothing, and the records
    are written nevertheless: a later update of the index meets the error again and reports it.
    """
    cursor = rows_of(connection)
    few = all(len(index_write.draft.rows) <= FEW for index_write in prepared)
    try:
        with cursor.connection.pipeline() if few else nullcontext():
            cursor.execute("SAVEPOINT index_update")
            states = [write_draft(cursor, *index_write) for index_write in prepared]
            cursor.execute("RELEASE SAVEPOINT index_update")
    except psycopg.Error:
        cursor.execute("ROLLBACK TO SAVEPOINT index_update")
        if len(prepared) == 1:
            return [False]
        return [apply_writes(connection, [index_write])[0] for index_write in prepared]
    return [state.version % MERGED_FROM > 0 for state in states]
