"""Google's embeddings against a local server that speaks their protocol, through Google's own library."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from importlib.util import find_spec

import numpy as np
import pytest
from tests.support.model_servers import ModelServer, failing, told
from tests.support.vendor_protocols import expected, google

from conspectus.errors import InvalidInput, ProviderError, ProviderUnavailable
from conspectus.facades.video import ContextManager, GeminiEmbeddings
from conspectus.model.retries import RetryPolicy
from conspectus.providers.hosted_embedder import PIECE, RETRY_POLICY

if find_spec("google.genai") is None:
    pytest.skip("needs conspectus[google]", allow_module_level=True)

KEY = "AIza-very-secret"
MODEL = "gemini-embedding-001"


async def skip_waiting(seconds: float) -> None:
    """Wait no longer than the loop needs."""


QUICK = RetryPolicy(busy=RETRY_POLICY.busy, attempts=3, sleep=skip_waiting)


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer(google(MODEL, key=KEY)) as vendor:
        yield vendor
    assert vendor.misses == []


@pytest.fixture
async def gemini(server: ModelServer) -> AsyncIterator[GeminiEmbeddings]:
    async with GeminiEmbeddings(KEY, dimensions=16, base_url=server.base, retry_policy=QUICK) as embeddings:
        yield embeddings


def count_texts(server: ModelServer) -> list[int]:
    return [len(call.body["requests"]) for call in server.calls]


def list_tasks(server: ModelServer) -> set[str]:
    return {request["taskType"] for call in server.calls for request in call.body["requests"]}


async def test_documents_and_questions_are_embedded_differently(
    gemini: GeminiEmbeddings, server: ModelServer
) -> None:
    text = "a red car"
    document, query = await gemini.embed_document(text), await gemini.embed_query(text)
    np.testing.assert_allclose(document, expected([text], 16, "RETRIEVAL_DOCUMENT")[0], atol=1e-6)
    np.testing.assert_allclose(query, expected([text], 16, "RETRIEVAL_QUERY")[0], atol=1e-6)
    assert list_tasks(server) == {"RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"}
    assert all(isinstance(number, float) for number in document)
    request = server.calls[0].body["requests"][0]
    assert (request["model"], request["outputDimensionality"]) == (f"models/{MODEL}", 16)
    assert (gemini.space.model, gemini.space.dimensions) == (f"google:{MODEL}", 16)


async def test_a_hundred_texts_go_in_a_request(gemini: GeminiEmbeddings, server: ModelServer) -> None:
    texts = [f"text {number}" for number in range(250)]
    rows = await gemini.embed_documents(texts)
    np.testing.assert_allclose(rows, expected(texts, 16, "RETRIEVAL_DOCUMENT"), atol=1e-6)
    assert count_texts(server) == [100, 100, 50]
    assert await gemini.embed_documents([]) == []


async def test_nothing_of_a_long_text_is_cut_off(gemini: GeminiEmbeddings, server: ModelServer) -> None:
    long = "A car passes by the gate. " * 400 + "At last a dragon lands."
    one, other = await gemini.embed_documents([long, "short"])
    sent = [request["content"]["parts"][0]["text"] for request in server.calls[0].body["requests"]]
    assert "".join(sent[:-1]) == long and max(map(len, sent)) <= PIECE
    rows = expected(sent[:-1], 16, "RETRIEVAL_DOCUMENT")
    mean = np.average(rows, axis=0, weights=[len(text) for text in sent[:-1]])
    np.testing.assert_allclose(one, mean / np.linalg.norm(mean), atol=1e-6)
    np.testing.assert_allclose(other, expected(["short"], 16, "RETRIEVAL_DOCUMENT")[0], atol=1e-6)


@pytest.mark.parametrize("text", ["", " \n" * 3_000, "🎉" * 5_000, "a\ud800b", "\x00"])
async def test_odd_texts_have_a_vector_too(gemini: GeminiEmbeddings, text: str) -> None:
    assert np.linalg.norm(await gemini.embed_document(text)) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
async def test_a_busy_service_is_asked_again(
    gemini: GeminiEmbeddings, server: ModelServer, status: int
) -> None:
    server.plan.extend([failing(status), failing(status)])
    assert len(await gemini.embed_query("car")) == 16
    assert len(server.calls) == 3
    server.plan.extend([failing(status)] * 3)
    with pytest.raises(ProviderUnavailable) as caught:
        await gemini.embed_query("car")
    assert (caught.value.status, len(server.calls)) == (status, 6)


@pytest.mark.parametrize("status", [400, 401, 403, 404])
async def test_a_refusal_is_final(gemini: GeminiEmbeddings, server: ModelServer, status: int) -> None:
    server.plan.append(failing(status, f"no, {KEY} may not"))
    with pytest.raises(ProviderError) as caught:
        await gemini.embed_query("car")
    assert not isinstance(caught.value, ProviderUnavailable)
    assert (caught.value.status, len(server.calls)) == (status, 1)
    assert KEY not in f"{caught.value} {caught.value!r} {caught.value.reason}"


async def test_a_wrong_key_is_refused_and_not_repeated(server: ModelServer) -> None:
    async with GeminiEmbeddings("AIza-wrong", dimensions=16, base_url=server.base) as wrong:
        with pytest.raises(ProviderError, match="API key not valid: …") as caught:
            await wrong.embed_document("car")
    assert "AIza-wrong" not in str(caught.value) and "AIza-wrong" not in repr(vars(caught.value))


async def test_vectors_of_another_size_are_an_error(gemini: GeminiEmbeddings, server: ModelServer) -> None:
    server.plan.append(told({"embeddings": [{"values": [1.0] * 8}]}))
    with pytest.raises(ProviderError, match="8 dimensions") as refused:
        await gemini.embed_query("car")
    assert refused.value.verdict == "service"


async def test_a_service_that_is_not_there_is_unavailable() -> None:
    async with GeminiEmbeddings(KEY, base_url="http://127.0.0.1:1", retry_policy=QUICK) as gone:
        with pytest.raises(ProviderUnavailable) as caught:
            await gone.embed_query("car")
    assert KEY not in str(caught.value)


@pytest.mark.slow
async def test_many_may_ask_at_once(gemini: GeminiEmbeddings, server: ModelServer) -> None:
    rows = await asyncio.gather(*[gemini.embed_query(f"car {number}") for number in range(20)])
    assert len({tuple(row) for row in rows}) == len(server.calls) == 20


async def test_it_can_be_used_after_it_was_closed(gemini: GeminiEmbeddings) -> None:
    before = await gemini.embed_query("car")
    await gemini.close()
    assert await gemini.embed_query("car") == before


async def test_each_event_loop_gets_connections_of_its_own(server: ModelServer) -> None:
    embeddings = GeminiEmbeddings(KEY, dimensions=16, base_url=server.base)

    async def ask() -> list[float]:
        async with embeddings:
            return await embeddings.embed_query("car")

    rows = [await asyncio.to_thread(asyncio.run, ask()) for _ in range(2)]
    assert rows[0] == rows[1] == await ask()


async def test_a_context_is_found_by_it(gemini: GeminiEmbeddings) -> None:
    async with ContextManager(gemini) as manager:
        await manager.add_documents_batch(["a car", "a dog"], [{"stream_id": "v"}] * 2)
        assert len(await manager.retrieve("car")) == 2
        assert manager.pending == ()


def test_without_a_key_or_a_size_it_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ProviderError, match="GOOGLE_API_KEY"):
        GeminiEmbeddings()
    with pytest.raises(InvalidInput, match="dimensions"):
        GeminiEmbeddings(KEY, dimensions=0)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    assert GeminiEmbeddings().space.name == f"google:{MODEL}/768/1"


def test_without_the_library_the_error_is_the_line_that_installs_it() -> None:
    program = (
        "import asyncio, sys; sys.modules['pydantic_ai'] = None\n"
        "from conspectus.errors import MissingExtra\n"
        "from conspectus.facades.video import GeminiEmbeddings\n"
        "try: asyncio.run(GeminiEmbeddings('k').embed_query('car'))\n"
        "except MissingExtra as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert "pip install 'conspectus[google]'" in done.stdout
