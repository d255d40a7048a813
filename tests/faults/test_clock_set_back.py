"""A clock that is set back by an hour while a store is open: nothing is lost, and nothing is out of order."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from conspectus import Engine, NewDocument, Settings
from conspectus.bootstrap.components import components_at
from conspectus.bootstrap.models import Models
from conspectus.bootstrap.store_address import address_of
from conspectus.errors import Unauthenticated
from conspectus.model.alerts import NewAlert
from conspectus.model.captions import NewCaption
from conspectus.model.chat import ChatRequest, Delta
from conspectus.model.jobs import Upload
from conspectus.model.memory import NewMemory, Retention, Scope
from conspectus.testing.chat_models import ScriptedChatModel
from conspectus.testing.embedders import HashedEmbedder
from tests.waiting import until

HOUR = timedelta(hours=1)
ANN = Scope(user="ann", conversation="tides")
SETTINGS = replace(Settings(), log_level="critical", database_connections=4, alert_poll_interval_ms=10)


class Clock:
    """Moves by a second whenever it is read."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now

    def move(self, by: timedelta) -> None:
        self.now += by


@asynccontextmanager
async def opened(path: str, cache: Path, clock: Clock) -> AsyncIterator[Engine]:
    settings = replace(SETTINGS, cache=str(cache))
    parts = await components_at(address_of(path, settings), settings, Models(settings, HashedEmbedder()))
    engine = Engine(replace(parts, clock=clock, chat_model=ScriptedChatModel(("at", " noon"))))
    try:
        await engine.maintenance.resume()
        yield engine
    finally:
        await engine.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["folder", "postgres"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    folder = str(tmp_path / "store")
    return folder if request.param == "folder" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture
async def engine(path: str, tmp_path: Path, clock: Clock) -> AsyncIterator[Engine]:
    async with opened(path, tmp_path / "cache", clock) as engine:
        yield engine
        assert (await engine.maintenance.check()).clean


async def test_keys_stay_what_they_are(engine: Engine, clock: Clock) -> None:
    await engine.people.create_user("ann")
    lasting = await engine.keys.create("ann", expires=clock.now + 2 * HOUR)
    revoked = await engine.keys.create("ann")
    assert (await engine.keys.authenticate(lasting.secret)).name == "ann"
    await engine.keys.revoke(revoked.key.id)
    clock.move(-HOUR)
    assert (await engine.keys.authenticate(lasting.secret)).name == "ann"
    with pytest.raises(Unauthenticated):
        await engine.keys.authenticate(revoked.secret)
    fresh = await engine.keys.create("ann", expires=clock.now + HOUR)
    assert (await engine.keys.authenticate(fresh.secret)).name == "ann"
    clock.move(4 * HOUR)
    for key in (lasting, fresh):
        with pytest.raises(Unauthenticated):
            await engine.keys.authenticate(key.secret)


async def test_the_last_change_holds(engine: Engine, clock: Clock) -> None:
    await engine.add([NewDocument("first words", key="a"), NewDocument("a ferry", key="gone")], wait=True)
    clock.move(-HOUR)
    await engine.add([NewDocument("second words", key="a"), NewDocument("a boat", key="b")], wait=True)
    (gone,) = [document for document in (await engine.documents.list()).documents if document.key == "gone"]
    await engine.documents.delete(gone.id)
    clock.move(-HOUR)
    await engine.add(NewDocument("third words", key="a"), wait=True)
    results = await engine.retrieve("words ferry boat")
    assert {hit.chunk.text for hit in results.hits} == {"third words", "a boat"}


async def test_versions_of_memories_are_in_the_order_in_which_they_came(engine: Engine, clock: Clock) -> None:
    await engine.memory.add(NewMemory("the tide is at one", key="tide"), scope=ANN, wait=True)
    for hour in ("two", "three"):
        clock.move(-HOUR)
        await engine.memory.add(NewMemory(f"the tide is at {hour}", key="tide"), scope=ANN, wait=True)
    recalled = await engine.memory.recall("when is the tide?", scope=ANN)
    assert [hit.memory.text for hit in recalled.memories] == ["the tide is at three"]
    versions = await engine.memory.list_versions(recalled.memories[0].memory.id, scope=ANN)
    assert [version.text.rpartition(" ")[2] for version in versions] == ["one", "two", "three"]


async def test_retention_lets_nothing_go_too_early_and_is_carried_out(engine: Engine, clock: Clock) -> None:
    await engine.memory.add(NewMemory("the tide is at one"), scope=ANN)
    await engine.retention.set(Retention(days=1), scope=ANN)
    clock.move(-HOUR)
    await engine.retention.apply()
    assert await engine.memory.count(scope=ANN) == 1
    clock.move(timedelta(days=2))
    await engine.retention.apply()
    assert await engine.memory.count(scope=ANN) == 0


async def test_retention_is_carried_out_although_it_was_in_the_future(
    path: str, tmp_path: Path, clock: Clock
) -> None:
    for time in range(2):
        async with opened(path, tmp_path / "cache", clock) as engine:

            async def has_run(engine: Engine = engine) -> bool:
                (rule,) = await engine.retention.list()
                return rule.last_run is not None and rule.last_run <= clock.now

            if not time:
                await engine.retention.set(Retention(max_count=1), scope=ANN)
            await engine.retention.start()
            await until(has_run)
            clock.move(-2 * HOUR)
            assert not await has_run()


async def test_alerts_tell_of_what_comes_after_and_once(engine: Engine, clock: Clock) -> None:
    await engine.streams.put("cam")
    await engine.alerts.put(NewAlert("fire", "fire"))
    await engine.alerts.start()
    for number in range(3):
        await engine.streams.add_captions(NewCaption(f"a fire, number {number}", 60 * number), stream="cam")

        async def has_told(count: int = number + 1) -> bool:
            return len(await engine.alerts.list_matches()) >= count

        await until(has_told)
        clock.move(-HOUR)
    texts = [event.text for event in await engine.alerts.list_matches()]
    assert texts == [f"a fire, number {number}" for number in range(3)]


async def test_chats_are_kept_whole(engine: Engine, clock: Clock) -> None:
    questions = ["when is the ferry?", "and the boat?"]
    for question in questions:
        request = ChatRequest(question, collection="default", store_in="desk")
        events = [event async for event in engine.chat.stream(request)]
        assert "".join(event.text for event in events if isinstance(event, Delta)) == "at noon"
        clock.move(-HOUR)
    messages = await engine.channels.list_messages(channel="desk")
    pairs = [(messages[position].text, messages[position + 1].text) for position in (0, 2)]
    assert sorted(pairs) == sorted((question, "at noon") for question in questions)


async def test_jobs_go_on(engine: Engine, clock: Clock) -> None:
    await engine.jobs.start()
    before = await engine.jobs.ingest_files([Upload("a.md", b"# Ferries")])
    clock.move(-HOUR)
    after = await engine.jobs.ingest_files([Upload("b.md", b"# Boats")])
    for job in (before, after):
        assert (await engine.jobs.wait(job.id)).state == "succeeded"
    assert {document.key for document in (await engine.documents.list()).documents} == {"a.md", "b.md"}
