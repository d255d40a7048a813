"""Builds of the pgvector index: new generations, compaction and graphs."""

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from sqlalchemy import Connection

from conspectus.errors import StorageBusy
from conspectus.index.changes import CHANGES
from conspectus.index.pgvector.compaction import compact
from conspectus.index.pgvector.database import Run, require_vectors, rows_of
from conspectus.index.pgvector.drafts import Drafting, PgvectorDraft, PgvectorDrafting
from conspectus.index.pgvector.options import PgvectorOptions
from conspectus.index.pgvector.state import (
    STATES,
    PgvectorState,
    is_free,
    lock,
    lock_shared,
    make_states,
    read_state,
    stop,
    write_state,
)
from conspectus.index.pgvector.tables import Tables, drop_all_but
from conspectus.index.pgvector.writes import merge, write
from conspectus.model.index import IndexedChunk
from conspectus.ports import Progress, Reader

Unless: TypeAlias = Callable[[PgvectorState], bool]
"""Returns whether a state needs no build."""

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
        await self._options.database.write(
            partial(create_shared_objects, has_vectors=bool(self._options.dimensions))
        )
        async with self._options.database.open_long_transaction() as run:
            before: PgvectorState = await run(lambda connection: self._begin(connection, identity))
            if unless is not None and unless(before):
                return before
            state = PgvectorState(identity, secrets.randbits(_GENERATION_BITS) + 1)
            tables = self._options.tables(state)
            await run(lambda connection: tables.create(rows_of(connection)))
            state = await self._fill(run, tables, state, progress)
            await run(lambda connection: tables.finish(rows_of(connection)))
            await run(lambda connection: lock(rows_of(connection), f"write {self._options.name}"))
            state = await self._catch_up(run, tables, state)
            await run(lambda connection: write_state(rows_of(connection), self._options.name, state))
        await self._options.database.write(self._drop_old_tables)
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
        async with self._options.database.open_long_transaction() as run:
            before: PgvectorState = await run(lambda connection: self._begin(connection, identity))
            if before.generation:
                before = await run(lambda connection: self._lock_state(connection, identity))
                before = await self._catch_up(run, self._options.tables(before), before)
                generation = secrets.randbits(_GENERATION_BITS) + 1
                state: PgvectorState = await run(partial(compact, self._options, before, generation))
        if not before.generation:
            return await self.build(identity)
        await self._options.database.write(self._drop_old_tables)
        return state

    async def link(self, identity: str, *, unless: Unless) -> PgvectorState:
        """Build the HNSW graph of all vectors, unless another process has done so meanwhile.

        The graph is built on a copy, so that writers only wait for the swap.
        """
        async with self._options.database.open_long_transaction() as run:
            state: PgvectorState = await run(lambda connection: self._begin(connection, identity))
            if not state.generation or unless(state):
                return state
            await run(lambda connection: lock_shared(rows_of(connection), LINKING))
            before, after = (
                self._options.tables(state),
                self._options.tables(replace(state, graph=state.version)),
            )
            await run(lambda connection: after.copy_vectors(rows_of(connection), before))
            state = await run(partial(self._link_vectors, before, after, identity))
        await self._options.database.write(self._drop_old_tables)
        return state

    def _link_vectors(
        self, before: Tables, after: Tables, identity: str, connection: Connection
    ) -> PgvectorState:
        """Return the state with the graph, and with the vectors written while it was built."""
        cursor = rows_of(connection)
        state = self._lock_state(connection, identity)
        loose = after.follow_vectors(cursor, before)
        state = replace(state, graph=after.graph, loose=loose)
        write_state(cursor, self._options.name, state)
        return state

    def _begin(self, connection: Connection, identity: str) -> PgvectorState:
        """Wait for the build lock, and return the state."""
        cursor = rows_of(connection)
        cursor.execute(_SET_TIMEOUTS, (f"{self._options.idle_seconds}s",))
        lock(cursor, f"build {self._options.name}")
        return read_state(cursor, self._options.name, identity)

    def _lock_state(self, connection: Connection, identity: str) -> PgvectorState:
        """Wait for the write lock, and return the state."""
        cursor = rows_of(connection)
        lock(cursor, f"write {self._options.name}")
        return read_state(cursor, self._options.name, identity)

    async def _fill(
        self, run: Run, tables: Tables, state: PgvectorState, progress: Progress | None
    ) -> PgvectorState:
        """Write all chunks. Returns the state, and the sequence after which changes may be missing."""
        state = replace(state, applied=await self._reader.last_sequence())
        waiting: list[IndexedChunk] = []
        async for chunks in self._reader.scan():
            waiting += chunks
            if len(waiting) >= _CHUNKS_PER_TRANSACTION:
                state = await self._write_chunks(run, tables, state, waiting)
                waiting = []
                if progress:
                    progress("index", state.total, 0)
        return await self._write_chunks(run, tables, state, waiting)

    async def _write_chunks(
        self, run: Run, tables: Tables, state: PgvectorState, chunks: list[IndexedChunk]
    ) -> PgvectorState:
        rows = await asyncio.to_thread(self._drafting.prepare, chunks)
        written: PgvectorState = await run(
            partial(_write_draft, tables, state, PgvectorDraft(state.applied, (), rows))
        )
        return written

    async def _catch_up(self, run: Run, tables: Tables, state: PgvectorState) -> PgvectorState:
        """Apply the changes made meanwhile. Raises NotFound if the collection was deleted."""
        while changes := await self._reader.changes_since(state.applied, limit=CHANGES):
            draft = await self._record_drafting.draft(changes)
            state = await run(partial(_write_draft, tables, state, draft))
        await self._reader.last_sequence()
        return state

    def _drop_old_tables(self, connection: Connection) -> None:
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


def create_shared_objects(connection: Connection, *, has_vectors: bool) -> None:
    """Create what all indexes of the database share. Raises ExtensionMissing."""
    cursor = rows_of(connection)
    lock(cursor, "extensions")
    if has_vectors:
        require_vectors(cursor)
    make_states(cursor)


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


def _write_draft(
    tables: Tables, state: PgvectorState, draft: PgvectorDraft, connection: Connection
) -> PgvectorState:
    cursor = rows_of(connection)
    after = write(cursor, tables, state, draft)
    merge(cursor, tables)
    return after
