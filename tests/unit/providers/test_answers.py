"""The gate for answers: a service that misbehaves in every way, for each embedder and reranker."""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.support.misbehaviour import as_json, index_faults, service_faults, vector_faults
from tests.support.model_servers import ModelServer, told
from tests.support.vendor_protocols import bedrock, cohere, expected, google, jina, openai, tei

from conspectus import bootstrap
from conspectus.errors import ProviderError
from conspectus.model.retries import RetryPolicy
from conspectus.providers.registry import embedder_of, reranker_of
from conspectus.providers.request_log import drop
from conspectus.settings import Settings

GEMINI = "gemini-embedding-001"
COHERE_EMBED = "us.cohere.embed-v4:0"
COHERE_RERANK = "cohere.rerank-v3-5:0"
TEXTS = ["rope ladder", "tar bucket"]
SECONDS = 0.5
"""The timeout of the adapters, which a silent service uses up."""


def build_openai_body(rows: list[Any]) -> dict[str, Any]:
    return {"data": [{"index": index, "embedding": row} for index, row in enumerate(rows)]}


@dataclass(frozen=True)
class Vendor:
    """The setting of an embedder, its number of dimensions, and its answer with some rows."""

    setting: str
    dimensions: int
    body: Callable[[list[Any]], dict[str, Any]]
    converted: frozenset[str] = frozenset()
    """Faults that the vendor's own library makes numbers of."""


EMBEDDERS = {
    "openai": Vendor("openai:text-embedding-3-small@8", 8, build_openai_body),
    "ollama": Vendor("ollama:nomic@8", 8, build_openai_body),
    "google": Vendor(
        f"google:{GEMINI}@8",
        8,
        lambda rows: {"embeddings": [{"values": row} for row in rows]},
        frozenset({"rows: strings", "rows: booleans"}),
    ),
    "bedrock": Vendor(
        f"bedrock:{COHERE_EMBED}@256", 256, lambda rows: {"id": "1", "embeddings": {"float": rows}}
    ),
}
RERANKERS = ["cohere:rerank-v3.5", f"bedrock:{COHERE_RERANK}", "jina", "tei"]


@pytest.fixture
async def server(monkeypatch) -> AsyncIterator[ModelServer]:
    speaks = openai() | google(GEMINI) | bedrock(COHERE_EMBED) | bedrock(COHERE_RERANK) | cohere() | jina()
    async with ModelServer(speaks | tei()) as running:
        for name in ("OPENAI", "OLLAMA"):
            monkeypatch.setenv(f"{name}_BASE_URL", f"{running.base}/v1")
            monkeypatch.setenv(f"{name}_API_KEY", "k")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", running.base)
        monkeypatch.setenv("GOOGLE_API_KEY", "k")
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", running.base)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "k")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setenv("CO_API_KEY", "k")
        monkeypatch.setenv("CO_API_URL", running.base)
        yield running


async def find_verdict(asking: Any) -> str:
    """Return whom an error blames; anything but our errors, or an answer, is a failure."""
    try:
        answer = await asyncio.wait_for(asking, 20)
    except ProviderError as error:
        return error.verdict
    return f"taken: {answer!r:.80}"


@pytest.mark.parametrize("vendor", EMBEDDERS.values(), ids=EMBEDDERS)
async def test_no_embedder_blames_a_text_for_what_its_service_does(
    server: ModelServer, vendor: Vendor
) -> None:
    embedder = embedder_of(vendor.setting, timeout=SECONDS, note=drop)
    rows = [[1.0] * vendor.dimensions, [2.0] * vendor.dimensions]
    faults = service_faults()
    faults |= {f"rows: {name}": as_json(vendor.body(wrong)) for name, wrong in vector_faults(rows).items()}
    verdicts = {}
    for name, answer in faults.items():
        # A vendor with a request for each text may still serve one of the last call.
        server.plan.extend([answer] * 2 * len(TEXTS))
        verdicts[name] = await find_verdict(embedder.embed_batch(TEXTS, "document"))
        server.plan.clear()
    accepted = {name for name, verdict in verdicts.items() if verdict not in {"answer", "service"}}
    assert accepted <= vendor.converted
    assert (await embedder.embed_batch(TEXTS, "document")).shape == (2, vendor.dimensions)
    await embedder.close()


@pytest.mark.parametrize("setting", RERANKERS)
async def test_no_reranker_takes_what_is_no_ranking(server: ModelServer, setting: str) -> None:
    paths = {"jina": "/v1/rerank", "tei": "/rerank"}
    name = f"{server.base}{paths[setting]}" if setting in paths else setting
    reranker = reranker_of(name, retry_policy=RetryPolicy(1), timeout=SECONDS, note=drop)
    await reranker.rerank("rope", TEXTS, limit=2)
    verdicts = {}
    for fault, answer in service_faults().items():
        server.plan.append(answer)
        verdicts[fault] = await find_verdict(reranker.rerank("rope", TEXTS, limit=2))
        server.plan.clear()
    assert {fault for fault, verdict in verdicts.items() if verdict not in {"answer", "service"}} == set()
    assert len(await reranker.rerank("rope", TEXTS, limit=2)) == 2
    await reranker.close()


