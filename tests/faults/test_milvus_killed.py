"""The server or its client is killed while writing, or the server is away: nothing is half there."""

import asyncio
import pickle
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from conspectus.errors import StorageBusy, StorageError
from conspectus.index.memory import MemoryIndex
from conspectus.index.milvus.building import forget
from conspectus.index.milvus.server import MilvusServer
from conspectus.index.milvus.store import MilvusIndex
from conspectus.model.filter import EVERYTHING, Eq
from conspectus.ports import Index, Probe
from conspectus.testing.journal import Journal, make_chunk, unit
from conspectus.testing.milvus_server import MilvusProcess, milvus_server
from tests.milvus_places import place_in

DIMENSIONS = 4
WRITER = """
import asyncio, pickle, sys
from pathlib import Path
from conspectus.index.milvus.server import MilvusServer
from conspectus.index.milvus.store import MilvusIndex
from tests.milvus_places import place_in

async def main():
    journal = pickle.loads(open(sys.argv[1], "rb").read())
    place = place_in(MilvusServer(sys.argv[2]), Path(sys.argv[3]), 4, "killed")
    index = await MilvusIndex.open(place, journal, str.split)
    print("ready", flush=True)
    while True:
        while changes := await journal.changes_since(index.applied(), limit=37):
            await index.apply(changes)
        await index.rebuild()
        await index.purge()

asyncio.run(main())
"""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[MilvusProcess]:
    with milvus_server(tmp_path / "data") as running:
        yield running


def history(seed: int, size: int = 300) -> Journal:
    chance = random.Random(seed)
    journal = Journal(batch=50)
    for number in range(size):
        vector = unit(np.random.default_rng(number).standard_normal(DIMENSIONS))
        text = " ".join(chance.choices(["fox", "sun", "moon", "sea"], k=chance.randint(0, 9)))
        journal.put([make_chunk(number, text, vector=vector, metadata={"n": number % 3})])
        if number % 7 == 0:
            journal.replace([chance.randrange(number + 1)], [make_chunk(number // 2, "replaced fox")])
    return journal


async def catch_up(index: Index, journal: Journal, limit: int = 1_000) -> None:
    while changes := await journal.changes_since(index.applied(), limit=limit):
        await index.apply(changes)


async def assert_right(index: MilvusIndex, journal: Journal) -> None:
    reference = MemoryIndex(journal, str.split)
    await catch_up(index, journal)
    await catch_up(reference, journal)
    for where in (EVERYTHING, Eq(("n",), 1)):
        probe = Probe(where, "fox sea", unit(np.arange(DIMENSIONS) + 1.0), 20)
        found, expected = await index.search(probe), await reference.search(probe)
        assert found.ids.tolist() == expected.ids.tolist()
        assert found.words.tolist() == expected.words.tolist()
        assert np.array_equal(found.cosine, expected.cosine, equal_nan=True)
        assert found.terms == expected.terms
    assert await index.check() == []


async def test_client_killed(tmp_path: Path, process: MilvusProcess) -> None:
    journal, chance = history(1), random.Random(1)
    records = tmp_path / "journal"
    records.write_bytes(pickle.dumps(journal))
    server = MilvusServer(process.uri, seconds=20)
    for _ in range(4):
        command = [sys.executable, "-c", WRITER, str(records), process.uri, str(tmp_path)]
        child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert child.stdout is not None
        assert await child.stdout.readline() == b"ready\n"
        await asyncio.sleep(chance.random())
        child.kill()
        await child.wait()
        place = place_in(server, tmp_path, DIMENSIONS, "killed")
        await assert_right(await MilvusIndex.open(place, journal, str.split), journal)
    await (await MilvusIndex.open(place, journal, str.split)).rebuild()
    assert len(await server.collections()) == 3
    await forget(place)
    assert await server.collections() == []
    await server.close()


async def kill_after(process: MilvusProcess, seconds: float) -> None:
    await asyncio.sleep(seconds)
    await asyncio.to_thread(process.kill)


async def test_server_killed_while_it_is_written_to(tmp_path: Path, process: MilvusProcess) -> None:
    journal, chance = history(2), random.Random(2)
    server = MilvusServer(process.uri, seconds=4)
    index = await MilvusIndex.open(place_in(server, tmp_path, DIMENSIONS), journal, str.split)
    for _ in range(4):
        killing = asyncio.create_task(kill_after(process, 0.2 + chance.random()))
        with pytest.raises(StorageError):
            while True:
                await catch_up(index, journal, limit=23)
                await index.rebuild()
        await killing
        await asyncio.to_thread(process.start)
        await assert_right(index, journal)
    await server.close()


async def test_server_away_and_back(tmp_path: Path, process: MilvusProcess) -> None:
    journal = history(3, size=60)
    server = MilvusServer(process.uri, seconds=4)
    place = place_in(server, tmp_path, DIMENSIONS)
    index = await MilvusIndex.open(place, journal, str.split)
    await catch_up(index, journal)
    process.kill()
    journal.put([make_chunk(1_000, "written meanwhile")])
    with pytest.raises(StorageBusy, match="does not answer within 4 s; nothing is lost"):
        await index.search(Probe(EVERYTHING, "fox", None, 5))
    with pytest.raises(StorageBusy, match="CONSPECTUS_MILVUS_URI"):
        await catch_up(index, journal)
    with pytest.raises(StorageBusy):
        await MilvusIndex.open(place, journal, str.split)
    process.start()
    await assert_right(index, journal)
    assert (await index.search(Probe(EVERYTHING, "meanwhile", None, 5))).ids.tolist() == [1_000]
    await server.close()


async def test_nothing_is_said_on_standard_error(
    tmp_path: Path, process: MilvusProcess, capfd: pytest.CaptureFixture[str]
) -> None:
    server = MilvusServer(process.uri, seconds=4)
    process.kill()
    with pytest.raises(StorageBusy):
        await server.collections()
    process.start()
    with pytest.raises(StorageError):
        await server.query("no_such_collection", "chunk > 0", ["chunk"])
    await server.close()
    assert capfd.readouterr() == ("", "")
