"""Writes of the Milvus index: changes in order, and bulk builds."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import field, replace
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass
from conspectus.errors import IndexDamaged
from conspectus.index.bm25 import Analyse, Bm25, occurrences
from conspectus.index.changes import CHANGES, Range, find_obsolete_ranges, put_ranges, read, with_vector_of
from conspectus.index.milvus.connection import MAX_BYTES, MilvusServer, Row, my_turn
from conspectus.index.milvus.distinct_values import DistinctValues
from conspectus.index.milvus.filter_expressions import either, match_keys
from conspectus.index.milvus.rows import (
    NOTES,
    ROWS,
    Prepared,
    Preparing,
    Weights,
    collection_name,
    key_of,
    notes_layout,
    rows_layout,
    source_number,
)
from conspectus.index.milvus.search import MilvusLocation
from conspectus.index.milvus.state import (
    MilvusState,
    Notes,
    dead_keys,
    version_after,
    versions,
)
from conspectus.index.milvus.term_statistics import Block, Terms
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Change
from conspectus.ports import Progress, Reader

ATTEMPTS = 10
MAX_STEP = 2_000
"""Maximum number of ids per lookup or deletion."""
_RANGES_AT_ONCE = 200
_ROWS_PER_REQUEST = 1_000
FLUSH_FROM = 500
"""Maximum number of new rows that Milvus Lite holds in memory, where it scans them."""
_NO_STATISTICS = "the statistics of the terms are missing"
_SUPERSEDED = ("key", "chunk", "tenant", "length", "terms", "has_vector", "in_thread", "odd")


@dataclass(slots=True)
class _Added:
    """The contribution of a new row to the statistics."""

    terms: NDArray[np.uint64]
    length: int
    vector: bool
    thread: bool
    odd: bool


@dataclass(slots=True)
class MilvusDraft:
    """A version that is being written: its base state, and what it adds."""

    before: MilvusState
    weights: Weights
    applied: int
    version: int
    void: tuple[int, ...] = ()
    added: dict[int, _Added] = field(default_factory=dict)
    touched: list[Range] = field(default_factory=list)
    part: int = 0

    def note(self, row: Prepared) -> None:
        """Add a row to the statistics."""
        columns = row.columns
        self.added[columns["chunk"]] = _Added(
            row.terms, row.length, columns["has_vector"], columns["in_thread"], columns["odd"]
        )


class MilvusWriter:
    """Writes versions of one index, one at a time. The caller holds the lock."""

    def __init__(
        self, notes: Notes, terms: Terms, reader: Reader, analyse: Analyse, *, dimensions: int, bm25: Bm25
    ) -> None:
        self.flush_from = FLUSH_FROM
        self._notes = notes
        self._server: MilvusServer = notes.server
        self._terms = terms
        self._distinct = DistinctValues(notes)
        self._reader = reader
        self._analyse = analyse
        self._dimensions = dimensions
        self._bm25 = bm25
        self._waiting = 0
        self._last = MilvusState("")

    def rows(self, state: MilvusState) -> str:
        """Return the name of the collection of rows."""
        return collection_name(self._notes.name, state.generation, ROWS)

    async def create(self, state: MilvusState) -> None:
        """Create the collections of a generation."""
        layout = rows_layout(self._dimensions, lite=state.facts_as_text)
        await self._server.create(self._notes.collection(state.generation), *notes_layout())
        await self._server.create(self.rows(state), *layout)

    def draft(self, before: MilvusState) -> MilvusDraft:
        """Start the next version of a generation that is not published yet."""
        weights = Weights(self._bm25, before.average)
        return MilvusDraft(before, weights, before.applied, version_after(before.version))

    async def begin(self, state: MilvusState) -> MilvusDraft:
        """Announce the next version, and delete what the last one replaced."""
        for _ in range(ATTEMPTS):
            attempt = await self._notes.begin(state)
            before = attempt.before
            if before.dead:
                swept = await self.sweep(before)
                if swept is None:
                    state = before
                    continue
                before = swept
            if attempt.void or not before.same_rows(self._last):
                self._distinct.forget_written()
            weights = Weights(self._bm25, before.average)
            return MilvusDraft(before, weights, before.applied, attempt.version, attempt.void)
        raise IndexDamaged(self._notes.name, "the list of replaced rows is missing")

    async def sweep(self, state: MilvusState) -> MilvusState | None:
        """Delete the rows that a state has replaced; None if another writer has done so."""
        dead = await self._notes.dead(state)
        if dead is None:
            return None
        for start in range(0, len(dead), MAX_STEP):
            chunks = either(dead[start : start + MAX_STEP])
            await self._server.delete(self.rows(state), f"version < {state.version} and {chunks}")
        return await self._forget_replaced(state)

    async def _forget_replaced(self, state: MilvusState) -> MilvusState:
        """Return the state without its list of replaced rows, which are deleted."""
        cleaned = replace(state, dead=0)
        await self._notes.write(cleaned)
        await self._notes.drop(state.generation, dead_keys(state))
        return cleaned

    async def add_changes(self, draft: MilvusDraft, changes: Sequence[Change]) -> None:
        """Write the current rows of changes, and those that replaced them meanwhile.

        Rows are read in their current version, so a row that is gone may have successors in later changes.
        """
        for _ in range(ATTEMPTS):
            ranges = find_obsolete_ranges(changes)
            await self._withdraw(draft, ranges)
            async for chunks in read(self._reader, put_ranges(changes)):
                await self.write(draft, chunks)
            draft.touched += ranges
            draft.applied = max(draft.applied, changes[-1].sequence)
            changes = await self._reader.changes_since(draft.applied, limit=CHANGES)
            if len(changes) >= CHANGES or not any(change.operation == "remove" for change in changes):
                return

    async def write(self, draft: MilvusDraft, chunks: Sequence[IndexedChunk]) -> None:
        """Write rows that are not visible yet."""
        rows = await asyncio.to_thread(self._prepare, draft, chunks)
        values = [value for row in rows for value in row.facts.values]
        generation = draft.before.generation
        draft.part += 1
        await self._distinct.add(generation, draft.version, values, part=str(draft.part))
        for batch in _batches(rows):
            await self._server.upsert(self.rows(draft.before), [row.columns for row in batch])
            for row in batch:
                draft.note(row)
            await self._flush_if_due(draft.before, len(batch))

    def _prepare(self, draft: MilvusDraft, chunks: Sequence[IndexedChunk]) -> list[Prepared]:
        as_text = draft.before.facts_as_text
        preparing = Preparing(
            self._analyse,
            draft.weights,
            draft.version,
            dimensions=self._dimensions,
            facts_as_text=as_text,
        )
        return [preparing.prepare(with_vector_of(self._dimensions, chunk)) for chunk in chunks]

    async def fold(self, draft: MilvusDraft) -> MilvusState:
        """Return the draft as the state of an unpublished generation."""
        counted = await self._count_draft(draft)
        if counted is None:
            raise IndexDamaged(self._notes.name, _NO_STATISTICS)
        state, superseded, obsolete_notes = counted
        await self._delete(state, _keys(superseded))
        await self._notes.drop(state.generation, obsolete_notes)
        return state

    async def commit(self, draft: MilvusDraft) -> MilvusState:
        """Publish the draft, then delete what it replaced. Returns the resulting state.

        Deletion is skipped if another process has begun a version, as after a long pause of this one.
        """
        counted = await self._count_draft(draft)
        if counted is None:
            newest = await self._notes.read()
            if newest.same_rows(draft.before):
                raise IndexDamaged(self._notes.name, _NO_STATISTICS)
            return newest
        state, superseded, obsolete_notes = counted
        state = await self._notes.bury(state, sorted(row["chunk"] for row in superseded))
        await self._notes.write(state)
        self._last = state
        if not await self._notes.is_latest(state):
            return await self._notes.read()
        await self._notes.drop(state.generation, obsolete_notes)
        if draft.void:
            await self._server.delete(self.rows(state), versions(draft.void))
        if not state.dead:
            return state
        await self._delete(state, _keys(superseded))
        return await self._forget_replaced(state)

    async def _count_draft(self, draft: MilvusDraft) -> tuple[MilvusState, list[Row], list[str]] | None:
        """Return the new state, the older rows that it replaces, and the notes that it no longer needs.

        None if the base state is obsolete_notes because another writer has continued from it.
        """
        before = draft.before
        superseded = await self._find_superseded(before, draft.touched)
        blocks = await self._terms.blocks(before)
        if blocks is None:
            return None
        counted = _update_counts(draft, superseded)
        state, obsolete_notes = await self._terms.add(counted, _statistics_change(draft, superseded), blocks)
        return state, superseded, obsolete_notes

    async def flush(self, state: MilvusState) -> None:
        """Have Milvus Lite persist and index everything; it scans what is in memory.

        Servers flush by themselves, and limit the rate of such requests.
        """
        if state.facts_as_text and state.generation:
            await self._server.flush(self.rows(state))
        self._waiting = 0

    async def _flush_if_due(self, state: MilvusState, rows: int) -> None:
        self._waiting += rows
        if self._waiting >= self.flush_from:
            await self.flush(state)

    async def _withdraw(self, draft: MilvusDraft, ranges: Sequence[Range]) -> None:
        """Withdraw new rows of chunks that were removed or replaced while the draft was written."""
        ids = np.array(list(draft.added), np.int64)
        bounds = np.array([(-1, -2), *ranges], np.int64)
        again = ids[ids <= bounds[np.searchsorted(bounds[:, 0], ids, side="right") - 1, 1]].tolist()
        for number in again:
            del draft.added[number]
        await self._delete(draft.before, [key_of(number, draft.version) for number in again])

    async def _delete(self, state: MilvusState, keys: Sequence[str]) -> None:
        """Delete rows by key. Any other condition requires a search in Milvus."""
        for start in range(0, len(keys), MAX_STEP):
            await self._server.delete(self.rows(state), match_keys(keys[start : start + MAX_STEP]))

    async def _find_superseded(self, before: MilvusState, touched: Iterable[Range]) -> list[Row]:
        """Return the visible rows of the chunks in these ranges."""
        rows_by_chunk: dict[int, Row] = {}
        if before.total:
            name = self.rows(before)
            async for where in _range_expressions(touched, before.last):
                expression = f"{before.where_committed} and ({where})"
                rows = await self._server.query(name, expression, _SUPERSEDED)
                rows_by_chunk |= {row["chunk"]: row for row in rows}
        return list(rows_by_chunk.values())


def _update_counts(draft: MilvusDraft, superseded: Sequence[Row]) -> MilvusState:
    """Return the counts of the new state."""
    before, added = draft.before, draft.added.values()
    return replace(
        before,
        version=draft.version,
        void=before.void + draft.void,
        applied=draft.applied,
        average=draft.weights.average,
        total=before.total + len(added) - len(superseded),
        length=before.length + sum(row.length for row in added) - sum(row["length"] for row in superseded),
        vectors=before.vectors + sum(row.vector for row in added) - _count(superseded, "has_vector"),
        threads=before.threads + sum(row.thread for row in added) - _count(superseded, "in_thread"),
        odd=before.odd + sum(row.odd for row in added) - _count(superseded, "odd"),
        last=max([before.last, *draft.added]),
        replaced=before.replaced + len(superseded),
        dead=0,
    )


def _keys(rows: Sequence[Row]) -> list[str]:
    return [row["key"] for row in rows]


def _count(rows: Sequence[Row], name: str) -> int:
    return sum(bool(row[name]) for row in rows)


def _statistics_change(draft: MilvusDraft, superseded: Sequence[Row]) -> Block:
    added = [row.terms for row in draft.added.values()]
    removed = [_terms(row) for row in superseded]
    ones = [np.ones(len(terms), np.int32) for terms in added]
    return Block.of([*added, *removed], [*ones, *(-np.ones(len(terms), np.int32) for terms in removed)])


def _terms(row: Row) -> NDArray[np.uint64]:
    return np.array([*filter(None, row["terms"]), source_number(row["tenant"])], np.uint64)


def _batches(rows: Sequence[Prepared]) -> Iterable[Sequence[Prepared]]:
    """Yield rows in requests of bounded size."""
    batch: list[Prepared] = []
    size = 0
    for row in rows:
        if batch and (len(batch) == _ROWS_PER_REQUEST or size + row.size > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += row.size
    if batch:
        yield batch


async def _range_expressions(ranges: Iterable[Range], last: int) -> AsyncIterator[str]:
    """Yield expressions for the ids of ranges up to the last one, each with at most one full response."""
    parts: list[str] = []
    ids = 0
    for first, end in ranges:
        for start in range(first, min(end, last) + 1, MAX_STEP):
            stop = min(start + MAX_STEP - 1, end, last)
            if parts and (len(parts) == _RANGES_AT_ONCE or ids + stop - start + 1 > MAX_STEP):
                yield " or ".join(parts)
                parts, ids = [], 0
            parts.append(f"(chunk >= {start} and chunk <= {stop})")
            ids += stop - start + 1
    if parts:
        yield " or ".join(parts)


_FOLD_FROM_ROWS = 20_000
_MAX_DRIFT = 1.5
_MIN_SAMPLE_CHUNKS = 1_000
_MAX_VOID_VERSIONS = 200
_DEFAULT_LENGTH_TERMS = 50.0


def needs_building(state: MilvusState) -> bool:
    """Return whether a build is due: nothing is built, the mean length has changed too much, or many versions
    failed.

    Such a state makes queries search deeper and deeper. It is checked when the index has doubled, so that the
    total cost is proportional to the writes.
    """
    if not state.generation or len(state.void) > _MAX_VOID_VERSIONS:
        return True
    mean = max(1.0, state.length / max(1, state.total)) / state.average
    return state.total >= 2 * max(state.built, _MIN_SAMPLE_CHUNKS) and not 1 / _MAX_DRIFT < mean < _MAX_DRIFT


class Building:
    """Builds generations, one at a time among all processes."""

    def __init__(
        self,
        location: MilvusLocation,
        notes: Notes,
        writer: MilvusWriter,
        *,
        reader: Reader,
        analyse: Analyse,
    ) -> None:
        self._location = location
        self._notes = notes
        self._writer = writer
        self._reader = reader
        self._analyse = analyse

    async def build(
        self, identity: str, progress: Progress | None, *, only_if_needed: bool = False
    ) -> MilvusState:
        """Rebuild everything; with `only_if_needed`, unless another process has done so meanwhile."""
        async with my_turn(self._location.turn, "build"):
            before = await self._notes.read()
            if only_if_needed and not needs_building(before):
                return before
            await self._drop_all_but_current()
            lite = await self._location.server.is_lite()
            state = MilvusState(identity, uuid4().hex[:12], facts_as_text=lite)
            state = await self._fill(state, progress)
            async with my_turn(self._location.turn, "write"):
                state = await self._catch_up(state)
                await self._notes.write(state)
                await self._switch(state)
            await self._drop_all_but_current()
        if progress:
            progress("index", state.total, state.total)
        return state

    async def _fill(self, state: MilvusState, progress: Progress | None) -> MilvusState:
        """Write all chunks. Returns the state, and the sequence after which changes may be missing."""
        state = replace(state, applied=await self._reader.last_sequence())
        draft = None
        async for chunks in self._reader.scan():
            if draft is None:
                state = replace(state, average=_mean_length(chunks, self._analyse))
                await self._writer.create(state)
                draft = self._writer.draft(state)
            await self._writer.write(draft, chunks)
            if len(draft.added) >= _FOLD_FROM_ROWS:
                draft = self._writer.draft(await self._writer.fold(draft))
            if progress:
                progress("index", draft.before.total + len(draft.added), 0)
        if draft is None:
            state = replace(state, average=_DEFAULT_LENGTH_TERMS)
            await self._writer.create(state)
            draft = self._writer.draft(state)
        state = await self._writer.fold(draft)
        return replace(state, built=state.total, replaced=0)

    async def _catch_up(self, state: MilvusState) -> MilvusState:
        """Apply the changes made meanwhile."""
        while changes := await self._reader.changes_since(state.applied, limit=CHANGES):
            draft = self._writer.draft(state)
            await self._writer.add_changes(draft, changes)
            state = await self._writer.fold(draft)
        await self._writer.flush(state)
        return state

    async def _switch(self, state: MilvusState) -> None:
        """Switch the alias of the index to this generation."""
        name, server = self._location.name, self._location.server
        if name in await server.collections():
            await server.drop(name)
        await server.point(name, self._notes.collection(state.generation))

    async def _drop_all_but_current(self) -> None:
        """Delete the collections of other generations. Nothing is being built, so nothing needs them."""
        current = await self._location.server.resolve_alias(self._location.name)
        current_prefix = current.removesuffix(NOTES) if current else None
        start = f"{self._location.name}_"
        for name in await self._location.server.collections():
            if name.startswith(start) and not (current_prefix and name.startswith(current_prefix)):
                await self._location.server.drop(name)


async def forget(location: MilvusLocation) -> None:
    """Delete an index with all its collections, once no process builds it."""
    async with my_turn(location.turn, "build"):
        await location.server.point(location.name, None)
        for name in await location.server.collections():
            if name == location.name or name.startswith(f"{location.name}_"):
                await location.server.drop(name)


def _mean_length(chunks: Sequence[IndexedChunk], analyse: Analyse) -> float:
    """Return the mean length of the first chunks, completed with default lengths up to a minimum sample."""
    lengths = [occurrences(chunk.term_text, analyse)[1] for chunk in chunks]
    missing = max(0, _MIN_SAMPLE_CHUNKS - len(lengths)) / 10
    return max(1.0, (sum(lengths) + missing * _DEFAULT_LENGTH_TERMS) / (len(lengths) + missing))
