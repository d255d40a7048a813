"""The engine in this process and the engine on a server, held to one contract."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contracts.engine_contract import EngineContract
from tests.support.engine_samples import untimed
from tests.support.served import served

import conspectus
from conspectus import Engine, RemoteEngine, Retrieval, Settings
from conspectus.errors import NotAllowed, NotFound, Unauthenticated
from conspectus.model.access import Principal
from conspectus.model.filter import Eq
from conspectus.model.streams import LiveCaption, NewCaption, StreamQuery
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.app import application

SETTINGS = replace(Settings(), log_level="critical")
ONLY_WHERE_THE_STORE_IS = {
    "authenticate",
    "close",
    "found_owner",
    "follow",
    "hits",
    "newest_alert_event",
    "newest_caption",
    "resume",
    "start_alerting",
    "start_following",
    "start_jobs",
    "start_keeping",
    "finish_purges",
}


@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path / "data", settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        yield engine


class TestEmbedded(EngineContract):
    @pytest.fixture
    def engine(self, local: Engine) -> Engine:
        return local


class TestRemote(EngineContract):
    @pytest.fixture
    async def engine(self, local: Engine) -> AsyncIterator[RemoteEngine]:
        first = await local.found_owner()
        assert first is not None
        async with (
            served(application(local, SETTINGS)) as url,
            conspectus.connect(url, key=first.secret, settings=SETTINGS) as remote,
        ):
            yield remote


def operations(kind: type) -> dict[str, inspect.Signature]:
    members = inspect.getmembers(kind, inspect.iscoroutinefunction)
    return {name: inspect.signature(member) for name, member in members if not name.startswith("_")}


def test_both_have_the_same_methods_with_the_same_signatures() -> None:
    embedded = operations(Engine)
    assert embedded.keys() >= ONLY_WHERE_THE_STORE_IS
    there = {name: each for name, each in embedded.items() if name not in ONLY_WHERE_THE_STORE_IS}
    assert operations(RemoteEngine) == there


async def test_each_key_gets_the_engine_of_its_person(local: Engine) -> None:
    ann = await local.create_user("ann")
    secret = (await local.create_key("ann")).secret
    await local.add(["for all", "for me"], collection="wiki", wait=True)
    shared = await local.source("shared", collection="wiki")
    await local.add("for ann", source="shared", collection="wiki", wait=True)
    await local.grant("wiki", Principal("user", ann.id), "viewer", source="shared")
    here = local.answering(await local.authenticate(secret))
    async with (
        served(application(local, SETTINGS)) as url,
        conspectus.connect(url, key=secret, settings=SETTINGS) as there,
    ):
        assert await there.whoami() == await here.whoami()
        assert await there.sources(collection="wiki") == await here.sources(collection="wiki") == [shared]
        assert await there.list(collection="wiki") == await here.list(collection="wiki")
        found = await there.retrieve("for", collection="*")
        assert [hit.chunk.text for hit in found.hits] == ["for ann"]
        assert untimed(found) == untimed(await here.retrieve("for", collection="*"))
        for engine in (here, there):
            with pytest.raises(NotAllowed) as caught:
                await engine.add("no", source="shared", collection="wiki")
            assert caught.value.needs
            with pytest.raises(NotAllowed):
                await engine.users()
        await local.revoke_key((await local.keys("ann"))[0].id)
        with pytest.raises(Unauthenticated):
            await there.whoami()


async def test_who_may_see_one_stream_sees_that_one(local: Engine) -> None:
    ann = await local.create_user("ann")
    secret = (await local.create_key("ann")).secret
    for name in ("gate", "yard"):
        await local.add_captions(NewCaption(f"a fox at the {name}", 1, 2), stream=name, wait=True)
    await local.grant("default", Principal("user", ann.id), "viewer", source="gate")
    here = local.answering(await local.authenticate(secret))
    async with (
        served(application(local, SETTINGS)) as url,
        conspectus.connect(url, key=secret, settings=SETTINGS) as there,
    ):
        await sees_only_the_gate(here)
        await sees_only_the_gate(there)
        following = [asyncio.create_task(heard(each)) for each in (here, there)]
        await asyncio.sleep(0.3)
        await local.revoke("default", Principal("user", ann.id), source="gate")
        await local.add_captions(NewCaption("a secret fox", 3, 4), stream="gate")
        for task in following:
            with pytest.raises(NotFound):
                await task


async def sees_only_the_gate(engine: Engine | RemoteEngine) -> None:
    assert [each.source.name for each in await engine.streams()] == ["gate"]
    found = await engine.find_moments(StreamQuery("fox"))
    assert {each.stream.name for each in found.moments} == {"gate"}
    assert "yard" not in (await engine.video_window(StreamQuery("fox"), 500)).window.text
    for asked in (engine.captions(stream="yard"), anext(engine.follow_captions(stream="yard"))):
        with pytest.raises(NotFound):
            await asked
    for denied in (engine.add_captions(NewCaption("x"), stream="gate"), engine.clear_stream("gate")):
        with pytest.raises(NotAllowed):
            await denied


async def heard(engine: Engine | RemoteEngine) -> list[LiveCaption]:
    """All that is told of a stream, until that ends."""
    found = [each async for each in engine.follow_captions(stream="gate")]
    assert found == []
    return found


async def test_without_an_event_loop_it_is_the_same(local: Engine) -> None:
    def ask(url: str) -> Retrieval:
        with conspectus.sync.connect(url, settings=SETTINGS) as engine:
            engine.add("The meeting moved to Thursday.", wait=True)
            with pytest.raises(NotFound):
                engine.get("nothing")
            engine.add_captions(NewCaption("a fox", 1, 2), stream="gate")
            with closing(engine.follow_captions(stream="gate", after=0)) as captions:
                assert next(captions).caption.text == "a fox"
            return engine.retrieve("meeting", where=Eq("kind", "page"))

    async with served(application(local, SETTINGS)) as url:
        found = await asyncio.to_thread(ask, url)
        assert untimed(found) == untimed(await local.retrieve("meeting", where=Eq("kind", "page")))
        assert len(found.hits) == 1
