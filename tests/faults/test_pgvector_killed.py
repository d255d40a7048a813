"""The server or its client is killed while writing, several write at once: nothing is half there."""

import asyncio
import pickle
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psycopg
import pytest

from conspectus.errors import StorageBusy, StorageError, StorageTooNew
from conspectus.index.memory import MemoryIndex
from conspectus.index.pgvector.building import forget
from conspectus.index.pgvector.place import Place
from conspectus.index.pgvector.store import PgvectorIndex
from conspectus.model.filter import EVERYTHING, Eq
from conspectus.ports import Index, Probe
from conspectus.testing.journal import Journal, make_chunk, unit
from conspectus.testing.postgres_server import PostgresProcess, postgres_server
from tests.pgvector_places import place_at

DIMENSIONS = 4
EVERY_FOX = Probe(EVERYTHING, "fox", None, 1_000)
WRITER = """
import asyncio, pickle, sys
from conspectus.index.pgvector.store import PgvectorIndex
from tests.pgvector_places import place_at

async def main():
    journal = pickle.loads(open(sys.argv[1], "rb").read())
    async with place_at(sys.argv[2], 4, graph_from=100) as place:
        index = await PgvectorIndex.open(place, journal, str.split)
        print("ready", flush=True)
        while True:
            while changes := await journal.changes_since(index.applied(), limit=37):
                await index.apply(changes)
            await index.rebuild()

asyncio.run(main())
"""


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


async def assert_right(index: PgvectorIndex, journal: Journal) -> None:
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


