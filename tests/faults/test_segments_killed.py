"""A builder that is killed at any moment, and files that are cut, changed or gone."""

import asyncio
import json
import random
import sys
from pathlib import Path

import numpy as np
import pytest

from conspectus.errors import IndexDamaged, IndexReplaced, StorageError, StorageTooNew
from conspectus.index.segments.build import Options
from conspectus.index.segments.build_process import SubprocessBuilder
from conspectus.index.segments.manifest import FORMAT, convert_decoding_errors, forget, read_text, write_text
from conspectus.index.segments.store import SegmentsIndex
from conspectus.model.filter import EVERYTHING
from conspectus.ports import Probe
from tests.files import holding
from tests.index_histories import DIMENSIONS, assert_right, history, kept_at
from tests.programs import program
from tests.support.journal import Journal, make_chunk

OPTIONS = Options(tail_chunks=50, codes_from=10**6)
CHILD = """
import asyncio, sys
from conspectus.index.segments.build_process import answer
from tests.index_histories import journal_at
journal = journal_at(sys.argv[1])
asyncio.run(answer(journal, str.split, sys.stdin.readline(), write=sys.stdout.write))
"""
WRITER = """
import asyncio, sys
from pathlib import Path
from conspectus.index.segments.build import Options
from conspectus.index.segments.store import SegmentsIndex
from tests.index_histories import journal_at, write_on

async def main():
    journal = journal_at(sys.argv[1])
    options = Options(tail_chunks=50, codes_from=10**6, rest_seconds=0.0)
    index = await SegmentsIndex.open(Path(sys.argv[2]), journal, str.split, dimensions=4, options=options)
    await write_on(index, journal)

asyncio.run(main())
"""


async def open_index(
    directory: Path, journal: Journal, builder: SubprocessBuilder | None = None
) -> SegmentsIndex:
    return await SegmentsIndex.open(
        directory, journal, str.split, dimensions=DIMENSIONS, options=OPTIONS, builder=builder
    )


async def test_killed_while_building(tmp_path: Path) -> None:
    journal, chance = history(1, size=600), random.Random(1)
    records, directory = kept_at(tmp_path / "journal", journal), tmp_path / "index"
    for _ in range(4):
        async with program("-c", WRITER, records, directory):
            await asyncio.sleep(chance.random() * 0.4)
        index = await open_index(directory, journal)
        await assert_right(index, journal)
        await index.close()
    index = await open_index(directory, journal)
    await index.purge()
    assert list(directory.glob("unfinished-*")) == []
    await index.close()


async def test_a_child_builds(tmp_path: Path) -> None:
    journal = history(2, size=600)
    command = [sys.executable, "-c", CHILD, str(kept_at(tmp_path / "journal", journal))]
    index = await open_index(tmp_path / "index", journal, SubprocessBuilder(command))
    await index.apply(await journal.changes_since(0, limit=10_000))
    steps: list[int] = []
    await index.rebuild(lambda _, done, __: steps.append(done))
    status = await index.status()
    assert (status.segments, status.details["tail"]) == (1, "0")
    assert steps == sorted(steps) and steps[-1] == len(journal.live())
    await assert_right(index, journal)
    await index.close()


async def test_closing_kills_the_child(tmp_path: Path) -> None:
    journal = history(3, size=60)
    waiting = SubprocessBuilder([sys.executable, "-c", "import time; time.sleep(1000)"])
    index = await open_index(tmp_path / "index", journal, waiting)
    building = asyncio.create_task(index.rebuild())
    await asyncio.sleep(0.05)
    await index.close()
    with pytest.raises(IndexReplaced):
        await building
    assert not list((tmp_path / "index").glob("segment-*"))


async def test_a_failing_child_is_told_and_nothing_is_lost(tmp_path: Path) -> None:
    journal = history(4, size=200)
    failing = SubprocessBuilder([sys.executable, "-c", "import sys; sys.exit('no room left')"])
    index = await open_index(tmp_path / "index", journal, failing)
    with pytest.raises(StorageError, match="no room left"):
        await index.rebuild()
    # The tail is written here; only when there are five segments, a child is to make one of them.
    for start in range(1_000, 50_000, 50):
        journal.put([make_chunk(start + number, "more foxes") for number in range(50)])
        await index.apply(await journal.changes_since(index.applied_sequence(), limit=10_000))
        if "failure" in (await index.status()).details:
            break
        await asyncio.sleep(0.01)
    assert "no room left" in (await index.status()).details["failure"]
    await assert_right(index, journal)
    await index.close()


async def build_index(directory: Path, journal: Journal) -> Path:
    index = await open_index(directory, journal)
    await index.rebuild()
    await index.close()
    return next(directory.glob("segment-*"))


