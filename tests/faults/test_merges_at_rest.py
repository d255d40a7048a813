"""Segments that are merged while nothing is written, by a child that may be killed at any moment."""

import asyncio
import sys
from pathlib import Path

import pytest

from conspectus.index.segments.build import Options
from conspectus.index.segments.build_process import SubprocessBuilder
from conspectus.index.segments.store import SegmentsIndex
from tests.index_histories import DIMENSIONS, assert_right, catch_up, history, kept_at
from tests.support.journal import Journal
from tests.waiting import until

NEVER = 10**6
CHILD = """
import asyncio, sys
from conspectus.index.segments.build_process import answer
from tests.index_histories import journal_at
journal = journal_at(sys.argv[1])
asyncio.run(answer(journal, str.split, sys.stdin.readline(), write=sys.stdout.write))
"""
DYING_CHILD = """
import os, signal, sys
from conspectus.index.segments import build
setattr(build, sys.argv[2], lambda *_: os.kill(os.getpid(), signal.SIGKILL))
"""
WAITING_CHILD = """
import sys, time
open(sys.argv[1], "w").close()
time.sleep(1000)
"""


async def open_index(
    directory: Path, journal: Journal, *command: str, rest_seconds: float = 0.0
) -> SegmentsIndex:
    return await SegmentsIndex.open(
        directory,
        journal,
        str.split,
        dimensions=DIMENSIONS,
        options=Options(tail_chunks=50, codes_from=10**6, rest_seconds=rest_seconds),
        builder=SubprocessBuilder([sys.executable, "-c", *command]) if command else None,
    )


async def write_parts(directory: Path) -> Journal:
    """Write three segments. Returns their journal."""
    journal, rows = Journal(batch=50), history(1).live()
    index = await open_index(directory, journal, rest_seconds=NEVER)
    for first in range(0, 180, 60):
        journal.put(rows[first : first + 60])
        await catch_up(index, journal)
        await index.flush()
    assert (await index.status()).segments == 3
    await index.close()
    return journal


async def until_one_segment(index: SegmentsIndex) -> None:
    async def is_one() -> bool:
        return (await index.status()).segments == 1

    await until(is_one)


async def test_segments_are_merged_in_a_child_while_nothing_is_written(tmp_path: Path) -> None:
    journal = await write_parts(tmp_path / "index")
    records = kept_at(tmp_path / "journal", journal)
    index = await open_index(tmp_path / "index", journal, CHILD, str(records))
    await until_one_segment(index)
    assert len(list((tmp_path / "index").glob("segment-*"))) == 1
    await assert_right(index, journal)
    await index.close()


async def until_one_segment_has_all(index: SegmentsIndex) -> None:
    async def has_all() -> bool:
        status = await index.status()
        return (status.segments, status.details["tail"]) == (1, "0")

    await until(has_all)


@pytest.mark.parametrize("is_merged_before", [False, True])
async def test_rows_in_memory_are_merged_with_segments(tmp_path: Path, is_merged_before: bool) -> None:
    journal = await write_parts(tmp_path / "index")
    # More than a quarter of the merged segment, so that they are merged in either order; too few for a flush.
    journal.put(history(2).live()[180:228])
    records = kept_at(tmp_path / "journal", journal)
    index = await open_index(tmp_path / "index", journal, CHILD, str(records))
    if is_merged_before:
        await until_one_segment(index)
    await catch_up(index, journal)
    await until_one_segment_has_all(index)
    await assert_right(index, journal)
    await index.close()


async def test_rows_that_were_removed_meanwhile_stay_removed(tmp_path: Path) -> None:
    journal = await write_parts(tmp_path / "index")
    records = kept_at(tmp_path / "journal", journal)
    index = await open_index(tmp_path / "index", journal, CHILD, str(records))
    journal.remove(range(0, 100, 3))
    await assert_right(index, journal)
    await until_one_segment(index)
    await assert_right(index, journal)
    await index.close()


@pytest.mark.parametrize(
    "moment", ["_has_damage", "create_unfinished_folder", "write_segment", "finish", "write_manifest"]
)
async def test_a_merge_that_is_killed_loses_nothing(tmp_path: Path, moment: str) -> None:
    journal = await write_parts(tmp_path / "index")
    records = str(kept_at(tmp_path / "journal", journal))
    index = await open_index(tmp_path / "index", journal, DYING_CHILD + CHILD, records, moment)

    async def has_failed() -> bool:
        return "status -9" in (await index.status()).details.get("failure", "")

    await until(has_failed)
    assert (await index.status()).segments == 3
    await assert_right(index, journal)
    await index.close()
    index = await open_index(tmp_path / "index", journal, CHILD, records)
    await until_one_segment(index)
    await assert_right(index, journal)
    await index.close()
    assert not list((tmp_path / "index").glob("unfinished-*"))


async def test_closing_gives_up_a_merge(tmp_path: Path) -> None:
    journal = await write_parts(tmp_path / "index")
    index = await open_index(tmp_path / "index", journal, WAITING_CHILD, str(tmp_path / "started"))
    await until((tmp_path / "started").exists)
    await index.close()
    index = await open_index(tmp_path / "index", journal, rest_seconds=NEVER)
    assert (await index.status()).segments == 3
    await assert_right(index, journal)
    await index.close()


async def test_a_merge_gives_way_to_many_writes(tmp_path: Path) -> None:
    journal = await write_parts(tmp_path / "index")
    index = await open_index(tmp_path / "index", journal, WAITING_CHILD, str(tmp_path / "started"))
    await until((tmp_path / "started").exists)
    journal.put(history(2, size=1_000).live())
    await catch_up(index, journal)

    async def is_written() -> bool:
        return (await index.status()).details["tail"] == "0"

    await until(is_written)
    await assert_right(index, journal)
    await index.close()


async def test_searches_do_not_wait_for_a_merge(tmp_path: Path) -> None:
    journal = await write_parts(tmp_path / "index")
    index = await open_index(tmp_path / "index", journal, WAITING_CHILD, str(tmp_path / "started"))
    await until((tmp_path / "started").exists)
    await asyncio.wait_for(assert_right(index, journal), 120)
    await index.close()
