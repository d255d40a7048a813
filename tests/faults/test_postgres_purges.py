"""Purges on PostgreSQL: which tables are rewritten, what the files hold then, and what a purge waits for."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, create_engine, event

import conspectus
from conspectus import Engine, NewDocument
from conspectus.errors import StorageBusy
from conspectus.model.ids import DocumentId
from conspectus.records.core.postgres_erasure import erase
from conspectus.records.store import open_records
from conspectus.testing.embedders import HashedEmbedder
from tests.files import holding
from tests.stores import SETTINGS
from tests.support.postgres_server import PostgresProcess, postgres_server
from tests.support.samples import SHELF, SPACE, notes, prepared, shelf, vector
from tests.waiting import until

MARKER = "ZANZIBARQUAGGA"
LINK = "conspectus link"
FILES = "SELECT relname, pg_relation_filenode(oid) FROM pg_class WHERE relname LIKE 'index#_%' ESCAPE '#'"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresProcess]:
    """A server whose files are looked into."""
    with postgres_server() as running:
        running.run("ALTER SYSTEM SET max_prepared_transactions = 2")
        running.kill()
        running.start()
        yield running


def is_in_tables(server: PostgresProcess, marker: str) -> bool:
    server.run("CHECKPOINT")
    return bool(holding(server.folder / "base", marker))


def index_files(url: str) -> set[Any]:
    """The tables of all indexes, with their own indexes, and the files they lie in."""
    with psycopg.connect(url) as connection:
        return set(connection.execute(FILES).fetchall())


@contextmanager
def open_two_connections(url: str) -> Iterator[tuple[Connection, psycopg.Connection]]:
    """A connection that can erase, and another one."""
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with (
        psycopg.connect(url) as other,
        engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
    ):
        yield connection, other
    engine.dispose()


async def test_a_purge_leaves_no_byte_of_what_was_deleted(server: PostgresProcess) -> None:
    with server.fresh() as url:
        records = await open_records(url, connections=3)
        await records.create_collection(shelf())
        await records.put_source(notes())
        remaining = [prepared(f"k{number}", f"kept {number} " * 50) for number in range(200)]
        await records.write(
            [*remaining, prepared("a", f"{MARKER} " * 3000, title=MARKER, metadata={"m": MARKER})]
        )
        await records.write([prepared("a", *[f"{MARKER} {number} " for number in range(500)], author=MARKER)])
        waiting = await records.list_unembedded(SHELF, SPACE, limit=1000)
        await records.put_vectors(SHELF, SPACE, [(missing.chunk.id, vector(1)) for missing in waiting])
        server.run("ANALYZE", database=url.rpartition("/")[2].partition("?")[0])
        assert await asyncio.to_thread(is_in_tables, server, MARKER)
        await records.delete([DocumentId("a")])
        await records.purge()
        assert not await asyncio.to_thread(is_in_tables, server, MARKER)
        assert await asyncio.to_thread(is_in_tables, server, "kept 199")
        assert await records.check() == []
        await records.close()


async def test_a_purge_replaces_the_index_of_its_collection_alone(
    server: PostgresProcess, tmp_path: Path
) -> None:
    settings = replace(SETTINGS, index="pgvector", cache=str(tmp_path))
    with server.fresh() as url:
        async with conspectus.open(url, settings=settings, embedder=HashedEmbedder()) as engine:
            await engine.collections.create("other")
            await engine.add("kept 1", collection="other", wait=True)
            other = index_files(url)
            await engine.collections.create("mine")
            (gone,) = await engine.add(f"{MARKER} fox", collection="mine", wait=True)
            assert await asyncio.to_thread(is_in_tables, server, MARKER.lower())
            mine = index_files(url) - other
            await engine.documents.delete(gone.id, purge=True)
            assert index_files(url) >= other
            assert not index_files(url) & mine
            assert not await asyncio.to_thread(is_in_tables, server, MARKER)
            assert not await asyncio.to_thread(is_in_tables, server, MARKER.lower())
            assert len((await engine.retrieve("kept", collection="other")).hits) == 1


def test_a_table_that_is_dropped_meanwhile_does_not_stop_a_purge(postgres_url: str) -> None:
    with open_two_connections(postgres_url) as (connection, other):
        other.execute("CREATE TABLE gone (id bigint)")
        other.commit()

        def drop_when_listed(*arguments: Any) -> None:
            if "pg_relation_filenode(c.oid)" in arguments[2]:
                other.execute("DROP TABLE gone")
                other.commit()

        event.listen(connection, "after_cursor_execute", drop_when_listed)
        erase(connection, busy_seconds=30)
        assert other.execute("SELECT to_regclass('gone')").fetchone() == (None,)


def test_a_table_is_waited_for_however_long_others_took(postgres_url: str) -> None:
    attempts: list[str] = []
    with open_two_connections(postgres_url) as (connection, other):

        def note_attempt(*arguments: Any) -> None:
            if arguments[2].startswith("VACUUM"):
                attempts.append(arguments[2])
                time.sleep(1.1 if len(attempts) == 1 else 0)
                if arguments[2].endswith(".documents"):
                    other.rollback()

        other.execute("LOCK TABLE documents IN ROW EXCLUSIVE MODE")
        event.listen(connection, "after_cursor_execute", note_attempt)
        erase(connection, busy_seconds=1)
    assert not attempts[0].endswith(".documents")
    assert sum(attempt.endswith(".documents") for attempt in attempts) == 2


HOLDERS = {
    "a transaction of another database": "SELECT pg_current_xact_id()",
    "a snapshot of this database": "SELECT 1",
    "a prepared transaction of another database": "PREPARE TRANSACTION 'held'",
}


@contextmanager
def holding_rows_back(server: PostgresProcess, url: str, how: str) -> Iterator[None]:
    """Something because of which the server keeps rows that are deleted in the database of the URL."""
    with server.fresh() as elsewhere, psycopg.connect(url if "this" in how else elsewhere) as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("SELECT pg_current_xact_id()" if "prepared" in how else "SELECT 1")
        holder.execute(HOLDERS[how].encode())
        yield
        if "prepared" in how:
            with psycopg.connect(elsewhere, autocommit=True) as other:
                other.execute("ROLLBACK PREPARED 'held'")
        holder.rollback()


@pytest.mark.parametrize("how", HOLDERS)
async def test_an_erasure_that_is_held_back_is_pending_and_ends_by_itself(
    server: PostgresProcess, tmp_path: Path, how: str
) -> None:
    settings = replace(SETTINGS, index="pgvector", cache=str(tmp_path), lock_timeout_seconds=1)
    async with AsyncExitStack() as opened:
        url = opened.enter_context(server.fresh())
        opening = conspectus.open(url, settings=settings, embedder=HashedEmbedder())
        engine = await opened.enter_async_context(opening)

        async def erasures() -> int:
            (status,) = (await engine.maintenance.status()).collections
            return status.erasures

        async def is_erased() -> bool:
            return await erasures() == 0

        (written,) = await engine.add(f"{MARKER} fox", wait=True)
        with holding_rows_back(server, url, how):
            receipt = await engine.documents.delete(written.id, purge=True)
            assert (receipt.documents, receipt.purged, receipt.erasure_pending) == (1, False, True)
            assert await erasures() == 1
            assert await asyncio.to_thread(is_in_tables, server, MARKER)
        await until(is_erased)
        assert not await asyncio.to_thread(is_in_tables, server, MARKER)


@contextmanager
def keepers(server: PostgresProcess, database: str) -> Iterator[str]:
    """The URL of a database for its owner, who is no superuser."""
    name = database.rpartition("/")[2].partition("?")[0]
    server.run("CREATE ROLE keeper LOGIN")
    server.run(f"ALTER DATABASE {name} OWNER TO keeper")
    yield database.replace("postgres@", "keeper@")
    server.run("REASSIGN OWNED BY keeper TO postgres", name)
    server.run("DROP ROLE keeper")


async def test_a_snapshot_of_a_user_whose_sessions_are_hidden_is_noticed(server: PostgresProcess) -> None:
    """Who is no superuser sees no snapshots of others in `pg_stat_activity`."""
    with server.fresh(empty=True) as url, keepers(server, url) as owned:
        records = await open_records(owned, connections=3, busy_seconds=0.5)
        await records.create_collection(shelf())
        await records.put_source(notes())
        await records.write([prepared("a", MARKER, title=MARKER)])
        with psycopg.connect(url) as holder:
            holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            holder.execute("SELECT 1")
            await records.delete([DocumentId("a")])
            with pytest.raises(StorageBusy, match="in any database"):
                await records.purge()
            assert await asyncio.to_thread(is_in_tables, server, MARKER)
        await records.purge()
        assert not await asyncio.to_thread(is_in_tables, server, MARKER)
        await records.close()


async def keys(engine: Engine) -> set[str | None]:
    hits = (await engine.retrieve("kept word3", limit=50)).hits
    return {hit.document.key for hit in hits}


async def test_a_purge_copies_the_index_and_stops_the_building_of_graphs(
    server: PostgresProcess, tmp_path: Path
) -> None:
    """The building of a graph takes minutes, and its transaction would keep everything that is deleted."""
    settings = replace(SETTINGS, index="pgvector", cache=str(tmp_path))
    async with AsyncExitStack() as opened:
        url = opened.enter_context(server.fresh())
        opening = conspectus.open(url, settings=settings, embedder=HashedEmbedder())
        engine = await opened.enter_async_context(opening)
        texts = [f"kept {number} word{number % 7}" for number in range(40)]
        await engine.add([NewDocument(text, key=text) for text in texts], wait=True)
        (gone,) = await engine.add(
            NewDocument(f"{MARKER} word3", key="gone", metadata={"m": MARKER}), wait=True
        )
        before = await keys(engine)
        building = opened.enter_context(psycopg.connect(url))
        building.execute("SELECT pg_advisory_xact_lock_shared(hashtextextended(%s, 0))", (LINK,))
        building.execute("SELECT pg_current_xact_id()")
        assert (await engine.documents.delete(gone.id, purge=True)).purged
        with pytest.raises(psycopg.OperationalError):
            building.execute("SELECT 1")
        for text in (MARKER, MARKER.lower()):
            assert not await asyncio.to_thread(is_in_tables, server, text)
        assert await keys(engine) == before - {"gone"}
        assert (await engine.maintenance.check()).clean
