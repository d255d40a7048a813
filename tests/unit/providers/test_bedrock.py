"""Cohere's embed-v4 on Bedrock, against a local server that speaks Bedrock's protocol, through boto3."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator

import numpy as np
import pytest
from tests.support.model_servers import ModelServer, failing, never, told
from tests.support.vendor_protocols import bedrock, expected

from conspectus.errors import InvalidInput, ProviderError, ProviderUnavailable
from conspectus.ingest.embedding_queue import EmbedQueue
from conspectus.model.jobs import EmbeddingRequest
from conspectus.model.retries import RetryPolicy
from conspectus.providers.bedrock import BedrockEmbedder

MODEL = "us.cohere.embed-v4:0"
SECRET = "very-secret-key"


@pytest.fixture
async def server(monkeypatch) -> AsyncIterator[ModelServer]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    async with ModelServer(bedrock(MODEL)) as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", running.base)
        yield running
    assert running.misses == []


@pytest.fixture
def notes() -> list[EmbeddingRequest]:
    return []


@pytest.fixture
async def embedder(server: ModelServer, notes: list[EmbeddingRequest]) -> AsyncIterator[BedrockEmbedder]:
    client = BedrockEmbedder(MODEL, 256, note=notes.append, timeout=30.0)
    yield client
    await client.close()


@pytest.mark.parametrize(("kind", "theirs"), [("document", "search_document"), ("query", "search_query")])
async def test_what_is_sent_and_what_comes_back(
    server: ModelServer, embedder: BedrockEmbedder, kind: str, theirs: str
) -> None:
    rows = await embedder.embed_batch(["first text", ""], kind)
    np.testing.assert_allclose(rows, expected(["first text", "."], 256, theirs), rtol=1e-6)
    assert server.calls[0].body == {
        "texts": ["first text", "."],
        "input_type": theirs,
        "embedding_types": ["float"],
        "output_dimension": 256,
        "truncate": "RIGHT",
    }
    assert (rows.dtype, embedder.space.name) == (np.float32, f"bedrock:{MODEL}/256/1")


@pytest.mark.parametrize("dimensions", [256, 512, 1024, 1536])
async def test_every_size_the_model_has(server: ModelServer, dimensions: int) -> None:
    embedder = BedrockEmbedder(MODEL, dimensions)
    rows = await embedder.embed_batch(["a"], "document")
    assert rows.shape == (1, dimensions)
    assert np.linalg.norm(rows) == pytest.approx(1.0)
    await embedder.close()


async def test_the_size_is_1024_unless_said(server: ModelServer) -> None:
    embedder = BedrockEmbedder(MODEL)
    assert embedder.space.dimensions == 1024
    await embedder.close()


@pytest.mark.parametrize("dimensions", [0, 3, 1000, 2048])
def test_a_size_the_model_does_not_have_is_refused(dimensions: int) -> None:
    with pytest.raises(InvalidInput, match="256, 512, 1024, 1536"):
        BedrockEmbedder(MODEL, dimensions)


async def test_answers_without_the_name_of_their_type(server: ModelServer, embedder: BedrockEmbedder) -> None:
    server.plan.append(told({"embeddings": [[3.0] + [0.0] * 255], "response_type": "embeddings_floats"}))
    assert (await embedder.embed_batch(["a"], "document"))[0, 0] == 1.0


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {},
        {"embeddings": {"int8": [[1] * 256]}},
        {"embeddings": {"float": [[1.0] * 256] * 2}},
        {"embeddings": {"float": [[0.0] * 256]}},
        {"embeddings": {"float": [[float("nan")] * 256]}},
        {"embeddings": {"float": ["text"]}},
        {"embeddings": {"float": [["1"] * 256]}},
        {"embeddings": {"float": [None]}},
    ],
)
async def test_an_answer_that_is_no_vector_is_refused(
    server: ModelServer, embedder: BedrockEmbedder, content: object
) -> None:
    server.plan.append(told(content))
    with pytest.raises(ProviderUnavailable) as refused:
        await embedder.embed_batch(["a"], "document")
    assert refused.value.verdict == "answer"


@pytest.mark.parametrize(
    ("status", "unavailable"), [(400, False), (403, False), (404, False), (500, True), (503, True)]
)
async def test_each_batch_is_asked_for_once(
    server: ModelServer,
    embedder: BedrockEmbedder,
    notes: list[EmbeddingRequest],
    status: int,
    unavailable: bool,
) -> None:
    server.plan.append(failing(status, retry_after=9))
    with pytest.raises(ProviderError, match=f"HTTP {status}") as refused:
        await embedder.embed_batch(["a"], "document")
    assert isinstance(refused.value, ProviderUnavailable) == unavailable
    assert getattr(refused.value, "retry_after", None) == (9.0 if unavailable else None)
    assert (len(server.calls), [note.error for note in notes]) == (1, [f"HTTP {status}"])
    assert SECRET not in str(refused.value)


async def test_behind_the_queue_throttling_is_waited_out_and_a_refused_batch_is_halved(
    server: ModelServer, embedder: BedrockEmbedder, notes: list[EmbeddingRequest]
) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    queue = EmbedQueue(embedder, retry_policy=RetryPolicy(sleep=sleep))
    server.plan.extend([failing(429, retry_after=2), failing(400), told({}), told({}), failing(400)])
    calls = [queue.embed_documents([text]) for text in ("bad", "worse")]
    errors = await asyncio.gather(*calls, return_exceptions=True)
    assert [(type(error), error.verdict) for error in errors] == [
        (ProviderUnavailable, "answer"),
        (ProviderError, "text"),
    ]
    assert waits[:2] == [2.0, 2.0]
    expected = ["HTTP 429", "HTTP 400", "provider_unavailable", "provider_unavailable", "HTTP 400"]
    assert [note.error for note in notes] == expected


async def test_a_slow_service_is_unavailable(server: ModelServer) -> None:
    embedder = BedrockEmbedder(MODEL, timeout=1.0)
    server.plan.append(never())
    with pytest.raises(ProviderUnavailable, match="no answer within 1 s"):
        await embedder.embed_batch(["a"], "document")
    await embedder.close()


async def test_requests_are_noted_with_the_tokens_that_were_counted(
    embedder: BedrockEmbedder, notes: list[EmbeddingRequest]
) -> None:
    await embedder.embed_batch(["secret words", "more"], "document")
    (note,) = notes
    assert (note.kind, note.status, note.model, note.inputs) == ("embed", "success", f"bedrock:{MODEL}", 2)
    assert (note.tokens, note.error) == (10, None)
    assert "words" not in repr(note)


def test_without_boto3_the_error_is_the_line_that_installs_it() -> None:
    program = (
        "import sys; sys.modules['boto3'] = None\n"
        "from conspectus.providers.bedrock import BedrockEmbedder\n"
        "from conspectus.errors import MissingExtra\n"
        "try: BedrockEmbedder('us.cohere.embed-v4:0')\n"
        "except MissingExtra as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert "pip install 'conspectus[bedrock]'" in done.stdout
