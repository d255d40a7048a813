"""Providers by the names of the settings: embedders, rerankers and their keys."""

import asyncio
from collections.abc import AsyncIterator

import numpy as np
import pytest
from tests.support.model_servers import ModelServer, failing
from tests.support.vendor_protocols import bedrock, cohere, expected, google, jina, openai

from conspectus import bootstrap
from conspectus.errors import InvalidInput, ProviderError
from conspectus.ingest.embedding_queue import EmbedQueue
from conspectus.model.retries import RetryPolicy
from conspectus.providers.registry import embedder_of, reranker_of
from conspectus.providers.request_log import drop
from conspectus.settings import Settings

GEMINI = "gemini-embedding-001"
COHERE_EMBED = "us.cohere.embed-v4:0"
COHERE_RERANK = "cohere.rerank-v3-5:0"


@pytest.fixture
async def server(monkeypatch) -> AsyncIterator[ModelServer]:
    speaks = (
        openai() | google(GEMINI) | bedrock(COHERE_EMBED) | bedrock(COHERE_RERANK) | cohere(key="k") | jina()
    )
    async with ModelServer(speaks) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{running.base}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", running.base)
        monkeypatch.setenv("GOOGLE_API_KEY", "k")
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", running.base)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "k")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setenv("CO_API_KEY", "k")
        monkeypatch.setenv("CO_API_URL", running.base)
        yield running
    assert running.misses == []


@pytest.mark.parametrize(
    ("setting", "model", "dimensions", "kind"),
    [
        ("openai:text-embedding-3-small@512", "openai:text-embedding-3-small", 512, "any"),
        (f"google:{GEMINI}@768", f"google:{GEMINI}", 768, "RETRIEVAL_QUERY"),
        (f"bedrock:{COHERE_EMBED}@256", f"bedrock:{COHERE_EMBED}", 256, "search_query"),
        (f"bedrock:{COHERE_EMBED}", f"bedrock:{COHERE_EMBED}", 1024, "search_query"),
    ],
)
async def test_embedders_by_name(
    server: ModelServer, setting: str, model: str, dimensions: int, kind: str
) -> None:
    embedders = bootstrap.Embedders(Settings())
    embedder = embedders.by_name(setting)
    assert isinstance(embedder, EmbedQueue)
    assert (embedder.space.model, embedder.space.dimensions) == (model, dimensions)
    assert embedders.by_name(setting) is embedder
    assert await embedders.of(embedder.space) is embedder
    row = await embedder.embed_query("hello there")
    np.testing.assert_allclose(row, expected(["hello there"], dimensions, kind)[0], rtol=1e-6)
    await embedders.close()


async def test_a_space_finds_its_embedder_without_the_setting(server: ModelServer) -> None:
    first = bootstrap.Embedders(Settings())
    space = first.by_name(f"bedrock:{COHERE_EMBED}@512").space
    second = bootstrap.Embedders(Settings())
    embedder = await second.of(space)
    assert embedder is not None
    assert embedder.space == space
    await first.close()
    await second.close()


async def test_other_tasks_run_while_a_model_in_files_is_loaded() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    embedders, running = bootstrap.Embedders(Settings()), asyncio.create_task(other())
    first, second = await asyncio.gather(embedders.load("minilm"), embedders.load("minilm"))
    running.cancel()
    assert first is not None
    assert first is second is await embedders.of(first.space)
    assert turns > 10
    await embedders.close()


@pytest.mark.parametrize(
    "setting",
    ["openai:small", "openai:small@", "openai:small@many", "openai:small@0", f"bedrock:{COHERE_EMBED}@5"],
)
def test_an_embedder_needs_a_size_it_can_have(server: ModelServer, setting: str) -> None:
    with pytest.raises(InvalidInput, match="embedder"):
        embedder_of(setting, timeout=1.0, note=drop)


@pytest.mark.parametrize("setting", ["cohere:rerank-v3.5", f"bedrock:{COHERE_RERANK}", "jina", "jina#v2"])
async def test_rerankers_by_name(server: ModelServer, setting: str) -> None:
    name = setting.replace("jina", f"{server.base}/v1/rerank")
    rerankers = bootstrap.Rerankers(Settings())
    reranker = rerankers.by_name(name)
    assert rerankers.by_name(name) is reranker
    assert list(await reranker.rerank("red fox", ["a hen", "a red fox"], limit=1)) == [(1, 1.0)]
    assert reranker.model in {setting, name, "v2"}
    await rerankers.close()


