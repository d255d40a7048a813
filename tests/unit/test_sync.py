import inspect
from dataclasses import replace
from pathlib import Path

import pytest

import conspectus
from conspectus import Settings
from conspectus.engine.context import Service
from conspectus.errors import NotFound
from conspectus.sync import BlockingService
from conspectus.testing.embedders import HashedEmbedder

SETTINGS = replace(Settings(), embedder="none")


@pytest.mark.parametrize("service", Service.__subclasses__(), ids=lambda service: service.__name__)
def test_every_operation_of_a_service_is_there_too(service: type[Service], tmp_path: Path) -> None:
    with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        (twin,) = (
            each
            for each in vars(engine).values()
            if isinstance(each, BlockingService) and type(each._service) is service
        )
    public = {name for name, _ in inspect.getmembers(service, inspect.isfunction) if not name.startswith("_")}
    assert public == {name for name in vars(type(twin)) if not name.startswith("_")}


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
