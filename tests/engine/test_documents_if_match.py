"""Documents of one batch that are written only while all of them are what was read."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.served import served

import conspectus
from conspectus import Engine, RemoteEngine, Settings
from conspectus.errors import PreconditionFailed
from conspectus.model.records import NewDocument
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.app import application

SETTINGS = replace(Settings(), log_level="critical")
OLD = (NewDocument("One.", key="a"), NewDocument("Two.", key="b"))


@pytest.fixture(params=["embedded", "remote"])
async def engine(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Engine | RemoteEngine]:
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as local:
        if request.param == "embedded":
            yield local
            return
        first = await local.keys.create_first()
        assert first is not None
        async with (
            served(application(local, SETTINGS)) as url,
            conspectus.connect(url, api_key=first.secret, settings=SETTINGS) as remote,
        ):
            yield remote


async def test_one_that_was_changed_keeps_the_others_back(engine: Engine | RemoteEngine) -> None:
    ids = [written.id for written in await engine.add(OLD)]
    read = [(await engine.documents.get(document)).fingerprint for document in ids]
    new = [NewDocument("Uno.", key="a", if_match=read[0]), NewDocument("Due.", key="b", if_match=read[1])]
    await engine.documents.update(ids[1], title="Changed")
    with pytest.raises(PreconditionFailed):
        await engine.add(new)
    assert [await engine.documents.get_text(document) for document in ids] == ["One.", "Two."]
    fresh = replace(new[1], if_match=(await engine.documents.get(ids[1])).fingerprint)
    assert [written.outcome for written in await engine.add([new[0], fresh])] == ["replaced", "replaced"]


async def test_one_that_would_not_change_is_compared_too(engine: Engine | RemoteEngine) -> None:
    await engine.add(OLD)
    with pytest.raises(PreconditionFailed):
        await engine.add([replace(OLD[0], if_match="other"), NewDocument("Three.", key="c")])
    with pytest.raises(PreconditionFailed):
        await engine.add(NewDocument("Four.", key="d", if_match="not there"))
    assert await engine.documents.count() == 2
