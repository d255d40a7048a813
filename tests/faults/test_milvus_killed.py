"""The server or its client is killed while writing, or the server is away: nothing is half there."""

import asyncio
import random
from pathlib import Path

import pytest

from conspectus.errors import StorageBusy, StorageError
from conspectus.index.milvus.connection import MilvusServer
from conspectus.index.milvus.store import MilvusIndex
from conspectus.index.milvus.writes import forget
from conspectus.model.filter import EVERYTHING
from conspectus.ports import Probe
from tests.index_histories import DIMENSIONS, assert_right, catch_up, history, kept_at, write_until_killed
from tests.milvus_locations import location_in
from tests.programs import program
from tests.support.journal import make_chunk
from tests.support.milvus_server import MilvusProcess, milvus_server

WRITER = """
import asyncio, sys
from pathlib import Path
from conspectus.index.milvus.connection import MilvusServer
from conspectus.index.milvus.store import MilvusIndex
from tests.index_histories import journal_at, write_on
from tests.milvus_locations import location_in

async def main():
    journal = journal_at(sys.argv[1])
    place = location_in(MilvusServer(sys.argv[2]), Path(sys.argv[3]), 4, "killed")
    await write_on(await MilvusIndex.open(place, journal, str.split), journal)

asyncio.run(main())
"""


async def list_own_collections(server: MilvusServer) -> list[str]:
    """The collections of the index that is called `killed`."""
    return [name for name in await server.collections() if name.startswith("killed_")]


async def test_client_killed(tmp_path: Path, own_milvus: MilvusProcess) -> None:
    journal, chance = history(1), random.Random(1)
    records = kept_at(tmp_path / "journal", journal)
    server = MilvusServer(own_milvus.uri, seconds=20)
    for _ in range(2):
        async with program("-c", WRITER, records, own_milvus.uri, tmp_path):
            await asyncio.sleep(chance.random())
        location = location_in(server, tmp_path, DIMENSIONS, "killed")
        await assert_right(await MilvusIndex.open(location, journal, str.split), journal)
    await (await MilvusIndex.open(location, journal, str.split)).rebuild()
    assert len(await list_own_collections(server)) == 2
    await forget(location)
    assert await list_own_collections(server) == []
    await server.close()


async def test_server_killed_while_it_is_written_to(tmp_path: Path, own_milvus: MilvusProcess) -> None:
    journal, chance = history(2), random.Random(2)
    server = MilvusServer(own_milvus.uri, seconds=4)
    index = await MilvusIndex.open(location_in(server, tmp_path, DIMENSIONS), journal, str.split)
    for _ in range(2):
        await write_until_killed(own_milvus, index, journal, after=0.2 + chance.random())
        await asyncio.to_thread(own_milvus.start)
        await assert_right(index, journal)
    await server.close()


async def test_server_away_and_back(tmp_path: Path, own_milvus: MilvusProcess) -> None:
    journal = history(3, size=60)
    server = MilvusServer(own_milvus.uri, seconds=4)
    location = location_in(server, tmp_path, DIMENSIONS)
    index = await MilvusIndex.open(location, journal, str.split)
    await catch_up(index, journal)
    own_milvus.kill()
    journal.put([make_chunk(1_000, "written meanwhile")])
    with pytest.raises(StorageBusy, match="does not answer within 4 s; nothing is lost"):
        await index.search(Probe(EVERYTHING, "fox", None, 5))
    with pytest.raises(StorageBusy, match="CONSPECTUS_MILVUS_URI"):
        await catch_up(index, journal)
    with pytest.raises(StorageBusy):
        await MilvusIndex.open(location, journal, str.split)
    own_milvus.start()
    await assert_right(index, journal)
    assert (await index.search(Probe(EVERYTHING, "meanwhile", None, 5))).ids.tolist() == [1_000]
    await server.close()


async def test_nothing_is_said_on_standard_error(
    tmp_path: Path, own_milvus: MilvusProcess, capfd: pytest.CaptureFixture[str]
) -> None:
    server = MilvusServer(own_milvus.uri, seconds=4)
    own_milvus.kill()
    with pytest.raises(StorageBusy):
        await server.collections()
    own_milvus.start()
    with pytest.raises(StorageError):
        await server.query("no_such_collection", "chunk > 0", ["chunk"])
    await server.close()
    assert capfd.readouterr() == ("", "")


def test_the_server_is_found_where_no_environment_is_active(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or all tests with Milvus would be left out without a word."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)
    try:
        with milvus_server(tmp_path / "data") as running:
            assert running.uri
    except pytest.skip.Exception:
        pytest.fail("milvus-lite is there, and yet it was not looked for where it is")