async def test_a_service_gets_the_key_that_is_set_for_it(server: ModelServer, monkeypatch) -> None:
    monkeypatch.setenv("CONSPECTUS_RERANKER_KEY", "k")
    reranker = reranker_of(f"{server.base}/v1/rerank", retry_policy=RetryPolicy(), timeout=5.0, note=drop)
    await reranker.rerank("fox", ["a fox"], limit=1)
    assert server.calls[0].headers["authorization"] == "Bearer k"
    await reranker.close()


@pytest.mark.parametrize("setting", ["", "cohere", "cohere:", "nobody:model", "ftp://example.org/rerank"])
def test_a_reranker_of_no_known_form_is_refused(server: ModelServer, setting: str) -> None:
    with pytest.raises(InvalidInput, match="reranker"):
        reranker_of(setting, retry_policy=RetryPolicy(), timeout=1.0, note=drop)


def test_no_reranker_and_no_key(monkeypatch) -> None:
    monkeypatch.delenv("CO_API_KEY", raising=False)
    rerankers = bootstrap.Rerankers(Settings())
    assert rerankers.by_name("none") is None
    with pytest.raises(ProviderError, match="CO_API_KEY"):
        rerankers.by_name("cohere:rerank-v3.5")


async def test_an_engine_embeds_reranks_and_remembers_what_it_asked(server: ModelServer, tmp_path) -> None:
    settings = Settings(
        embedder="openai:text-embedding-3-small@64", reranker="cohere:rerank-v3.5", embed_batch_delay_ms=1
    )
    server.plan.append(failing(503, retry_after=0))
    async with bootstrap.open(tmp_path, settings=settings) as engine:
        await engine.add(["the red fox sleeps", "a blue whale", "foxes are red"], wait=True)
        reranked = await engine.search.search_and_rerank("red fox", limit=2)
        assert reranked.results[0].hit.chunk.text == "the red fox sleeps"
        assert (reranked.results[0].relevance, reranked.model, reranked.notice) == (
            1.0,
            "cohere:rerank-v3.5",
            None,
        )
        server.say("/v2/rerank", lambda call: failing(401))
        fallen = await engine.search.search_and_rerank("red fox", limit=2)
        assert [relevant.relevance for relevant in fallen.results] == [None, None]
        assert "HTTP 401" in fallen.notice
    async with bootstrap.open(tmp_path, settings=settings) as engine:
        noted = await engine.jobs.list_requests()
    assert [(request.kind, request.error) for request in reversed(noted)] == [
        ("embed", "HTTP 503"),
        ("embed", None),
        ("embed", None),
        ("rerank", None),
        ("embed", None),
        ("rerank", "HTTP 401"),
    ]
    assert {request.model for request in noted} == {settings.embedder.partition("@")[0], settings.reranker}


async def test_one_poisoned_text_costs_one_document(server: ModelServer, tmp_path) -> None:
    settings = Settings(embedder="openai:text-embedding-3-small@64", embed_batch_delay_ms=1)
    speaks = openai()["/v1/embeddings"]

    def picky(call):
        return failing(400) if any("poison" in text for text in call.body["input"]) else speaks(call)

    server.say("/v1/embeddings", picky)
    async with bootstrap.open(tmp_path, settings=settings) as engine:
        await engine.add([f"text {number}" for number in range(20)] + ["poison"], wait=True)
        counts = (await engine.maintenance.status()).collections[0]
    assert (counts.vectors, counts.errors) == (20, 1)


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_refused_key_condemns_no_document(server: ModelServer, tmp_path, status: int) -> None:
    settings = Settings(embedder="openai:text-embedding-3-small@64", embed_batch_delay_ms=1)
    server.plan.append(failing(status))
    async with bootstrap.open(tmp_path, settings=settings) as engine:
        with pytest.raises(ProviderError, match=f"HTTP {status}"):
            await engine.add([f"text {number}" for number in range(20)], wait=True)
        counts = (await engine.maintenance.status()).collections[0]
        assert (counts.pending, counts.errors, len(server.calls)) == (20, 0, 1)
        assert await engine.documents.wait_until_embedded() == 20


async def test_a_wrong_size_condemns_no_document(server: ModelServer, tmp_path) -> None:
    settings = Settings(embedder="openai:text-embedding-ada-002@64", embed_batch_delay_ms=1)
    async with bootstrap.open(tmp_path, settings=settings) as engine:
        with pytest.raises(ProviderError, match="vectors of 8 dimensions, not 64"):
            await engine.add([f"text {number}" for number in range(20)], wait=True)
        counts = (await engine.maintenance.status()).collections[0]
        assert (counts.pending, counts.errors, len(server.calls)) == (20, 0, 1)
