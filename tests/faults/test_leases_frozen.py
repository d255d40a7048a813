"""Processes on one PostgreSQL that stand still and go on, and a database that goes away and comes back."""

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, text

import conspectus
from conspectus import Engine
from conspectus.errors import LockLost, StorageBusy
from conspectus.model.alerts import AlertEvent, NewAlert
from conspectus.records.jobs.locks import GONE_SECONDS, Leases
from conspectus.records.store import open_records
from conspectus.testing.embedders import HashedEmbedder
from tests.faults.alert_keeper import SETTINGS, STREAM, caption, keeper, stored_by
from tests.programs import program, said, tell
from tests.support.postgres_server import PostgresProcess, postgres_server
from tests.support.samples import shelf
from tests.support.web_server import Answer, ScriptedServer
from tests.waiting import until

SHORT = 0.3


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer({"/hook": Answer(b"")}) as running:
        yield running


SLOW = """
import asyncio, sys
from dataclasses import replace
import conspectus
from conspectus import NewDocument
from conspectus.testing.embedders import HashedEmbedder
from tests.faults.alert_keeper import SETTINGS

class Slow(HashedEmbedder):
    async def embed_documents(self, texts):
        print("embedding", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        print("embedded", flush=True)
        return -(await super().embed_documents(texts))

async def main():
    settings = replace(SETTINGS, cache=sys.argv[2])
    async with conspectus.open(sys.argv[1], settings=settings, embedder=Slow()) as engine:
        print("ready", flush=True)
        await engine.add([NewDocument(f"text {number}", key=str(number)) for number in range(20)])
        await engine.documents.wait_until_embedded()
        print("settled", flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""
"""A program whose vectors are the opposite of everybody else's, and take until it is told."""


def vectors_in(url: str) -> list[tuple[int, bytes]]:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT chunk, vector FROM vectors ORDER BY chunk").fetchall()


def holder_of(url: str, name: str) -> str:
    """Who has a lease of a name that begins so, as people are told."""
    with psycopg.connect(url) as connection:
        query = "SELECT holder FROM leases WHERE starts_with(name, %s)"
        row = connection.execute(query, [name]).fetchone()
    return "" if row is None else str(row[0])


async def wait_for_delivery(engine: Engine, count: int) -> list[AlertEvent]:
    """Every event, when so many are delivered."""

    async def are_delivered() -> bool:
        events = await engine.alerts.list_matches(limit=1_000)
        return sum(event.delivery == "delivered" for event in events) >= count

    await until(are_delivered)
    return list(await engine.alerts.list_matches(limit=1_000))


async def test_who_stood_still_delivers_nothing_that_the_next_one_did(
    postgres_url: str, tmp_path: Path, server: ScriptedServer
) -> None:
    settings = replace(SETTINGS, cache=str(tmp_path))
    async with conspectus.open(postgres_url, settings=settings) as engine:
        await engine.streams.put(STREAM)
        await engine.alerts.put(NewAlert("fire", "fire", webhook=f"{server.base}/hook"))
        async with keeper(postgres_url, 0, 3, tmp_path) as first, keeper(postgres_url, 30, 3, tmp_path):
            await stored_by(first, 3)
            await wait_for_delivery(engine, 2)
            frozen = first if holder_of(postgres_url, "alerts").endswith(f" {first.pid}") else None
            assert frozen is not None
            frozen.send_signal(signal.SIGSTOP)
            await engine.streams.add_captions([caption(number) for number in range(60, 90)], stream=STREAM)
            events = await wait_for_delivery(engine, 12)
            frozen.send_signal(signal.SIGCONT)
            await engine.streams.add_captions([caption(number) for number in range(120, 150)], stream=STREAM)
            events = await wait_for_delivery(engine, 22)
            assert frozen.returncode is None
            assert not holder_of(postgres_url, "alerts").endswith(f" {frozen.pid}")
    sent = server.count("/hook")
    assert sent == len(events) == 22


