"""Questions, writers and builders at the same time over one index in Milvus, each with its own connection."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pymilvus import DataType, MilvusClient

from conspectus.errors import NotFound
from conspectus.index.milvus.connection import MilvusServer
from conspectus.index.milvus.rows import notes_layout
from conspectus.index.milvus.store import MilvusIndex
from conspectus.index.milvus.writes import forget
from tests.index_histories import Versions, assert_every_answer_is_one_version
from tests.milvus_locations import location_in
from tests.support.journal import Journal, make_chunk
from tests.support.milvus_server import MilvusProcess


class Deleted(Journal):
    """The records of a collection that is deleted while its index is built."""

    async def last_sequence(self) -> int:
        raise NotFound("collection", "deleted")


@pytest.fixture
async def servers(milvus: MilvusProcess) -> AsyncIterator[list[MilvusServer]]:
    opened = [MilvusServer(milvus.uri, seconds=20) for _ in range(2)]
    yield opened
    for server in opened:
        await server.close()


async def collection_names(server: MilvusServer, start: str) -> list[str]:
    return [name for name in await server.collections() if name.startswith(start)]


async def test_every_answer_is_one_version(tmp_path: Path, servers: list[MilvusServer]) -> None:
    versions = Versions()
    locations = [location_in(server, tmp_path, 0, "versions") for server in servers]
    indexes = [await MilvusIndex.open(location, versions.journal, str.split) for location in locations]
    await assert_every_answer_is_one_version(versions, indexes, replacements=15, rebuilds=2)


async def test_what_one_has_applied_the_other_need_not(tmp_path: Path, servers: list[MilvusServer]) -> None:
    journal = Journal()
    journal.put(make_chunk(number, "version") for number in range(100))
    first, second = [
        await MilvusIndex.open(location_in(server, tmp_path, 0, "shared"), journal, str.split)
        for server in servers
    ]
    changes = await journal.changes_since(0, limit=1_000)
    await asyncio.gather(first.apply(changes), second.apply(changes))
    assert first.applied_sequence() == second.applied_sequence() == changes[-1].sequence
    assert len((await second.search(Versions.every)).ids) == (await second.status()).chunks == 100
    journal.remove([3])
    await first.apply(await journal.changes_since(first.applied_sequence(), limit=1_000))
    assert len((await second.search(Versions.every)).ids) == 99
    assert await second.check() == await first.check() == []


async def test_what_is_deleted_while_it_is_built_leaves_nothing(
    tmp_path: Path, servers: list[MilvusServer]
) -> None:
    location = location_in(servers[0], tmp_path, 0, "deleted")
    async with location.turn("build"):
        deleting = asyncio.create_task(forget(location_in(servers[1], tmp_path, 0, "deleted")))
        await asyncio.sleep(0.2)
        await servers[0].create("deleted_half_notes", *notes_layout())
    await deleting
    assert await collection_names(servers[0], "deleted") == []
    await servers[0].create("deleted_late_notes", *notes_layout())
    with pytest.raises(NotFound):
        await (await MilvusIndex.open(location, Deleted(), str.split)).rebuild()
    assert await collection_names(servers[0], "deleted") == []


async def test_many_may_drop_the_same_collection(servers: list[MilvusServer], milvus: MilvusProcess) -> None:
    """As where one deletes an index that another is just building anew."""
    schema, indexes = MilvusClient.create_schema(), MilvusClient.prepare_index_params()
    schema.add_field("key", DataType.VARCHAR, is_primary=True, max_length=64)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=2)
    indexes.add_index("vector", index_type="FLAT", metric_type="COSINE")
    await servers[0].create("dropped", schema, indexes)
    # With so much to remove that one is at it while the other begins.
    for number in range(400):
        (milvus.folder / "collections" / "dropped" / str(number)).mkdir()
    await asyncio.gather(*[server.drop("dropped") for server in servers for _ in range(4)])
    assert "dropped" not in await servers[0].collections()
    await servers[0].drop("dropped")
