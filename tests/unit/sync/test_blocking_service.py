import inspect
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import pytest

import conspectus
from conspectus import Engine, Settings
from conspectus.errors import NotFound, StoreClosed
from conspectus.operations.operation import SERVICES
from conspectus.sync import BlockingEngine
from conspectus.sync.blocking_service import BlockingService
from conspectus.testing.embedders import HashedEmbedder

SETTINGS = replace(Settings(), embedder="none")


NAMES = [name for name, attribute in vars(BlockingEngine).items() if isinstance(attribute, cached_property)]


@pytest.mark.parametrize("name", NAMES)
def test_every_operation_of_a_service_is_there_too(name: str, tmp_path: Path) -> None:
    with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        blocking = getattr(engine, name)
        service = type(getattr(engine.asynchronous, name))
    assert isinstance(blocking, BlockingService) and type(blocking._inner) is service
    public = {name for name, _ in inspect.getmembers(service, inspect.isfunction) if not name.startswith("_")}
    assert public == {name for name in vars(type(blocking)) if not name.startswith("_")}


def test_every_service_has_a_blocking_methods() -> None:
    services = {name for name, attribute in vars(Engine).items() if isinstance(attribute, cached_property)}
    assert set(NAMES) == {name for name in services if not name.startswith("_")}
    assert set(SERVICES.values()) <= set(NAMES)


def test_it_stores_finds_and_raises_like_the_engine(tmp_path: Path) -> None:
    with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        engine.add("The meeting moved to Thursday.")
        assert "Thursday" in engine.window("When is the meeting?", 200).text
        with pytest.raises(NotFound):
            engine.documents.get("nothing")


def test_an_error_in_the_block_still_closes_the_store(tmp_path: Path) -> None:
    with pytest.raises(KeyError), conspectus.open(tmp_path, settings=SETTINGS):
        raise KeyError
    with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        assert engine.maintenance.status().collections == ()


async def test_one_opening_is_for_programs_with_an_event_loop_too(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        await engine.add("The meeting moved to Thursday.")
    with conspectus.open(tmp_path, settings=SETTINGS) as blocking:
        assert blocking.documents.count() == 1


def test_an_engine_with_an_origin_writes_with_the_level_of_that_origin(tmp_path: Path) -> None:
    with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        agent = engine.with_origin("agent")
        [written] = agent.add("The model says that the meeting moved.")
        [crawled] = agent.with_origin("web").add("The page says that the meeting moved.")
        [own] = engine.add("Ann says that the meeting moved.")
        levels = [engine.documents.get(stored.id).trust for stored in (written, crawled, own)]
    assert levels == ["standard", "untrusted", "trusted"]


def test_engines_with_and_without_an_origin_are_closed_together(tmp_path: Path) -> None:
    engine = conspectus.open(tmp_path, settings=SETTINGS)
    agent = engine.with_origin("agent")
    agent.close()
    for closed in (engine, agent):
        with pytest.raises(StoreClosed):
            closed.add("too late")
