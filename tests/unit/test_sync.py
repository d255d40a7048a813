import inspect
from dataclasses import replace
from pathlib import Path

import pytest

import conspectus
from conspectus import Engine, Settings
from conspectus.errors import NotFound
from conspectus.sync import BlockingEngine
from conspectus.testing.embedders import HashedEmbedder

SETTINGS = replace(Settings(), embedder="none")


def test_every_operation_of_the_engine_is_there_too() -> None:
    operations = {name for name, _ in inspect.getmembers(Engine, inspect.iscoroutinefunction)}
    public = {name for name in operations if not name.startswith("_")} - {"close", "resume", "finish_purges"}
    assert public == {name for name in vars(BlockingEngine) if not name.startswith("_")} - {
        "run",
        "asynchronous",
        "chat",
        "follow_captions",
        "listen",
    }


def test_it_stores_finds_and_raises_like_the_engine(tmp_path: Path) -> None:
    with conspectus.sync.open(tmp_path, settings=SETTINGS) as engine:
        engine.add("The meeting moved to Thursday.")
        assert "Thursday" in engine.window("When is the meeting?", 200).text
        with pytest.raises(NotFound):
            engine.get("nothing")


def test_an_error_in_the_block_still_closes_the_store(tmp_path: Path) -> None:
    with pytest.raises(KeyError), conspectus.sync.open(tmp_path, settings=SETTINGS):
        raise KeyError
    with conspectus.sync.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        assert engine.status().collections == ()
