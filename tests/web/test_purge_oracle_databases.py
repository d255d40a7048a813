"""A purge leaves nothing where databases keep the records or the index, and two processes serve them."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from pymilvus import MilvusClient

from tests.support.milvus_server import MilvusProcess
from tests.support.postgres_server import PostgresProcess, postgres_server
from tests.waiting import until
from tests.web.finding import KEPT, in_files, in_tables, planted_in
from tests.web.test_purge_oracle_served import SHARED, purge_collections, purge_documents, running_planted

TABLES = """
    SELECT table_schema, table_name FROM information_schema.tables
    WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')
"""
MAX_ROWS = 16_000

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[PostgresProcess]:
    """A server whose files are looked into."""
    with postgres_server() as running:
        yield running


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key for the chat model, which asks for none."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hunter2")


def in_database(url: str) -> dict[str, set[str]]:
    """What was planted, by the tables of PostgreSQL that hold it."""
    words_by_table = {}
    with psycopg.connect(url) as connection:
        for schema, table in connection.execute(TABLES).fetchall():
            rows = connection.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(schema, table)))
            words_by_table[table] = planted_in(repr(rows.fetchall()).encode())
    return {table: words for table, words in words_by_table.items() if words}


def in_its_files(server: PostgresProcess) -> set[str]:
    """What was planted and is in the files of any table."""
    server.run("CHECKPOINT")
    return in_files(server.folder / "base")


def in_milvus(uri: str) -> set[str]:
    """What was planted and is in any field of any collection, or in its name."""
    client = MilvusClient(uri=uri)
    names = client.list_collections()
    rows = [client.query(name, filter="", limit=MAX_ROWS, output_fields=["*"]) for name in names]
    words = planted_in(repr((names, rows)).encode())
    client.close()
    return words


async def test_nothing_is_left_in_postgres(server: PostgresProcess, tmp_path: Path) -> None:
    with server.fresh() as url:
        settings = {"path": url, "index": "pgvector", "cache": tmp_path / "cache"}
        async with running_planted(tmp_path, **settings) as client:
            await until(lambda: in_database(url).keys() >= SHARED)
            await purge_documents(client)
            left = in_database(url)
            assert left.keys() <= KEPT
            assert await asyncio.to_thread(in_its_files, server) <= set().union(*left.values())
            await purge_collections(client)
            assert (in_database(url), in_files(tmp_path / "cache")) == ({}, set())
            assert await asyncio.to_thread(in_its_files, server) == set()


async def test_nothing_is_left_in_milvus(own_milvus: MilvusProcess, tmp_path: Path) -> None:
    store = tmp_path / "data"
    async with running_planted(tmp_path, index="milvus", milvus_uri=own_milvus.uri) as client:
        assert await asyncio.to_thread(in_milvus, own_milvus.uri)
        await purge_documents(client)
        left = in_tables(store)
        assert left.keys() <= KEPT
        assert await asyncio.to_thread(in_milvus, own_milvus.uri) == set()
        await purge_collections(client)
        assert (in_tables(store), in_files(store)) == ({}, set())
