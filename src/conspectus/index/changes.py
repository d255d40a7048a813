"""Changes of the records to what an index has to read again."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from conspectus.errors import InvalidInput
from conspectus.model.ids import ChunkId
from conspectus.model.index import Disagreement, IndexedChunk
from conspectus.model.records import Change
from conspectus.ports import Ids, Index, Reader

Range = tuple[int, int]

_GAP = 64
_STEP = 4_096
_CHANGES = 50_000
CHANGES = 5_000
"""The most changes that an index applies at once."""


def merged(ranges: Iterable[Range], gap: int = 0) -> list[Range]:
    """The same ids in as few ranges as possible, in order; ranges up to `gap` ids apart become one."""
    found: list[Range] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1 + gap:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def ranges_of(ids: NDArray[np.int64]) -> list[Range]:
    """Sorted ids as ranges."""
    if not len(ids):
        return []
    ends = np.append(np.flatnonzero(np.diff(ids) != 1), len(ids) - 1)
    starts = np.append(0, ends[:-1] + 1)
    return list(zip(ids[starts].tolist(), ids[ends].tolist(), strict=True))


def put_ranges(changes: Iterable[Change]) -> list[Range]:
    """The changes to read again. Neighboring ranges are joined: reading more than was put has no effect."""
    return merged(((c.first, c.last) for c in changes if c.operation == "put"), _GAP)


def touched_ranges(changes: Sequence[Change]) -> list[Range]:
    """Every id of which an older row is out of date once the changes are applied."""
    return merged([*put_ranges(changes), *((change.first, change.last) for change in changes)])


def with_vector_of(dimensions: int, chunk: IndexedChunk) -> IndexedChunk:
    """The chunk for an index of vectors of this size (0: keywords only). Raises InvalidInput."""
    if not dimensions:
        return replace(chunk, vector=None)
    if chunk.vector is not None and len(chunk.vector) != 2 * dimensions:
        raise InvalidInput("vector", f"has {len(chunk.vector) // 2} numbers, the index {dimensions}")
    return chunk


async def catch_up(index: Index, reader: Reader, promised: int) -> None:
    """Show the records up to there again, should the index have been deleted, or an older one restored."""
    while index.applied() < promised:
        changes = await reader.changes_since(index.applied(), limit=CHANGES)
        if not changes:
            break
        await index.apply(changes)


@dataclass(frozen=True, slots=True)
class IndexedRows:
    """The rows of an index at a sequence by chunk, ascending; `damaged` are those without their vector."""

    sequence: int
    chunks: Ids
    checksums: NDArray[np.int64] | NDArray[np.uint64]
    damaged: frozenset[int] = frozenset()


async def differences(
    held: IndexedRows, reader: Reader, checksum: Callable[[IndexedChunk], int]
) -> list[Disagreement]:
    """Compare every row with the records; chunks that changed after the sequence are left out."""
    found: list[Disagreement] = []
    seen = np.zeros(len(held.chunks), np.bool_)
    async for batch in reader.scan():
        for chunk in batch:
            number = chunk.chunk.id
            place = int(np.searchsorted(held.chunks, number))
            if place == len(held.chunks) or held.chunks[place] != number:
                found.append(Disagreement(number, "missing", "not in the index"))
                continue
            seen[place] = True
            if int(held.checksums[place]) != checksum(chunk):
                found.append(Disagreement(number, "stale", "the records hold another version"))
            elif number in held.damaged:
                found.append(Disagreement(number, "damaged", "its vector is missing, or should not be there"))
    found += [Disagreement(ChunkId(i), "ghost", "not in the records") for i in held.chunks[~seen].tolist()]
    return await untouched_since(held.sequence, found, reader)


async def untouched_since(sequence: int, found: Iterable[Disagreement], reader: Reader) -> list[Disagreement]:
    """The chunks found at this sequence that no later change explains, in order."""
    later: list[Range] = []
    while changes := await reader.changes_since(sequence, limit=_CHANGES):
        later = merged([*later, *touched_ranges(changes)])
        sequence = changes[-1].sequence
    left = (each for each in found if not any(first <= each.chunk <= last for first, last in later))
    return sorted(left, key=lambda each: each.chunk)


async def read(reader: Reader, ranges: Iterable[Range]) -> AsyncIterator[Sequence[IndexedChunk]]:
    """The live chunks of the ranges as they are now, in batches of bounded size."""
    for first, last in ranges:
        for start in range(first, last + 1, _STEP):
            batch = await reader.chunks(ChunkId(start), ChunkId(min(start + _STEP - 1, last)))
            if batch:
                yield batch