async def test_vectors_go_to_their_texts_by_index(server: ModelServer) -> None:
    embedder = embedder_of("openai:text-embedding-3-small@8", timeout=5.0, note=drop)
    rows = [[float(column == position) for column in range(8)] for position in range(2)]
    entries = [{"index": 1, "embedding": rows[1]}, {"index": 0, "embedding": rows[0]}]
    server.plan.append(told({"data": entries}))
    assert (await embedder.embed_batch(TEXTS, "document")).tolist() == rows
    for name, indexes in index_faults(2).items():
        entries = [{"index": index, "embedding": row} for index, row in zip(indexes, rows, strict=True)]
        server.plan.append(told({"data": entries}))
        assert await find_verdict(embedder.embed_batch(TEXTS, "document")) == "answer", name
    server.plan.append(told({"data": [{"embedding": row} for row in rows]}))
    assert (await embedder.embed_batch(TEXTS, "document")).tolist() == rows
    await embedder.close()


@pytest.mark.parametrize("way", ["login page", "500", "empty body"])
async def test_a_disturbance_costs_no_vector(server: ModelServer, tmp_path, way: str) -> None:
    fault = service_faults()[way]
    settings = Settings(embedder="openai:text-embedding-3-small@8", embed_batch_delay_ms=1)
    server.plan.extend([fault] * (1 if way == "500" else 3))
    async with bootstrap.open(tmp_path, settings=settings) as engine:
        await engine.add(["red fox", "blue whale"], wait=True)
        counts = (await engine.maintenance.status()).collections[0]
        assert (counts.pending, counts.vectors, counts.errors) == (0, 2, 0)


async def test_a_text_that_spoils_each_answer_holds_up_no_other(server: ModelServer, tmp_path) -> None:
    def embeddings(call: Any) -> Any:
        rows = [None if "spoils" in text else [1.0] * 8 for text in call.body["input"]]
        return told(build_openai_body(rows))

    server.say("/v1/embeddings", embeddings)
    settings = Settings(
        embedder="openai:text-embedding-3-small@8", embed_batch_delay_ms=1, embed_max_backoff_seconds=1
    )
    async with bootstrap.open(tmp_path, settings=settings) as engine:
        await engine.add([f"text {number}" for number in range(5)] + ["it spoils"], wait=True)
        counts = (await engine.maintenance.status()).collections[0]
        assert (counts.pending, counts.vectors, counts.errors) == (0, 5, 1)


async def test_a_query_falls_back_to_keywords_whatever_its_vector_is(server: ModelServer, tmp_path) -> None:
    settings = Settings(
        embedder="openai:text-embedding-3-small@8", embed_batch_delay_ms=1, embed_max_attempts=1
    )
    async with bootstrap.open(tmp_path, settings=settings) as engine:
        await engine.add(["red fox", "blue whale"], wait=True)
        rows = [[1.0] * 8, [2.0] * 8]
        for name, wrong in vector_faults(rows).items():
            if wrong[:1] not in (rows[:1], rows[1:]):
                server.plan.extend([as_json(build_openai_body(wrong[:1]))] * 2)
                retrieval = await engine.retrieve("fox")
                server.plan.clear()
                assert [hit.chunk.text for hit in retrieval.hits] == ["red fox"], name
                assert "keyword search only" in retrieval.notices[0], name


async def test_a_refusal_of_every_text_is_the_services(server: ModelServer, tmp_path) -> None:
    server.say("/v1/embeddings", lambda call: told({"error": {"message": "no such size"}}, 400))
    settings = Settings(embedder="openai:text-embedding-3-small@8", embed_batch_delay_ms=1)
    async with bootstrap.open(tmp_path, settings=settings) as engine:
        with pytest.raises(ProviderError, match="no such size"):
            await engine.add(["red fox"], wait=True)
        counts = (await engine.maintenance.status()).collections[0]
        assert (counts.pending, counts.errors) == (1, 0)


async def test_a_row_of_base64_is_read(server: ModelServer) -> None:
    rows = expected(TEXTS, 8, "any")
    packed = [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in rows]
    server.plan.append(told(build_openai_body(packed)))
    embedder = embedder_of("openai:text-embedding-3-small@8", timeout=5.0, note=drop)
    np.testing.assert_allclose(await embedder.embed_batch(TEXTS, "document"), rows, rtol=1e-6)
    await embedder.close()
