"""Reads that share a transaction on a server: what they see, and when the transaction ends."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
from sqlalchemy import Connection, text
from tests.support.postgres_server import PostgresProcess
from tests.support.samples import shelf
from tests.waiting import until

import conspectus
from conspectus import Settings
from conspectus.errors import NotFound
from conspectus.model.filter import EVERYTHING
from conspectus.model.ids import CollectionId
from conspectus.model.memory import Scope
from conspectus.ports import Probe
from conspectus.records.store import SqlRecords, open_records
from conspectus.testing.embedders import HashedEmbedder

ANN = Scope("ann")
TOWN = Probe(EVERYTHING, "town", None, 10)
SETTINGS = Settings(run_background_jobs="off", log_level="critical")


@pytest.fixture
async def records(postgres_url: str) -> AsyncIterator[SqlRecords]:
    opened = await open_records(postgres_url, connections=5)
    yield opened
    await opened.close()


@pytest.fixture
async def another(postgres_url: str) -> AsyncIterator[SqlRecords]:
    opened = await open_records(postgres_url)
    yield opened
    await opened.close()


def transaction(connection: Connection) -> str:
    """The server process of a connection with the start of its transaction."""
    identity = connection.execute(text("SELECT pg_backend_pid() || ' ' || now()")).scalar_one()
    return str(identity)


async def names(records: SqlRecords) -> list[str]:
    return [collection.name for collection in await records.collections()]


async def test_reads_share_a_transaction(records: SqlRecords, another: SqlRecords) -> None:
    with records.one_snapshot():
        assert await names(records) == []
        first = await records.transactions.read(transaction)
        await another.create_collection(shelf())
        assert await names(records) == []
        assert await records.transactions.read(transaction) == first
    assert await names(records) == ["shelf"]


async def test_a_write_is_seen_by_the_next_read(records: SqlRecords) -> None:
    with records.one_snapshot():
        assert await names(records) == []
        await records.create_collection(shelf())
        assert await names(records) == ["shelf"]


async def test_another_task_reads_for_itself(records: SqlRecords, another: SqlRecords) -> None:
    with records.one_snapshot():
        assert await names(records) == []
        await another.create_collection(shelf())
        assert await asyncio.create_task(names(records)) == ["shelf"]
        assert await names(records) == []


async def test_what_is_not_found_ends_it(records: SqlRecords, another: SqlRecords) -> None:
    with records.one_snapshot():
        with pytest.raises(NotFound):
            await records.sources(CollectionId("gone"))
        await another.create_collection(shelf())
        assert await names(records) == ["shelf"]


async def test_a_lost_connection_is_replaced(
    records: SqlRecords, postgres: PostgresProcess, postgres_url: str
) -> None:
    await records.create_collection(shelf())
    with records.one_snapshot():
        process = (await records.transactions.read(transaction)).split()[0]
        with psycopg.connect(postgres_url, autocommit=True) as administrator:
            administrator.execute("SELECT pg_terminate_backend(%s, 5000)", (int(process),))
        assert await names(records) == ["shelf"]
    assert await names(records) == ["shelf"]


async def test_more_blocks_than_connections_wait_for_no_one(records: SqlRecords) -> None:
    await records.create_collection(shelf())
    together = asyncio.Barrier(20)

    async def read() -> list[str]:
        with records.one_snapshot():
            await names(records)
            await together.wait()
            names_read = await names(records)
            await records.create_collection(shelf("other"))
            return names_read

    async with asyncio.timeout(20):
        readings = await asyncio.gather(*(read() for _ in range(20)))
    assert {reading[-1] for reading in readings} == {"shelf"}


async def test_connections_are_given_back(records: SqlRecords) -> None:
    async def is_shared() -> bool:
        with records.one_snapshot():
            first = await records.transactions.read(transaction)
            return await records.transactions.read(transaction) == first

    for _ in range(10):
        await until(is_shared)
    assert await names(records) == []


async def test_an_older_index_is_read_again(postgres_url: str) -> None:
    """The snapshot is older than what another task has promised meanwhile."""
    async with conspectus.open(postgres_url, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        await engine.memory.add("Ann lives in Rome", scope=ANN, wait=True)
        access = await engine._context.authorized.collection("memory")
        index = (await engine._context.core.open_indexes.current(access.collection)).index
        with engine._context.parts.records.one_snapshot():
            before = await index.search(TOWN)
            assert len(before.ids) == 0
            others = engine.memory.add("Ann was in that town", scope=ANN, wait=True)
            await asyncio.create_task(others)
            await asyncio.create_task(engine.memory.recall("town", scope=ANN))
            assert len((await index.search(TOWN)).ids) == 1
