"""Whatever was granted and taken back: of memories and graphs nobody is told what they may not see."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.property.memory_rooms import Rooms
from tests.support.served import served

import conspectus
from conspectus import Engine, Settings
from conspectus.web.app import application

SETTINGS = Settings(embedder="none", log_level="critical", retention_interval_minutes=0, answer_records="all")
STEPS = 14
Enter = Callable[[str], Awaitable[Any]]


@asynccontextmanager
async def open_views(engine: Engine, *, remote: bool) -> AsyncIterator[Enter]:
    """Makes a view for a user, here or on a server."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(served(application(engine, SETTINGS))) if remote else ""

        async def enter(user: str) -> Any:
            secret = (await engine.keys.create(user, scopes=("read", "write"))).secret
            if not remote:
                return engine.as_person(await engine.keys.authenticate(secret))
            return await stack.enter_async_context(conspectus.connect(url, api_key=secret, settings=SETTINGS))

        yield enter


async def run_history(rooms: Rooms) -> int:
    looked = 0
    await rooms.begin()
    for number in range(STEPS):
        await rooms.step()
        if number % 3 == 2:
            await rooms.check_view()
            looked += 1
    return looked


async def count_looks(path: Path, seed: int, *, remote: bool = False) -> int:
    async with conspectus.open(path, settings=SETTINGS) as engine:
        await engine.keys.create_first()
        async with open_views(engine, remote=remote) as enter:
            return await run_history(Rooms(engine, enter, seed))


@pytest.mark.parametrize("seed", range(1))
async def test_no_history_of_memories_leaks(tmp_path: Path, seed: int) -> None:
    assert await count_looks(tmp_path, seed) == STEPS // 3


async def test_no_history_of_memories_leaks_over_http(tmp_path: Path) -> None:
    assert await count_looks(tmp_path, 1_000, remote=True) == STEPS // 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 60))
async def test_no_history_of_many_leaks(tmp_path: Path, seed: int) -> None:
    assert await count_looks(tmp_path, seed, remote=seed % 4 == 0) == STEPS // 3
