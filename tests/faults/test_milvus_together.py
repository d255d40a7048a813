"""Questions, writers and builders at the same time over one index in Milvus, each with its own connection."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from conspectus.index.milvus.server import MilvusServer
from conspectus.index.milvus.store import MilvusIndex
from conspectus.model.filter import EVERYTHING, Eq
from conspectus.ports import Probe
from conspectus.testing.journal import Journal, make_chunk
from conspectus.testing.milvus_server import MilvusProcess, milvus_server
from tests.milvus_places import place_in

VERSIONED = Probe(EVERYTHING, "version", None, 1_000)
SIZE = 12


class Versions:
    """A document of some chunks, replaced as a whole in one transaction, again and again."""

    def __init__(self) -> None:
        self.journal = Journal(batch=20)
        self.number = 0
        self._ids: list[int] = []

    def replace(self) -> None:
        first = self.number * (SIZE + 2)
        fresh = list(range(first, first + SIZE))
        self.number += 1
        self.journal.replace(
            self._ids, [make_chunk(i, "a version", metadata={"version": self.number}) for i in fresh]
        )
        self._ids = fresh


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MilvusProcess]:
    with milvus_server(tmp_path_factory.mktemp("milvus") / "data") as running:
        yield running


@pytest.fixture
async def servers(process: MilvusProcess) -> AsyncIterator[list[MilvusServer]]:
    opened = [MilvusServer(process.uri, seconds=20) for _ in range(2)]
    yield opened
    for server in opened:
        await server.close()


async def follow(index: MilvusIndex, versions: Versions) -> None:
    await index.apply(await versions.journal.changes_since(index.applied(), limit=10_000))


async def ask(index: MilvusIndex, stop: asyncio.Event) -> int:
    """Ask without rest; every answer must be one whole version."""
    asked = 0
    while not stop.is_set():
        found = await index.search(VERSIONED)
        assert len(found.ids) == found.total == SIZE
        assert found.ids[-1] - found.ids[0] == SIZE - 1
        asked += 1
    return asked


async def write(versions: Versions, indexes: list[MilvusIndex]) -> None:
    for _ in range(15):
        versions.replace()
        await asyncio.gather(*(follow(index, versions) for index in indexes))


async def build(index: MilvusIndex) -> None:
    for _ in range(2):
        await index.rebuild()
        await index.purge()


async def test_every_answer_is_one_version(tmp_path: Path, servers: list[MilvusServer]) -> None:
    versions = Versions()
    versions.replace()
    places = [place_in(server, tmp_path, 0, "versions") for server in servers]
    indexes = [await MilvusIndex.open(place, versions.journal, str.split) for place in places]
    for index in indexes:
        await follow(index, versions)
    stop = asyncio.Event()
    asking = [asyncio.create_task(ask(index, stop)) for index in indexes]
    await asyncio.gather(write(versions, indexes), *map(build, indexes))
    stop.set()
    assert min(await asyncio.gather(*asking)) > 0
    for index in indexes:
        await follow(index, versions)
        last = Probe(Eq(("version",), versions.number), "version", None, 100)
        assert len((await index.search(last)).ids) == SIZE
        assert await index.check() == []


async def test_what_one_has_applied_the_other_need_not(tmp_path: Path, servers: list[MilvusServer]) -> None:
    journal = Journal()
    journal.put(make_chunk(number, "version") for number in range(100))
    first, second = [
        await MilvusIndex.open(place_in(server, tmp_path, 0, "shared"), journal, str.split)
        for server in servers
    ]
    changes = await journal.changes_since(0, limit=1_000)
    await asyncio.gather(first.apply(changes), second.apply(changes))
    assert first.applied() == second.applied() == changes[-1].sequence
    assert len((await second.search(VERSIONED)).ids) == (await second.status()).chunks == 100
    journal.remove([3])
    await first.apply(await journal.changes_since(first.applied(), limit=1_000))
    assert len((await second.search(VERSIONED)).ids) == 99
    assert await second.check() == await first.check() == []
