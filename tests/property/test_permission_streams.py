"""Who follows a stream, or listens to alerts, when what was granted is taken away; each case by itself."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

import conspectus
from conspectus import Engine, Settings
from conspectus.errors import NotFound
from conspectus.model.access import Person, Principal
from conspectus.model.alerts import NewAlert
from conspectus.model.captions import NewCaption
from conspectus.testing.embedders import HashedEmbedder

SETTINGS = replace(Settings(), log_level="critical", alert_poll_interval_ms=1)
FIRE = NewAlert("fire", "fire", streams=("cam",), min_similarity=None, gap_seconds=0)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as opened:
        for name in ("cam", "yard"):
            await opened.streams.put(name)
        yield opened


@pytest.fixture
async def ann(engine: Engine) -> Engine:
    """Someone who sees one of two streams."""
    user = await engine.people.create_user("ann")
    await engine.access.grant("default", Principal("user", user.id), "viewer", source="cam")
    return engine.as_person(Person("ann", False, user.id))


def fires(count: int, *, first: int = 0) -> list[NewCaption]:
    return [NewCaption(f"fire {n}", 10 * n, 10 * n + 1) for n in range(first, first + count)]


async def revoke(engine: Engine) -> None:
    user = await engine.people.get_user("ann")
    await engine.access.revoke("default", Principal("user", user.id), source="cam")


async def check(engine: Engine) -> None:
    checker = engine.alerts._make_alert_worker()._checker
    while await checker.round():
        pass


async def test_who_takes_time_over_many_captions_is_asked_again(engine: Engine, ann: Engine) -> None:
    await engine.streams.add_captions(fires(50), stream="cam")
    async with aclosing(ann.streams.subscribe(stream="cam", after=0)) as captions:
        for _ in range(3):
            await anext(captions)
        await revoke(engine)
        await asyncio.sleep(0.01)
        with pytest.raises(NotFound):
            await anext(captions)


async def test_who_takes_time_over_many_alerts_is_told_of_few_more(engine: Engine, ann: Engine) -> None:
    alert = await ann.alerts.put(FIRE)
    await engine.streams.add_captions(fires(50), stream="cam")
    await check(engine)
    assert len(await ann.alerts.list_matches()) == 50
    heard = []
    async with aclosing(ann.alerts.subscribe(alert=alert.id, after=0)) as subscription:
        await anext(subscription)
        await revoke(engine)
        with pytest.raises(NotFound):
            while True:
                heard.append(await anext(subscription))
    assert len(heard) < 10
    assert await ann.alerts.list_matches() == []


async def test_alerts_tell_nothing_of_what_others_write_or_are_told(engine: Engine, ann: Engine) -> None:
    mine = await ann.alerts.put(FIRE)
    before = mine.checked, await ann.alerts.last_match()
    await engine.alerts.put(replace(FIRE, streams=()))
    await engine.streams.add_captions(fires(5), stream="yard")
    await check(engine)
    assert len(await engine.alerts.list_matches()) == 5
    assert ((await ann.alerts.get(mine.id)).checked, await ann.alerts.last_match()) == before == (0, 0)
    assert await ann.alerts.list_matches() == []


async def test_an_alert_is_not_there_while_its_collection_is_not(engine: Engine, ann: Engine) -> None:
    alert = await ann.alerts.put(FIRE)
    await revoke(engine)
    assert await ann.alerts.list() == []
    for work in (
        ann.alerts.get(alert.id),
        ann.alerts.delete(alert.id),
        ann.alerts.list_matches(alert=alert.id),
    ):
        with pytest.raises(NotFound, match="alert"):
            await work
    user = await engine.people.get_user("ann")
    await engine.access.grant("default", Principal("user", user.id), "viewer", source="yard")
    assert [listed.id for listed in await ann.alerts.list()] == [alert.id]
