"""Two engines on one PostgreSQL and one Milvus: either sees what the other wrote, nothing is there twice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

import conspectus
from conspectus import Engine, NewDocument, Settings
from conspectus.index.milvus.connection import MilvusServer
from conspectus.testing.embedders import HashedEmbedder
from tests.support.milvus_server import MilvusProcess

SETTINGS = replace(Settings(), index="milvus", milvus_timeout_seconds=20, log_level="critical")


@pytest.fixture
def prefix() -> str:
    return f"shared_{uuid4().hex[:12]}"


@pytest.fixture
async def engines(
    tmp_path: Path, postgres_url: str, milvus: MilvusProcess, prefix: str
) -> AsyncIterator[list[Engine]]:
    async with AsyncExitStack() as stack:
        opened = []
        settings = replace(SETTINGS, milvus_uri=milvus.uri, milvus_prefix=prefix)
        for machine in ("first", "second"):
            settings = replace(settings, cache=str(tmp_path / machine))
            opening = conspectus.open(postgres_url, settings=settings, embedder=HashedEmbedder())
            opened.append(await stack.enter_async_context(opening))
        yield opened


async def test_writers_and_askers_in_two_places(engines: list[Engine]) -> None:
    for number, word in enumerate(("fox", "sun", "moon", "sea")):
        writer, reader = engines[number % 2], engines[1 - number % 2]
        await writer.add(NewDocument(word, key=word))
        assert [hit.document.key for hit in (await reader.retrieve(word, retrievers=("keyword",))).hits] == [
            word
        ]
    await asyncio.gather(*(_adds(engine, name) for engine, name in zip(engines, "ab", strict=True)))
    for engine in engines:
        await engine.documents.wait_until_embedded()
        results = await engine.retrieve("together", limit=50)
        assert {hit.document.key for hit in results.hits} >= {f"{name}{n}" for name in "ab" for n in range(8)}
    assert list((await engines[0].maintenance.check()).index.values()) == [()]


async def test_a_rebuild_beside_writers_and_askers(engines: list[Engine]) -> None:
    first, second = engines
    await _adds(first, "a")
    done = asyncio.Event()
    asking = asyncio.create_task(_finds_all(second, "a", done))
    for name in "bc":
        await asyncio.gather(first.maintenance.reindex(), _adds(second, name))
    done.set()
    assert await asking > 0
    assert list((await first.maintenance.check()).index.values()) == [()]


async def test_one_generation_is_left(engines: list[Engine], milvus: MilvusProcess, prefix: str) -> None:
    await asyncio.gather(*(_adds(engine, name) for engine, name in zip(engines, "ab", strict=True)))
    for engine in engines:
        await engine.documents.wait_until_embedded()
    await asyncio.gather(*(engine.maintenance.reindex() for engine in engines))
    server = MilvusServer(milvus.uri)
    names = [name for name in await server.collections() if name.startswith(prefix)]
    words = next(name for name in names if name.endswith("_rows"))
    rows = await server.query(words, "version >= 0", ["chunk"])
    await server.close()
    assert len(names) == 2
    assert len(rows) == len({row["chunk"] for row in rows}) == 16


async def _adds(engine: Engine, name: str) -> None:
    for number in range(8):
        await engine.add(NewDocument(f"together {name} {number}", key=f"{name}{number}"))


async def _finds_all(engine: Engine, name: str, done: asyncio.Event) -> int:
    """Ask without rest; what was there from the beginning is in every answer."""
    answers = 0
    while not done.is_set():
        hits = (await engine.retrieve(f"together {name}", limit=50)).hits
        assert {hit.document.key for hit in hits} >= {f"{name}{number}" for number in range(8)}
        answers += 1
    return answers
