"""Against local servers that speak OpenAI's and Google's protocols, through the vendors' real libraries."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import pytest
from tests.support.model_servers import ModelServer, failing, never, told
from tests.support.vendor_protocols import expected, google, openai

from conspectus.errors import InvalidInput, ProviderError, ProviderUnavailable
from conspectus.ingest.embedding_queue import EmbedQueue
from conspectus.model.jobs import EmbeddingRequest
from conspectus.model.retries import RetryPolicy
from conspectus.providers.hosted_embedder import HostedEmbedder

if find_spec("openai") is None or find_spec("google.genai") is None:
    pytest.skip("needs conspectus[openai,google]", allow_module_level=True)

KEY = "sk-very-secret"
OPENAI = "openai:text-embedding-3-small"
GOOGLE = "google:gemini-embedding-001"


@dataclass(frozen=True)
class Vendor:
    """A vendor's name of a model, its server, and what it calls documents and queries."""

    model: str
    server: ModelServer
    kinds: tuple[str, str]

    def embedder(self, dimensions: int = 8, **options) -> HostedEmbedder:
        return HostedEmbedder(self.model, dimensions, **options)

    def texts(self) -> list[list[str]]:
        bodies = [call.body for call in self.server.calls]
        if "input" in bodies[0]:
            return [body["input"] for body in bodies]
        return [[request["content"]["parts"][0]["text"] for request in body["requests"]] for body in bodies]


@pytest.fixture(params=["openai", "google"])
async def vendor(request, monkeypatch) -> AsyncIterator[Vendor]:
    if request.param == "openai":
        server, kinds, model = ModelServer(openai(key=KEY)), ("any", "any"), OPENAI
    else:
        server, kinds, model = (
            ModelServer(google("gemini-embedding-001") | google("text-embedding-004")),
            ("RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"),
            GOOGLE,
        )
    async with server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.base}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.base)
        monkeypatch.setenv("GOOGLE_API_KEY", KEY)
        yield Vendor(model, server, kinds)
    assert server.misses == []


@pytest.mark.parametrize("dimensions", [8, 5])
async def test_rows_are_unit_vectors_of_the_size_asked_for(vendor: Vendor, dimensions: int) -> None:
    texts = ["first text", "second, longer text", "third"]
    embedder = vendor.embedder(dimensions)
    rows = await embedder.embed_batch(texts, "document")
    np.testing.assert_allclose(rows, expected(texts, dimensions, vendor.kinds[0]), rtol=1e-6)
    assert (rows.dtype, embedder.space.name) == (np.float32, f"{vendor.model}/{dimensions}/1")
    await embedder.close()


async def test_queries_are_embedded_as_queries(vendor: Vendor) -> None:
    embedder = vendor.embedder()
    row = await embedder.embed_batch(["a question"], "query")
    np.testing.assert_allclose(row, expected(["a question"], 8, vendor.kinds[1]), rtol=1e-6)
    await embedder.close()


async def test_a_model_that_cannot_shorten_is_not_asked_to(vendor: Vendor) -> None:
    older = {OPENAI: "openai:text-embedding-ada-002", GOOGLE: "google:text-embedding-004"}[vendor.model]
    embedder = HostedEmbedder(older, 8)
    await embedder.embed_batch(["a"], "document")
    assert "imension" not in json.dumps(vendor.server.calls[0].body)
    await embedder.close()


async def test_blank_texts_and_lone_surrogates_are_sent_as_something_a_vendor_takes(vendor: Vendor) -> None:
    embedder = vendor.embedder()
    await embedder.embed_batch(["", " \n", "a\ud800", "\u0000", "日本🎉"], "document")
    assert vendor.texts() == [[".", ".", "a?", "\u0000", "日本🎉"]]
    await embedder.close()


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
async def test_each_batch_is_asked_for_once_whatever_the_vendors_library_would_do(
    vendor: Vendor, status: int
) -> None:
    vendor.server.plan.append(failing(status))
    embedder = vendor.embedder()
    with pytest.raises(ProviderUnavailable) as refused:
        await embedder.embed_batch(["a"], "document")
    assert (refused.value.status, len(vendor.server.calls)) == (status, 1)
    await embedder.close()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
async def test_a_refusal_is_final_and_does_not_quote_the_key(vendor: Vendor, status: int) -> None:
    vendor.server.plan.append(
        failing(status, f"the words of {status}" + f", key {KEY}" * (status in {401, 403}))
    )
    embedder = vendor.embedder()
    with pytest.raises(ProviderError, match=f"HTTP {status}") as refused:
        await embedder.embed_batch(["a"], "document")
    assert not isinstance(refused.value, ProviderUnavailable)
    assert (refused.value.status, len(vendor.server.calls)) == (status, 1)
    assert KEY not in str(refused.value)
    assert ("the words of" in str(refused.value)) == (status not in {401, 403})
    await embedder.close()


@pytest.mark.parametrize("seconds", [0, 7, 3600])
async def test_what_a_busy_vendor_asks_for_is_understood(vendor: Vendor, seconds: int) -> None:
    vendor.server.plan.append(failing(429, retry_after=seconds))
    embedder = vendor.embedder()
    with pytest.raises(ProviderUnavailable) as refused:
        await embedder.embed_batch(["a"], "document")
    assert refused.value.retry_after == seconds
    await embedder.close()


