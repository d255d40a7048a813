"""A store with people, and each of them with a key of their own."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

import conspectus
from conspectus.engine import Engine
from conspectus.model.access import SCOPES
from conspectus.settings import Settings

Enter = Callable[..., Any]


@pytest.fixture
async def owner(tmp_path: Path) -> AsyncIterator[Engine]:
    """A store with three people who may name each other; whom a person may name is tested for itself."""
    async with conspectus.open(tmp_path, settings=Settings(embedder="none", user_directory="open")) as engine:
        for name in ("alice", "bob", "carol"):
            await engine.people.create_user(name)
        yield engine


@pytest.fixture
def enter(owner: Engine) -> Enter:
    """The store as someone may use it who came with a key."""

    async def entered(name: str, *scopes: Any, **options: Any) -> Engine:
        issued = await owner.keys.create(name, scopes=scopes or SCOPES, **options)
        return owner.as_person(await owner.keys.authenticate(issued.secret))

    return entered