@pytest.mark.parametrize("name", ["arrays.bin", "vectors.bin", "segment.json", "../manifest.json"])
@pytest.mark.parametrize("size", [0, 100])
async def test_cut_files_are_damage(tmp_path: Path, name: str, size: int) -> None:
    journal = history(5, size=60)
    segment = await build_index(tmp_path / "index", journal)
    with (segment / name).open("r+b") as file:
        file.truncate(size)
    with pytest.raises(IndexDamaged):
        await open_index(tmp_path / "index", journal)
    forget(tmp_path / "index")
    index = await open_index(tmp_path / "index", journal)
    await assert_right(index, journal)
    await index.rebuild()
    await assert_right(index, journal)
    await index.close()


@pytest.mark.parametrize("name", ["arrays.bin", "vectors.bin"])
async def test_changed_bytes_are_found(tmp_path: Path, name: str) -> None:
    journal = history(6, size=60)
    segment = await build_index(tmp_path / "index", journal)
    index = await open_index(tmp_path / "index", journal)
    overwrite(segment / name, (segment / name).stat().st_size // 2, 1)
    assert "damaged" in {difference.problem for difference in await index.check()}
    with pytest.raises(IndexDamaged):
        await open_index(tmp_path / "index", journal)
    await index.rebuild()
    assert await index.check() == []
    await index.close()


@pytest.mark.parametrize("name", ["postings.row", "runs.rows"])
async def test_files_damaged_while_open_are_rebuilt(tmp_path: Path, name: str) -> None:
    journal = history(6, size=60)
    segment = await build_index(tmp_path / "index", journal)
    index = await open_index(tmp_path / "index", journal)
    header = json.loads(read_text(segment / "segment.json"))
    dtype, shape, offset = header["arrays"][name]
    overwrite(segment / "arrays.bin", offset, np.dtype(dtype).itemsize * shape[0])
    await asyncio.gather(*(assert_right(index, journal) for _ in range(3)))
    assert await index.check() == []
    await index.close()


async def test_an_error_in_files_that_are_replaced_by_now_is_damage(tmp_path: Path) -> None:
    """Another query found it first, and the rebuild that it began has removed the folder."""
    segment = await build_index(tmp_path / "index", history(6, size=60))
    for gone in ("vectors.bin", "segment.json"):
        (segment / gone).unlink()
        with pytest.raises(IndexDamaged, match="is missing"), convert_decoding_errors([segment]):
            raise ValueError("a number that no file has")


def overwrite(file: Path, offset: int, size: int) -> None:
    """Change bytes in place, which every process that has mapped the file sees."""
    with file.open("r+b") as opened_file:
        opened_file.seek(offset)
        content = opened_file.read(size)
        opened_file.seek(offset)
        opened_file.write(bytes(byte ^ 0xFF for byte in content))


async def test_a_missing_segment_is_damage_and_a_missing_directory_is_empty(tmp_path: Path) -> None:
    journal = history(7, size=60)
    segment = await build_index(tmp_path / "index", journal)
    (segment / "vectors.bin").unlink()
    with pytest.raises(IndexDamaged):
        await open_index(tmp_path / "index", journal)
    index = await open_index(tmp_path / "nothing" / "here", journal)
    assert index.applied_sequence() == 0
    await assert_right(index, journal)
    await index.close()


async def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    journal = history(8, size=60)
    await build_index(tmp_path / "index", journal)
    from_the_future = write_format(tmp_path / "index", 99)
    with pytest.raises(StorageTooNew, match="99"):
        await open_index(from_the_future, journal)


def write_format(directory: Path, version: int) -> Path:
    path = directory / "manifest.json"
    write_text(path, read_text(path).replace(f'"format": {FORMAT}', f'"format": {version}'))
    return directory


async def test_removed_content_leaves_the_files(tmp_path: Path) -> None:
    journal = history(9, size=60)
    journal.put([make_chunk(1_000, "xyzzysecret", metadata={"who": "plughsecret"})])
    await build_index(tmp_path / "index", journal)
    assert holding(tmp_path / "index", "secret", "*.bin") != []
    journal.remove([1_000])
    index = await open_index(tmp_path / "index", journal)
    await index.apply(await journal.changes_since(index.applied_sequence(), limit=10))
    await index.purge()
    assert holding(tmp_path / "index", "secret") == []
    await assert_right(index, journal)
    await index.close()


async def test_another_analysis_makes_another_index(tmp_path: Path) -> None:
    journal = history(10, size=60)
    await build_index(tmp_path / "index", journal)
    index = await SegmentsIndex.open(
        tmp_path / "index", journal, list, dimensions=DIMENSIONS, options=OPTIONS
    )
    assert index.applied_sequence() == 0
    await index.rebuild()
    assert (await index.search(Probe(EVERYTHING, "f", None, 5))).terms[0].documents > 0
    await index.close()
