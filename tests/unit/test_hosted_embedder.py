"""Against a local server that speaks OpenAI's protocol, through the vendor's real library."""

import asyncio
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec

import numpy as np
import pytest

from conspectus.errors import InvalidInput, MissingExtra, ProviderError, ProviderUnavailable
from conspectus.providers.hosted_embedder import BatchLimit, HostedEmbedder, Patience

if find_spec("openai") is None:
    pytest.skip("needs conspectus[openai]", allow_module_level=True)

from openai import AsyncOpenAI
from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
from pydantic_ai.providers.openai import OpenAIProvider

DIMENSIONS = 3
QUICK = Patience(attempts=3, first_wait=0.0, longest_wait=5.0, timeout=20.0)


def vector(text):
    return [float(len(text)), float(sum(map(ord, text))), 1.0]


class Vendor(ThreadingHTTPServer):
    """Answers each request with the next planned (status, headers, vectors), then as it should."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.plan = []
        self.requests = []
        self.asked = threading.Event()
        self.released = threading.Event()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}/v1"


class Answer(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, body))
        self.server.asked.set()
        status, headers, vectors = self.server.plan.pop(0) if self.server.plan else (200, {}, None)
        if status == "slow":
            self.server.released.wait(30)
            return
        rows = [vector(text) for text in body["input"]] if vectors is None else vectors
        data = [{"object": "embedding", "index": n, "embedding": row} for n, row in enumerate(rows)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        good = {"object": "list", "data": data, "model": body["model"], "usage": usage}
        self.reply(
            status, headers, good if status == 200 else {"error": {"message": "planned", "type": "planned"}}
        )

    def reply(self, status, headers, answer):
        content = json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": len(content),
            **headers,
        }.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        """Keep the test output clean."""


@pytest.fixture
def vendor():
    server = Vendor()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
async def client(vendor):
    async with AsyncOpenAI(base_url=vendor.address, api_key="none", max_retries=0) as connection:
        yield connection


@pytest.fixture
def make(client):
    def embedder(**options):
        model = OpenAIEmbeddingModel("small", provider=OpenAIProvider(openai_client=client))
        return HostedEmbedder(model, DIMENSIONS, **{"patience": QUICK, **options})

    return embedder


def unit(text):
    return np.array(vector(text)) / np.linalg.norm(vector(text))


async def test_rows_are_unit_vectors_in_the_order_of_the_texts(make):
    texts = [f"text {n}" * n for n in range(1, 12)]
    rows = await make(limit=BatchLimit(texts=4)).embed_documents(texts)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [unit(text) for text in texts], rtol=1e-6)


async def test_batches_obey_both_limits_and_a_long_text_goes_alone_and_whole(make, vendor):
    texts = ["aa", "bb", "cc", "d" * 50, "ee", "ffff", "gggggg"]
    await make(limit=BatchLimit(texts=2, characters=10)).embed_documents(texts)
    sent = [body["input"] for _, body in vendor.requests]
    assert sent == [["aa", "bb"], ["cc"], ["d" * 50], ["ee", "ffff"], ["gggggg"]]


async def test_no_texts_ask_nobody(make, vendor):
    assert (await make().embed_documents([])).shape == (0, DIMENSIONS)
    assert vendor.requests == []


async def test_blank_texts_and_lone_surrogates_are_sent_as_something_a_vendor_takes(make, vendor):
    await make().embed_documents(["", " \n", "a\ud800"])
    assert vendor.requests[0][1]["input"] == [".", ".", "a?"]


async def test_the_vendor_is_asked_to_shorten_only_on_demand(make, vendor):
    await make().embed_query("a")
    await make(shorten=True).embed_query("a")
    assert [body.get("dimensions") for _, body in vendor.requests] == [None, DIMENSIONS]


@pytest.mark.parametrize("status", [429, 500, 502, 503])
async def test_a_busy_vendor_is_asked_again(make, vendor, status):
    vendor.plan = [(status, {}, None), (status, {"Retry-After": 0}, None)]
    np.testing.assert_allclose(await make().embed_query("hello"), unit("hello"), rtol=1e-6)
    assert len(vendor.requests) == 3


async def test_attempts_are_bounded(make, vendor):
    vendor.plan = [(429, {"Retry-After": 0}, None)] * 10
    with pytest.raises(ProviderUnavailable) as refused:
        await make().embed_documents(["a"])
    assert len(vendor.requests) == QUICK.attempts
    assert (refused.value.provider, refused.value.retry_after) == ("openai", 0)


async def test_a_wait_longer_than_our_patience_is_handed_on(make, vendor):
    vendor.plan = [(503, {"Retry-After": 3600}, None)]
    with pytest.raises(ProviderUnavailable) as refused:
        await make().embed_query("a")
    assert refused.value.retry_after == 3600
    assert len(vendor.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
async def test_a_refusal_is_final(make, vendor, status):
    vendor.plan = [(status, {}, None)]
    with pytest.raises(ProviderError, match=str(status)) as refused:
        await make().embed_query("a")
    assert not isinstance(refused.value, ProviderUnavailable)
    assert len(vendor.requests) == 1


@pytest.mark.parametrize("vectors", [[[1.0, 2.0]], [[1.0] * 4], [], [[1.0, 2.0, 3.0]] * 2, [[0.0] * 3]])
async def test_an_answer_of_another_shape_is_refused(make, vendor, vectors):
    vendor.plan = [(200, {}, vectors)]
    with pytest.raises(ProviderError, match=r"sent|No embedding data"):
        await make().embed_query("a")


async def test_a_vendor_that_does_not_answer_is_unavailable(make, vendor):
    vendor.plan = [("slow", {}, None)] * 2
    with pytest.raises(ProviderUnavailable, match=r"no answer within 0\.2 s"):
        await make(patience=Patience(attempts=2, first_wait=0.0, timeout=0.2)).embed_query("a")
    assert len(vendor.requests) == 2


async def test_a_vendor_that_is_not_there_is_unavailable():
    async with AsyncOpenAI(base_url="http://127.0.0.1:1/v1", api_key="none", max_retries=0) as client:
        model = OpenAIEmbeddingModel("small", provider=OpenAIProvider(openai_client=client))
        with pytest.raises(ProviderUnavailable):
            await HostedEmbedder(model, DIMENSIONS, patience=QUICK).embed_query("a")


async def test_cancelling_ends_the_wait(make, vendor):
    vendor.plan = [(429, {"Retry-After": 5}, None)]
    task = asyncio.create_task(make().embed_query("a"))
    assert await asyncio.to_thread(vendor.asked.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(vendor.requests) == 1


async def test_a_name_finds_the_vendor(vendor, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", vendor.address)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    embedder = HostedEmbedder("openai:text-embedding-3-small", DIMENSIONS)
    assert embedder.space.name == "openai:text-embedding-3-small/3/1"
    np.testing.assert_allclose(await embedder.embed_query("hello"), unit("hello"), rtol=1e-6)
    path, body = vendor.requests[0]
    assert (path, body["model"]) == ("/v1/embeddings", "text-embedding-3-small")


@pytest.mark.parametrize("name", ["", "openai", "openai:", ":small"])
def test_a_name_without_vendor_or_model_is_refused(name):
    with pytest.raises(InvalidInput, match="vendor:model"):
        HostedEmbedder(name, DIMENSIONS)


def test_an_unknown_vendor_is_refused():
    with pytest.raises(ProviderError, match="nobody"):
        HostedEmbedder("nobody:small", DIMENSIONS)


def test_a_missing_key_is_a_provider_error(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ProviderError, match="OPENAI_API_KEY"):
        HostedEmbedder("openai:small", DIMENSIONS)


@pytest.mark.skipif(find_spec("cohere") is not None, reason="the cohere extra is installed here")
def test_a_vendor_whose_library_is_missing_names_its_extra():
    with pytest.raises(MissingExtra, match=r"conspectus\[cohere\]"):
        HostedEmbedder("cohere:embed-v4.0", DIMENSIONS)


def test_without_the_library_the_error_is_the_line_that_installs_it():
    program = (
        "import sys; sys.modules['pydantic_ai'] = None\n"
        "from conspectus.providers.hosted_embedder import HostedEmbedder\n"
        "from conspectus.errors import MissingExtra\n"
        "try: HostedEmbedder('openai:small', 3)\n"
        "except MissingExtra as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert "pip install 'conspectus[hosted]'" in done.stdout
