"""Random histories of people, grants and documents: nobody ever sees what a plain model says is hidden.

Every history is told by one number. Several share a store, so that each also hides from the others.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from tests.support.permission_doing import Door
from tests.support.permission_looking import Looking
from tests.support.permission_model import Visitor
from tests.support.served import served

import conspectus
from conspectus.client.engine import RemoteEngine
from conspectus.engine import Engine
from conspectus.model.access import Person
from conspectus.settings import Settings
from conspectus.testing.chat_models import ScriptedChatModel
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.app import application
from conspectus.web.logs import logger

SETTINGS = Settings(embedder="none", alert_poll_interval_ms=5, answer_records="all")
STEPS = 15
TOGETHER = 5
QUICK = 5
ALL = 2_000
FEW = 2
LISTENED_TO = 0.2
FAR = 10_000


class EngineDoor:
    """The engine itself, as it answers a person."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def enter(self, visitor: Visitor) -> Any:
        user = visitor.user
        return self._engine.as_person(Person(user.name, user.owner, user.id, visitor.scopes))


class KeyDoor:
    """The engine for whoever shows a key."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._secrets: dict[tuple[str, tuple[str, ...]], str] = {}

    async def enter(self, visitor: Visitor) -> Any:
        identity = (visitor.user.id, visitor.scopes)
        if identity not in self._secrets:
            key = await self._engine.keys.create(visitor.user.id, scopes=visitor.scopes)
            self._secrets[identity] = key.secret
        return self._engine.as_person(await self._engine.keys.authenticate(self._secrets[identity]))


class HttpDoor:
    """A server in front of the engine, for whoever shows a key; the client has the engine's methods."""

    def __init__(self, engine: Engine, url: str, clients: AsyncExitStack) -> None:
        self._engine = engine
        self._url = url
        self._clients = clients
        self._known: dict[tuple[str, tuple[str, ...]], RemoteEngine] = {}

    async def enter(self, visitor: Visitor) -> Any:
        identity = (visitor.user.id, visitor.scopes)
        if identity not in self._known:
            key = await self._engine.keys.create(visitor.user.id, scopes=visitor.scopes)
            opening = conspectus.connect(self._url, api_key=key.secret, settings=SETTINGS)
            self._known[identity] = await self._clients.enter_async_context(opening)
        return self._known[identity]


@asynccontextmanager
async def behind_a_server(engine: Engine) -> AsyncIterator[HttpDoor]:
    app = application(engine, SETTINGS, log=logger("error", StringIO()))
    async with served(app) as url, AsyncExitStack() as clients:
        yield HttpDoor(engine, url, clients)


@asynccontextmanager
async def open_engine(path: Path) -> AsyncIterator[tuple[Engine, ScriptedChatModel]]:
    model = ScriptedChatModel()
    embedder = HashedEmbedder(16)
    async with conspectus.open(path, settings=SETTINGS, embedder=embedder, chat_model=model) as engine:
        yield engine, model


async def run_history(history: Looking, *, keys: bool) -> None:
    await history.begin()
    for number in range(STEPS):
        await history.step()
        if number % 3 == 2:
            await history.look()
    if keys or history.chance.random() < LISTENED_TO:
        await history.silence()
    if keys:
        for user in history.world.users.values():
            if user.disabled:
                await history.look_from_outside(user)


async def run_histories(
    engine: Engine, model: ScriptedChatModel, door: Door, seeds: range, *, keys: bool = False
) -> int:
    await engine.keys.create()
    owner = await engine.people.get_user("local")
    checker = engine.alerts._make_alert_worker()._checker

    async def check() -> None:
        while await checker.round():
            pass

    for seed in seeds:
        try:
            await run_history(Looking(door, owner, seed, check=check, model=model), keys=keys)
        except BaseException as fault:
            fault.add_note(f"history {seed} of {seeds}")
            raise
    return len(seeds)


@pytest.mark.parametrize("first", range(0, QUICK, TOGETHER))
async def test_no_history_leaks(tmp_path: Path, first: int) -> None:
    async with open_engine(tmp_path) as (engine, model):
        histories = await run_histories(engine, model, EngineDoor(engine), range(first, first + TOGETHER))
    assert histories == TOGETHER


@pytest.mark.slow
@pytest.mark.parametrize("first", range(QUICK, ALL, TOGETHER))
async def test_no_history_of_many_leaks(tmp_path: Path, first: int) -> None:
    async with open_engine(tmp_path) as (engine, model):
        histories = await run_histories(engine, model, EngineDoor(engine), range(first, first + TOGETHER))
    assert histories == TOGETHER


async def test_a_few_histories_of_people_with_keys_do_not_leak(tmp_path: Path) -> None:
    async with open_engine(tmp_path) as (engine, model):
        histories = await run_histories(engine, model, KeyDoor(engine), range(ALL, ALL + FEW), keys=True)
    assert histories == FEW


async def test_a_few_histories_over_http_do_not_leak(tmp_path: Path) -> None:
    async with open_engine(tmp_path) as (engine, model), behind_a_server(engine) as door:
        histories = await run_histories(engine, model, door, range(FAR, FAR + FEW), keys=True)
    assert histories == FEW


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FAR + FEW, FAR + FEW + 20 * TOGETHER, TOGETHER))
async def test_no_history_over_http_leaks(tmp_path: Path, first: int) -> None:
    async with open_engine(tmp_path) as (engine, model), behind_a_server(engine) as door:
        histories = await run_histories(engine, model, door, range(first, first + TOGETHER), keys=True)
    assert histories == TOGETHER
