"""Changes in the records, as the ranges of chunk ids that an index has to read again."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.ids import ChunkId
from conspectus.model.index import Disagreement, IndexedChunk
from conspectus.model.records import Change
from conspectus.ports import Ids, Index, Reader

Range = tuple[int, int]

MAX_GAP_IDS = 64
"""Ranges at most this many ids apart are read as one."""
_IDS_PER_READ = 4_096
CHANGES_PER_READ = 50_000
"""Maximum number of changes that a build or a check reads at once."""
CHANGES = 5_000
"""Maximum number of changes that an index applies at once."""


def merge_ranges(ranges: Iterable[Range], gap: int = 0) -> list[Range]:
    """Merge sorted ids into ranges. Ranges at most `gap` ids apart become one."""
    disjoint: list[Range] = []
    for first, last in sorted(ranges):
        if disjoint and first <= disjoint[-1][1] + 1 + gap:
            disjoint[-1] = (disjoint[-1][0], max(disjoint[-1][1], last))
        else:
            disjoint.append((first, last))
    return disjoint


def ranges_of(ids: NDArray[np.int64]) -> list[Range]:
    """Return sorted ids as ranges."""
    if not len(ids):
        return []
    ends = np.append(np.flatnonzero(np.diff(ids) != 1), len(ids) - 1)
    starts = np.append(0, ends[:-1] + 1)
    return list(zip(ids[starts].tolist(), ids[ends].tolist(), strict=True))


def put_ranges(changes: Iterable[Change]) -> list[Range]:
    """Return the ranges that changes added or updated; close ones are joined, as one read is faster."""
    ranges = ((change.first, change.last) for change in changes if change.operation == "put")
    return merge_ranges(ranges, MAX_GAP_IDS)


def find_obsolete_ranges(changes: Sequence[Change]) -> list[Range]:
    """Return the ranges of ids whose earlier rows are obsolete once the changes are applied."""
    return merge_ranges([*put_ranges(changes), *((change.first, change.last) for change in changes)])


def with_vector_of(dimensions: int, chunk: IndexedChunk) -> IndexedChunk:
    """Return the chunk for an index with vectors of this size (0: keywords only). Raises InvalidInput."""
    if not dimensions:
        return replace(chunk, vector=None)
    if chunk.vector is not None and len(chunk.vector) != 2 * dimensions:
        raise InvalidInput("vector", f"has {len(chunk.vector) // 2} numbers, but the index has {dimensions}")
    return chunk


async def catch_up(index: Index, reader: Reader, sequence: int) -> None:
    """Apply changes until the index has the records up to `sequence`, also if it was deleted meanwhile."""
    while index.applied_sequence() < sequence:
        changes = await reader.changes_since(index.applied_sequence(), limit=CHANGES)
        if not changes:
            break
        await index.apply(changes)


@dataclass(frozen=True, slots=True)
class IndexedRows:
    """The rows of an index at a sequence, ascending by chunk id.

    `damaged` are chunks whose vector is missing, or should not be there.
    """

    sequence: int
    chunks: Ids
    checksums: NDArray[np.int64] | NDArray[np.uint64]
    damaged: frozenset[int] = frozenset()


async def differences(
    rows: IndexedRows, reader: Reader, checksum: Callable[[IndexedChunk], int]
) -> list[Disagreement]:
    """Compare every row with the records. Chunks that changed after the sequence are skipped."""
    disagreements: list[Disagreement] = []
    is_in_records = np.zeros(len(rows.chunks), np.bool_)
    async for batch in reader.scan():
        for chunk in batch:
            number = chunk.chunk.id
            position = int(np.searchsorted(rows.chunks, number))
            if position == len(rows.chunks) or rows.chunks[position] != number:
                disagreements.append(Disagreement(number, "missing", "not in the index"))
                continue
            is_in_records[position] = True
            if int(rows.checksums[position]) != checksum(chunk):
                disagreements.append(Disagreement(number, "stale", "the records hold another version"))
            elif number in rows.damaged:
                disagreements.append(
                    Disagreement(number, "damaged", "its vector is missing, or should not be there")
                )
    disagreements += [
        Disagreement(ChunkId(number), "ghost", "not in the records")
        for number in rows.chunks[~is_in_records].tolist()
    ]
    return await select_unexplained(rows.sequence, disagreements, reader)


async def select_unexplained(
    sequence: int, disagreements: Iterable[Disagreement], reader: Reader
) -> list[Disagreement]:
    """Return the disagreements that no change after the sequence explains, by chunk."""
    later: list[Range] = []
    while changes := await reader.changes_since(sequence, limit=CHANGES_PER_READ):
        later = merge_ranges([*later, *find_obsolete_ranges(changes)])
        sequence = changes[-1].sequence
    unexplained = (
        disagreement
        for disagreement in disagreements
        if not any(first <= disagreement.chunk <= last for first, last in later)
    )
    return sorted(unexplained, key=lambda disagreement: disagreement.chunk)


async def read(reader: Reader, ranges: Iterable[Range]) -> AsyncIterator[Sequence[IndexedChunk]]:
    """Yield the current live chunks of the ranges in batches of bounded size."""
    for first, last in ranges:
        for start in range(first, last + 1, _IDS_PER_READ):
            batch = await reader.chunks(ChunkId(start), ChunkId(min(start + _IDS_PER_READ - 1, last)))
            if batch:
                yield batch
