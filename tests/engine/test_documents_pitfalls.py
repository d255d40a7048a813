"""Known mistakes of knowledge bases, each tried on an engine."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

import conspectus
from conspectus import Engine, NewDocument, Settings
from conspectus.errors import ProviderError, ProviderUnavailable
from conspectus.ports import Vectors
from conspectus.testing.embedders import HashedEmbedder


class Refusing(HashedEmbedder):
    """Refuses documents about cranes for good, and every query for now, when told so."""

    def __init__(self) -> None:
        super().__init__()
        self.refuses = False

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if self.refuses and any("crane" in text for text in texts):
            raise ProviderError("refusing", "no")
        return await super().embed_documents(texts)

    async def embed_query(self, text: str) -> Vectors:
        if self.refuses:
            raise ProviderUnavailable("refusing", "not now")
        return await super().embed_query(text)


@pytest.fixture
def embedder() -> Refusing:
    return Refusing()


@pytest.fixture
async def engine(tmp_path: Path, embedder: Refusing) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, settings=Settings(), embedder=embedder) as opened:
        yield opened


async def test_a_page_whose_new_text_cannot_be_embedded_stays_findable(
    engine: Engine, embedder: Refusing
) -> None:
    await engine.add(NewDocument(text="a heron", key="page"), wait=True)
    embedder.refuses = True
    await engine.add(NewDocument(text="a heron and a crane", key="page"))
    retrieval = await engine.retrieve("crane")
    assert [hit.chunk.text for hit in retrieval.hits] == ["a heron and a crane"]
    await engine.documents.wait_until_embedded()
    retrieval = await engine.retrieve("crane")
    assert [hit.chunk.text for hit in retrieval.hits] == ["a heron and a crane"]
    document = retrieval.hits[0].document
    assert (await engine.documents.get(document.id)).status == "error"
    assert "no" in str((await engine.documents.get(document.id)).error)


async def test_many_who_make_the_same_source_make_one(engine: Engine) -> None:
    sources = await asyncio.gather(
        *(engine.collections.get_or_create_source("Wiki", collection="new") for _ in range(20))
    )
    assert len({source.id for source in sources}) == 1
    assert [source.name for source in await engine.collections.list_sources(collection="new")] == ["Wiki"]


async def test_the_same_document_again_is_one_document(engine: Engine) -> None:
    page = NewDocument(text="a heron " * 600, key="https://example.org/")
    await asyncio.gather(*(engine.add(page) for _ in range(5)))
    assert await engine.documents.count() == 1
    first = await engine.documents.list_chunks((await engine.documents.list()).documents[0].id)
    assert (await engine.add(page))[0].outcome == "unchanged"
    assert await engine.documents.list_chunks((await engine.documents.list()).documents[0].id) == first


async def test_a_collection_of_another_size_of_vector_has_its_index_too(
    engine: Engine, tmp_path: Path
) -> None:
    await engine.add([f"heron {number}" for number in range(50)], wait=True)
    wider = HashedEmbedder(128, version="2")
    async with conspectus.open(tmp_path, settings=Settings(), embedder=wider) as moved:
        assert await moved.maintenance.reembed("given") == 50
        status = (await moved.maintenance.status()).collections[0]
        assert (status.space, status.vectors, status.lag) == ("hashed/128/2", 50, 0)
        retrieval = await moved.retrieve("heron 7", retrievers=("vector",), limit=1)
        assert retrieval.hits[0].chunk.text == "heron 7"
        assert (await moved.maintenance.check()).clean


async def test_a_question_that_cannot_be_embedded_is_asked_by_its_words(
    engine: Engine, embedder: Refusing
) -> None:
    await engine.add(["a heron", "a crane"], wait=True)
    embedder.refuses = True
    retrieval = await engine.retrieve("heron")
    assert [hit.chunk.text for hit in retrieval.hits] == ["a heron"]
    assert "could not be embedded" in retrieval.notices[0]
    with pytest.raises(ProviderUnavailable):
        await engine.retrieve("heron", retrievers=("vector",))


async def test_collections_that_cannot_be_asked_cost_no_others(engine: Engine, embedder: Refusing) -> None:
    await engine.collections.get_or_create("words", words_only=True)
    await engine.add("a heron", collection="words")
    await engine.add("a heron too", collection="both", wait=True)
    retrieval = await engine.retrieve("heron", collection="*", retrievers=("vector",))
    assert [hit.chunk.text for hit in retrieval.hits] == ["a heron too"]
    assert "collection words was not searched" in retrieval.notices[0]
    both = await engine.retrieve("heron", collection="*")
    assert {hit.chunk.text for hit in both.hits} == {"a heron", "a heron too"}
    embedder.refuses = True
    with pytest.raises(ProviderError):
        await engine.retrieve("heron", collection="*", retrievers=("vector",))
