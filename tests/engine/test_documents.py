"""Documents in the embedded store: written, embedded, replaced, deleted and found again."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.files import holding
from tests.support.embedders import PickyEmbedder

import conspectus
from conspectus import Engine, Eq, NewDocument, Query, Settings
from conspectus.errors import InvalidInput, NotFound, StorageError, TooLarge
from conspectus.testing.embedders import HashedEmbedder

SETTINGS = replace(Settings(), chunk_size=400, chunk_overlap=40)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as opened:
        yield opened


def list_titles(retrieval: conspectus.Retrieval) -> list[str]:
    return [hit.document.title for hit in retrieval.hits]


async def test_a_document_is_found_by_its_words_the_moment_it_is_added(engine: Engine) -> None:
    await engine.add(NewDocument(text="The heron stood in the reeds.", title="birds"))
    await engine.add(NewDocument(text="Torque is force times distance.", title="physics"))
    retrieval = await engine.retrieve("where did the heron stand", retrievers=("keyword",))
    assert list_titles(retrieval)[0] == "birds"
    assert retrieval.hits[0].bm25 is not None


async def test_whatever_writes_is_in_the_index_when_it_returns(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("a note about otters")
    settings = replace(SETTINGS, embedder="none")
    async with conspectus.open(tmp_path / "store", settings=settings) as engine:
        home = await engine.collections.get_or_create()

        async def behind() -> int:
            sequence, _ = await engine._context.core.records.state(home.id)
            return (
                sequence - engine._context.core.open_indexes._by_collection[home.id].index.applied_sequence()
            )

        written = await engine.add("a heron")
        assert await behind() == 0
        await engine.documents.update(written[0].id, text="a crane")
        assert await behind() == 0
        await engine.documents.add_files([tmp_path / "note.txt"])
        assert await behind() == 0


async def test_with_wait_every_chunk_has_a_vector_on_return(engine: Engine) -> None:
    await engine.add([f"text number {number}" for number in range(30)], wait=True)
    status = (await engine.maintenance.status(collection="default")).collections[0]
    assert (status.chunks, status.vectors, status.pending, status.lag) == (30, 30, 0, 0)


async def test_without_wait_the_vectors_come_behind_the_writer(engine: Engine) -> None:
    await engine.add("the tide comes in")
    assert await engine.documents.wait_until_embedded() >= 0
    retrieval = await engine.retrieve("tide", retrievers=("vector",))
    assert retrieval.hits[0].similarity is not None


async def test_the_same_key_replaces_and_the_old_text_is_gone(engine: Engine) -> None:
    first = await engine.add(NewDocument(text="alpha alpha", key="k"), wait=True)
    second = await engine.add(NewDocument(text="omega omega", key="k"), wait=True)
    again = await engine.add(NewDocument(text="omega omega", key="k"), wait=True)
    assert [written[0].outcome for written in (first, second, again)] == ["added", "replaced", "unchanged"]
    assert (await engine.retrieve("alpha", retrievers=("keyword",))).outcome == "no_match"
    assert len((await engine.retrieve("omega", retrievers=("keyword",))).hits) == 1


async def test_emptied_text_removes_the_chunks(engine: Engine) -> None:
    written = await engine.add(NewDocument(text="something to forget", key="k"), wait=True)
    await engine.documents.update(written[0].id, text="")
    assert (await engine.retrieve("forget", retrievers=("keyword",))).hits == ()
    assert (await engine.documents.get(written[0].id)).chunks == 0


async def test_a_new_title_is_found_by_both_arms(engine: Engine) -> None:
    written = await engine.add(NewDocument(text="plain text", title="old"), wait=True)
    await engine.documents.update(written[0].id, title="zephyr")
    await engine.documents.wait_until_embedded()
    retrieval = await engine.retrieve("zephyr")
    assert list_titles(retrieval) == ["zephyr"]
    assert retrieval.hits[0].similarity is not None
    assert retrieval.hits[0].similarity > 0.4


async def test_deleting_takes_children_along_and_says_so(engine: Engine) -> None:
    parent = (await engine.add(NewDocument(text="parent text", key="p")))[0].id
    await engine.add(NewDocument(text="child text", parent=parent), wait=True)
    receipt = await engine.documents.delete(parent)
    assert (receipt.documents, receipt.chunks, receipt.vectors) == (2, 2, 2)
    assert (await engine.retrieve("text")).outcome == "no_match"
    assert (await engine.documents.delete(parent)).documents == 0


async def test_purged_text_is_in_no_file(engine: Engine, tmp_path: Path) -> None:
    secret = "xylophone-secret-4711"
    written = await engine.add([secret, "something else"], wait=True)
    await engine.retrieve("secret")
    await engine.documents.delete(written[0].id, purge=True)
    assert holding(tmp_path, "4711") == []
    assert (await engine.retrieve("something else")).outcome == "found"


async def test_a_poisoned_text_does_not_hold_up_the_others(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=PickyEmbedder(away=2)) as engine:
        written = await engine.add(["good one", "poison here", "good two"], wait=True)
        status = (await engine.maintenance.status()).collections[0]
        assert (status.vectors, status.pending, status.errors) == (2, 0, 1)
        assert (await engine.documents.get(written[1].id)).status == "error"
        [failed] = (await engine.documents.list(status="error")).documents
        assert (failed.id, "refused" in str(failed.error)) == (written[1].id, True)
        assert await engine.documents.count(status="embedded") == 2
        assert await engine.documents.count(status="pending", filter=Eq("kind", "page")) == 0
        assert len((await engine.retrieve("poison", retrievers=("keyword",))).hits) == 1


async def test_a_worker_that_cannot_go_on_says_so(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        (tmp_path / "embedding.lock").mkdir()
        await engine.add("second")
        with pytest.raises(StorageError, match="embedding stopped"):
            await engine.documents.wait_until_embedded()
        assert "embedding stopped" in (await engine.retrieve("second")).notices[-1]


async def test_everything_is_there_after_reopening(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        await engine.add([f"sentence {number}" for number in range(50)], wait=True)
        before = await engine.retrieve("sentence 7", limit=50)
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        after = await engine.retrieve("sentence 7", limit=50)
        assert (await engine.maintenance.check()).clean
    assert before.hits == after.hits


async def test_reembedding_changes_the_space_and_keeps_answering(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        await engine.add([f"sentence {number}" for number in range(20)], wait=True)
    new = HashedEmbedder(version="2")
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=new) as engine:
        assert await engine.maintenance.reembed("given") == 20
        status = (await engine.maintenance.status()).collections[0]
        assert (status.space, status.vectors) == ("hashed/64/2", 20)
        assert (await engine.retrieve("sentence 7", limit=1)).hits[0].chunk.text == "sentence 7"
        assert (await engine.maintenance.check()).clean


async def test_many_writers_and_readers_at_once_lose_nothing(engine: Engine) -> None:
    await engine.add("seed of a tree")

    async def work(number: int) -> None:
        await engine.add(NewDocument(text=f"branch number {number}", key=str(number)))
        assert (await engine.retrieve(f"branch number {number}", retrievers=("keyword",))).outcome == "found"

    await asyncio.gather(*(work(number) for number in range(20)))
    assert await engine.documents.count() == 21


async def test_a_file_cannot_be_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StorageError, match="cannot be used as the folder of a store"):
        async with conspectus.open(tmp_path / "file", settings=SETTINGS):
            pass


async def test_unknown_things_are_not_found(engine: Engine) -> None:
    await engine.add("anything")
    with pytest.raises(NotFound):
        await engine.documents.get("nothing")
    with pytest.raises(NotFound):
        await engine.retrieve(Query("x", collection="nothing"))
    with pytest.raises(TooLarge):
        await engine.retrieve("x" * 10_001)
    with pytest.raises(InvalidInput):
        await engine.documents.update((await engine.documents.list()).documents[0].id, key="other")
