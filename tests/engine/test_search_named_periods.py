"""What was said in the period that a query names stands first, in chats and memories."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.stores import SETTINGS

import conspectus
from conspectus import NewDocument, NewMemory, NewMessage, QueryContext, Scope
from conspectus.engine import Engine

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
MANY_DAYS = 150
LAST_WEEK = {f"we spoke about berths, day {day}" for day in range(1, 8)}
QUERY = "what did we say about berths last week?"


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, settings=SETTINGS) as opened:
        yield opened


async def say_the_same_every_day(engine: Engine) -> None:
    messages = [
        NewMessage(f"we spoke about berths, day {day}", key=str(day), author="ben", at=NOON - timedelta(day))
        for day in range(MANY_DAYS)
    ]
    await engine.channels.add_messages(messages, channel="harbour", wait=True)


async def test_messages_of_the_named_week_stand_first(engine: Engine) -> None:
    await say_the_same_every_day(engine)
    retrieval = await engine.retrieve(QUERY, query_context=QueryContext("harbour", at=NOON), limit=10)
    assert {hit.chunk.text for hit in retrieval.hits[:7]} == LAST_WEEK
    assert all(hit.parts["date"] for hit in retrieval.hits[:7])
    assert "2026-11-23 00:00:00 to 2026-11-30" in retrieval.plan["time_range"]


async def test_a_time_that_is_not_read_is_a_notice_of_conversations_only(engine: Engine) -> None:
    await say_the_same_every_day(engine)
    query = "what did we say about berths on 03/02/2026?"
    [notice] = (await engine.retrieve(query, query_context=QueryContext("harbour", at=NOON))).notices
    assert notice.startswith("'03/02/2026' looks like a time")
    await engine.collections.create("pages")
    await engine.add(NewDocument("Berths are free on 03/02/2026."), collection="pages", wait=True)
    assert (await engine.retrieve(query, collection="pages")).notices == ()


async def test_memories_of_the_named_day_stand_first(engine: Engine) -> None:
    now = datetime.now(UTC)
    yesterday = now - timedelta(days=1)
    memories = [
        NewMemory(f"tea with the harbour master, {days}", at=yesterday - timedelta(days=days))
        for days in range(MANY_DAYS)
    ]
    scope = Scope("ann")
    await engine.memory.add(memories, scope=scope, wait=True)
    recalled = await engine.memory.recall("who did I have tea with yesterday?", scope=scope)
    assert recalled.memories[0].memory.text.endswith(" 0")
