"""The Milvus index: searches one version, applies changes, and is rebuilt beside the current version."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress

from conspectus.errors import IndexDamaged, IndexReplaced, LockLost, NotFound, StorageBusy
from conspectus.index import bm25
from conspectus.index.bm25 import Analyse, query_terms
from conspectus.index.changes import CHANGES, catch_up
from conspectus.index.milvus.connection import my_turn
from conspectus.index.milvus.search import Ask, MilvusLocation, MilvusReader, differences
from conspectus.index.milvus.state import FORMAT, MilvusState, Notes
from conspectus.index.milvus.term_statistics import Terms
from conspectus.index.milvus.writes import Building, MilvusWriter, forget, needs_building
from conspectus.model.index import Disagreement, IndexStatus, PutChunks
from conspectus.model.records import Change
from conspectus.ports import Candidates, Ids, Probe, Progress, Reader

_ATTEMPTS = 20
"""Number of times that a call is repeated on a newer version of the index."""
_BUILDS = 5
"""Number of times that a build is repeated after another process deleted it."""
_MAX_PAUSE_SECONDS = 0.5
_FLUSH_UNSEEN_FROM = 100_000
"""Rows of a new generation that Milvus Lite holds in memory: no query scans them yet."""


class MilvusIndex:
    """An index in Milvus. Any number of processes that share the records may have it open."""

    def __init__(self, location: MilvusLocation, reader: Reader, analyse: Analyse) -> None:
        self._location = location
        self._reader = reader
        self._analyse = analyse
        self._identity = identity_of(analyse, location)
        self._notes = Notes(location.server, location.name, self._identity)
        self._query_reader = MilvusReader(location, self._notes, reader)
        self._writer = self._new_writer()
        self._state = MilvusState(self._identity)

    @classmethod
    async def open(cls, location: MilvusLocation, reader: Reader, analyse: Analyse) -> "MilvusIndex":
        """Open the index; if there is none, it is empty at sequence 0.

        Raises:
            StorageBusy: Milvus does not answer, or its file is open in another process.
            StorageTooNew: a newer version wrote the index.
        """
        index = cls(location, reader, analyse)
        index._state = await index._notes.read()
        return index

    def applied_sequence(self) -> int:
        """Return the sequence up to which queries see the records."""
        return self._state.applied

    async def apply(self, changes: Sequence[Change], chunks: PutChunks | None = None) -> None:
        """Apply changes. Rebuilds the index if it is new, or if the mean length has changed too much."""
        if not changes:
            return
        for _ in range(_ATTEMPTS):
            # The generation may be deleted while this writer was paused and lost its lock.
            with suppress(IndexReplaced, LockLost):
                self._state = await self._apply(changes)
                return
        raise StorageBusy("the index was rebuilt while it was changed; try again")

    async def search(self, probe: Probe) -> Candidates:
        """Return the best hits of each retriever."""
        return await self._query(probe, lambda query: query.search(probe.limit))

    async def score(self, ids: Ids, probe: Probe) -> Candidates:
        """Return the exact scores of these chunks."""
        return await self._query(probe, lambda query: query.score(ids))

    async def check(self) -> Sequence[Disagreement]:
        """Compare every row with the records."""
        for _ in range(_ATTEMPTS):
            self._state = state = await self._notes.read()
            if not state.generation:
                return []
            with suppress(IndexReplaced):
                where = await self._notes.visible(state)
                disagreements = await differences(self._location.view(state), where, self._reader)
                if await self._query_reader.is_current(state):
                    return disagreements
        raise StorageBusy("the index changed while it was checked; try again")

    async def flush(self, *, least: int = 1, merge: bool = False) -> None:
        """Load what other processes wrote, and build an index that was never built."""
        self._state = await self._notes.read()
        if least == 0 and needs_building(self._state):
            self._state = await self._build(only_if_needed=True)

    async def rebuild(self, progress: Progress | None = None) -> None:
        """Rebuild everything in new collections, which then replace the current ones."""
        self._state = await self._build(progress)

    async def purge(self) -> None:
        """Drop every collection that ever held a removed chunk. Servers delete dropped files later."""
        self._state = await self._notes.read()
        if self._state.replaced or self._state.void:
            self._state = await self._build()

    async def status(self) -> IndexStatus:
        """Return counts. Milvus does not report the size of a collection."""
        self._state = state = await self._notes.read()
        return IndexStatus(
            chunks=state.total,
            vectors=state.vectors,
            bytes=0,
            segments=int(bool(state.generation)),
            applied=state.applied,
            details={"server": self._location.server.address, "collection": self._location.name},
        )

    async def close(self) -> None:
        """Do nothing: all indexes of an engine share the connection."""

    def _new_writer(self) -> MilvusWriter:
        location = self._location
        return MilvusWriter(
            self._notes,
            Terms(self._notes),
            self._reader,
            self._analyse,
            dimensions=location.dimensions,
            bm25=location.bm25,
        )

    async def _build(self, progress: Progress | None = None, *, only_if_needed: bool = False) -> MilvusState:
        """Build; build again if another process got the lock and deleted the unfinished build."""
        for _ in range(_BUILDS):
            writer = self._new_writer()
            writer.flush_from = _FLUSH_UNSEEN_FROM
            building = Building(
                self._location, self._notes, writer, reader=self._reader, analyse=self._analyse
            )
            try:
                return await building.build(self._identity, progress, only_if_needed=only_if_needed)
            except NotFound:
                # The collection of the index may have been deleted, possibly before this process continued.
                await forget(self._location)
                raise
            except (IndexReplaced, LockLost):
                await asyncio.sleep(random.uniform(0.0, _MAX_PAUSE_SECONDS))
        raise StorageBusy("other processes keep rebuilding this index; try again")

    async def _apply(self, changes: Sequence[Change]) -> MilvusState:
        if needs_building(await self._notes.read()):
            self._state = await self._build(only_if_needed=True)
        async with my_turn(self._location.turn, "write"):
            state = await self._notes.read()
            return state if state.applied >= changes[-1].sequence else await self._advance(state, changes)

    async def _advance(self, state: MilvusState, changes: Sequence[Change]) -> MilvusState:
        """Return the state after these changes, and after earlier ones that it lacks."""
        applied_before, target = self._state.applied, changes[-1].sequence
        while state.applied < target:
            draft = await self._writer.begin(state)
            is_next = draft.applied == applied_before < changes[0].sequence
            pending = changes if is_next else await self._reader.changes_since(draft.applied, limit=CHANGES)
            if not pending:
                return draft.before
            await self._writer.add_changes(draft, pending)
            state = await self._writer.commit(draft)
        return state

    async def _query(self, probe: Probe, ask: Ask) -> Candidates:
        """Query the cached version; if it is no longer current, query the current one."""
        terms = query_terms(probe, self._analyse, self._location.dimensions)
        promised = self._state.applied
        for _ in range(_ATTEMPTS):
            state = self._state
            answer = await self._query_reader.answer(state, probe, terms, ask)
            if answer is not None:
                return answer
            self._state = await self._notes.read()
            if self._state == state:
                raise IndexDamaged(self._location.name, "a part of it is missing in Milvus")
            await catch_up(self, self._reader, promised)
        raise StorageBusy("the index changed while it was searched; try again")


def identity_of(analyse: Analyse, location: MilvusLocation) -> str:
    """Return the identity of the rows: format and configuration."""
    return f"{FORMAT} {bm25.identity_of(analyse, location.dimensions, location.bm25)}"
