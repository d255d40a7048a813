"""A whole engine with its index in Milvus: over a server, over a file, with hostile strings everywhere."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

import conspectus
from conspectus import NewDocument, Settings
from conspectus.bootstrap.store_address import index_name, space_name
from conspectus.errors import IndexDamaged, InvalidInput, StorageBusy
from conspectus.index.milvus.connection import MilvusServer
from conspectus.testing.embedders import HashedEmbedder
from tests.programs import program
from tests.support.milvus_server import MilvusProcess

SETTINGS = replace(Settings(), index="milvus", chunk_size=200, chunk_overlap=0, milvus_timeout_seconds=20)
HOLDER = """
import sys
from pymilvus import MilvusClient
client = MilvusClient(uri=sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
"""


def settings_for(milvus: MilvusProcess) -> Settings:
    return replace(SETTINGS, milvus_uri=milvus.uri)


async def list_index_collections(server: MilvusServer, start: str) -> list[str]:
    """Return the Milvus collections of the server, which other tests use as well, whose names begin so."""
    return [name for name in await server.collections() if name.startswith(start)]


async def test_from_adding_to_forgetting(tmp_path: Path, milvus: MilvusProcess) -> None:
    server = MilvusServer(milvus.uri)
    settings = replace(settings_for(milvus), milvus_prefix="whole")
    async with conspectus.open(tmp_path, settings=settings, embedder=HashedEmbedder()) as engine:
        await engine.add([NewDocument(f"the fox number {n}", key=str(n)) for n in range(30)], wait=True)
        results = await engine.retrieve("fox number 7", limit=5)
        assert results.hits[0].document.key == "7"
        await engine.documents.delete([results.hits[0].document.id])
        again = await engine.retrieve("fox number 7", limit=50)
        assert len(again.hits) == 29
        await engine.maintenance.reindex()
        status = (await engine.maintenance.status()).collections[0].index
        assert (status.chunks, status.vectors) == (29, 29)
        assert list((await engine.maintenance.check()).index.values()) == [()]
        home = await engine.collections.get("default")
        name = index_name("whole", home, space_name(home.space))
        assert [
            collection.startswith(name) for collection in await list_index_collections(server, "whole_")
        ] == [True] * 2
        await engine.collections.delete("default")
        assert await list_index_collections(server, "whole_") == []
    await server.close()


async def test_two_engines_at_once(tmp_path: Path, milvus: MilvusProcess) -> None:
    settings = replace(settings_for(milvus), embedder="none")
    async with (
        conspectus.open(tmp_path, settings=settings) as first,
        conspectus.open(tmp_path, settings=settings) as second,
    ):
        for number, word in enumerate(("fox", "sun", "moon", "sea", "sky", "tree")):
            writer, reader = (first, second) if number % 2 else (second, first)
            await writer.add(NewDocument(word, key=word))
            assert len((await reader.retrieve(word)).hits) == 1
        await asyncio.gather(*(e.add(NewDocument("both", key=k)) for e, k in ((first, "a"), (second, "b"))))
        assert len((await first.retrieve("both")).hits) == len((await second.retrieve("both")).hits) == 2
        assert list((await first.maintenance.check()).index.values()) == [()]


async def test_a_file_in_the_stores_folder(tmp_path: Path) -> None:
    for word in ("first", "second"):
        async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
            await engine.add(NewDocument(f"the {word} opening", key=word), wait=True)
            assert (await engine.retrieve(f"{word} opening")).hits[0].document.key == word
            await engine.documents.delete(
                [(await engine.retrieve("opening")).hits[0].document.id], purge=True
            )
            assert list((await engine.maintenance.check()).index.values()) == [()]
    assert (tmp_path / "milvus.db").is_dir()


async def test_a_file_is_for_one_process(tmp_path: Path) -> None:
    async with (
        program("-c", HOLDER, tmp_path / "milvus.db") as holder,
        conspectus.open(tmp_path, settings=replace(SETTINGS, embedder="none")) as engine,
    ):
        await engine.collections.create("default")
        with pytest.raises(StorageBusy, match=r"open in another process, .*milvus-lite server"):
            await engine.retrieve("anything")
        await holder.communicate(b"\n")
        await engine.add(NewDocument("it goes on", key="a"))
        assert len((await engine.retrieve("goes on")).hits) == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [("index", "pinecone"), ("milvus_prefix", "a-b"), ("milvus_prefix", ""), ("milvus_uri", "a file")],
)
async def test_settings_that_cannot_be_used(tmp_path: Path, field: str, value: str) -> None:
    settings = replace(SETTINGS, embedder="none", **{field: value})
    with pytest.raises(InvalidInput, match=field):
        async with conspectus.open(tmp_path, settings=settings) as engine:
            await engine.collections.create("default")
            await engine.retrieve("anything")


async def drop_collections(server: MilvusServer, ending: str) -> None:
    for name in await list_index_collections(server, "lost_"):
        if name.endswith(ending):
            await server.drop(name)


async def test_records_outlive_an_index_that_is_lost(tmp_path: Path, milvus: MilvusProcess) -> None:
    settings = replace(settings_for(milvus), embedder="none", milvus_prefix="lost")
    server = MilvusServer(milvus.uri)
    async with conspectus.open(tmp_path, settings=settings) as engine:
        await engine.add(NewDocument("still here", key="a"))
        await drop_collections(server, "")
        assert len((await engine.retrieve("still here")).hits) == 1
        await drop_collections(server, "_rows")
        with pytest.raises(IndexDamaged, match="conspectus reindex"):
            await engine.retrieve("still here")
        await engine.maintenance.reindex()
        assert len((await engine.retrieve("still here")).hits) == 1
        assert list((await engine.maintenance.check()).index.values()) == [()]
    await server.close()
