"""Build segments: of a batch, and by merging."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager, closing, contextmanager
from dataclasses import asdict, field, replace
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Literal, ParamSpec, Protocol, TypeAlias, TypeVar
from uuid import uuid4

import numpy as np

from conspectus.deferred import dataclass
from conspectus.errors import (
    IndexDamaged,
    IndexReplaced,
    InvalidInput,
    NotFound,
)
from conspectus.index.bm25 import Analyse, Bm25, identity_of
from conspectus.index.changes import CHANGES_PER_READ, MAX_GAP_IDS, Range, merge_ranges, ranges_of, read
from conspectus.index.segments.columns import Arrays
from conspectus.index.segments.manifest import (
    Manifest,
    SegmentEntry,
    create_unfinished_folder,
    decode_mask,
    encode_mask,
    find_damaged_files,
    finish,
    lock_folder,
    read_manifest,
    remove_unnamed,
    stamp,
    write_manifest,
)
from conspectus.index.segments.merge import Merger
from conspectus.index.segments.postings import MAX_ROWS
from conspectus.index.segments.segment import (
    VECTORS,
    Segment,
    SegmentView,
    SegmentWriter,
    Shape,
    build_in_memory,
    open_segment,
    write_segment,
)
from conspectus.model.index import IndexedChunk
from conspectus.ports import Progress, Reader
from conspectus.private import make_file

_RETRY_SECONDS = 0.05
_SIZE_RATIO = 4
"""A segment is merged with newer rows if it has at most this many times as many."""
CLOSED = "the index was closed: its collection is deleted, or has another index by now"
MAX_QUICK_ROWS = 100_000
"""Number of rows that are merged in about two seconds."""

Mode: TypeAlias = Literal["flush", "merge", "compact", "rebuild", "purge"]
P = ParamSpec("P")
Result = TypeVar("Result")
_NamedView: TypeAlias = tuple[str, SegmentView]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of an index. At most `tail_chunks` are held in memory before a flush.

    Segments with at least `codes_from` vectors get quantized codes to preselect candidates, those with at
    least `lists_from` have the codes in inverted lists (IVF). An index of more than `threads_from` chunks is
    searched in threads: for fewer, starting one takes longer than the search. Segments are merged after
    `rest_seconds` without a change.
    """

    bm25: Bm25 = field(default_factory=Bm25)
    tail_chunks: int = 10_000
    codes_from: int = 10_000
    lists_from: int = 200_000
    threads_from: int = 100_000
    rest_seconds: float = 2.0


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """A request to build: the index, its options, and the mode.

    `flush` writes new rows, `merge` writes them together with small segments, `compact` only merges segments
    that are on disk, `rebuild` writes everything, and `purge` also rewrites segments that have deleted rows.
    """

    directory: str
    identity: str
    mode: Mode
    dimensions: int
    options: Options

    def to_json(self) -> str:
        """Encode the request as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "BuildRequest":
        """Return the request that `to_json` encoded."""
        content = json.loads(text)
        options = content.pop("options")
        bm25 = Bm25(**options.pop("bm25"))
        return cls(**content, options=Options(bm25, **options))

    @property
    def shape(self) -> Shape:
        """The configuration that all segments of the index share."""
        return Shape(self.dimensions, self.options.bm25, self.options.codes_from, self.options.lists_from)


@dataclass(frozen=True, slots=True)
class BuildResult:
    """The sequence of the new manifest, and the number of chunks written."""

    sequence: int
    chunks: int


async def build_segment(
    reader: Reader, request: BuildRequest, analyse: Analyse, *, progress: Progress | None = None
) -> BuildResult:
    """Build segments and replace the manifest. Runs in any process, one at a time per directory.

    Reads the records only. If it is killed, the unfinished folder is removed by the next build. Raises
    InvalidInput if the analyzer differs from that of the request, IndexDamaged, and IndexReplaced if the
    index is deleted meanwhile.
    """
    if request.identity != identity_of(analyse, request.shape.dimensions, request.shape.bm25):
        raise InvalidInput("identity", "the builder analyzes text differently than the index")
    async with _hold_build_lock(Path(request.directory)):
        return await _Build(reader, request, analyse, progress).run()


@asynccontextmanager
async def _hold_build_lock(directory: Path) -> AsyncGenerator[None, None]:
    """Build under the lock. Raises IndexReplaced if the collection or all files are deleted."""
    with _convert_deletion(directory), ExitStack() as lock:
        while not lock.enter_context(lock_folder(directory)):
            lock.close()
            await asyncio.sleep(_RETRY_SECONDS)
        yield


@contextmanager
def _convert_deletion(directory: Path) -> Iterator[None]:
    try:
        yield
    except NotFound as fault:
        raise IndexReplaced(f"{directory}: deleted with its collection meanwhile") from fault
    except (FileExistsError, FileNotFoundError, IndexDamaged) as fault:
        if stamp(directory) is None:
            raise IndexReplaced(f"{directory}: it was deleted while it was built") from fault
        raise


@dataclass(frozen=True, slots=True)
class TailState:
    """The state of an index in a process: the segments of a manifest, and newer rows up to `sequence`."""

    manifest: Manifest
    sequence: int
    disk: tuple[SegmentView, ...]
    tail: tuple[SegmentView, ...]
    merged: tuple[SegmentView, ...] = ()
    """The segments on disk that become one with the newer rows."""


async def write_tail(reader: Reader, request: BuildRequest, state: TailState) -> BuildResult | None:
    """Write the rows in memory as a segment; None if another process has built meanwhile.

    Does not read the records. The tail holds at most `MAX_ROWS` live rows. Raises IndexReplaced.
    """
    directory = Path(request.directory)
    async with _hold_build_lock(directory):
        if read_manifest(directory, request.identity) != state.manifest:
            return None
        until = await reader.last_sequence()
        # If the records were recreated or restored, the rows in memory do not belong to them.
        return await _in_thread(_write_tail, request, state, until) if until >= state.sequence else None


def _write_tail(request: BuildRequest, state: TailState, until: int) -> BuildResult:
    directory = Path(request.directory)
    remove_unnamed(directory, state.manifest)
    merged = () if _has_damage(state.merged) else state.merged
    entries = [
        SegmentEntry(view.segment.path.name, len(view.segment), encode_mask(view.dead))
        for view in state.disk
        if view.segment.path is not None and view not in merged
    ]
    chunks = sum(view.live for view in (*merged, *state.tail))
    if chunks:
        entries.append(_write_merged(directory, (*merged, *state.tail), request.shape))
    renewed = Manifest(state.manifest.identity, state.sequence, until, tuple(entries))
    write_manifest(directory, renewed)
    remove_unnamed(directory, renewed)
    return BuildResult(state.sequence, chunks)


def _has_damage(views: Sequence[SegmentView]) -> bool:
    return any(view.segment.path is not None and find_damaged_files(view.segment.path) for view in views)


def _write_merged(directory: Path, views: Sequence[SegmentView], shape: Shape) -> SegmentEntry:
    """Write a segment of the live rows of several, which are at most `MAX_ROWS`, from their arrays."""
    merger = Merger([(view.segment.arrays, view.dead) for view in views])
    folder = create_unfinished_folder(directory, uuid4().hex)
    make_file(folder / VECTORS)
    with (folder / VECTORS).open("wb") as sink:
        for portion in merger.portions([view.segment.vectors for view in views]):
            portion.tofile(sink)
    write_segment(folder, merger.arrays(shape.bm25), shape)
    return SegmentEntry(finish(folder), sum(view.live for view in views))


class _Build:
    """One build: it reads changes and chunks, and writes segments and the manifest."""

    def __init__(
        self, reader: Reader, request: BuildRequest, analyse: Analyse, progress: Progress | None
    ) -> None:
        self._reader = reader
        self._request = request
        self._analyse = analyse
        self._progress = progress
        self._directory = Path(request.directory)
        self._sequence = 0

    async def run(self) -> BuildResult:
        """Plan the build, write segments, replace the manifest, and delete obsolete files."""
        manifest = Manifest(self._request.identity)
        if self._request.mode != "rebuild":
            manifest = read_manifest(self._directory, self._request.identity)
            remove_unnamed(self._directory, manifest)
        if self._request.mode == "compact":
            return await _in_thread(self._compact, manifest)
        self._sequence = manifest.sequence
        if manifest.sequence:
            named_views, new_entries = await self._renew(manifest)
        else:
            self._sequence = await self._reader.last_sequence()
            named_views, new_entries = [], await self._from_records(self._reader.scan())
        renewed = Manifest(
            manifest.identity,
            self._sequence,
            await self._reader.last_sequence(),
            (
                *(
                    SegmentEntry(name, len(view.segment), encode_mask(view.dead))
                    for name, view in named_views
                ),
                *new_entries,
            ),
        )
        if renewed != manifest:
            write_manifest(self._directory, renewed)
        remove_unnamed(self._directory, renewed)
        return BuildResult(self._sequence, sum(entry.rows for entry in new_entries))

    def _compact(self, manifest: Manifest) -> BuildResult:
        """Merge segments of the manifest from their arrays. Damaged ones stay, until a search finds them."""
        masks = [(entry, decode_mask(entry.dead, entry.rows)) for entry in manifest.entries]
        views = [(entry, SegmentView(self._open(entry.name), dead)) for entry, dead in masks]
        views = [(entry, view) for entry, view in views if view.live]
        by_size = sorted(views, key=lambda named_view: named_view[1].live)
        merged = by_size[: count_merges([view.live for _, view in by_size], 0, MAX_ROWS)]
        merged_views = [view for _, view in merged]
        if not merged or _has_damage(merged_views):
            return BuildResult(manifest.sequence, 0)
        new_entry = _write_merged(self._directory, merged_views, self._request.shape)
        kept = [entry for entry, view in views if view not in merged_views]
        renewed = replace(manifest, entries=(*kept, new_entry))
        write_manifest(self._directory, renewed)
        remove_unnamed(self._directory, renewed)
        return BuildResult(manifest.sequence, new_entry.rows)

    async def _from_records(self, batches: AsyncIterator[Sequence[IndexedChunk]]) -> list[SegmentEntry]:
        """Write segments of chunks as they are read."""
        with closing(_Output(self._directory, self._request.shape, self._analyse)) as output:
            async with aclosing(_stream(batches)) as stream:
                async for chunks in stream:
                    await _in_thread(self._write, output, chunks)
            await _in_thread(output.finish)
        return output.entries

    async def _from_segments(
        self, views: Sequence[SegmentView], batches: AsyncIterator[Sequence[IndexedChunk]]
    ) -> list[SegmentEntry]:
        """Merge segments from their arrays, with chunks that no segment has yet."""

        def merge(new: Sequence[IndexedChunk]) -> list[SegmentEntry]:
            shape = self._request.shape
            added = SegmentView(build_in_memory(new, shape, self._analyse))
            live_views = [view for view in (*views, added) if view.live]
            return [_write_merged(self._directory, live_views, shape)] if live_views else []

        return await _in_thread(merge, [chunk async for chunks in batches for chunk in chunks])

    def _write(self, output: "_Output", chunks: Sequence[IndexedChunk]) -> None:
        output.add(chunks)
        if self._progress:
            self._progress("index", output.count, 0)

    async def _renew(self, manifest: Manifest) -> tuple[list[_NamedView], list[SegmentEntry]]:
        """Write new and merged segments. Returns the views that stay, by name, and the new entries."""
        put, touched = await self._changes()
        views = [
            (
                entry.name,
                SegmentView(self._open(entry.name), decode_mask(entry.dead, entry.rows)).without(touched),
            )
            for entry in manifest.entries
        ]
        new = sum(last - first + 1 for first, last in put)
        replaced = select_replaced([view for _, view in views], new, self._request)
        named_views = [(name, view) for name, view in views if view.live and view not in replaced]
        if await _in_thread(self._can_merge, replaced, new):
            return named_views, await self._from_segments(replaced, self._read(put))
        ranges = merge_ranges([*put, *(span for view in replaced for span in ranges_of(view.live_ids()))])
        return named_views, await self._from_records(self._read(ranges))

    def _can_merge(self, views: Sequence[SegmentView], new: int) -> bool:
        """Return whether segments and this number of new chunks fit into one, and no file is damaged."""
        if new > self._request.options.tail_chunks or new + sum(view.live for view in views) > MAX_ROWS:
            return False
        return not _has_damage(views)

    def _read(self, ranges: Sequence[Range]) -> AsyncIterator[Sequence[IndexedChunk]]:
        return _keep_in_ranges(ranges, read(self._reader, merge_ranges(ranges, MAX_GAP_IDS)))

    async def _changes(self) -> tuple[list[Range], list[Range]]:
        """Return the chunks that were added or changed since the manifest. The new manifest includes them."""
        put: list[Range] = []
        touched: list[Range] = []
        while changes := await self._reader.changes_since(self._sequence, limit=CHANGES_PER_READ):
            put_spans = ((change.first, change.last) for change in changes if change.operation == "put")
            put = merge_ranges([*put, *put_spans])
            touched = merge_ranges([*touched, *((change.first, change.last) for change in changes)])
            self._sequence = changes[-1].sequence
        return put, touched

    def _open(self, name: str) -> Segment:
        return open_segment(self._directory / name, self._request.shape)


class _Output:
    """Writes rows to segments of at most `MAX_ROWS` rows each."""

    def __init__(self, directory: Path, shape: Shape, analyse: Analyse) -> None:
        self._directory = directory
        self._shape = shape
        self._analyse = analyse
        self._folder: Path | None = None
        self._sink: BinaryIO = BytesIO()
        self._writer = SegmentWriter(shape, self._sink)
        self.entries: list[SegmentEntry] = []
        self.count = 0

    def add(self, chunks: Sequence[IndexedChunk]) -> None:
        """Append chunks in ascending order of ids."""
        while chunks:
            if self._folder is None:
                self._begin()
            room = MAX_ROWS - len(self._writer)
            self._writer.add(chunks[:room], self._analyse)
            self.count += len(chunks[:room])
            chunks = chunks[room:]
            if len(self._writer) == MAX_ROWS:
                self.finish()

    def close(self) -> None:
        """Discard an unfinished segment."""
        self._sink.close()

    def finish(self) -> None:
        """Finish the last segment."""
        self._sink.close()
        if self._folder is not None:
            write_segment(self._folder, self._writer.arrays(), self._shape)
            self.entries.append(SegmentEntry(finish(self._folder), len(self._writer)))
            self._folder = None

    def _begin(self) -> None:
        self._folder = create_unfinished_folder(self._directory, uuid4().hex)
        make_file(self._folder / VECTORS)
        self._sink = (self._folder / VECTORS).open("wb")
        self._writer = SegmentWriter(self._shape, self._sink)


async def _in_thread(function: Callable[P, Result], *arguments: P.args, **named: P.kwargs) -> Result:
    """Run in a thread to its end even when cancelled, so that the lock is not released during the write."""
    running = asyncio.ensure_future(asyncio.to_thread(function, *arguments, **named))
    try:
        return await asyncio.shield(running)
    finally:
        await asyncio.wait([running])


async def _stream(
    batches: AsyncIterator[Sequence[IndexedChunk]],
) -> AsyncGenerator[Sequence[IndexedChunk], None]:
    async for chunks in batches:
        yield chunks


async def _keep_in_ranges(
    ranges: Sequence[Range], batches: AsyncIterator[Sequence[IndexedChunk]]
) -> AsyncIterator[Sequence[IndexedChunk]]:
    """Yield the chunks whose ids are in one of the sorted, disjoint ranges."""
    bounds = np.array([(-1, -1), *ranges], np.int64)
    async for chunks in batches:
        ids = np.array([chunk.chunk.id for chunk in chunks], np.int64)
        positions = np.searchsorted(bounds[:, 0], ids, side="right") - 1
        yield [chunks[i] for i in np.flatnonzero(ids <= bounds[positions, 1]).tolist()]


def select_replaced(views: Sequence[SegmentView], new: int, request: BuildRequest) -> list[SegmentView]:
    """Return the segments to merge with new rows: those with many dead rows, and small ones if many."""
    purge = request.mode == "purge"
    replaced = [
        view
        for view in views
        if view.live and view.dead is not None and (purge or 2 * view.live < len(view.segment))
    ]
    size = new + sum(view.live for view in replaced)
    rest = [view for view in views if view not in replaced and view.live < MAX_ROWS // 2]
    while True:
        near = [view for view in rest if view.live <= _SIZE_RATIO * max(size, request.options.tail_chunks)]
        if len(near) + (size > 0) <= _SIZE_RATIO:
            return replaced
        replaced += near
        size += sum(view.live for view in near)
        rest = [view for view in rest if view not in near]


def count_merges(sizes: Sequence[int], new: int, maximum: int) -> int:
    """Return how many of the segments to merge with new rows, from their sizes, smallest first.

    A search takes longer with each segment. Merged are as many as have at most `maximum` rows together with
    the new ones, none of them more than four times as large as all before it.
    """
    total, merge_count = new, 0
    for count, size in enumerate(sizes, 1):
        if size <= _SIZE_RATIO * total and total + size <= maximum:
            merge_count = count
        total += size
    return merge_count


class Builder(Protocol):
    """Runs `build_segment`."""

    async def build(self, request: BuildRequest, progress: Progress | None = None) -> BuildResult:
        """Build and replace the manifest.

        Raises StorageError, IndexReplaced if the index is deleted, or UnindexableText.
        """
        ...

    def postings(self, texts: Sequence[str], bm25: Bm25) -> Arrays | None:
        """Return the postings of many texts; None if the caller is to make them."""
        ...

    async def close(self) -> None:
        """Stop running builds."""
        ...


class LocalBuilder:
    """Builds in threads of this process, for tests and small collections."""

    def __init__(self, reader: Reader, analyse: Analyse) -> None:
        self._reader = reader
        self._analyse = analyse

    async def build(self, request: BuildRequest, progress: Progress | None = None) -> BuildResult:
        """See `Builder.build`."""
        return await build_segment(self._reader, request, self._analyse, progress=progress)

    def postings(self, texts: Sequence[str], bm25: Bm25) -> Arrays | None:
        """Return None."""
        return None

    async def close(self) -> None:
        """Do nothing: cancellation stops a build."""
