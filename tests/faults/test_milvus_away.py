"""Milvus is away while the records in PostgreSQL take writes: all is stored, questions say why they wait."""

import asyncio
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

import conspectus
from conspectus import Engine, NewDocument, Settings
from conspectus.errors import StorageBusy, StorageError
from conspectus.index.milvus.connection import MilvusServer
from conspectus.index.milvus.store import MilvusIndex
from conspectus.model.filter import EVERYTHING
from conspectus.ports import Probe
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.app import application
from tests.index_histories import DIMENSIONS, catch_up, history
from tests.milvus_locations import location_in
from tests.support.milvus_server import milvus_server
from tests.support.served import served

SETTINGS = replace(Settings(), index="milvus", milvus_timeout_seconds=2, log_level="critical")
WORDS = "does not answer within 2 s; nothing is lost"


async def write_for(engine: Engine, seconds: float) -> int:
    """Documents that were acknowledged, for so long and at least a few."""
    until, number = time.monotonic() + seconds, 0
    while number < 5 or time.monotonic() < until:
        written = await engine.add(NewDocument(f"meanwhile {number}", key=f"meanwhile-{number}"))
        assert len(written) == 1
        number += 1
        await asyncio.sleep(min(0.2, seconds / 10))
    return number


async def is_told_why(engine: Engine) -> None:
    with pytest.raises(StorageBusy, match=WORDS):
        await engine.retrieve("meanwhile")
    async with served(application(engine, SETTINGS)) as url, httpx.AsyncClient(base_url=url) as web:
        key = await engine.keys.create(scopes=("read",))
        headers = {"Authorization": f"Bearer {key.secret}"}
        answer = await web.post("/api/v1/search", json={"query": "meanwhile"}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (503, "storage_busy")
    assert "ask again" in answer.json()["detail"]


@pytest.mark.parametrize("seconds", [0.5, pytest.param(60.0, marks=pytest.mark.slow)])
async def test_milvus_away_and_back(tmp_path: Path, postgres_url: str, seconds: float) -> None:
    settings = replace(SETTINGS, cache=str(tmp_path / "cache"))
    with milvus_server(tmp_path / "milvus") as process:
        settings = replace(settings, milvus_uri=process.uri)
        async with conspectus.open(postgres_url, settings=settings, embedder=HashedEmbedder()) as engine:
            await engine.keys.create_first()
            await engine.add([NewDocument(f"before {n}", key=str(n)) for n in range(10)], wait=True)
            assert len((await engine.retrieve("before", limit=50)).hits) == 10
            writing = asyncio.create_task(write_for(engine, seconds))
            asking = asyncio.create_task(engine.retrieve("meanwhile"))
            await asyncio.sleep(0.05)
            process.kill()
            number = await writing
            with suppress(StorageBusy):
                await asking
            await is_told_why(engine)
            await engine.add(NewDocument("asked to wait", key="waited"), wait=True)
            gone = (await engine.documents.list()).documents[0]
            await engine.documents.delete([gone.id])
            process.start()
            results = await engine.retrieve("meanwhile before asked to wait", limit=number + 50)
            keys = {f"meanwhile-{written}" for written in range(number)} | {"waited", *map(str, range(10))}
            assert sorted(str(hit.document.key) for hit in results.hits) == sorted(keys - {gone.key})
            assert list((await engine.maintenance.check()).index.values()) == [()]


async def test_a_collection_goes_with_its_index_or_stays_with_it(tmp_path: Path) -> None:
    """Once it is gone nobody knows of its index any more."""
    with milvus_server(tmp_path / "milvus") as process:
        settings = replace(SETTINGS, milvus_uri=process.uri)
        async with conspectus.open(tmp_path / "data", settings=settings, embedder=HashedEmbedder()) as engine:
            await engine.add("the fox", wait=True)
            process.kill()
            with pytest.raises(StorageBusy, match="does not answer"):
                await engine.collections.delete("default")
            process.start()
            await engine.collections.delete("default")
        server = MilvusServer(process.uri, seconds=20)
        assert await server.collections() == []
        await server.close()


async def test_searches_that_run_together_when_milvus_stops_all_say_that_it_is_away(tmp_path: Path) -> None:
    """One of them gives up the connection that the others have."""
    journal, faults = history(3, size=60), []

    async def search_until_away(index: MilvusIndex) -> None:
        try:
            while True:
                await index.search(Probe(EVERYTHING, "fox", None, 5))
        except StorageError as fault:
            faults.append(type(fault))

    with milvus_server(tmp_path / "milvus") as process:
        server = MilvusServer(process.uri, seconds=2)
        index = await MilvusIndex.open(location_in(server, tmp_path, DIMENSIONS), journal, str.split)
        await catch_up(index, journal)
        searches = [asyncio.create_task(search_until_away(index)) for _ in range(16)]
        await asyncio.sleep(0.5)
        process.kill()
        await asyncio.gather(*searches)
        await server.close()
    assert faults == [StorageBusy] * len(searches)
