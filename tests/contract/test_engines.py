"""The engine in this process and the engine on a server, held to one contract."""

import inspect
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

import conspectus
from conspectus import Engine, RemoteEngine, Settings
from conspectus.testing.embedders import HashedEmbedder
from conspectus.testing.engine_contract import EngineContract
from conspectus.testing.served import served
from conspectus.web.app import application

SETTINGS = replace(Settings(), log_level="critical")
ONLY_WHERE_THE_STORE_IS = {"authenticate", "close", "found_owner", "hits", "resume", "start_jobs"}


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
