"""Documents with vectors of their own, in collections without an embedder."""

from dataclasses import replace
from pathlib import Path

import pytest

import conspectus
from conspectus import NewDocument, Query, Settings
from conspectus.errors import InvalidInput, PermissionDenied

SETTINGS = replace(Settings(), log_level="critical")


async def test_who_may_make_a_collection_may_hand_its_vectors_in(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path / "data", settings=replace(SETTINGS, embedder="none")) as engine:
        await engine.people.create_user("ann")
        ann = engine.as_person(await engine.keys.authenticate((await engine.keys.create("ann")).secret))
        await ann.collections.create("films", embedder="vectors:2")
        await ann.add(NewDocument("x", vector=(1.0, 0.0)), collection="films")
        with pytest.raises(PermissionDenied):
            await ann.collections.create("costly", embedder="openai:text-embedding-3-small@8")
        for wrong in ((1.0,), (0.0, 0.0), (1.0, 2.0, 3.0)):
            with pytest.raises(InvalidInput):
                await ann.retrieve(Query("", vector=wrong, retrievers=("vector",)), collection="films")


async def test_a_question_in_words_says_that_it_has_no_vector(tmp_path: Path) -> None:
    settings = replace(SETTINGS, embedder="vectors:2")
    async with conspectus.open(tmp_path / "data", settings=settings) as engine:
        await engine.add([NewDocument("red car", vector=(1.0, 0.0)), "a dog"], wait=True)
        retrieval = await engine.retrieve("car")
        assert [hit.chunk.text for hit in retrieval.hits] == ["red car"]
        assert "keyword search only" in retrieval.notices[0]
    async with conspectus.open(tmp_path / "data", settings=settings) as engine:
        assert (await engine.maintenance.status()).collections[0].pending == 1
        retrieval = await engine.retrieve(Query("dog", vector=(2.0, 0.0)))
        assert {hit.chunk.text for hit in retrieval.hits} == {"red car", "a dog"}
