"""A purge leaves nothing where several processes serve a store, and where they are killed in its midst."""

import asyncio
import os
import random
import shutil
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

import conspectus
from tests.faults.test_rolling import child_processes
from tests.stores import SETTINGS
from tests.support.chat_server import ChatServer
from tests.support.web_server import Answer, ScriptedServer
from tests.waiting import until
from tests.web import test_purge_oracle
from tests.web.finding import KEPT, in_files, in_store, in_tables
from tests.web.planting import Planter
from tests.web.test_serve import Process, running_server

PAGE = Answer(b"zqxfetchedqz words of a page")
EVERY = {"filter": {"and": []}}
WORKERS = 2
SHARED = {"replays", "chat_frames"}
"""Tables of what only several processes keep of their answers."""
LONGEST = 6.0
"""Seconds within which a purge of everything ends, or nearly."""


@asynccontextmanager
async def running_server_of_processes(
    folder: Path, **settings: object
) -> AsyncIterator[tuple[Process, httpx.AsyncClient]]:
    """A server of several processes, and a client whose every request any of them may answer."""
    options = {
        "log_level": "error",
        "chat_resume_seconds": 600,
        "fetch_allowed_networks": "127.0.0.0/8",
        **settings,
    }
    with running_server(folder, "--no-auth", "--workers", str(WORKERS), **options) as process:
        limits = httpx.Limits(max_keepalive_connections=0)
        base = f"{process.address}/api/v1"
        async with httpx.AsyncClient(base_url=base, timeout=120, limits=limits) as client:
            yield process, client
        await asyncio.to_thread(process.end)


@asynccontextmanager
async def running_planted(folder: Path, **settings: object) -> AsyncIterator[httpx.AsyncClient]:
    """A client of such a server, in which every operation has planted something."""
    wiki = folder / "wiki"
    wiki.mkdir()
    (wiki / "zqxpageqz.md").write_text("# zqxheadqz\n\nzqxbodyqz")
    async with AsyncExitStack() as stack:
        web = await stack.enter_async_context(ScriptedServer({"/zqxpageqz": PAGE}))
        chat = await stack.enter_async_context(ChatServer(["zqxanswerqz"]))
        options = {"chat_model": "openai:small", "chat_base_url": chat.url, "embedder": "minilm", **settings}
        process, client = await stack.enter_async_context(running_server_of_processes(folder, **options))
        document = (await client.get(f"{process.address}/openapi.json")).json()
        planter = Planter(client, document, web.base, str(wiki))
        await planter.prepare()
        await planter.plant()
        assert planter.refused == []
        yield client


async def list_collections(client: httpx.AsyncClient) -> list[str]:
    return [collection["id"] for collection in (await client.get("/collections")).json()]


async def purge_documents(client: httpx.AsyncClient, which: Mapping[str, object] = EVERY) -> None:
    """Purge documents of every collection, by default all of them."""
    for collection in await list_collections(client):
        gone = await client.post(f"/collections/{collection}/documents/delete", json={**which, "purge": True})
        assert gone.json().get("purged"), gone.text


async def purge_collections(client: httpx.AsyncClient) -> None:
    """Purge all collections."""
    for collection in await list_collections(client):
        gone = await client.delete(f"/collections/{collection}", params={"purge": True})
        assert gone.json().get("purged"), gone.text


@pytest.mark.slow
async def test_several_processes_leave_nothing_in_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hunter2")
    store = tmp_path / "data"
    async with running_planted(tmp_path) as client:
        await until(lambda: in_tables(store).keys() >= SHARED)
        await purge_documents(client)
        left = in_tables(store)
        assert left.keys() <= KEPT
        assert in_files(store) <= set().union(*left.values())
        await purge_collections(client)
        assert (in_tables(store), in_files(store)) == ({}, set())
    assert in_files(store) == set()


async def purge_until_killed(folder: Path, delay: float) -> None:
    """Purge all of it, and kill every process of the server after so many seconds."""
    async with running_server_of_processes(folder) as (process, client):
        purging = asyncio.create_task(purge_all(client))
        await asyncio.wait([purging], timeout=delay)
        for process_id in (process.process.pid, *child_processes(process.process.pid)):
            with suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)
        with suppress(httpx.TransportError):
            await purging


async def purge_all(client: httpx.AsyncClient) -> None:
    await purge_documents(client)
    await purge_collections(client)


async def finish_purges(store: Path) -> None:
    """What the opening finishes is erased from every file, and a purge anew erases the rest."""
    idle = replace(SETTINGS, embedder="none")
    async with conspectus.open(store, settings=idle) as engine:
        records = engine._context.core.records

        async def is_done() -> bool:
            return not await records.list_unfinished_purges()

        await until(is_done)
        left, lying = in_store(store)
        assert lying <= set().union(*left.values())
        for collection in await engine.collections.list():
            await engine.collections.delete(collection.id, purge=True)
        assert in_store(store) == ({}, set())


async def kill_at_moments(tmp_path: Path, *, seed: int, times: int) -> None:
    chance = random.Random(seed)
    async with test_purge_oracle.running_planted(tmp_path, 1, accounts=False) as (client,):
        # What was replaced and deleted while things were planted goes first: nobody was promised that.
        await purge_documents(client, {"ids": ["nothing"]})
    assert in_files(tmp_path / "data") <= set().union(*in_tables(tmp_path / "data").values())
    for number in range(times):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "data", folder / "data")
        await purge_until_killed(folder, chance.uniform(0, LONGEST))
        await finish_purges(folder / "data")


async def test_a_purge_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    await kill_at_moments(tmp_path, seed=1, times=1)


@pytest.mark.slow
async def test_a_purge_that_is_killed_at_many_moments_leaves_nothing(tmp_path: Path) -> None:
    await kill_at_moments(tmp_path, seed=2, times=12)
