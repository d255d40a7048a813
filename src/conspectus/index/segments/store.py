"""The embedded index: segments in files and changes in memory, searched together."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from conspectus.deferred import dataclass
from conspectus.errors import ConspectusError, IndexDamaged, StorageError
from conspectus.index.bm25 import Analyse, identity_of, query_terms
from conspectus.index.changes import (
    CHANGES,
    IndexedRows,
    Range,
    differences,
    find_obsolete_ranges,
    merge_ranges,
    put_ranges,
    read,
)
from conspectus.index.filter_terms import content_checksum
from conspectus.index.segments.build import (
    MAX_QUICK_ROWS,
    Builder,
    BuildRequest,
    BuildResult,
    LocalBuilder,
    Mode,
    Options,
    TailState,
    count_merges,
    select_replaced,
    write_tail,
)
from conspectus.index.segments.damage import find_damages
from conspectus.index.segments.manifest import (
    Manifest,
    Stamp,
    convert_decoding_errors,
    decode_mask,
    read_manifest,
    stamp,
)
from conspectus.index.segments.postings import MAX_ROWS
from conspectus.index.segments.resting import RestingWork
from conspectus.index.segments.search import Snapshot
from conspectus.index.segments.segment import (
    NewestRows,
    Segment,
    SegmentView,
    Shape,
    build_in_memory,
    merge_in_memory,
    open_segment,
)
from conspectus.model.index import Disagreement, IndexedChunk, IndexStatus, PutChunks
from conspectus.model.records import Change
from conspectus.ports import Candidates, Ids, Probe, Progress, Reader
from conspectus.private import can_write

Tail = tuple[SegmentView, ...]
"""Segments in memory."""


def without(tail: Tail, ranges: Sequence[Range]) -> Tail:
    """Return the tail with all rows of those ids dead."""
    return tuple(view for view in (view.without(ranges) for view in tail) if view.live)


def extend_tail(tail: Tail, added: Sequence[Segment], shape: Shape) -> Tail:
    """Return the tail with further segments. None of their ids may be alive in it."""
    for segment in added:
        tail = _with_last(tail, [SegmentView(segment)], shape)
    return tail


def _with_last(tail: Tail, last: Sequence[SegmentView], shape: Shape) -> Tail:
    """Append segments to the tail; each is merged with smaller or similar ones before it."""
    parts, pool = list(tail), list(last)
    size = sum(view.live for view in pool)
    while parts and parts[-1].live <= 2 * size and parts[-1].live + size <= MAX_ROWS:
        pool.insert(0, parts.pop())
        size += pool[0].live
    if size <= MAX_ROWS and (len(pool) > 1 or any(view.dead is not None for view in pool)):
        pool = [SegmentView(merge_in_memory(pool, shape))]
    return (*parts, *pool)


@dataclass(frozen=True, slots=True)
class TailUpdate:
    """Ranges of ids that changed up to `sequence`."""

    sequence: int
    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class SegmentsState:
    """The state of the index, immutable. `steps` are the changes after the manifest's sequence."""

    shape: Shape
    manifest: Manifest
    applied: int = 0
    disk: tuple[SegmentView, ...] = ()
    tail: Tail = ()
    steps: tuple[TailUpdate, ...] = ()

    @property
    def waiting(self) -> int:
        """The size of a flush: the number of rows of the tail, or of changed ranges if that is larger."""
        rows = sum(view.live for view in self.tail)
        return max(rows, sum(len(step.ranges) for step in self.steps))

    def snapshot(self) -> Snapshot:
        """Return the snapshot that queries read."""
        return Snapshot((*self.disk, *self.tail), self.applied, self.shape.bm25)

    def after(
        self, sequence: int, ranges: Sequence[Range], added: Sequence[Segment], is_merged: bool = True
    ) -> "SegmentsState":
        """Return the state with every older row of the ranges dead, and these segments added."""
        tail = without(self.tail, ranges)
        return replace(
            self,
            applied=max(self.applied, sequence),
            disk=tuple(view.without(ranges) for view in self.disk),
            tail=extend_tail(tail, added, self.shape) if is_merged else (*tail, *map(SegmentView, added)),
            steps=(*self.steps, TailUpdate(sequence, tuple(ranges))),
        )

    def on(self, manifest: Manifest, directory: Path) -> "SegmentsState":
        """Return the state on a newer manifest: rows that it contains leave the tail. Raises IndexDamaged."""
        segments = {view.segment.path: view.segment for view in self.disk}
        steps = tuple(step for step in self.steps if step.sequence > manifest.sequence)
        later = merge_ranges(span for step in steps for span in step.ranges)
        views = [
            SegmentView(
                _segment_at(directory / entry.name, segments, self.shape), decode_mask(entry.dead, entry.rows)
            ).without(later)
            for entry in manifest.entries
        ]
        return replace(
            self,
            manifest=manifest,
            applied=max(self.applied, manifest.sequence),
            disk=tuple(view for view in views if view.live),
            tail=_keep_ranges(self.tail, later, self.shape),
            steps=steps,
        )