@pytest.mark.parametrize("machine", ["", "another"])
async def test_vectors_of_who_stood_still_take_the_place_of_none(
    postgres_url: str, tmp_path: Path, machine: str
) -> None:
    settings = replace(SETTINGS, cache=str(tmp_path / machine))
    async with (
        conspectus.open(postgres_url, settings=settings, embedder=HashedEmbedder()) as engine,
        program("-c", SLOW, postgres_url, tmp_path) as frozen,
    ):
        assert await said(frozen) == "embedding"
        assert holder_of(postgres_url, "embedding").endswith(f" {frozen.pid}")
        frozen.send_signal(signal.SIGSTOP)
        assert await engine.documents.wait_until_embedded() == 20
        before = vectors_in(postgres_url)
        frozen.send_signal(signal.SIGCONT)
        await tell(frozen, "")
        # What others have embedded needs no waiting for, so either may come first.
        assert {await said(frozen), await said(frozen)} == {"embedded", "settled"}
        assert vectors_in(postgres_url) == before
        assert len(before) == 20
        assert (await engine.maintenance.check()).clean
        await frozen.communicate(b"")
        assert frozen.returncode == 0


async def test_a_process_that_stops_in_the_middle_of_a_write_does_not_keep_others_from_writing(
    postgres_url: str, tmp_path: Path
) -> None:
    """Its transaction is undone by the server, and begun anew when it goes on."""
    slow = await open_records(postgres_url, busy_seconds=1, connections=2)
    other = await open_records(postgres_url, busy_seconds=5, connections=2)
    standing, going = asyncio.Event(), threading.Event()
    loop, begun = asyncio.get_running_loop(), []

    def stand_still(connection: Connection) -> int:
        begun.append(connection.execute(text("SELECT count(*) FROM collections")).scalar_one())
        loop.call_soon_threadsafe(standing.set)
        going.wait()
        return int(connection.execute(text("SELECT count(*) FROM collections")).scalar_one())

    writing = asyncio.create_task(slow.transactions.write(stand_still))
    await standing.wait()
    assert await other.create_collection(shelf())
    going.set()
    assert await writing == 1
    assert begun == [0, 1]
    for opened in (slow, other):
        await opened.close()


@pytest.fixture
def own_server() -> Iterator[PostgresProcess]:
    with postgres_server() as running:
        yield running


@pytest.fixture
def own_url(own_server: PostgresProcess) -> Iterator[str]:
    with own_server.fresh() as url:
        yield url


async def test_a_database_that_is_away_has_no_turn_and_comes_back_by_itself(
    own_server: PostgresProcess, own_url: str
) -> None:
    store = await open_records(own_url, busy_seconds=2, connections=3)
    turns = Leases(store.transactions, seconds=SHORT)
    with pytest.raises(LockLost):
        async with turns.turn("jobs"):
            await asyncio.to_thread(own_server.kill)
            await asyncio.Event().wait()
    with pytest.raises(StorageBusy):
        await turns.turn("jobs").__aenter__()
    await asyncio.to_thread(own_server.start)
    await asyncio.sleep(SHORT)
    async with turns.turn("jobs") as mine:
        assert mine
    await store.close()


HOLDER = """
import asyncio, sys
from conspectus.records.jobs.locks import Leases
from conspectus.records.store import open_records

async def main():
    records = await open_records(sys.argv[1], connections=3)
    async with Leases(records.transactions, seconds=60.0).turn("write") as lock:
        print("ready" if lock else "held", flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


async def test_a_killed_process_loses_its_lease_at_once_and_a_frozen_one_keeps_it(postgres_url: str) -> None:
    records = await open_records(postgres_url, connections=3)
    turns = Leases(records.transactions, seconds=60.0)

    async def is_free() -> bool:
        async with turns.turn("write") as lock:
            return bool(lock)

    async with program("-c", HOLDER, postgres_url) as holder:
        holder.send_signal(signal.SIGSTOP)
        for _ in range(8):
            assert not await is_free()
            await asyncio.sleep(GONE_SECONDS / 4)
        holder.send_signal(signal.SIGCONT)
        holder.kill()
        await until(is_free, seconds=3 * GONE_SECONDS)
    await records.close()
