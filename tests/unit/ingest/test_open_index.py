"""Indexes catch up with the records, by changes or by a build, and segments are merged."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.support.journal import Journal, make_chunk, unit

from conspectus.index.segments.build import MAX_QUICK_ROWS, Options, count_merges
from conspectus.index.segments.store import SegmentsIndex
from conspectus.ingest.open_index import MIN_BULK_CHUNKS, catch_up
from conspectus.model.filter import EVERYTHING
from conspectus.model.ids import ChunkId
from conspectus.model.index import IndexedChunk
from conspectus.ports import Probe

DIMENSIONS = 8


async def open_index(folder: Path, journal: Journal) -> SegmentsIndex:
    return await SegmentsIndex.open(
        folder, journal, str.split, dimensions=DIMENSIONS, options=Options(tail_chunks=10**9)
    )


def write_chunks(journal: Journal, first: int, last: int) -> None:
    vector = unit(np.arange(DIMENSIONS) == 0)
    journal.put([make_chunk(number, f"word{number} common", vector=vector) for number in range(first, last)])


@pytest.mark.parametrize("seen_before", [0, 50])
async def test_a_backlog_is_built_and_not_kept_in_memory(tmp_path: Path, seen_before: int) -> None:
    journal = Journal()
    index = await open_index(tmp_path, journal)
    if seen_before:
        write_chunks(journal, 1, seen_before + 1)
        await catch_up(index, journal, await journal.last_sequence())
    write_chunks(journal, seen_before + 1, MIN_BULK_CHUNKS + 100)
    await catch_up(index, journal, await journal.last_sequence())
    status = await index.status()
    assert status.chunks == MIN_BULK_CHUNKS + 99
    assert status.details["tail"] == "0"
    results = await index.search(Probe(EVERYTHING, f"word{MIN_BULK_CHUNKS}", None, 10))
    assert list(results.ids) == [MIN_BULK_CHUNKS]
    await index.close()


async def test_a_few_changes_are_taken_in_without_building(tmp_path: Path) -> None:
    journal = Journal()
    index = await open_index(tmp_path, journal)
    write_chunks(journal, 1, 101)
    await catch_up(index, journal, await journal.last_sequence())
    assert (await index.status()).details["tail"] == "100"
    assert not list(tmp_path.iterdir())
    await index.close()


class ReadJournal(Journal):
    """Remembers which chunks were read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[int] = []

    async def chunks(self, first: ChunkId, last: ChunkId) -> Sequence[IndexedChunk]:
        chunks = await super().chunks(first, last)
        self.read += [chunk.chunk.id for chunk in chunks]
        return chunks


async def segments_of(folder: Path, journal: Journal, number: int) -> SegmentsIndex:
    """An index that has so many segments of ten chunks."""
    options = Options(tail_chunks=100, rest_seconds=10**6)
    index = await SegmentsIndex.open(folder, journal, str.split, dimensions=DIMENSIONS, options=options)
    for first in range(1, 10 * number, 10):
        write_chunks(journal, first, first + 10)
        await catch_up(index, journal, await journal.last_sequence())
        await index.flush()
    return index


async def test_segments_are_merged_without_reading_the_records(tmp_path: Path) -> None:
    journal = ReadJournal()
    index = await segments_of(tmp_path, journal, 4)
    assert (await index.status()).segments == 4
    journal.read.clear()
    write_chunks(journal, 41, 51)
    await catch_up(index, journal, await journal.last_sequence())
    await index.flush()
    assert (await index.status()).segments == 1
    assert sorted(set(journal.read)) == list(range(41, 51))
    assert not await index.check()
    await index.close()


async def test_what_was_written_in_parts_is_one_segment_after_a_close(tmp_path: Path) -> None:
    journal = ReadJournal()
    index = await segments_of(tmp_path, journal, 3)
    journal.remove([12])
    write_chunks(journal, 31, 36)
    await catch_up(index, journal, await journal.last_sequence())
    journal.read.clear()
    await index.flush(merge=True)
    status = await index.status()
    assert (status.segments, status.chunks, status.details["tail"]) == (1, 34, "0")
    assert journal.read == []
    assert not await index.check()
    await index.close()
    again = await open_index(tmp_path, journal)
    results = await again.search(Probe(EVERYTHING, "word33", None, 10))
    assert list(results.ids) == [33]
    await again.close()


@pytest.mark.parametrize(
    ("new", "sizes", "count"),
    [
        (0, [], 0),
        (0, [10], 0),
        (0, [10, 10], 2),
        (5, [], 0),
        (5, [21], 0),
        (5, [20], 1),
        (1, [10, 10, 10], 3),
        (0, [10, 10, 1_000], 2),
        (0, [30, 60_000, 60_000], 0),
        (40_000, [60_000, 60_000], 1),
        (40_001, [60_000], 0),
        (100_001, [10, 30_000], 0),
    ],
)
def test_a_merge_is_small_and_pays(new: int, sizes: list[int], count: int) -> None:
    assert count_merges(sizes, new, MAX_QUICK_ROWS) == count


async def test_a_damaged_segment_is_not_merged_but_written_from_the_records(tmp_path: Path) -> None:
    # Only files above 32 MiB are not verified when they are opened.
    wide = np.full(4_096, 1 / 64, np.float32)
    journal = Journal()
    options = Options(tail_chunks=10_000, codes_from=10**6)
    index = await SegmentsIndex.open(tmp_path, journal, str.split, dimensions=len(wide), options=options)
    for first, last in ((1, 4_200), (4_200, 4_201), (4_201, 4_202), (4_202, 4_203)):
        journal.put([make_chunk(number, f"word{number}", vector=wide) for number in range(first, last)])
        await catch_up(index, journal, await journal.last_sequence())
        await index.flush()
    vectors = max(tmp_path.glob("segment-*/vectors.bin"), key=lambda file: file.stat().st_size)
    with vectors.open("r+b") as file:
        file.seek(1 << 24)
        file.write(bytes(100))
    assert await index.check()
    journal.put([make_chunk(4_203, "word4203", vector=wide)])
    await catch_up(index, journal, await journal.last_sequence())
    await index.flush()
    assert (await index.status()).segments == 1
    assert not await index.check()
    await index.close()
