"""Alerts of people who may see much, little, or nothing any more, and what their webhooks are sent."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.files import holding
from tests.support.web_server import Answer, ScriptedServer

import conspectus
from conspectus import Engine, Settings
from conspectus.errors import NotFound, PermissionDenied, TooLarge
from conspectus.model.access import Person, Principal
from conspectus.model.alerts import AlertEvent, NewAlert
from conspectus.model.captions import NewCaption
from conspectus.model.ids import UserId
from conspectus.model.streams import NewStream
from conspectus.streams.alert_delivery import HIDDEN
from conspectus.testing.embedders import HashedEmbedder

SETTINGS = replace(
    Settings(), log_level="critical", fetch_allowed_networks="127.0.0.1", webhook_key="secret", max_alerts=3,
    alert_poll_interval_ms=20,
)  # fmt: skip
FIRE = NewAlert("fire", "fire")


@dataclass
class SharedStore:
    """A store with a stream, its owner, and Ann, who may see what she was granted."""

    owner: Engine
    ann: Engine
    name: str

    async def say(self, text: str, start: float, stream: str = "cam") -> str:
        [written] = await self.owner.streams.add_captions(NewCaption(text, start, start + 1), stream=stream)
        return written.id

    async def grant(self, stream: str = "cam") -> None:
        await self.owner.access.grant("default", Principal("user", self.name), "viewer", source=stream)

    async def revoke(self, stream: str = "cam") -> None:
        await self.owner.access.revoke("default", Principal("user", self.name), source=stream)

    async def wait_until_checked(self) -> None:
        """Wait until no alert is behind, and no vector is still to come, with which it would look again."""
        await self.owner.documents.wait_until_embedded()
        for _ in range(3_000):
            if not await self.owner._context.parts.alerts.rows.behind():
                return
            await asyncio.sleep(0.01)
        raise TimeoutError


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SharedStore]:
    async with conspectus.open(tmp_path / "data", settings=SETTINGS, embedder=HashedEmbedder()) as owner:
        user = await owner.people.create_user("ann")
        await owner.streams.put("cam")
        await owner.streams.put("yard")
        await owner.alerts.start()
        yield SharedStore(owner, owner.as_person(Person("ann", owner=False, id=user.id)), user.id)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer({"/hook": Answer(b"")}) as running:
        yield running


async def list_match_texts(engine: Engine, **options) -> list[str]:
    return [match.text for match in await engine.alerts.list_matches(**options)]


async def wait_for_delivery(engine: Engine, state: str) -> AlertEvent:
    """The first event, when its delivery is in that state."""
    for _ in range(3_000):
        events = await engine.alerts.list_matches()
        if events and events[0].delivery == state:
            return events[0]
        await asyncio.sleep(0.01)
    raise TimeoutError


async def test_an_alert_sees_what_its_owner_sees_when_it_is_checked(store: SharedStore) -> None:
    with pytest.raises(NotFound):
        await store.ann.alerts.put(FIRE)
    await store.grant()
    await store.ann.alerts.put(FIRE)
    await store.say("fire in the yard", 0, "yard")
    await store.say("fire at the cam", 0)
    await store.wait_until_checked()
    assert await list_match_texts(store.ann) == ["fire at the cam"]
    await store.grant("yard")
    await store.say("more fire", 60, "yard")
    await store.wait_until_checked()
    assert await list_match_texts(store.ann) == ["fire at the cam", "more fire"]


async def test_a_revoked_grant_silences_at_once_and_hides_what_was_told(store: SharedStore) -> None:
    await store.grant()
    alert = await store.ann.alerts.put(FIRE)
    await store.say("fire one", 0)
    await store.wait_until_checked()
    await store.revoke()
    assert await list_match_texts(store.ann) == []
    await store.say("fire two", 60)
    await store.wait_until_checked()
    await store.grant()
    assert await list_match_texts(store.ann) == ["fire one"]
    assert await store.ann.alerts.get(alert.id) == (await store.ann.alerts.list())[0]


async def test_a_disabled_account_is_told_nothing(store: SharedStore) -> None:
    await store.grant()
    await store.ann.alerts.put(FIRE)
    await store.owner.people.set_user_disabled(store.name)
    await store.say("fire one", 0)
    await store.wait_until_checked()
    await store.owner.people.set_user_disabled(store.name, disabled=False)
    assert await list_match_texts(store.ann) == []


async def test_alerts_are_their_owners_alone(store: SharedStore) -> None:
    await store.grant()
    alert = await store.ann.alerts.put(FIRE)
    await store.say("fire one", 0)
    await store.wait_until_checked()
    assert await list_match_texts(store.ann) == ["fire one"]
    assert (await store.owner.alerts.list(), await list_match_texts(store.owner)) == ([], [])
    for refused in (
        store.owner.alerts.get(alert.id),
        store.owner.alerts.delete(alert.id),
        store.owner.alerts.list_matches(alert=alert.id),
    ):
        with pytest.raises(NotFound):
            await refused
    with pytest.raises(NotFound):
        async with aclosing(store.owner.alerts.subscribe(alert=alert.id)) as events:
            await anext(events)
    same = await store.owner.alerts.put(FIRE)
    assert same.id != alert.id


async def test_a_key_for_reading_sets_no_alert(store: SharedStore) -> None:
    reader = store.owner.as_person(
        Person("ann", owner=False, id=store.ann._context.person.id, scopes=("read",))
    )
    await store.grant()
    with pytest.raises(PermissionDenied):
        await reader.alerts.put(FIRE)
    assert await reader.alerts.list() == []


async def test_an_owner_has_so_many_alerts_and_no_more(store: SharedStore) -> None:
    for number in range(3):
        await store.owner.alerts.put(replace(FIRE, name=f"alert {number}"))
    with pytest.raises(TooLarge):
        await store.owner.alerts.put(replace(FIRE, name="one more"))
    await store.owner.alerts.put(replace(FIRE, name="alert 1", query="smoke"))
    await store.grant()
    await store.ann.alerts.put(FIRE)


async def test_a_webhook_is_sent_what_was_told_signed_and_once(
    store: SharedStore, server: ScriptedServer
) -> None:
    await store.owner.streams.put(NewStream("clock", start_time="2026-03-02T08:00:00Z"))
    hooked = await store.owner.alerts.put(
        replace(FIRE, streams=("clock",), webhook=f"{server.base}/hook?k=1")
    )
    await store.say("ein Feuer: fire 🔥", 60, "clock")
    event = await wait_for_delivery(store.owner, "delivered")
    [request] = server.requests
    notification = json.loads(request.body)
    assert notification.pop("created") == event.created.isoformat()
    assert notification == {
        "id": f"{hooked.id}-{event.number}", "number": event.number, "alert": hooked.id, "name": "fire",
        "stream": event.stream, "start": 60.0, "end": 61.0, "document": event.document,
        "text": "ein Feuer: fire 🔥", "reason": "words: fire",
    }  # fmt: skip
    assert request.headers["conspectus-id"] == notification["id"]
    signature = hmac.new(b"secret", request.body, hashlib.sha256).hexdigest()
    assert request.headers["conspectus-signature"] == f"sha256={signature}"
    assert event.attempts == 1


async def test_a_receiver_that_is_away_for_a_while_is_told_when_it_is_back(
    store: SharedStore, server: ScriptedServer
) -> None:
    server.answers["/hook"] = [Answer(b"", 503), Answer(b"", 200)]
    await store.owner.alerts.put(replace(FIRE, webhook=f"{server.base}/hook"))
    await store.say("fire one", 0)
    event = await wait_for_delivery(store.owner, "delivered")
    assert (event.attempts, event.error) == (2, None)
    assert len({request.headers["conspectus-id"] for request in server.requests}) == 1


async def test_what_was_revoked_is_not_sent(store: SharedStore, server: ScriptedServer) -> None:
    server.answers["/hook"] = Answer(b"", 503)
    await store.grant()
    await store.ann.alerts.put(replace(FIRE, webhook=f"{server.base}/hook"))
    await store.say("fire one", 0)
    await wait_for_delivery(store.ann, "pending")
    await store.revoke()
    rows = store.owner._context.parts.alerts.rows
    for _ in range(3_000):
        [event] = await rows.events(UserId(store.name), limit=1)
        if event.delivery != "pending":
            break
        await asyncio.sleep(0.01)
    assert (event.delivery, event.error) == ("failed", HIDDEN)
    assert len(server.requests) == event.attempts


async def test_what_is_being_sent_when_the_store_is_closed_is_sent_once(
    tmp_path: Path, server: ScriptedServer
) -> None:
    server.answers["/hook"] = Answer(b"", delay=0.5)
    for last in (False, True):
        async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
            if not last:
                await engine.streams.put("cam")
                await engine.alerts.put(replace(FIRE, webhook=f"{server.base}/hook"))
            await engine.alerts.start()
            if last:
                assert (await wait_for_delivery(engine, "delivered")).attempts == 1
            else:
                await engine.streams.add_captions(NewCaption("fire", 0, 1), stream="cam")
                await wait_for_delivery(engine, "pending")
    assert len(server.requests) == 1


async def test_alerts_are_checked_by_whoever_serves_next(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        await engine.streams.put("cam")
        await engine.alerts.put(FIRE)
        await engine.streams.add_captions(NewCaption("fire", 0, 1), stream="cam")
        assert await list_match_texts(engine) == []
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        await engine.alerts.start()
        await engine.alerts.start()
        assert (await wait_for_delivery(engine, "none")).text == "fire"


async def test_purged_captions_leave_nothing_of_what_was_told(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        await engine.streams.put("cam")
        await engine.alerts.put(FIRE)
        await engine.alerts.start()
        await engine.streams.add_captions(NewCaption("fire xylophone", 0, 1), stream="cam")
        await wait_for_delivery(engine, "none")
        await engine.streams.delete_captions("cam", purge=True)
        assert await list_match_texts(engine) == []
        assert holding(tmp_path, "xylophone") == []


def test_without_an_event_loop_alerts_are_heard_too(tmp_path: Path) -> None:
    with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        engine.streams.put("cam")
        engine.alerts.put(FIRE)
        engine.alerts.start()
        engine.streams.add_captions(
            [NewCaption("fire one", 0, 1), NewCaption("fire two", 60, 61)], stream="cam"
        )
        analyzed = engine.alerts.subscribe(after=0)
        assert [next(analyzed).text, next(analyzed).text] == ["fire one", "fire two"]
        analyzed.close()
