"""Every reranker against the same behaviour, each with a local server that speaks its vendor's protocol."""

from collections.abc import AsyncIterator
from typing import ClassVar

import pytest
from tests.support.model_servers import ModelServer
from tests.support.vendor_protocols import bedrock, cohere, jina, tei

from conspectus.model.retries import RetryPolicy
from conspectus.ports.web import Reranker
from conspectus.providers.registry import reranker_of
from conspectus.providers.request_log import drop
from conspectus.testing.reranker_contract import OverlapReranker, RerankerContract

MODEL = "cohere.rerank-v3-5:0"


class TestReference(RerankerContract):
    @pytest.fixture
    def reranker(self) -> Reranker:
        return OverlapReranker()


class Through(RerankerContract):
    """The reranker that a setting names, with the local server in the place of the vendor's."""

    @pytest.fixture
    async def reranker(self, monkeypatch) -> AsyncIterator[Reranker]:
        async with ModelServer(self.protocol) as server:
            for name, value in self.environment.items():
                monkeypatch.setenv(name, value.format(server.base))
            setting = self.setting.format(server.base)
            model = reranker_of(setting, retry_policy=RetryPolicy(), timeout=60.0, note=drop)
            yield model
            await model.close()


class TestCohere(Through):
    setting, protocol = "cohere:rerank-v3.5", cohere(key="k")
    environment: ClassVar = {"CO_API_KEY": "k", "CO_API_URL": "{}"}


class TestBedrock(Through):
    setting, protocol = f"bedrock:{MODEL}", bedrock(MODEL)
    environment: ClassVar = {
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "{}",
    }


class TestJina(Through):
    setting, protocol = "{}/v1/rerank#jina-reranker-v2", jina()
    environment: ClassVar = {}


class TestTextEmbeddingsInference(Through):
    setting, protocol = "{}/rerank", tei()
    environment: ClassVar = {}
