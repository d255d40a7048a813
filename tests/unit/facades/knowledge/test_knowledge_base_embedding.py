"""States of documents in a knowledge base: embedded, failed, or without content."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.embedders import POISON, PickyEmbedder
from tests.support.model_servers import ModelServer
from tests.support.vendor_protocols import bedrock

import conspectus
from conspectus import Engine, Settings
from conspectus.errors import InvalidInput, ProviderError, ProviderUnavailable
from conspectus.facades.chunker import Chunker
from conspectus.facades.knowledge import KnowledgeBase
from conspectus.testing.embedders import HashedEmbedder

MODEL = "us.cohere.embed-v4:0"


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, settings=Settings(), embedder=PickyEmbedder()) as opened:
        yield opened


@pytest.fixture
async def ada(engine: Engine) -> str:
    return (await engine.people.create_user("ada")).id


async def add_document(base: KnowledgeBase, user: str, content: str = "") -> str:
    collection = await base.create_collection({"name": "Notes"}, user)
    source = await base.create_source(collection.id, {"name": "manual"}, user)
    return (await base.create_document(source.id, {"title": "note", "content": content}, user)).id


async def test_chunks_that_the_model_refuses_are_an_error(engine: Engine, ada: str) -> None:
    base = KnowledgeBase(engine)
    document = await add_document(base, ada)
    chunks = [{"content": "a heron. ", "position": 0}, {"content": POISON, "position": 1}]
    with pytest.raises(ProviderError) as refused:
        await base.embed_chunks(document, chunks, ada)
    stored = await base.get_document(document, ada)
    assert (stored.status, stored.error_message) == ("error", str(refused.value))
    mended = await base.embed_chunks(document, chunks[:1], ada)
    assert (mended.status, mended.error_message) == ("embedded", None)


async def test_chunks_for_which_the_model_is_missing_are_an_error(tmp_path: Path) -> None:
    settings = Settings()
    async with conspectus.open(tmp_path, settings=settings, embedder=HashedEmbedder()) as engine:
        ada = (await engine.people.create_user("ada")).id
        document = await add_document(KnowledgeBase(engine), ada)
    async with conspectus.open(tmp_path, settings=settings, embedder=HashedEmbedder(version="2")) as engine:
        base = KnowledgeBase(engine)
        with pytest.raises(ProviderUnavailable, match=document):
            await base.embed_chunks(document, [{"content": "a heron", "position": 0}], ada)
        assert (await base.get_document(document, ada)).status == "pending"


async def test_what_chunks_cannot_keep_is_refused(engine: Engine, ada: str) -> None:
    base = KnowledgeBase(engine)
    document = await add_document(base, ada, "before")
    with pytest.raises(InvalidInput, match="colour"):
        await base.embed_chunks(document, [{"content": "x", "position": 0, "colour": "red"}], ada)
    with pytest.raises(InvalidInput, match="dimensions"):
        await base.embed_chunks(document, [{"content": "x", "position": 0}], ada, dimensions=7)
    assert [chunk.content for chunk in await base.list_chunks_for_document(document, ada)] == ["before"]


async def test_chunks_keep_their_positions_and_metadata(engine: Engine, ada: str) -> None:
    base = KnowledgeBase(engine)
    document = await add_document(base, ada, "before")
    chunks = [
        {"content": "the second.", "position": 20, "metadata": {"page": 2, "tag": "b"}},
        {"content": "the first. ", "position": 10},
    ]
    space = (await engine.collections.get((await engine.documents.get(document)).collection)).space
    assert space is not None
    embedded = await base.embed_chunks(document, chunks, ada, dimensions=space.dimensions)
    assert (embedded.chunk_count, embedded.metadata) == (2, {})
    stored = await base.list_chunks_for_document(document, ada)
    assert [(chunk.position, chunk.content, chunk.metadata) for chunk in stored] == [
        (10, "the first. ", {}),
        (20, "the second.", {"page": 2, "tag": "b"}),
    ]
    results = await base.search(embedded.collection_id, "second", ada)
    assert {result.chunk.position for result in results} == {10, 20}
    again = await base.embed_chunks(document, [{"content": "alone", "position": 0}], ada)
    assert [chunk.position for chunk in await base.list_chunks_for_document(again.id, ada)] == [0]


async def test_the_content_of_a_document_can_be_read(engine: Engine, ada: str) -> None:
    base = KnowledgeBase(engine)
    document = await add_document(base, ada, "the heron stands in the reeds")
    read = await base.get_document(document, ada)
    assert read.content == "the heron stands in the reeds"
    [listed] = await base.list_documents(read.source_id, ada)
    assert listed.content is None


async def test_a_document_without_content_is_not_embedded(engine: Engine, ada: str) -> None:
    base = KnowledgeBase(engine)
    document = await add_document(base, ada)
    assert (await base.get_document(document, ada)).status == "pending"
    assert (await base.embed_chunks(document, [], ada)).status == "pending"
    assert (await base.embed_chunks(document, [{"content": "a", "position": 0}], ada)).status == "embedded"


async def test_a_hit_knows_the_source_of_its_document(engine: Engine, ada: str) -> None:
    base = KnowledgeBase(engine)
    document = await add_document(base, ada, "a heron in the reeds")
    stored = await base.get_document(document, ada)
    await engine.documents.wait_until_embedded(collection=stored.collection_id)
    near = await base.search(stored.collection_id, "heron", ada)
    best = await base.search_and_rerank(stored.collection_id, "heron", ada)
    around = await base.augment_context("heron", ada)
    for matches in (near, best, around, await base.rerank("heron", near, ada)):
        assert [(match.document.source.id, match.document.source.name) for match in matches] == [
            (stored.source_id, "manual")
        ]


@pytest.mark.parametrize("size", [1, 2, 200, 399, 2000])
def test_small_chunks_repeat_at_most_half_of_themselves(size: int) -> None:
    pieces = Chunker.split("one two three four five " * 100, chunk_size=size)
    assert max(len(piece.content) for piece in pieces) <= size
    with pytest.raises(InvalidInput, match="overlap"):
        Chunker.split("text", chunk_size=size, overlap=size)


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ModelServer]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    async with ModelServer(bedrock(MODEL)) as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", running.base)
        yield running


SETTINGS = Settings(embedder=f"bedrock:{MODEL}", embed_batch_delay_ms=0)


@pytest.mark.parametrize("dimensions", [256, 512, 1024, 1536])
async def test_collections_of_one_model_have_sizes_of_their_own(
    tmp_path: Path, server: ModelServer, dimensions: int
) -> None:
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        base = KnowledgeBase(engine)
        ada = (await engine.people.create_user("ada")).id
        attrs = {"name": "Notes", "embedding_dimensions": dimensions}
        collection = await base.create_collection(attrs, ada)
        source = await base.create_source(collection.id, {"name": "manual"}, ada)
        document = await base.create_document(source.id, {"title": "note"}, ada)
        await base.embed_chunks(document.id, [{"content": "a heron", "position": 0}], ada)
        assert len(await base.search(collection.id, "heron", ada, dimensions=dimensions)) == 1
    assert collection.embedding_dimensions == dimensions
    assert {call.body["output_dimension"] for call in server.calls} == {dimensions}


async def test_a_call_to_the_model_names_the_user_who_asked(tmp_path: Path, server: ModelServer) -> None:
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        base, users = KnowledgeBase(engine), []
        for name in ("ada", "bo"):
            users.append((await engine.people.create_user(name)).id)
            collection = await base.create_collection({"name": "Notes"}, users[-1])
            source = await base.create_source(collection.id, {"name": "manual"}, users[-1])
            await base.create_document(source.id, {"content": "a heron"}, users[-1])
            await engine.documents.wait_until_embedded(collection=collection.id)
            await base.search(collection.id, "heron", users[-1])
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        logged = [request.user_id for request in await engine.jobs.list_requests()]
    assert sorted(filter(None, logged)) == sorted(users) and logged.count(None) == 2
