"""Records through PgBouncer in transaction mode: each transaction may run on another connection."""

import asyncio
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import psycopg
import pytest

from conspectus.errors import StorageBusy
from conspectus.model.filter import EVERYTHING
from conspectus.model.ids import DocumentId
from conspectus.records.store import SqlRecords, open_records
from conspectus.testing.postgres_server import PostgresProcess
from conspectus.testing.samples import SHELF, SPACE, notes, prepared, shelf, vector

pytestmark = pytest.mark.slow
SETTINGS = """
[databases]
* = host={server} user=postgres
[pgbouncer]
pool_mode = transaction
auth_type = any
listen_addr =
unix_socket_dir = {folder}
default_pool_size = 2
server_check_query =
query_wait_timeout = 5
"""
TRIES = 200


@pytest.fixture
def pooled_url(postgres: PostgresProcess, postgres_url: str) -> Iterator[str]:
    """A fresh database behind a pooler that has two connections to it, whoever asks."""
    program = shutil.which("pgbouncer")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    postgres.start()
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        settings = Path(folder) / "pgbouncer.ini"
        settings.write_text(SETTINGS.format(server=postgres.host, folder=folder))
        owner = postgres.folder.owner()
        as_owner = ["--user", owner] if os.geteuid() == 0 else []
        running = subprocess.Popen([program, "--quiet", *as_owner, str(settings)])
        name = postgres_url.rpartition("/")[2].partition("?")[0]
        try:
            url = f"postgresql://postgres@/{name}?host={quote(folder, safe='')}&port=6432"
            wait_for(url)
            yield url
        finally:
            running.send_signal(signal.SIGINT)
            running.wait()


def wait_for(url: str) -> None:
    for _ in range(TRIES):
        try:
            psycopg.connect(url, connect_timeout=5).close()
        except psycopg.OperationalError:
            time.sleep(0.02)
        else:
            return
    raise AssertionError("pgbouncer does not answer")


async def some_of_each(records: SqlRecords, name: str) -> None:
    """Writes, copies, reads and vectors of one client among those of others."""
    for number in range(12):
        batch = [prepared(f"{name}-{number}-{part}", *[f"{name}{part} "] * 10) for part in range(3)]
        await records.write(batch)
        waiting = await records.unembedded(SHELF, SPACE, limit=20)
        await records.put_vectors(SPACE, [(each.chunk.id, vector(1)) for each in waiting])
        assert await records.text(DocumentId(f"{name}-{number}-1")) == f"{name}1 " * 10
        assert await records.count(SHELF, EVERYTHING) >= 3 * (number + 1)


async def test_clients_take_turns_on_the_connections_of_a_pooler(pooled_url: str) -> None:
    clients = [await open_records(pooled_url, connections=4) for _ in range(3)]
    await clients[0].create_collection(shelf())
    await clients[0].put_source(notes())
    await asyncio.gather(*(some_of_each(each, f"c{place}") for place, each in enumerate(clients)))
    assert await clients[1].count(SHELF, EVERYTHING) == 3 * 36
    assert await clients[2].check() == []
    await clients[0].delete([DocumentId("c0-0-0")])
    await clients[1].purge()
    for each in clients:
        await each.close()


async def test_no_lock_and_no_setting_is_left_to_the_next(pooled_url: str) -> None:
    records = await open_records(pooled_url, busy_seconds=0.3, connections=4)
    await records.create_collection(shelf())
    with psycopg.connect(pooled_url, prepare_threshold=None, autocommit=True) as other:
        for _ in range(4):
            told = other.execute(
                "SELECT current_setting('statement_timeout'), current_setting('lock_timeout')"
            )
            assert told.fetchone() == ("0", "0")
            held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM"
            assert other.execute(
                f"{held} pg_database WHERE datname = current_database())".encode()
            ).fetchone() == (0,)
            prepared_statements = other.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
            assert prepared_statements == (0,)
            await records.state(SHELF)
    await records.close()


async def test_a_pooler_without_a_free_connection_says_so(pooled_url: str) -> None:
    records = await open_records(pooled_url, busy_seconds=1, connections=4)
    holding = [psycopg.connect(pooled_url) for _ in range(2)]
    for each in holding:
        each.execute("SELECT 1")
    with pytest.raises(StorageBusy):
        await asyncio.wait_for(records.collections(), 30)
    for each in holding:
        each.close()
    assert await records.collections() == []
    await records.close()
