"""The server or its client is killed while writing, several write at once: nothing is half there."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest
from sqlalchemy import Connection

from conspectus.bootstrap.pgvector import IndexTransactions
from conspectus.errors import StorageBusy, StorageError, StorageTooNew
from conspectus.index.pgvector.building import forget
from conspectus.index.pgvector.options import PgvectorOptions
from conspectus.index.pgvector.store import PgvectorIndex
from conspectus.model.filter import EVERYTHING
from conspectus.model.ids import ChunkId
from conspectus.model.index import IndexedChunk
from conspectus.ports import Probe
from conspectus.records.core.database import DatabaseAccess, database_at
from conspectus.records.core.transactions import Transactions
from tests.index_histories import (
    DIMENSIONS,
    Versions,
    assert_every_answer_is_one_version,
    assert_right,
    catch_up,
    history,
    kept_at,
    write_until_killed,
)
from tests.pgvector_options import options_at
from tests.programs import program
from tests.support.journal import Journal, make_chunk
from tests.support.postgres_server import PostgresProcess, postgres_server

Result = TypeVar("Result")
EVERY_FOX = Probe(EVERYTHING, "fox", None, 1_000)
WRITER = """
import asyncio, sys
from conspectus.index.pgvector.store import PgvectorIndex
from tests.index_histories import journal_at, write_on
from tests.pgvector_options import options_at

async def main():
    journal = journal_at(sys.argv[1])
    async with options_at(sys.argv[2], 4, graph_from=100) as place:
        await write_on(await PgvectorIndex.open(place, journal, str.split), journal)

asyncio.run(main())
"""


def index_tables(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ '^index_'")
        return [name for (name,) in rows]


async def test_client_killed(tmp_path: Path, postgres_url: str) -> None:
    journal, chance = history(1), random.Random(1)
    records = kept_at(tmp_path / "journal", journal)
    async with options_at(postgres_url, DIMENSIONS) as options:
        for _ in range(3):
            async with program("-c", WRITER, records, postgres_url):
                await asyncio.sleep(chance.random() * 0.5)
            await assert_right(await PgvectorIndex.open(options, journal, str.split), journal)
        index = await PgvectorIndex.open(options, journal, str.split)
        await index.rebuild()
        assert len(index_tables(postgres_url)) == 6
        await options.database.write(lambda connection: forget(connection, options.name))
        assert index_tables(postgres_url) == []
        await assert_right(index, journal)
        await index.close()


async def test_several_apply_at_once(postgres_url: str) -> None:
    journal = history(2)
    async with options_at(postgres_url, DIMENSIONS) as one, options_at(postgres_url, DIMENSIONS) as other:
        indexes = [
            await PgvectorIndex.open(options, journal, str.split) for options in (one, other, one, other)
        ]
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
    assert len(index_tables(postgres_url)) == 6


class Slow(Journal):
    """Whoever builds from it stands still until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()

    async def scan(self, after: ChunkId | None = None) -> AsyncIterator[Sequence[IndexedChunk]]:
        """Tell that it has begun, and wait."""
        self.begun.set()
        await self.go_on.wait()
        async for batch in super().scan(after):
            yield batch


async def test_deleting_waits_for_nobody_who_builds(postgres_url: str) -> None:
    """Building may take longer than anybody waits, and what it makes is of no use any more."""
    slow = Slow()
    async with options_at(postgres_url, DIMENSIONS) as one, options_at(postgres_url, DIMENSIONS) as other:
        journal = history(9, size=20)
        await catch_up(await PgvectorIndex.open(other, journal, str.split), journal)
        building = asyncio.create_task((await PgvectorIndex.open(one, slow, str.split)).rebuild())
        await slow.begun.wait()
        async with asyncio.timeout(20):
            await other.database.write(lambda connection: forget(connection, other.name))
        slow.go_on.set()
        with pytest.raises(StorageBusy):
            await building
        assert index_tables(postgres_url) == []


async def test_who_stands_still_while_building_is_waited_for_no_longer_than_that(postgres_url: str) -> None:
    """A process that was stopped has its connection still, and the locks on it."""
    slow = Slow()
    async with options_at(postgres_url, DIMENSIONS) as one, options_at(postgres_url, DIMENSIONS) as other:
        journal = history(11, size=20)
        options = replace(one, idle_seconds=1)
        building = asyncio.create_task((await PgvectorIndex.open(options, slow, str.split)).rebuild())
        await slow.begun.wait()
        index = await PgvectorIndex.open(other, journal, str.split)
        async with asyncio.timeout(60):
            await catch_up(index, journal)
        slow.go_on.set()
        with pytest.raises(StorageBusy):
            await building
        await assert_right(index, journal)


async def test_every_answer_is_one_version(postgres_url: str) -> None:
    versions = Versions()
    async with options_at(postgres_url, 0) as one, options_at(postgres_url, 0) as other:
        indexes = [await PgvectorIndex.open(options, versions.journal, str.split) for options in (one, other)]
        await assert_every_answer_is_one_version(versions, indexes, replacements=25, rebuilds=3)