def _segment_at(path: Path, segments: Mapping[Path | None, Segment], shape: Shape) -> Segment:
    return segments[path] if path in segments else open_segment(path, shape)


def _keep_ranges(tail: Tail, ranges: Sequence[Range], shape: Shape) -> Tail:
    """Return the tail with live rows of those ids only."""
    views = [view for view in (view.only(ranges) for view in tail) if view.live]
    if not views:
        return ()
    mostly_live = tuple(view for view in views if 2 * view.live > len(view.segment))
    return _with_last(mostly_live, [view for view in views if view not in mostly_live], shape)


_ATTEMPTS = 10
_MAX_TAILS = 16
"""Writers wait for a running flush from this many times its size on."""
_WORTHY_SHARE = 10
"""A tail of this part of a flush is written before segments are merged at rest."""
_MAX_NEWEST_ROWS = 8
"""The number of rows that small writes extend, before they are merged with others."""
_MAX_CHUNKS_IN_LOOP = 4
"""Number of chunks that are analyzed faster than they are handed to a thread."""
_THREADS = min(4, os.cpu_count() or 1)
"""The number of threads that search the segments of a large index."""


class SegmentsIndex:
    """An index in a directory, opened with `open`. Any number of processes may open it."""

    def __init__(
        self, directory: Path, reader: Reader, analyse: Analyse, *, request: BuildRequest, builder: Builder
    ) -> None:
        self._directory = directory
        self._reader = reader
        self._analyse = analyse
        self._request = request
        self._builder = builder
        self._state = SegmentsState(request.shape, Manifest(request.identity))
        self._snapshot = self._state.snapshot()
        self._stamp: Stamp | None = None
        self._changing = asyncio.Lock()
        self._building = asyncio.Lock()
        self._repairing = asyncio.Lock()
        self._background: asyncio.Task[None] | None = None
        self._resting = RestingWork(self._compact, request.options.rest_seconds)
        self._compacted: Manifest | None = None
        self._flush_from = request.options.tail_chunks
        self._failure = ""
        self._newest: NewestRows | None = None
        self._searched_paths: list[Path] | None = None

    @classmethod
    async def open(
        cls,
        directory: Path,
        reader: Reader,
        analyse: Analyse,
        *,
        dimensions: int,
        builder: Builder | None = None,
        options: Options | None = None,
    ) -> "SegmentsIndex":
        """Map the segments; a missing or empty directory is an empty index at sequence 0.

        Args:
            dimensions: of the space's vectors; 0 for words only.
            builder: where segments are built; in this process if None.

        Raises:
            IndexDamaged: the files cannot be trusted; `manifest.forget` lets the next opening start anew.
            StorageTooNew: a newer version wrote them.
        """
        options = options or Options()
        shape = Shape(dimensions, options.bm25, options.codes_from, options.lists_from)
        request = BuildRequest(
            str(directory), identity_of(analyse, shape.dimensions, shape.bm25), "flush", dimensions, options
        )
        index = cls(
            directory, reader, analyse, request=request, builder=builder or LocalBuilder(reader, analyse)
        )
        async with index._changing:
            await index._follow()
        index._compact_if_due()
        return index

    def applied_sequence(self) -> int:
        """Return the sequence up to which queries see the records."""
        return self._state.applied

    async def apply(self, changes: Sequence[Change], chunks: PutChunks | None = None) -> None:
        """Apply changes, load newer manifests of other processes, and start a build when it is due."""
        if not changes:
            return
        async with self._changing:
            if chunks is None or changes[0].sequence <= self._state.applied:
                self._publish(await self._complete(await self._apply_to(self._state, changes)))
                await self._follow()
            else:
                await self._append(changes, chunks)
        self._flush_if_due()
        self._compact_if_due()
        if self._state.waiting >= _MAX_TAILS * self._flush_from // 2:
            # A flush waits for a running merge, and writers would soon wait for the flush.
            await self._resting.stop()
        if self._background and self._state.waiting >= _MAX_TAILS * self._flush_from:
            await asyncio.wait([self._background])

    async def search(self, probe: Probe) -> Candidates:
        """Return the best hits of each retriever. Candidates among many vectors are preselected by codes."""
        terms = query_terms(probe, self._analyse, self._request.dimensions)
        return await self._answer(
            lambda snapshot: snapshot.search(
                probe, terms, threads=1 if self._is_small(snapshot) else _THREADS
            )
        )

    async def score(self, ids: Ids, probe: Probe) -> Candidates:
        """Return the exact scores of these chunks."""
        terms = query_terms(probe, self._analyse, self._request.dimensions)
        return await self._answer(lambda snapshot: snapshot.score(ids, probe, terms))

    async def check(self) -> Sequence[Disagreement]:
        """Compare every file with its checksum and every row with the records."""
        async with self._changing:
            await self._follow()
        snapshot = self._snapshot
        identity = self._request.identity
        return [
            *await asyncio.to_thread(find_damages, snapshot, self._directory, identity),
            *await differences(_rows(snapshot), self._reader, content_checksum),
        ]

    async def rebuild(self, progress: Progress | None = None) -> None:
        """Rebuild everything. Queries use the old state meanwhile. Returns when the new state is in use."""
        await self._resting.stop()
        await self._build("rebuild", progress)

    async def purge(self) -> None:
        """Return when no file of the index contains removed chunks."""
        await self._resting.stop()
        if missing_changes := await self._read_missing_changes():
            await self.apply(missing_changes)
        await self._build("purge")

    async def flush(self, *, least: int = 1, merge: bool = False) -> None:
        """Write what is in memory to disk, if it has at least the given size."""
        if self._state.waiting < least and not (merge and self._background):
            return
        await self._resting.stop()
        missing_changes = await self._read_missing_changes()
        if missing_changes:
            await self.apply(missing_changes)
        await self._build("merge" if merge and missing_changes is not None else "flush")

    async def status(self) -> IndexStatus:
        """Return sizes and counts. `details` has the last error of a background build."""
        snapshot = self._snapshot
        size = await asyncio.to_thread(bytes_below, self._directory)
        return IndexStatus(
            chunks=snapshot.corpus.total,
            vectors=sum(view.vector_count for view in snapshot.views),
            bytes=size,
            segments=len(snapshot.views),
            applied=snapshot.applied,
            details={
                "tail": str(sum(view.live for view in self._state.tail)),
                "written": str(self._state.manifest.sequence),
                **({"failure": self._failure} if self._failure else {}),
            },
        )

    async def close(self) -> None:
        """Stop building and release the files."""
        if self._background is not None:
            self._background.cancel()
            await asyncio.wait([self._background])
        await self._resting.stop()
        await self._builder.close()
        self._publish(SegmentsState(self._request.shape, Manifest(self._request.identity)))

    def _publish(self, state: SegmentsState) -> None:
        self._state = state
        self._snapshot = state.snapshot()

    async def _answer(self, ask: Callable[[Snapshot], Candidates]) -> Candidates:
        """Query the snapshot. If its files are damaged, rebuild them and query again."""
        snapshot = self._snapshot
        # The first search of new segments may read files.
        is_quick = self._is_small(snapshot) and snapshot.paths == self._searched_paths
        try:
            if is_quick:
                candidates = _run_query(ask, snapshot)
                # Repeated searches would otherwise starve all other tasks of the loop.
                await asyncio.sleep(0)
                return candidates
            candidates = await asyncio.to_thread(_run_query, ask, snapshot)
            self._searched_paths = snapshot.paths
            return candidates
        except IndexDamaged:
            async with self._repairing:
                if self._snapshot.paths == snapshot.paths:
                    await self.rebuild()
        return await asyncio.to_thread(_run_query, ask, self._snapshot)

    def _is_small(self, snapshot: Snapshot) -> bool:
        return snapshot.corpus.total <= self._request.options.threads_from

    async def _append(self, changes: Sequence[Change], chunks: PutChunks) -> None:
        """Apply changes with the chunks that they added; a few extend the newest rows, without a thread."""
        # If this is cancelled, the newest rows may have more than the state.
        newest, self._newest, tail = self._newest, None, self._state.tail
        size = sum(change.last - change.first + 1 for change in changes)
        new_chunks = chunks() if size <= _MAX_NEWEST_ROWS else ()
        first = min(change.first for change in changes)
        if newest is not None and new_chunks and newest.precede(tail[-1:], first):
            tail = tail[:-1]
        else:
            newest = NewestRows(self._request.shape) if new_chunks else None
        total = size if newest is None else size + len(newest)
        is_merged = (total == size or total >= _MAX_NEWEST_ROWS) and bool(tail) and tail[-1].live <= 2 * total

        def after() -> tuple[SegmentsState, Stamp | None]:
            ranges = merge_ranges((change.first, change.last) for change in changes)
            if newest is None:
                added = self._segments(chunks())
            else:
                added = [newest.with_chunks(new_chunks, self._analyse)]
            state = replace(self._state, tail=tail).after(changes[-1].sequence, ranges, added, is_merged)
            return state, stamp(self._directory)

        is_quick = size <= _MAX_CHUNKS_IN_LOOP and not is_merged
        state, current = after() if is_quick else await asyncio.to_thread(after)
        self._newest = newest if total < _MAX_NEWEST_ROWS else None
        self._publish(state)
        if current not in {None, self._stamp}:
            await self._follow()

    def _segments(self, chunks: Sequence[IndexedChunk]) -> list[Segment]:
        """Return segments of chunks, with the postings that the builder makes of many."""
        shape, segments = self._request.shape, []
        for first in range(0, len(chunks), MAX_ROWS):
            part = chunks[first : first + MAX_ROWS]
            postings = self._builder.postings([chunk.term_text for chunk in part], shape.bm25)
            segments.append(build_in_memory(part, shape, self._analyse, postings))
        return segments

    async def _apply_to(self, state: SegmentsState, changes: Sequence[Change]) -> SegmentsState:
        """Return the state after the changes. Rows are read as they are now; later changes repeat that."""
        ranges = find_obsolete_ranges(changes)
        chunks = [chunk async for batch in read(self._reader, put_ranges(changes)) for chunk in batch]

        def after() -> SegmentsState:
            return state.after(changes[-1].sequence, ranges, self._segments(chunks))

        return await asyncio.to_thread(after)

    async def _complete(self, state: SegmentsState) -> SegmentsState:
        """Add rows that replaced others while rows were read.

        If nothing was removed, nothing can be missing, and the loop ends even while others write fast.
        """
        for _ in range(_ATTEMPTS):
            changes = await self._reader.changes_since(state.applied, limit=CHANGES)
            removed = any(change.operation == "remove" for change in changes)
            if not removed or len(changes) >= CHANGES:
                break
            state = await self._apply_to(state, changes)
        return state

    async def _catch_up(self, state: SegmentsState, sequence: int) -> SegmentsState:
        while state.applied < sequence:
            changes = await self._reader.changes_since(state.applied, limit=CHANGES)
            if not changes:
                break
            state = await self._apply_to(state, changes)
        return state

    async def _follow(self) -> None:
        """Load the manifest if it was replaced, by this or another process.

        Raises NotFound if the collection was deleted meanwhile, with the segments of the manifest.
        """
        for attempt in range(_ATTEMPTS):
            current = await asyncio.to_thread(stamp, self._directory)
            if current in (None, self._stamp):
                return
            try:
                await self._adopt(
                    await asyncio.to_thread(read_manifest, self._directory, self._request.identity)
                )
            except IndexDamaged:
                # A segment may be deleted because a still newer manifest does not list it.
                if attempt == _ATTEMPTS - 1 or await asyncio.to_thread(stamp, self._directory) == current:
                    await self._reader.last_sequence()
                    raise
            else:
                self._stamp = current
                return

    async def _adopt(self, manifest: Manifest) -> None:
        """Adopt a manifest whose segments contain the records up to `read_until`.

        The changes up to there are applied before the segments become visible. Otherwise neither the old nor
        the new chunks of a replaced document might be visible. Rows in memory are dropped if the manifest is
        older (it was recreated) or has the same sequence.
        """
        state, applied = self._state, self._state.applied
        if manifest.sequence < state.manifest.sequence or manifest.sequence >= applied:
            state = replace(state, applied=0, tail=(), steps=())
        else:
            state = await self._catch_up(state, manifest.read_until)
        state = await asyncio.to_thread(state.on, manifest, self._directory)
        if applied:
            state = await self._catch_up(state, max(applied, manifest.read_until))
        self._publish(await self._complete(state) if applied else state)

    def _flush_if_due(self) -> None:
        busy = self._background is not None and not self._background.done()
        if not busy and self._state.waiting >= self._flush_from:
            self._background = asyncio.create_task(self._flush_in_background())

    async def _flush_in_background(self) -> None:
        while self._state.waiting >= self._flush_from:
            written, least = self._state.manifest.sequence, self._request.options.tail_chunks
            try:
                await self._build("flush")
            except (ConspectusError, OSError) as error:
                self._failure = str(error)
                # Another process may have built everything pending: that is no reason to continue.
                self._flush_from = max(2 * self._state.waiting, least)
            else:
                self._failure = ""
                # If the collection was deleted and recreated, the records have nothing of it to write.
                stuck = self._state.manifest.sequence == written and self._state.waiting >= self._flush_from
                self._flush_from = 2 * self._state.waiting if stuck else least
        self._compact_if_due()

    def _compact_if_due(self) -> None:
        """Plan to merge the segments on disk, once for each manifest, and a tail that is worth writing."""
        if self._is_compaction_due():
            self._resting.plan()

    def _is_compaction_due(self) -> bool:
        tail = [self._state.waiting] if self._is_tail_worth_writing() else []
        sizes = sorted([*tail, *(view.live for view in self._state.disk)])
        is_new = bool(tail) or self._state.manifest is not self._compacted
        return is_new and count_merges(sizes, 0, MAX_ROWS) > 0

    def _is_tail_worth_writing(self) -> bool:
        return self._state.waiting >= max(1, self._request.options.tail_chunks // _WORTHY_SHARE)

    async def _compact(self) -> None:
        if not self._is_compaction_due():
            return
        try:
            if await asyncio.to_thread(can_write, self._directory):
                if self._is_tail_worth_writing():
                    await self._build("flush")
                await self._build("compact")
        except (ConspectusError, OSError) as error:
            self._failure = str(error)
        self._compacted = self._state.manifest

    async def _build(self, mode: Mode, progress: Progress | None = None) -> None:
        if not await asyncio.to_thread(can_write, self._directory):
            raise StorageError(f"{self._directory} is read-only; open the store with write access")
        async with self._building:
            result = await self._run_build(mode, progress)
        async with self._changing:
            await self._follow()
        if progress:
            progress("index", result.chunks, result.chunks)

    async def _run_build(self, mode: Mode, progress: Progress | None) -> BuildResult:
        """Build. Raises NotFound if the collection was deleted meanwhile."""
        try:
            if mode not in {"compact", "rebuild"} and (written := await self._write_tail(mode)):
                return written
            return await self._builder.build(replace(self._request, mode=mode), progress)
        except StorageError:
            await self._reader.last_sequence()
            raise

    async def _read_missing_changes(self) -> Sequence[Change] | None:
        """Return the changes that are not in memory; None if there are enough of them for a build."""
        limit = self._request.options.tail_chunks
        changes = await self._reader.changes_since(self._state.applied, limit=limit)
        return changes if sum(change.last - change.first + 1 for change in changes) < limit else None

    async def _write_tail(self, mode: Mode) -> BuildResult | None:
        """Write the tail; None if a full build is needed, for missing changes or a merge of segments."""
        state = self._state
        rows = sum(view.live for view in state.tail)
        if rows > MAX_ROWS or await self._read_missing_changes() is None:
            return None
        merge: tuple[SegmentView, ...] = ()
        if mode == "merge":
            by_size = sorted(state.disk, key=lambda view: view.live)
            merge = tuple(by_size[: count_merges([view.live for view in by_size], rows, MAX_QUICK_ROWS)])
        elif mode == "purge":
            merge = tuple(view for view in state.disk if view.dead is not None)
            if rows + sum(view.live for view in merge) > MAX_QUICK_ROWS:
                return None
        written: BuildResult | None = BuildResult(state.manifest.sequence, 0)
        if state.waiting or merge or mode == "purge":
            tail_state = TailState(state.manifest, state.applied, state.disk, state.tail, merge)
            written = await write_tail(self._reader, self._request, tail_state)
            async with self._changing:
                await self._follow()
        if mode == "purge":
            # Damaged segments are left to the builder.
            purged = {view.segment.path for view in merge}
            return None if any(view.segment.path in purged for view in self._state.disk) else written
        return None if select_replaced(self._state.disk, 0, self._request) else written


def _run_query(ask: Callable[[Snapshot], Candidates], snapshot: Snapshot) -> Candidates:
    with convert_decoding_errors(snapshot.paths):
        return ask(snapshot)


def bytes_below(directory: Path) -> int:
    """Return the size of all files. Files deleted meanwhile, as by a merge, count 0."""
    size = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with suppress(FileNotFoundError):
                size += (Path(folder) / name).stat().st_size
    return size


def _rows(snapshot: Snapshot) -> IndexedRows:
    ids = np.concatenate([np.zeros(0, np.int64), *(view.live_ids() for view in snapshot.views)])
    checksums = np.concatenate([np.zeros(0, np.uint64), *(view.live_checksums() for view in snapshot.views)])
    order = np.argsort(ids, kind="stable")
    return IndexedRows(snapshot.applied, ids[order], checksums[order])