def tables(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ '^index_'")
        return [name for (name,) in found]


async def test_client_killed(tmp_path: Path, postgres_url: str) -> None:
    journal, chance = history(1), random.Random(1)
    records = tmp_path / "journal"
    records.write_bytes(pickle.dumps(journal))
    async with place_at(postgres_url, DIMENSIONS) as place:
        for _ in range(5):
            command = [sys.executable, "-c", WRITER, str(records), postgres_url]
            child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
            assert child.stdout is not None
            assert await child.stdout.readline() == b"ready\n"
            await asyncio.sleep(chance.random() * 0.5)
            child.kill()
            await child.wait()
            await assert_right(await PgvectorIndex.open(place, journal, str.split), journal)
        index = await PgvectorIndex.open(place, journal, str.split)
        await index.rebuild()
        assert len(tables(postgres_url)) == 6
        await place.database.write(lambda connection: forget(connection, place.name))
        assert tables(postgres_url) == []
        await assert_right(index, journal)
        await index.close()


async def test_several_apply_at_once(postgres_url: str) -> None:
    journal = history(2)
    async with place_at(postgres_url, DIMENSIONS) as one, place_at(postgres_url, DIMENSIONS) as other:
        indexes = [await PgvectorIndex.open(place, journal, str.split) for place in (one, other, one, other)]
        await asyncio.gather(
            *(
                catch_up(index, journal, limit)
                for index, limit in zip(indexes, (7, 11, 50, 400), strict=True)
            ),
            indexes[0].rebuild(),
            indexes[1].rebuild(),
        )
        for index in indexes:
            await assert_right(index, journal)
            await index.close()
    assert len(tables(postgres_url)) == 6


class Versions:
    """A document of some chunks, replaced as a whole in one transaction, again and again."""

    size = 12

    def __init__(self) -> None:
        self.journal = Journal(batch=20)
        self.number = 0
        self._ids: list[int] = []

    def replace(self) -> None:
        first = self.number * (self.size + 2)
        fresh = list(range(first, first + self.size))
        self.number += 1
        self.journal.replace(self._ids, [make_chunk(i, "a fox", metadata={"n": self.number}) for i in fresh])
        self._ids = fresh


async def ask(index: PgvectorIndex, stop: asyncio.Event) -> int:
    """Ask without rest; every answer must be one whole version."""
    asked = 0
    while not stop.is_set():
        found = await index.search(EVERY_FOX)
        assert len(found.ids) == found.total == Versions.size
        assert found.ids[-1] - found.ids[0] == Versions.size - 1
        asked += 1
    return asked


async def replace_and_follow(versions: Versions, indexes: list[PgvectorIndex]) -> None:
    for _ in range(25):
        versions.replace()
        await asyncio.gather(*(catch_up(index, versions.journal) for index in indexes))


async def rebuild(index: PgvectorIndex) -> None:
    for _ in range(3):
        await index.rebuild()
        await index.purge()


async def test_every_answer_is_one_version(postgres_url: str) -> None:
    versions = Versions()
    versions.replace()
    async with place_at(postgres_url, 0) as one, place_at(postgres_url, 0) as other:
        indexes = [await PgvectorIndex.open(place, versions.journal, str.split) for place in (one, other)]
        for index in indexes:
            await catch_up(index, versions.journal)
        stop = asyncio.Event()
        asking = [asyncio.create_task(ask(index, stop)) for index in indexes]
        await asyncio.gather(replace_and_follow(versions, indexes), *map(rebuild, indexes))
        stop.set()
        assert min(await asyncio.gather(*asking)) > 0
        for index in indexes:
            await catch_up(index, versions.journal)
            last = Probe(Eq(("n",), versions.number), "fox", None, 100)
            assert len((await index.search(last)).ids) == Versions.size
            assert await index.check() == []


async def test_closing_stops_what_is_built_beside(postgres_url: str) -> None:
    journal = history(3)
    async with place_at(postgres_url, DIMENSIONS, graph_from=200) as place:
        index = await PgvectorIndex.open(place, journal, str.split)
        await catch_up(index, journal, limit=20)
        await index.close()
        again = await PgvectorIndex.open(place, journal, str.split)
        await assert_right(again, journal)
        await again.rebuild()
        assert (await again.status()).details["graph"] == "yes"
    assert len(tables(postgres_url)) == 6


@pytest.fixture
def process(tmp_path: Path) -> Iterator[PostgresProcess]:
    with postgres_server(tmp_path / "data") as running:
        yield running


async def write_until_killed(
    process: PostgresProcess, index: PgvectorIndex, journal: Journal, *, after: float
) -> None:
    killing = asyncio.create_task(kill_after(process, after))
    with pytest.raises(StorageError):
        while True:
            await catch_up(index, journal, limit=23)
            await index.rebuild()
    await killing


async def test_server_killed_and_started_again(process: PostgresProcess) -> None:
    journal, chance = history(4), random.Random(4)
    with process.fresh() as url:
        async with place_at(url, DIMENSIONS) as place:
            index = await PgvectorIndex.open(place, journal, str.split)
            for _ in range(2):
                await write_until_killed(process, index, journal, after=0.2 + chance.random() / 2)
                await asyncio.to_thread(process.start)
                await until_it_answers(index)
                await assert_right(index, journal)
            await index.close()


async def kill_after(process: PostgresProcess, seconds: float) -> None:
    await asyncio.sleep(seconds)
    await asyncio.to_thread(process.kill)


async def until_it_answers(index: PgvectorIndex) -> None:
    """Connections from before are broken, and each may be found out by one who asks."""
    for _ in range(8):
        try:
            await index.status()
        except StorageBusy:
            continue


async def test_without_the_right_to_have_vectors(postgres: PostgresProcess, postgres_url: str) -> None:
    database = postgres_url.partition("@/")[2].partition("?")[0]
    postgres.run("CREATE ROLE clerk LOGIN")
    postgres.run("GRANT CREATE ON SCHEMA public TO clerk", database)
    journal = Journal()
    journal.put([make_chunk(1, "fox")])
    async with place_at(postgres.url(database, "clerk"), DIMENSIONS) as place:
        index = await PgvectorIndex.open(place, journal, str.split)
        with pytest.raises(StorageError, match="CREATE EXTENSION vector"):
            await catch_up(index, journal)
        words = await PgvectorIndex.open(Place(place.database, "index_2"), journal, str.split)
        await catch_up(words, journal)
        assert len((await words.search(EVERY_FOX)).ids) == 1


async def test_a_newer_format_is_refused(postgres_url: str) -> None:
    journal = history(6, size=20)
    async with place_at(postgres_url, DIMENSIONS) as place:
        await catch_up(await PgvectorIndex.open(place, journal, str.split), journal)
        with psycopg.connect(postgres_url) as connection:
            connection.execute("UPDATE conspectus_indexes SET format = 99")
        with pytest.raises(StorageTooNew, match="99"):
            await PgvectorIndex.open(place, journal, str.split)


async def test_another_analysis_makes_another_index(postgres_url: str) -> None:
    journal = history(7, size=20)
    async with place_at(postgres_url, DIMENSIONS) as place:
        await catch_up(await PgvectorIndex.open(place, journal, str.split), journal)
        index = await PgvectorIndex.open(place, journal, list)
        assert index.applied() == 0
        await catch_up(index, journal)
        assert (await index.search(Probe(EVERYTHING, "f", None, 5))).terms[0].documents > 0


async def test_what_was_removed_is_in_no_table(postgres_url: str) -> None:
    journal = history(8, size=20)
    journal.put([make_chunk(1_000, "xyzzysecret", metadata={"who": "plughsecret"}, author="xyzzysecret")])
    async with place_at(postgres_url, DIMENSIONS) as place:
        index = await PgvectorIndex.open(place, journal, str.split)
        await catch_up(index, journal)
        before = tables(postgres_url)
        journal.remove([1_000])
        await catch_up(index, journal)
        await index.purge()
        assert not set(before) & set(tables(postgres_url))
        with psycopg.connect(postgres_url) as connection:
            for table in tables(postgres_url):
                shown = str(connection.execute(f"SELECT * FROM {table}".encode()).fetchall())
                assert "secret" not in shown
        await assert_right(index, journal)
