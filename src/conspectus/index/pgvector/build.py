"""Building a generation: every chunk of the records in new tables, while the old ones answer.

It is one transaction. Killed at any moment it leaves nothing behind, and no one ever sees half of it.
The server ends one that does nothing for too long, as its process stands still: others wait for its locks.
"""

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from sqlalchemy import Connection

from conspectus.index.pgvector.database import Run, require_vectors, rows_of
from conspectus.index.pgvector.drafts import CHANGES, Drafting, PgvectorDrafting
from conspectus.index.pgvector.options import PgvectorOptions
from conspectus.index.pgvector.state import (
    STATES,
    PgvectorState,
    is_free,
    lock,
    make_states,
    read_state,
    stop,
    write_state,
)
from conspectus.index.pgvector.tables import Tables, drop_all_but
from conspectus.index.pgvector.writes import PgvectorDraft, merge, write
from conspectus.model.index import IndexedChunk
from conspectus.ports import Progress, Reader

Unless: TypeAlias = Callable[[PgvectorState], bool]

_AT_ONCE = 10_000
_GENERATION_BITS = 40
_PATIENT = (
    "SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true),"
    " set_config('idle_in_transaction_session_timeout', %s, true)"
)


class Building:
    """Builds generations, one at a time among all processes."""

    def __init__(self, place: PgvectorOptions, drafting: Drafting, reader: Reader) -> None:
        self._place = place
        self._drafting = drafting
        self._taking = PgvectorDrafting(reader, drafting)
        self._reader = reader

    async def build(
        self, identity: str, progress: Progress | None = None, *, unless: Unless | None = None
    ) -> PgvectorState:
        """Build everything anew, unless what is there by then, as others build too, is as it should be."""
        await self._place.database.write(self._prepared)
        async with self._place.database.lasting() as run:
            before: PgvectorState = await run(lambda connection: self._begun(connection, identity))
            if unless is not None and unless(before):
                return before
            state = PgvectorState(identity, secrets.randbits(_GENERATION_BITS) + 1)
            tables = self._place.tables(state)
            await run(lambda connection: tables.create(rows_of(connection)))
            state = await self._filled(run, tables, state, progress)
            if self._place.has_graph(state.vectors):
                state = replace(state, graph=state.version, loose=0)
            await run(partial(_finished, tables, self._place.tables(state)))
            await run(lambda connection: lock(rows_of(connection), f"write {self._place.name}"))
            state = await self._caught_up(run, self._place.tables(state), state)
            await run(lambda connection: write_state(rows_of(connection), self._place.name, state))
        await self._place.database.write(self._swept)
        if progress:
            progress("index", state.total, state.total)
        return state

    async def link(self, identity: str, *, unless: Unless) -> PgvectorState:
        """Link all vectors to a graph, unless what is there by then is as it should be.

        They are copied for it, so that nobody who writes meanwhile waits, but for the last moment.
        """
        async with self._place.database.lasting() as run:
            state: PgvectorState = await run(lambda connection: self._begun(connection, identity))
            if not state.generation or unless(state):
                return state
            before, after = self._place.tables(state), self._place.tables(replace(state, graph=state.version))
            await run(lambda connection: after.copy_vectors(rows_of(connection), before))
            state = await run(partial(self._linked, before, after, identity))
        await self._place.database.write(self._swept)
        return state

    def _linked(self, before: Tables, after: Tables, identity: str, connection: Connection) -> PgvectorState:
        """The state with the graph, and with what was written while it was made."""
        cursor = rows_of(connection)
        lock(cursor, f"write {self._place.name}")
        state = read_state(cursor, self._place.name, identity)
        loose = after.follow_vectors(cursor, before)
        state = replace(state, graph=after.graph, loose=loose)
        write_state(cursor, self._place.name, state)
        return state

    def _prepared(self, connection: Connection) -> None:
        """What all indexes of the database share."""
        cursor = rows_of(connection)
        lock(cursor, "extensions")
        if self._place.dimensions:
            require_vectors(cursor)
        make_states(cursor)

    def _begun(self, connection: Connection, identity: str) -> PgvectorState:
        """The state once no one else builds."""
        cursor = rows_of(connection)
        cursor.execute(_PATIENT, (f"{self._place.idle_seconds}s",))
        lock(cursor, f"build {self._place.name}")
        return read_state(cursor, self._place.name, identity)

    async def _filled(
        self, run: Run, tables: Tables, state: PgvectorState, progress: Progress | None
    ) -> PgvectorState:
        """All chunks of the records, and the sequence from which changes may be missing."""
        state = replace(state, applied=await self._reader.last_sequence())
        waiting: list[IndexedChunk] = []
        async for chunks in self._reader.scan():
            waiting += chunks
            if len(waiting) >= _AT_ONCE:
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
        """With what changed meanwhile. Raises NotFound if the collection was deleted."""
        while changes := await self._reader.changes_since(state.applied, limit=CHANGES):
            draft = await self._taking.draft(changes)
            state = await run(partial(_written, tables, state, draft))
        await self._reader.last_sequence()
        return state

    def _swept(self, connection: Connection) -> None:
        """Drop all tables but those of the current state."""
        cursor = rows_of(connection)
        lock(cursor, f"write {self._place.name}")
        cursor.execute(f"SELECT generation, graph FROM {STATES} WHERE name = %s", (self._place.name,))
        if found := cursor.fetchone():
            generation, graph = found
            tables = self._place.tables(PgvectorState("", generation, graph=graph))
            drop_all_but(cursor, self._place.name, tables.names)


def forget(connection: Connection, name: str) -> None:
    """Delete an index with all its tables; who builds it at that moment is stopped."""
    cursor = rows_of(connection)
    stop(cursor, f"build {name}")
    lock(cursor, f"build {name}")
    lock(cursor, f"write {name}")
    make_states(cursor)
    cursor.execute(f"DELETE FROM {STATES} WHERE name = %s", (name,))
    drop_all_but(cursor, name, ())


def forget_unless_built(connection: Connection, name: str) -> None:
    """Delete an index as `forget` does, unless somebody builds it at this moment."""
    if is_free(rows_of(connection), f"build {name}"):
        forget(connection, name)


def _written(
    tables: Tables, state: PgvectorState, draft: PgvectorDraft, connection: Connection
) -> PgvectorState:
    cursor = rows_of(connection)
    after = write(cursor, tables, state, draft)
    merge(cursor, tables)
    return after


def _finished(filled: Tables, tables: Tables, connection: Connection) -> None:
    cursor = rows_of(connection)
    if filled.vectors != tables.vectors:
        cursor.execute(f"ALTER TABLE {filled.vectors} RENAME TO {tables.vectors}")
    tables.finish(cursor)
