"""Random histories of people, grants and documents: nobody ever sees what a plain model says is hidden.

Every history is told by one number. Several share a store, so that each also hides from the others.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import conspectus
from conspectus.engine import Engine
from conspectus.model.access import Person, User
from conspectus.settings import Settings
from conspectus.testing.embedders import HashedEmbedder
from conspectus.testing.permission_doing import Door
from conspectus.testing.permission_looking import Looking
from conspectus.testing.permission_model import Visitor

STEPS = 15
TOGETHER = 10
QUICK = 200
ALL = 2_000


class EngineDoor:
    """The engine itself, as it answers a person."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def entered(self, visitor: Visitor) -> Any:
        user = visitor.user
        return self._engine.answering(Person(user.name, user.owner, user.id, visitor.scopes))


class KeyDoor:
    """The engine for whoever shows a key."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._secrets: dict[tuple[str, tuple[str, ...]], str] = {}

    async def entered(self, visitor: Visitor) -> Any:
        which = (visitor.user.id, visitor.scopes)
        if which not in self._secrets:
            made = await self._engine.create_key(visitor.user.id, scopes=visitor.scopes)
            self._secrets[which] = made.secret
        return self._engine.answering(await self._engine.authenticate(self._secrets[which]))


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[Engine]:
    settings = Settings(embedder="none")
    async with conspectus.open(path, settings=settings, embedder=HashedEmbedder(16)) as engine:
        yield engine


async def tell(door: Door, owner: User, seed: int, *, keys: bool) -> None:
    history = Looking(door, owner, seed)
    await history.begin()
    for number in range(STEPS):
        await history.step()
        if number % 3 == 2:
            await history.look()
    if keys:
        for user in history.world.users.values():
            if user.disabled:
                await history.look_from_outside(user)


async def tell_all(engine: Engine, door: Door, seeds: range, *, keys: bool = False) -> int:
    await engine.create_key()
    owner = await engine.find_user("local")
    for seed in seeds:
        try:
            await tell(door, owner, seed, keys=keys)
        except BaseException as fault:
            fault.add_note(f"history {seed} of {seeds}")
            raise
    return len(seeds)


@pytest.mark.parametrize("first", range(0, QUICK, TOGETHER))
async def test_no_history_leaks(tmp_path: Path, first: int) -> None:
    async with opened(tmp_path) as engine:
        told = await tell_all(engine, EngineDoor(engine), range(first, first + TOGETHER))
    assert told == TOGETHER


@pytest.mark.slow
@pytest.mark.parametrize("first", range(QUICK, ALL, TOGETHER))
async def test_no_history_of_many_leaks(tmp_path: Path, first: int) -> None:
    async with opened(tmp_path) as engine:
        told = await tell_all(engine, EngineDoor(engine), range(first, first + TOGETHER))
    assert told == TOGETHER


@pytest.mark.parametrize("first", [ALL])
async def test_no_history_of_people_with_keys_leaks(tmp_path: Path, first: int) -> None:
    async with opened(tmp_path) as engine:
        told = await tell_all(engine, KeyDoor(engine), range(first, first + TOGETHER), keys=True)
    assert told == TOGETHER
