"""The engine in this process and the engine on a server, held to one contract."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.engine_contract import EngineContract
from tests.support.engine_samples import untimed
from tests.support.served import served

import conspectus
from conspectus import Engine, RemoteEngine, Retrieval, Settings
from conspectus.engine.any_engine import AnyEngine
from conspectus.engine.service import Service
from conspectus.errors import NotFound, PermissionDenied, Unauthenticated
from conspectus.model.access import Principal
from conspectus.model.captions import LiveCaption, NewCaption
from conspectus.model.checks import hints
from conspectus.model.filter import Eq
from conspectus.operations.table import OPERATIONS
from conspectus.sync import BlockingEngine
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.app import application

SETTINGS = replace(Settings(), log_level="critical")
ONLY_WHERE_THE_STORE_IS = {
    "AlertService.last_match",
    "AlertService.start",
    "ConnectionService.start",
    "ConnectionService.watch",
    "IdentityService.start",
    "JobService.start",
    "KeyService.authenticate",
    "LoginService.accept_invitation",
    "KeyService.create_first",
    "MaintenanceService.finish_purges",
    "MaintenanceService.resume",
    "MemoryService.start",
    "RetentionService.start",
    "SearchService.get_hits",
    "StreamService.last_sequence",
}
SERVICES = sorted(name for name, member in inspect.getmembers(AnyEngine) if isinstance(member, property))


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
        first = await local.keys.create_first()
        assert first is not None
        async with (
            served(application(local, SETTINGS)) as url,
            conspectus.connect(url, api_key=first.secret, settings=SETTINGS) as remote,
        ):
            yield remote


def operations(kind: type) -> dict[str, inspect.Signature]:
    return {
        name: signature(member)
        for name, member in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


def signature(method: Callable[..., Any]) -> inspect.Signature:
    """The signature of a method, without what annotations declare beside the types."""
    full_signature, types = inspect.signature(method), hints(method)
    parameters = [
        parameter.replace(annotation=types.get(parameter.name, parameter.annotation))
        for parameter in full_signature.parameters.values()
    ]
    return full_signature.replace(parameters=parameters, return_annotation=types.get("return"))


async def test_both_have_the_same_services_with_the_same_signatures(local: Engine) -> None:
    refused = {}
    async with conspectus.connect("http://localhost:1", settings=SETTINGS) as remote:
        for name in SERVICES:
            here, there = getattr(local, name), getattr(remote, name)
            assert isinstance(there, type(here))
            assert operations(type(there)) == operations(type(here))
            if type(there) is type(here):
                continue
            for method_name in derived_methods(type(there)) - OPERATIONS.keys():
                refused[method_name] = getattr(there, method_name.partition(".")[2])
        assert refused.keys() == ONLY_WHERE_THE_STORE_IS
        for method in refused.values():
            with pytest.raises(PermissionDenied):
                await method()


def derived_methods(kind: type) -> set[str]:
    """The methods of a remote service that the client derives."""
    (service,) = (base for base in kind.__mro__ if Service in base.__bases__)
    return {
        f"{service.__name__}.{name}"
        for name, member in vars(kind).items()
        if inspect.isfunction(member) and member.__module__ != kind.__module__
    }


@pytest.mark.parametrize("kind", [Engine, RemoteEngine, BlockingEngine, *Service.__subclasses__()])
def test_no_object_has_more_than_25_public_methods(kind: type) -> None:
    public = [name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))]
    assert len(public) <= 25


async def test_each_key_gets_the_engine_of_its_person(local: Engine) -> None:
    ann = await local.people.create_user("ann")
    secret = (await local.keys.create("ann")).secret
    await local.add(["for all", "for me"], collection="wiki", wait=True)
    shared = await local.collections.get_or_create_source("shared", collection="wiki")
    await local.add("for ann", source="shared", collection="wiki", wait=True)
    await local.access.grant("wiki", Principal("user", ann.id), "viewer", source="shared")
    here = local.as_person(await local.keys.authenticate(secret))
    async with (
        served(application(local, SETTINGS)) as url,
        conspectus.connect(url, api_key=secret, settings=SETTINGS) as there,
    ):
        assert await there.people.whoami() == await here.people.whoami()
        assert (
            await there.collections.list_sources(collection="wiki")
            == await here.collections.list_sources(collection="wiki")
            == [shared]
        )
        assert await there.documents.list(collection="wiki") == await here.documents.list(collection="wiki")
        retrieval = await there.retrieve("for", collection="*")
        assert [hit.chunk.text for hit in retrieval.hits] == ["for ann"]
        assert untimed(retrieval) == untimed(await here.retrieve("for", collection="*"))
        for engine in (here, there):
            await assert_may_not_write(engine)
        await local.keys.revoke((await local.keys.list("ann"))[0].id)
        with pytest.raises(Unauthenticated):
            await there.people.whoami()


async def assert_may_not_write(engine: Engine | RemoteEngine) -> None:
    with pytest.raises(PermissionDenied) as caught:
        await engine.add("no", source="shared", collection="wiki")
    assert caught.value.needs
    with pytest.raises(PermissionDenied):
        await engine.people.list_users()


async def test_who_may_see_one_stream_sees_that_one(local: Engine) -> None:
    ann = await local.people.create_user("ann")
    secret = (await local.keys.create("ann")).secret
    for name in ("gate", "yard"):
        await local.streams.add_captions(NewCaption(f"a fox at the {name}", 1, 2), stream=name, wait=True)
    await local.access.grant("default", Principal("user", ann.id), "viewer", source="gate")
    here = local.as_person(await local.keys.authenticate(secret))
    async with (
        served(application(local, SETTINGS)) as url,
        conspectus.connect(url, api_key=secret, settings=SETTINGS) as there,
    ):
        await assert_sees_only_the_gate(here)
        await assert_sees_only_the_gate(there)
        following = [asyncio.create_task(read_captions(engine)) for engine in (here, there)]
        await asyncio.sleep(0.3)
        await local.access.revoke("default", Principal("user", ann.id), source="gate")
        await local.streams.add_captions(NewCaption("a secret fox", 3, 4), stream="gate")
        for task in following:
            with pytest.raises(NotFound):
                await task


async def assert_sees_only_the_gate(engine: Engine | RemoteEngine) -> None:
    assert [stream.source.name for stream in await engine.streams.list()] == ["gate"]
    moments_found = await engine.streams.search("fox")
    assert {moment.stream.name for moment in moments_found.moments} == {"gate"}
    assert "yard" not in (await engine.streams.window("fox", 500)).window.text
    for hidden_read in (
        engine.streams.list_captions(stream="yard"),
        anext(engine.streams.subscribe(stream="yard")),
    ):
        with pytest.raises(NotFound):
            await hidden_read
    for denied in (
        engine.streams.add_captions(NewCaption("x"), stream="gate"),
        engine.streams.delete_captions("gate"),
    ):
        with pytest.raises(PermissionDenied):
            await denied


async def read_captions(engine: Engine | RemoteEngine) -> list[LiveCaption]:
    """All that is told of a stream, until that ends."""
    captions = [caption async for caption in engine.streams.subscribe(stream="gate")]
    assert captions == []
    return captions


async def test_without_an_event_loop_it_is_the_same(local: Engine) -> None:
    def ask(url: str) -> Retrieval:
        with conspectus.connect(url, settings=SETTINGS) as engine:
            engine.add("The meeting moved to Thursday.", wait=True)
            with pytest.raises(NotFound):
                engine.documents.get("nothing")
            engine.streams.add_captions(NewCaption("a fox", 1, 2), stream="gate")
            with closing(engine.streams.subscribe(stream="gate", after=0)) as captions:
                assert next(captions).caption.text == "a fox"
            return engine.retrieve("meeting", filter=Eq("kind", "page"))

    async with served(application(local, SETTINGS)) as url:
        retrieval = await asyncio.to_thread(ask, url)
        assert untimed(retrieval) == untimed(await local.retrieve("meeting", filter=Eq("kind", "page")))
        assert len(retrieval.hits) == 1
