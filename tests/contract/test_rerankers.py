"""Every reranker against the same behaviour, each with a local server that speaks its vendor's protocol."""

from collections.abc import AsyncIterator

import pytest
from tests.support.model_servers import ModelServer
from tests.support.vendor_protocols import bedrock, cohere, jina, tei

from conspectus.ports.web import Reranker
from conspectus.providers.bedrock import BedrockReranker
from conspectus.providers.rerankers import CohereReranker, HttpReranker
from conspectus.testing.reranker_contract import OverlapReranker, RerankerContract

MODEL = "cohere.rerank-v3-5:0"


class TestReference(RerankerContract):
    @pytest.fixture
    def reranker(self) -> Reranker:
        return OverlapReranker()


class TestCohere(RerankerContract):
    @pytest.fixture
    async def reranker(self) -> AsyncIterator[Reranker]:
        async with ModelServer(cohere(key="k")) as server:
            made = CohereReranker("rerank-v3.5", "k", url=server.base)
            yield made
            await made.close()


class TestBedrock(RerankerContract):
    @pytest.fixture
    async def reranker(self, monkeypatch) -> AsyncIterator[Reranker]:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        async with ModelServer(bedrock(MODEL)) as server:
            made = BedrockReranker(MODEL, endpoint_url=server.base)
            yield made
            await made.close()


class TestJina(RerankerContract):
    @pytest.fixture
    async def reranker(self) -> AsyncIterator[Reranker]:
        async with ModelServer(jina()) as server:
            made = HttpReranker(f"{server.base}/v1/rerank", model="jina-reranker-v2")
            yield made
            await made.close()


class TestTextEmbeddingsInference(RerankerContract):
    @pytest.fixture
    async def reranker(self) -> AsyncIterator[Reranker]:
        async with ModelServer(tei()) as server:
            made = HttpReranker(f"{server.base}/rerank")
            yield made
            await made.close()
