"""What tests of memories share: a store with words only, people in it, and what can be seen of a scope."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import conspectus
from conspectus import Engine, Settings
from conspectus.model.access import Person
from conspectus.model.memory import MEMORY, MemoryWritten, NewMemory, Scope

SETTINGS = replace(Settings(), embedder="none", log_level="critical", retention_interval_minutes=60)
ANN = Scope("ann", "bot", "monday")
BOB = Scope("bob", "bot", "monday")
ALL = 1_000


@asynccontextmanager
async def store(path: Path, settings: Settings = SETTINGS) -> AsyncIterator[Engine]:
    async with conspectus.open(path, settings=settings) as engine:
        yield engine


def days_ago(days: float) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)


async def say(engine: Engine, scope: Scope, *memories: NewMemory | str) -> list[MemoryWritten]:
    return await engine.memory.add(list(memories), scope=scope)


def said(key: str, days: float, **more: Any) -> NewMemory:
    """A memory whose text is its key and a word of its own, said so many days ago."""
    return NewMemory(f"{key} word{key}", key=key, at=days_ago(days), **more)


async def keys(engine: Engine, scope: Scope, collection: str = MEMORY) -> list[str]:
    """The keys of a scope's memories, in order."""
    page = await engine.memory.list(scope=scope, collection=collection, limit=ALL)
    return [memory.document.key for memory in page.memories]


async def person(engine: Engine, name: str) -> Engine:
    """The store as a new user without any grant."""
    user = await engine.people.create_user(name)
    return engine.as_person(Person(name, owner=False, id=user.id))


def question(text: str, scope: Scope, **more: Any) -> dict[str, Any]:
    return {"query": text, "scope": scope, "graph": None, **more}
