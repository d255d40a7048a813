"""The server killed with -9 while clients hand in pages: what it accepted is finished, exactly once."""

import asyncio
import os
import random
import re
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

import conspectus
from tests.faults.job_taker import SETTINGS
from tests.faults.test_jobs_killed import pages, verify
from tests.waiting import until

SERVE = [sys.executable, "-c", "from conspectus.cli.entry import main; main()", "serve", "--port", "0"]
CLIENTS = 6
EACH = 2_000
"""More pages than one server takes in before it is killed."""


def environment(path: str | Path, embedder: str = "none") -> dict[str, str]:
    options: dict[str, object] = {"path": path, "embedder": embedder}
    options |= {"fetch_allowed_networks": SETTINGS.fetch_allowed_networks}
    options |= {"job_backoff_ms": SETTINGS.job_backoff_ms}
    return {**os.environ, **{f"CONSPECTUS_{name.upper()}": str(value) for name, value in options.items()}}


@asynccontextmanager
async def running_server(path: str | Path, *, embedder: str = "none") -> AsyncIterator[str]:
    """The address of a server that is killed at the end of the block."""
    server = await asyncio.create_subprocess_exec(
        *SERVE, env=environment(path, embedder), stdout=PIPE, stderr=PIPE
    )
    assert server.stderr is not None
    first = (await server.stderr.readline()).decode()
    match = re.match(r"listening on (http://\S+)", first)
    assert match, first
    reading = asyncio.create_task(server.communicate())
    try:
        yield f"{match[1]}/api/v1"
    finally:
        server.kill()
        await reading


async def submit_pages(address: str, key: str, base: str, numbers: range, accepted: dict[str, int]) -> None:
    """One page after the other, until nobody answers."""
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=30) as client:
        for number in numbers:
            request = {"url": f"{base}/{number}"}
            try:
                answer = await client.post("/collections/default/ingest/url", json=request)
            except httpx.TransportError:
                return
            assert answer.status_code == 202, answer.text
            accepted[answer.json()["id"]] = number


async def create_store_with_key(path: str | Path) -> str:
    """The key of a new store's owner."""
    async with conspectus.open(path, settings=SETTINGS) as engine:
        await engine.collections.get_or_create()
        key = await engine.keys.create_first()
    assert key is not None
    return key.secret


async def run_one_server(path: Path, key: str, base: str, numbers: range, accepted: dict[str, int]) -> None:
    """A server that takes in pages from several clients, and is killed soon after the first."""
    before, parts = len(accepted), [numbers[client_number::CLIENTS] for client_number in range(CLIENTS)]
    async with running_server(path) as address:
        handing = [asyncio.create_task(submit_pages(address, key, base, part, accepted)) for part in parts]
        await until(lambda: len(accepted) > before)
        await asyncio.sleep(random.Random(numbers.start).uniform(0.0, 1.5))
    await asyncio.gather(*handing)


async def kill_repeatedly(path: Path, times: int) -> None:
    key = await create_store_with_key(path)
    accepted: dict[str, int] = {}
    async with pages(times * EACH) as base:
        for turn in range(times):
            await run_one_server(path, key, base, range(turn * EACH, (turn + 1) * EACH), accepted)
        async with conspectus.open(path, settings=SETTINGS) as engine:
            await verify(engine, accepted)
    assert len(accepted) >= times


async def test_what_a_server_accepted_is_finished_once_at_two_moments(tmp_path: Path) -> None:
    await kill_repeatedly(tmp_path / "store", 2)


@pytest.mark.slow
async def test_what_a_server_accepted_is_finished_once_at_twenty_moments(tmp_path: Path) -> None:
    await kill_repeatedly(tmp_path / "store", 20)
