"""Alerts of processes that are killed with -9, that work side by side, and that have much to do at once."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

import conspectus
from conspectus import Engine
from conspectus.model.alerts import AlertEvent, NewAlert
from conspectus.model.captions import NewCaption
from tests.faults.alert_keeper import SETTINGS, STREAM, caption, keeper, stored_by
from tests.support.web_server import Answer, ScriptedServer
from tests.waiting import until


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer({"/hook": Answer(b"")}) as running:
        yield running


async def set_alert(store: Path, server: ScriptedServer, name: str = "fire") -> None:
    async with conspectus.open(store, settings=SETTINGS) as engine:
        await engine.streams.put(STREAM)
        await engine.alerts.put(NewAlert(name, "fire", webhook=f"{server.base}/hook"))


async def wait_for_delivery(engine: Engine, hooked: int = 1) -> list[AlertEvent]:
    """Events of the first alerts, those with webhooks, when all are sent and no caption waits for a check."""
    events: list[AlertEvent] = []

    async def are_all_delivered() -> bool:
        newest = (await engine.collections.get("default")).sequence
        alerts = await engine.alerts.list()
        if not all(alert.checked >= newest for alert in alerts):
            return False
        events_by_alert = [
            await engine.alerts.list_matches(alert=alert.id, limit=1_000) for alert in alerts[:hooked]
        ]
        events[:] = [event for alert_events in events_by_alert for event in alert_events]
        return all(event.delivery == "delivered" for event in events)

    await until(are_all_delivered)
    return events


def count_sent_ids(server: ScriptedServer) -> Counter[str]:
    """How often each id was sent."""
    return Counter(json.loads(request.body)["id"] for request in server.requests)


def caption_numbers(events: Iterable[AlertEvent]) -> list[int]:
    return sorted(int(event.text.rsplit(" ", 1)[1]) for event in events)


async def test_killed_between_a_match_and_its_delivery(tmp_path: Path, server: ScriptedServer) -> None:
    await set_alert(tmp_path, server)
    server.answers["/hook"] = Answer(b"", delay=3_600)
    async with keeper(tmp_path, 0, 15) as running:
        await stored_by(running, 15)
        await until(lambda: bool(server.requests))
    server.answers["/hook"] = Answer(b"")
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        await engine.alerts.start()
        events = await wait_for_delivery(engine)
    assert caption_numbers(events) == [0, 3, 6, 9, 12]
    sent = count_sent_ids(server)
    assert sent == {f"{event.alert}-{event.number}": 1 + (event.number == 1) for event in events}


async def kill_repeatedly(store: Path, server: ScriptedServer, times: int) -> None:
    """Whatever a process was about to do: each event is there once and was sent at least once."""
    await set_alert(store, server)
    chance = random.Random(times)
    for turn in range(times):
        async with keeper(store, 1_000 * turn, 900) as running:
            await stored_by(running, chance.randrange(1, 60))
            await asyncio.sleep(chance.uniform(0.0, 0.2))
    async with conspectus.open(store, settings=SETTINGS) as engine:
        await engine.alerts.start()
        events = await wait_for_delivery(engine)
        stored = (await engine.streams.list_captions(stream=STREAM, limit=1_000)).captions
        assert (await engine.maintenance.check()).clean
    fires = [int(str(caption.document.sequence)) for caption in stored if "fire" in caption.text]
    assert caption_numbers(events) == sorted(fires)
    assert set(count_sent_ids(server)) == {f"{event.alert}-{event.number}" for event in events}


async def test_killed_at_any_moment(tmp_path: Path, server: ScriptedServer) -> None:
    await kill_repeatedly(tmp_path, server, 2)


@pytest.mark.slow
async def test_killed_at_many_moments(tmp_path: Path, server: ScriptedServer) -> None:
    await kill_repeatedly(tmp_path, server, 25)


@pytest.mark.slow
async def test_two_processes_tell_and_send_everything_once(tmp_path: Path, server: ScriptedServer) -> None:
    await set_alert(tmp_path, server)
    async with keeper(tmp_path, 0, 60) as one, keeper(tmp_path, 1_002, 60) as other:
        await asyncio.gather(stored_by(one, 60), stored_by(other, 60))
        async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
            events = await wait_for_delivery(engine)
    assert caption_numbers(events) == [*range(0, 60, 3), *range(1_002, 1_062, 3)]
    assert count_sent_ids(server) == {f"{event.alert}-{event.number}": 1 for event in events}


@pytest.mark.slow
async def test_when_the_one_that_checks_is_killed_another_goes_on(
    tmp_path: Path, server: ScriptedServer
) -> None:
    await set_alert(tmp_path, server)
    async with keeper(tmp_path, 0, 6) as first:
        await stored_by(first, 6)
        async with keeper(tmp_path, 30, 6) as second:
            await stored_by(second, 6)
            first.kill()
            await first.wait()
            async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
                await engine.streams.add_captions(caption(60), stream=STREAM)
                events = await wait_for_delivery(engine)
    assert caption_numbers(events) == [0, 3, 30, 33, 60]
    assert set(count_sent_ids(server)) == {f"{event.alert}-{event.number}" for event in events}


@pytest.mark.slow
async def test_five_hundred_captions_at_once_against_twenty_alerts(
    tmp_path: Path, server: ScriptedServer
) -> None:
    words = [f"word{number:02}" for number in range(20)]
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        await engine.streams.put(STREAM)
        for number, word in enumerate(words):
            hook = f"{server.base}/hook" if number < 2 else None
            await engine.alerts.put(NewAlert(word, word, webhook=hook))
        await engine.alerts.start()
        captions = [
            NewCaption(f"{words[number % 20]} and {words[(number + 7) % 20]}", 60 * number, 60 * number + 9)
            for number in range(500)
        ]
        random.Random(7).shuffle(captions)
        await engine.streams.add_captions([*captions, *captions[:50]], stream=STREAM)
        await wait_for_delivery(engine, hooked=2)
        for alert in await engine.alerts.list():
            events = await engine.alerts.list_matches(alert=alert.id, limit=1_000)
            assert len(events) == 50
            assert all(alert.name in event.text for event in events)
    assert set(count_sent_ids(server).values()) == {1}
    assert len(count_sent_ids(server)) == 100


async def test_a_slow_receiver_holds_up_nobody(tmp_path: Path, server: ScriptedServer) -> None:
    server.answers["/slow"] = Answer(b"", delay=3_600)
    async with conspectus.open(tmp_path, settings=replace(SETTINGS, webhook_timeout_seconds=1)) as engine:
        await engine.streams.put(STREAM)
        slow = await engine.alerts.put(NewAlert("slow", "fire", webhook=f"{server.base}/slow"))
        quick = await engine.alerts.put(NewAlert("quick", "fire", webhook=f"{server.base}/hook"))
        await engine.alerts.start()
        await engine.streams.add_captions([caption(number) for number in range(60)], stream=STREAM)
        await until(lambda: server.count("/hook") == 20)
        waiting = await engine.alerts.list_matches(alert=slow.id)
        assert "delivered" not in {event.delivery for event in waiting}
        assert len(await engine.alerts.list_matches(alert=quick.id)) == 20
