"""Changing what is stored: what stays as it was, and what happens when two change it at once."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

import conspectus
from conspectus import Engine, NewDocument, Settings
from conspectus.errors import InvalidInput, NotFound, PreconditionFailed
from conspectus.model.records import TextPosition

SETTINGS = replace(Settings(), chunk_size=400, chunk_overlap=40, embedder="none")


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, settings=SETTINGS) as opened:
        yield opened


async def list_spans(engine: Engine, document: str) -> list[tuple[int, int]]:
    return [(chunk.start, chunk.end) for chunk in await engine.documents.list_chunks(document)]


async def test_the_callers_own_chunks_survive_a_new_title(engine: Engine) -> None:
    new = NewDocument(text="abcdef", spans=((0, 2), (1, 6)), key="k")
    document = (await engine.add(new))[0].id
    await engine.documents.update(document, title="T")
    assert await list_spans(engine, document) == [(0, 2), (1, 6)]
    assert (await engine.add(replace(new, title="T")))[0].outcome == "unchanged"


@pytest.mark.parametrize("wrong", [((0, 2), (3, 6)), ((1, 6),), ((0, 5),), ((0, 9),), ((3, 6), (0, 3))])
async def test_chunks_that_do_not_make_up_the_text_are_refused(
    engine: Engine, wrong: tuple[tuple[int, int], ...]
) -> None:
    with pytest.raises(InvalidInput):
        await engine.add(NewDocument(text="abcdef", spans=wrong))
    assert await engine.documents.count() == 0


async def test_pages_survive_a_new_title(engine: Engine) -> None:
    text = "first page\n\n" + "second page " * 60
    new = NewDocument(
        text=text, places=(TextPosition(0, 1, ("Intro",)), TextPosition(12, 2, ("Intro", "More")))
    )
    document = (await engine.add(new))[0].id
    before = [(chunk.page, chunk.heading) for chunk in await engine.documents.list_chunks(document)]
    await engine.documents.update(document, title="T")
    assert [(chunk.page, chunk.heading) for chunk in await engine.documents.list_chunks(document)] == before
    assert before[0] == (1, "Intro")
    assert before[-1] == (2, "Intro > More")


async def test_a_stored_fingerprint_guards_against_overwriting(engine: Engine) -> None:
    document = (await engine.add(NewDocument(text="one", key="k")))[0].id
    seen = (await engine.documents.get(document)).fingerprint
    await engine.documents.update(document, text="two", if_match=seen)
    with pytest.raises(PreconditionFailed):
        await engine.documents.update(document, text="three", if_match=seen)
    assert await engine.documents.get_text(document) == "two"


async def test_two_who_change_different_fields_both_succeed(engine: Engine) -> None:
    document = (await engine.add(NewDocument(text="one", key="k")))[0].id
    changes = [{"title": "T"}, {"author": "A"}, {"metadata": {"a": 1}}, {"text": "two"}]
    await asyncio.gather(*(engine.documents.update(document, **change) for change in changes))
    updated = await engine.documents.get(document)
    assert (updated.title, updated.author, updated.metadata) == ("T", "A", {"a": 1})
    assert await engine.documents.get_text(document) == "two"


async def test_a_document_without_chunks_stays(engine: Engine) -> None:
    document = (await engine.add("some heron text"))[0].id
    assert await engine.documents.delete_chunks(document) == 1
    assert await engine.documents.delete_chunks(document) == 0
    assert (await engine.documents.get(document)).chunks == 0
    assert (await engine.retrieve("heron")).hits == ()


async def test_a_deleted_collection_leaves_nothing_to_one_of_the_same_name(engine: Engine) -> None:
    await engine.add(["heron one", "heron two"], collection="birds")
    assert len((await engine.retrieve("heron", collection="birds")).hits) == 2
    receipt = await engine.collections.delete("birds")
    assert (receipt.documents, receipt.chunks) == (2, 2)
    with pytest.raises(NotFound):
        await engine.retrieve("heron", collection="birds")
    await engine.add("heron three", collection="birds")
    retrieval = await engine.retrieve("heron", collection="birds")
    assert [hit.chunk.text for hit in retrieval.hits] == ["heron three"]
    assert (await engine.maintenance.check()).clean


async def test_a_renamed_collection_keeps_what_it_has(engine: Engine) -> None:
    await engine.add("heron", collection="birds")
    await engine.collections.update("birds", name="fowl", description="all of them")
    assert len((await engine.retrieve("heron", collection="fowl")).hits) == 1
    with pytest.raises(NotFound):
        await engine.retrieve("heron", collection="birds")
    assert (await engine.collections.get("fowl")).description == "all of them"


async def test_deleting_a_source_takes_its_documents_along(engine: Engine) -> None:
    await engine.add(["heron one", "heron two"], source="pond")
    await engine.add("heron three", source="lake")
    receipt = await engine.collections.delete_source("pond", collection="default")
    assert (receipt.documents, receipt.chunks) == (2, 2)
    assert [hit.chunk.text for hit in (await engine.retrieve("heron")).hits] == ["heron three"]
    assert [source.name for source in await engine.collections.list_sources()] == ["lake"]


async def test_everywhere_is_every_collection(engine: Engine) -> None:
    await engine.add(["heron of the pond", "nothing else"], collection="a")
    await engine.add(["heron of the lake", "a heron and a heron"], collection="b")
    retrieval = await engine.retrieve("heron", collection="*")
    assert {hit.chunk.text for hit in retrieval.hits} == {
        "heron of the pond",
        "heron of the lake",
        "a heron and a heron",
    }
    assert all(hit.score == pytest.approx(sum(hit.parts.values())) for hit in retrieval.hits)
    assert len((await engine.retrieve("heron", collection="*", limit=2)).hits) == 2
    window = await engine.search.augment("heron", 200)
    assert "pond" in window.text
    assert "lake" in window.text


async def test_the_same_names_have_the_same_ids_in_every_store(engine: Engine, tmp_path: Path) -> None:
    written = await engine.add(NewDocument(text="heron", key="k"), source="pond")
    async with conspectus.open(tmp_path / "other", settings=SETTINGS) as other:
        assert (await other.add(NewDocument(text="heron", key="k"), source="pond"))[0].id == written[0].id
        windows = [await store.window("heron", 200, format="json") for store in (engine, other)]
        assert windows[0].text == windows[1].text


async def test_a_name_that_was_given_up_can_be_given_again(engine: Engine) -> None:
    first = await engine.collections.get_or_create("birds")
    pond = await engine.collections.get_or_create_source("pond", collection="birds")
    await engine.collections.update_source(pond.id, name="lake")
    assert (await engine.collections.get_or_create_source("pond", collection="birds")).id != pond.id
    await engine.collections.update("birds", name="fowl")
    second = await engine.collections.get_or_create("birds")
    assert second.id != first.id
    assert [collection.name for collection in await engine.collections.list()] == ["birds", "fowl"]
