"""Every record store, held to the contract, and what only files and processes can show."""

import asyncio
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contracts.records_contract import RecordsContract
from tests.files import holding
from tests.support.samples import SHELF, SPACE, notes, prepared, shelf, vector

from conspectus.errors import StorageBusy, StorageError
from conspectus.model.filter import EVERYTHING
from conspectus.model.ids import DocumentId
from conspectus.ports import Records
from conspectus.records.store import SqlRecords, open_records

WRITER = """
import asyncio, sys
from pathlib import Path
from conspectus.records.store import open_records
from tests.support.samples import SPACE, notes, prepared, shelf, vector

async def main(path, name):
    records = await open_records(Path(path))
    await records.create_collection(shelf())
    await records.put_source(notes())
    for number in range(10_000):
        batch = [prepared(f"{name}-{number}-{part}", *[f"{name}{part} "] * 20) for part in range(5)]
        await records.write(batch)
        print(number, flush=True)
        waiting = await records.list_unembedded("shelf", SPACE, limit=7)
        await records.put_vectors("shelf", SPACE, [(each.chunk.id, vector(1)) for each in waiting])
        await records.delete([f"{name}-{number - 3}-0"])

asyncio.run(main(*sys.argv[1:]))
"""


class TestSqlite(RecordsContract):
    @pytest.fixture
    async def records(self, tmp_path: Path) -> AsyncIterator[Records]:
        opened = await open_records(tmp_path / "records.sqlite")
        yield opened
        await opened.close()


class TestPostgres(RecordsContract):
    @pytest.fixture
    def records(self, postgres_records: SqlRecords) -> Records:
        return postgres_records


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a?b#c%d ü.sqlite"


def start_writer(path: Path, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def kill_after(writer: subprocess.Popen[str], acknowledgements: int) -> int:
    """Read that many acknowledgements, wait a moment, kill, and say how many there were in all."""
    assert writer.stdout is not None
    lines = [writer.stdout.readline() for _ in range(acknowledgements)]
    time.sleep(random.Random(acknowledgements).uniform(0, 0.05))
    writer.kill()
    lines += writer.stdout.readlines()
    writer.wait()
    writer.stdout.close()
    return sum(line.endswith("\n") for line in lines)


async def stocked(path: Path, *, busy_seconds: float = 30.0) -> SqlRecords:
    records = await open_records(path, busy_seconds=busy_seconds)
    await records.create_collection(shelf())
    await records.put_source(notes())
    return records


async def test_two_processes_are_killed_while_both_write_a_new_file(path: Path) -> None:
    for round_number in (1, 6):
        names = [f"{letter}{round_number}" for letter in "xy"]
        writers = [start_writer(path, name) for name in names]
        acknowledgements = [await asyncio.to_thread(kill_after, writer, round_number) for writer in writers]
        records = await open_records(path)
        assert await records.check() == []
        for name, acknowledged in zip(names, acknowledgements, strict=True):
            assert acknowledged >= round_number
            ids = [DocumentId(f"{name}-{number}-1") for number in range(acknowledged)]
            assert [document.id for document in await records.documents(ids)] == ids
            assert await records.text(ids[-1]) == f"{name}1 " * 20
        await records.close()


async def test_a_write_is_seen_by_another_process_at_once(path: Path) -> None:
    here = await stocked(path)
    there = await open_records(path)
    for number in range(5):
        await here.write([prepared(f"h{number}", "x")])
        assert await there.state(SHELF) == (number * 2 + 1, SPACE)
        await there.write([prepared(f"t{number}", "y")])
        assert await here.count(SHELF, EVERYTHING) == number * 2 + 2
    await here.close()
    await there.close()


async def test_a_writer_that_waits_too_long_says_so(path: Path) -> None:
    records = await stocked(path, busy_seconds=0.1)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageBusy):
        await records.write([prepared("a", "x")])
    assert await records.count(SHELF, EVERYTHING) == 0
    other.execute("ROLLBACK")
    await records.write([prepared("a", "x")])
    other.close()
    await records.close()


async def test_a_failed_batch_leaves_nothing(path: Path) -> None:
    records = await stocked(path)
    with pytest.raises(StorageError):
        await records.write([prepared("a", "x"), prepared("b", "y", chunks=0, kind=None)])
    assert await records.count(SHELF, EVERYTHING) == 0
    assert (await records.state(SHELF))[0] == 0
    await records.close()


async def test_a_cancelled_write_is_whole_or_absent(path: Path) -> None:
    records = await stocked(path)
    for number in range(20):
        task = asyncio.create_task(records.write([prepared(f"{number}", *["word "] * 200)]))
        await asyncio.sleep(number * 0.0005)
        task.cancel()
        await asyncio.wait({task})
    await records.write([prepared("last", "x")])
    assert await records.check() == []
    await records.close()


@pytest.mark.parametrize(
    "content", [b"not a database, and longer than a header " * 50, b"SQLite format 3\x00"]
)
async def test_a_file_of_something_else_is_refused(path: Path, content: bytes) -> None:
    await asyncio.to_thread(path.write_bytes, content)
    with pytest.raises(StorageError, match="a\\?b"):
        await open_records(path)
    assert path.read_bytes().startswith(content)


async def test_a_place_that_cannot_hold_a_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing" / "records.sqlite"):
        with pytest.raises(StorageError):
            await open_records(path)


async def test_a_closed_store_says_so(path: Path) -> None:
    records = await stocked(path)
    await records.close()
    await records.close()
    with pytest.raises(StorageError):
        await records.state(SHELF)


async def test_a_purge_leaves_no_byte_of_what_was_deleted(path: Path) -> None:
    records = await stocked(path)
    marker = "ZANZIBARQUAGGA"
    remaining = [prepared(f"k{number}", f"kept {number} " * 50) for number in range(200)]
    await records.write(
        [*remaining, prepared("a", f"{marker} " * 3000, title=marker, metadata={"m": marker})]
    )
    await records.write([prepared("a", *[f"{marker} {number} " for number in range(500)], author=marker)])
    waiting = await records.list_unembedded(SHELF, SPACE, limit=1000)
    await records.put_vectors(SHELF, SPACE, [(stored.chunk.id, vector(1)) for stored in waiting])
    assert holding(path.parent, marker) != []
    await records.delete([DocumentId("a")])
    await records.purge()
    assert holding(path.parent, marker) == []
    assert holding(path.parent, "kept 199") != []
    assert await records.check() == []
    await records.close()


async def test_a_purge_waits_for_readers_and_says_when_it_cannot(path: Path) -> None:
    records = await stocked(path, busy_seconds=0.1)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM documents").fetchone()
    await records.write([prepared("a", "x")])
    with pytest.raises(StorageBusy):
        await records.purge()
    other.close()
    await records.purge()
    await records.close()


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM chunks WHERE position = 1",
        "UPDATE chunks SET start = start + 1, position = 7 WHERE position = 1",
        "UPDATE chunks SET text = 'onf ' WHERE position = 0",
        "UPDATE collections SET sequence = 0",
        "UPDATE counters SET value = 0 WHERE name = 'chunk'",
        "UPDATE documents SET status = 'embedded'",
        "PRAGMA foreign_keys = OFF; DELETE FROM documents",
    ],
)
async def test_check_finds_damage(path: Path, damage: str) -> None:
    records = await stocked(path)
    await records.write([prepared("a", "one ", "two ", "three")])
    assert await records.check() == []
    other = sqlite3.connect(path)
    other.executescript(damage)
    other.close()
    assert await records.check() != []
    await records.close()