class Overtaken(IndexTransactions):
    """The next reading begins, and goes on when something else was done."""

    first: Coroutine[Any, Any, None] | None = None

    async def read(self, work: Callable[[Connection], Result]) -> Result:
        """Do the other thing between the snapshot and the work."""
        loop, first = asyncio.get_running_loop(), self.first
        self.first = None

        def late(connection: Connection) -> Result:
            if first is not None:
                asyncio.run_coroutine_threadsafe(first, loop).result()
            return work(connection)

        return await super().read(late)


async def test_an_index_tells_of_itself_while_it_is_built_anew(postgres_url: str) -> None:
    journal, transactions = history(10, size=20), Transactions(database_at(postgres_url, DatabaseAccess()))
    overtaken = Overtaken(transactions)
    async with options_at(postgres_url, DIMENSIONS) as other:
        builder = await PgvectorIndex.open(other, journal, str.split)
        await catch_up(builder, journal)
        index = await PgvectorIndex.open(replace(other, database=overtaken), journal, str.split)
        overtaken.first = builder.rebuild()
        assert (await index.status()).details["tables"] in index_tables(postgres_url)[0]
        overtaken.first = builder.rebuild()
        assert await index.check() == []
        overtaken.first = builder.rebuild()
        assert len((await index.search(EVERY_FOX)).ids) > 0
    await overtaken.close()
    await transactions.close()


async def test_closing_stops_what_is_built_beside(postgres_url: str) -> None:
    journal = history(3)
    async with options_at(postgres_url, DIMENSIONS, graph_from=200) as options:
        index = await PgvectorIndex.open(options, journal, str.split)
        await catch_up(index, journal, limit=20)
        await index.close()
        again = await PgvectorIndex.open(options, journal, str.split)
        await assert_right(again, journal)
        await again.rebuild()
        assert (await again.status()).details["graph"] == "yes"
    assert len(index_tables(postgres_url)) == 6


@pytest.fixture
def process() -> Iterator[PostgresProcess]:
    with postgres_server() as running:
        yield running


async def test_server_killed_and_started_again(process: PostgresProcess) -> None:
    journal, chance = history(4), random.Random(4)
    with process.fresh() as url:
        async with options_at(url, DIMENSIONS) as options:
            index = await PgvectorIndex.open(options, journal, str.split)
            for _ in range(2):
                await write_until_killed(process, index, journal, after=0.2 + chance.random() / 2)
                await asyncio.to_thread(process.start)
                await wait_until_it_answers(index)
                await assert_right(index, journal)
            await index.close()


async def wait_until_it_answers(index: PgvectorIndex) -> None:
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
    async with options_at(postgres.url(database, "clerk"), DIMENSIONS) as options:
        index = await PgvectorIndex.open(options, journal, str.split)
        with pytest.raises(StorageError, match="CREATE EXTENSION vector"):
            await catch_up(index, journal)
        words = await PgvectorIndex.open(PgvectorOptions(options.database, "index_2"), journal, str.split)
        await catch_up(words, journal)
        assert len((await words.search(EVERY_FOX)).ids) == 1


async def test_a_newer_format_is_refused(postgres_url: str) -> None:
    journal = history(6, size=20)
    async with options_at(postgres_url, DIMENSIONS) as options:
        await catch_up(await PgvectorIndex.open(options, journal, str.split), journal)
        with psycopg.connect(postgres_url) as connection:
            connection.execute("UPDATE conspectus_indexes SET format = 99")
        with pytest.raises(StorageTooNew, match="99"):
            await PgvectorIndex.open(options, journal, str.split)


async def test_another_analysis_makes_another_index(postgres_url: str) -> None:
    journal = history(7, size=20)
    async with options_at(postgres_url, DIMENSIONS) as options:
        await catch_up(await PgvectorIndex.open(options, journal, str.split), journal)
        index = await PgvectorIndex.open(options, journal, list)
        assert index.applied_sequence() == 0
        await catch_up(index, journal)
        assert (await index.search(Probe(EVERYTHING, "f", None, 5))).terms[0].documents > 0


async def test_what_was_removed_is_in_no_table(postgres_url: str) -> None:
    journal = history(8, size=20)
    journal.put([make_chunk(1_000, "xyzzysecret", metadata={"who": "plughsecret"}, author="xyzzysecret")])
    async with options_at(postgres_url, DIMENSIONS) as options:
        index = await PgvectorIndex.open(options, journal, str.split)
        await catch_up(index, journal)
        before = index_tables(postgres_url)
        journal.remove([1_000])
        await catch_up(index, journal)
        await index.purge()
        assert not set(before) & set(index_tables(postgres_url))
        with psycopg.connect(postgres_url) as connection:
            for table in index_tables(postgres_url):
                content = str(connection.execute(f"SELECT * FROM {table}".encode()).fetchall())
                assert "secret" not in content
        await assert_right(index, journal)
