"""Through PgBouncer in transaction mode, records and jobs: each transaction may run on another connection."""

import asyncio
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import httpx
import psycopg
import pytest

from conspectus.errors import Conflict, StorageBusy
from conspectus.model.filter import EVERYTHING
from conspectus.model.ids import DocumentId
from conspectus.records.jobs.idempotency import CLAIM_SECONDS, SqlIdempotencyStore
from conspectus.records.jobs.locks import POOLED_SECONDS, Leases
from conspectus.records.store import SqlRecords, open_records
from tests.faults.test_workers_shared import LONG, running_worker
from tests.programs import program
from tests.support.postgres_server import PostgresProcess
from tests.support.samples import SHELF, SPACE, notes, prepared, shelf, vector
from tests.waiting import until
from tests.web.test_serve import Process, running_server

SETTINGS = """
[databases]
* = host={server} user=postgres
[pgbouncer]
pool_mode = transaction
auth_type = any
listen_addr =
unix_socket_dir = {folder}
default_pool_size = {connections}
server_check_query =
query_wait_timeout = {patience}
"""
TRIES = 200
JOBS = 4
PARTS = "abc"
WORKERS = ("one", "two")


@contextmanager
def running_pooler(
    postgres: PostgresProcess, url: str, connections: int, *, patience: int = 5
) -> Iterator[str]:
    """Where a pooler answers for a database that has so many connections to it, whoever asks.

    One that waits for a connection is refused after `patience` seconds.
    """
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        assert os.environ.get("CI") != "true", "pgbouncer is not installed"
        pytest.skip("pgbouncer is not installed")
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        settings = Path(folder) / "pgbouncer.ini"
        options = {
            "server": postgres.host,
            "folder": folder,
            "connections": connections,
            "patience": patience,
        }
        settings.write_text(SETTINGS.format(**options))
        owner = postgres.folder.owner()
        as_owner = ["--user", owner] if os.geteuid() == 0 else []
        running = subprocess.Popen([program, "--quiet", *as_owner, str(settings)])
        name = url.rpartition("/")[2].partition("?")[0]
        try:
            url_of_pooler = f"postgresql://postgres@/{name}?host={quote(folder, safe='')}&port=6432"
            wait_for(url_of_pooler)
            yield url_of_pooler
        finally:
            running.send_signal(signal.SIGINT)
            running.wait()


@pytest.fixture
def pooled_url(postgres: PostgresProcess, postgres_url: str) -> Iterator[str]:
    """A fresh database behind a pooler that has two connections to it."""
    with running_pooler(postgres, postgres_url, connections=2) as url:
        yield url


def wait_for(url: str) -> None:
    for _ in range(TRIES):
        try:
            psycopg.connect(url, connect_timeout=5).close()
        except psycopg.OperationalError:
            time.sleep(0.02)
        else:
            return
    raise AssertionError("pgbouncer does not answer")


async def work_in_turn(records: SqlRecords, name: str) -> None:
    """Writes, copies, reads and vectors of one client among those of others."""
    for number in range(12):
        batch = [prepared(f"{name}-{number}-{part}", *[f"{name}{part} "] * 10) for part in range(3)]
        await records.write(batch)
        waiting = await records.list_unembedded(SHELF, SPACE, limit=20)
        await records.put_vectors(SHELF, SPACE, [(missing.chunk.id, vector(1)) for missing in waiting])
        assert await records.text(DocumentId(f"{name}-{number}-1")) == f"{name}1 " * 10
        assert await records.count(SHELF, EVERYTHING) >= 3 * (number + 1)


async def test_clients_take_turns_on_the_connections_of_a_pooler(pooled_url: str) -> None:
    clients = [await open_records(pooled_url, connections=4) for _ in range(3)]
    await clients[0].create_collection(shelf())
    await clients[0].put_source(notes())
    await asyncio.gather(*(work_in_turn(client, f"c{number}") for number, client in enumerate(clients)))
    assert await clients[1].count(SHELF, EVERYTHING) == 3 * 36
    assert await clients[2].check() == []
    await clients[0].delete([DocumentId("c0-0-0")])
    await clients[1].purge()
    for client in clients:
        await client.close()


async def test_no_lock_and_no_setting_is_left_to_the_next(pooled_url: str) -> None:
    records = await open_records(pooled_url, busy_seconds=0.3, connections=4)
    await records.create_collection(shelf())
    with psycopg.connect(pooled_url, prepare_threshold=None, autocommit=True) as other:
        for _ in range(4):
            timeouts = other.execute(
                "SELECT current_setting('statement_timeout'), current_setting('lock_timeout')"
            )
            assert timeouts.fetchone() == ("0", "0")
            count_locks = (
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM"
            )
            assert other.execute(
                f"{count_locks} pg_database WHERE datname = current_database())".encode()
            ).fetchone() == (0,)
            prepared_statements = other.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
            assert prepared_statements == (0,)
            await records.state(SHELF)
    await records.close()


async def test_a_pooler_without_a_free_connection_says_so(
    postgres: PostgresProcess, postgres_url: str
) -> None:
    with running_pooler(postgres, postgres_url, connections=2, patience=1) as url:
        records = await open_records(url, busy_seconds=1, connections=4)
        holding = [psycopg.connect(url) for _ in range(2)]
        for connection in holding:
            connection.execute("SELECT 1")
        with pytest.raises(StorageBusy):
            await asyncio.wait_for(records.collections(), 30)
        for connection in holding:
            connection.close()
        assert await records.collections() == []
        await records.close()