async def test_behind_the_queue_429_then_an_answer_makes_two_requests(vendor: Vendor) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    vendor.server.plan.extend([failing(429, retry_after=3)])
    queue = EmbedQueue(vendor.embedder(), retry_policy=RetryPolicy(sleep=sleep))
    row = await queue.embed_query("hello")
    np.testing.assert_allclose(row, expected(["hello"], 8, vendor.kinds[1])[0], rtol=1e-6)
    assert (len(vendor.server.calls), waits) == (2, [3.0])
    await queue.close()


@pytest.mark.parametrize("rows", [[], [[1.0] * 8] * 2, [[0.0] * 8], [[1.0] * 8, [1.0] * 7]])
async def test_an_answer_of_another_shape_is_refused(vendor: Vendor, rows: list[list[float]]) -> None:
    embeddings = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    both = {
        "object": "list",
        "data": embeddings,
        "model": "m",
        "embeddings": [{"values": row} for row in rows],
    }
    vendor.server.plan.append(told(both))
    embedder = vendor.embedder()
    with pytest.raises(ProviderError, match=r"sent|No embedding data"):
        await embedder.embed_batch(["a"], "document")
    await embedder.close()


async def test_another_size_of_vector_is_a_setting_to_change(vendor: Vendor, monkeypatch) -> None:
    other = {OPENAI: "openai:text-embedding-ada-002", GOOGLE: "google:text-embedding-004"}[vendor.model]
    embedder = HostedEmbedder(other, 512)
    with pytest.raises(ProviderError, match="vectors of 8 dimensions, not 512") as refused:
        await embedder.embed_batch(["a", "b"], "document")
    assert refused.value.verdict == "service"
    await embedder.close()


async def test_a_vendor_that_does_not_answer_is_unavailable(vendor: Vendor) -> None:
    vendor.server.plan.append(never())
    embedder = vendor.embedder(timeout=0.5)
    with pytest.raises(ProviderUnavailable, match=r"no answer within 0\.5 s"):
        await embedder.embed_batch(["a"], "document")
    await embedder.close()


async def test_a_vendor_that_is_not_there_is_unavailable(vendor: Vendor, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1")
    embedder = vendor.embedder()
    with pytest.raises(ProviderUnavailable) as refused:
        await embedder.embed_batch(["a"], "document")
    assert refused.value.status is None
    await embedder.close()


async def test_cancelling_ends_the_wait(vendor: Vendor) -> None:
    vendor.server.plan.append(never())
    notes: list[EmbeddingRequest] = []
    embedder = vendor.embedder(note=notes.append)
    task = asyncio.create_task(embedder.embed_batch(["a"], "document"))
    await vendor.server.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [(note.status, note.error) for note in notes] == [("error", "cancelled")]
    await embedder.close()


async def test_every_request_is_noted_without_its_content(vendor: Vendor) -> None:
    vendor.server.plan.append(failing(503))
    notes: list[EmbeddingRequest] = []
    embedder = vendor.embedder(note=notes.append)
    with pytest.raises(ProviderUnavailable):
        await embedder.embed_batch(["three little words"], "document")
    await embedder.embed_batch(["three little words", "two words", "one"], "document")
    failed, succeeded = notes
    assert (failed.status, failed.error, failed.inputs, failed.tokens) == ("error", "HTTP 503", 1, 4)
    counted = 21 if vendor.model == OPENAI else 8
    assert (succeeded.status, succeeded.error, succeeded.inputs, succeeded.tokens) == (
        "success",
        None,
        3,
        counted,
    )
    assert {(note.kind, note.model) for note in notes} == {("embed", vendor.model)}
    assert all(note.latency > 0 and note.created.tzinfo for note in notes)
    assert "little" not in repr(notes) and KEY not in repr(notes)
    await embedder.close()


@pytest.mark.parametrize("name", ["", "openai", "openai:", ":small"])
def test_a_name_without_vendor_or_model_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="vendor:model"):
        HostedEmbedder(name, 3)


def test_an_unknown_vendor_is_refused() -> None:
    with pytest.raises(ProviderError, match="nobody"):
        HostedEmbedder("nobody:small", 3)


@pytest.mark.parametrize("vendor_key", [("openai:small", "OPENAI_API_KEY"), (GOOGLE, "GOOGLE_API_KEY")])
def test_a_missing_key_is_a_provider_error(monkeypatch, vendor_key: tuple[str, str]) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ProviderError, match=vendor_key[1]):
        HostedEmbedder(vendor_key[0], 3)


def test_without_the_library_the_error_is_the_line_that_installs_it() -> None:
    program = """
import sys
from conspectus.errors import MissingExtra
from conspectus.providers.hosted_embedder import HostedEmbedder
for missing, name in (("pydantic_ai", "openai:small"), ("cohere", "cohere:embed-v4.0")):
    sys.modules[missing] = None
    try:
        HostedEmbedder(name, 3)
    except MissingExtra as told:
        print(told)
    del sys.modules[missing]
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    hosted, cohere = done.stdout.splitlines()
    assert "pip install 'conspectus[hosted]'" in hosted
    assert "pip install 'conspectus[cohere]'" in cohere