LEASE = """
import asyncio, sys
from conspectus.records.jobs.locks import Leases
from conspectus.records.store import open_records

async def main():
    records = await open_records(sys.argv[1], connections=3)
    async with Leases(records.transactions, seconds=600.0).turn("write") as lock:
        print("ready" if lock else "held", flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""
CLAIM = """
import asyncio, sys
from datetime import UTC, datetime
from conspectus.records.jobs.idempotency import SqlIdempotencyStore
from conspectus.records.store import open_records
from conspectus.web.idempotency import IdempotencyOutbox

async def main():
    records = await open_records(sys.argv[1], connections=3)
    claims = SqlIdempotencyStore(records.transactions, seconds=600.0, alone=False)
    await claims.begin("ann", "k", "f", at=datetime.now(UTC))
    print("ready", flush=True)
    await IdempotencyOutbox(claims).renew_claims()

asyncio.run(main())
"""
FEW_SECONDS = 10.0
"""Longer than a lease behind a pooler, or a claim, and the time to look again."""


async def test_a_lease_of_a_process_killed_behind_a_pooler_is_free_in_seconds(pooled_url: str) -> None:
    """A living process keeps it, however long that takes."""
    records = await open_records(pooled_url, connections=3)

    async def is_free() -> bool:
        async with Leases(records.transactions, seconds=600.0).turn("write") as lock:
            return bool(lock)

    async with program("-c", LEASE, pooled_url) as holder:
        for _ in range(3):
            assert not await is_free()
            await asyncio.sleep(POOLED_SECONDS / 2)
        assert not await is_free()
        holder.kill()
        await until(is_free, seconds=FEW_SECONDS)
    await records.close()


@pytest.mark.parametrize("pooler", [False, True])
async def test_a_request_of_a_killed_process_can_be_sent_again_in_seconds(
    postgres: PostgresProcess, postgres_url: str, pooler: bool
) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(running_pooler(postgres, postgres_url, 4)) if pooler else postgres_url
        records = await open_records(url, connections=3)
        claims = SqlIdempotencyStore(records.transactions, seconds=600.0, alone=False)

        async def is_free() -> bool:
            with suppress(Conflict):
                return await claims.begin("ann", "k", "f", at=datetime.now(UTC)) is None
            return False

        async with program("-c", CLAIM, url) as holder:
            await asyncio.sleep(2 * CLAIM_SECONDS)
            assert not await is_free()
            holder.kill()
            await until(is_free, seconds=FEW_SECONDS)
        await records.close()


def session_locks(url: str) -> list[tuple[object, ...]]:
    """Locks of the database that no transaction ends; what it is asked with has none."""
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(
            "SELECT lock.objid, activity.query FROM pg_locks AS lock JOIN pg_stat_activity AS activity"
            " USING (pid) WHERE lock.locktype = 'advisory' AND activity.state = 'idle'"
            " AND activity.datname = current_database()"
        ).fetchall()


async def wait_for_end(client: httpx.AsyncClient, job: str) -> str:
    """What became of a job."""
    while (state := (await client.get(f"/jobs/{job}?wait=10")).json()["state"]) in {"queued", "running"}:
        continue
    return str(state)


async def ingest_files(server: Process, name: str) -> None:
    """Hand in files by jobs, and find what they say when these have ended."""
    async with httpx.AsyncClient(base_url=f"{server.address}/api/v1", timeout=LONG) as client:
        jobs = []
        for number in range(JOBS):
            files = [("files", (f"{name}{number}{part}.md", f"{name} {part}".encode())) for part in PARTS]
            accepted = await client.post("/collections/wiki/ingest/files", files=files)
            jobs.append(accepted.raise_for_status().json()["id"])
        async with asyncio.timeout(LONG):
            assert {await wait_for_end(client, job) for job in jobs} == {"succeeded"}
        question = {"query": name, "collection": "wiki", "limit": 100}
        hits = (await client.post("/search", json=question)).json()["hits"]
        assert len(hits) == len(PARTS) * JOBS


@pytest.fixture
def served(postgres: PostgresProcess, tmp_path: Path) -> Iterator[tuple[str, str, Process]]:
    """Where an empty database is, where a pooler before it, and a server of two processes there."""
    quiet = {"run_background_jobs": "off", "log_level": "error", "cache": tmp_path / "cache"}
    with (
        postgres.fresh(empty=True) as direct,
        running_pooler(postgres, direct, connections=4) as url,
        running_server(tmp_path, "--no-auth", "--workers", "2", path=url, **quiet) as server,
    ):
        with server.client(None) as client:
            client.post("/collections", json={"name": "wiki"}).raise_for_status()
        yield direct, url, server


@pytest.mark.slow
async def test_servers_and_workers_share_jobs(served: tuple[str, str, Process], tmp_path: Path) -> None:
    """Workers start together on tables that nobody has made; one dies, and all servers are replaced."""
    direct, url, server = served
    async with AsyncExitStack() as stack:
        starting = [stack.enter_async_context(running_worker(url, tmp_path / name)) for name in WORKERS]
        first, other = await asyncio.gather(*starting)
        await ingest_files(server, "heron")
        first.kill()
        server.process.send_signal(signal.SIGHUP)
        await ingest_files(server, "egret")
        other.send_signal(signal.SIGTERM)
        assert await other.wait() == 0
    assert server.end() == ""
    assert server.process.returncode == 0
    assert session_locks(direct) == []
