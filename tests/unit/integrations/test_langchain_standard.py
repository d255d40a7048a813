"""The standard tests that LangChain publishes for integrations."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langchain_tests import integration_tests as suites

import conspectus
from conspectus.integrations.langchain import ConspectusByteStore, ConspectusRetriever, ConspectusVectorStore
from conspectus.sync import BlockingEngine
from conspectus.testing.embedders import HashedEmbedder


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingEngine]:
    folder: Path = tmp_path_factory.mktemp("store")
    with conspectus.open(folder, embedder=HashedEmbedder()) as opened:
        opened.add([f"Meeting {number} is in room {number}." for number in range(5)], wait=True)
        yield opened


class TestVectorStore(suites.VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, engine: BlockingEngine) -> Iterator[ConspectusVectorStore]:
        store = ConspectusVectorStore(engine)
        yield store
        store.delete()


class TestVectorStoreOverAnEmbedding(suites.VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, engine: BlockingEngine) -> Iterator[ConspectusVectorStore]:
        store = ConspectusVectorStore(engine, embedding=self.get_embeddings(), collection="given")
        yield store
        store.delete()


class TestRetriever(suites.RetrieversIntegrationTests):
    retriever_constructor = ConspectusRetriever
    retriever_query_example = "Where is the meeting?"
    num_results_arg_name = "limit"

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"engine": self.engine}

    @pytest.fixture(autouse=True)
    def over_the_engine(self, engine: BlockingEngine) -> None:
        self.engine = engine


class Values:
    @pytest.fixture
    def kv_store(self, engine: BlockingEngine) -> ConspectusByteStore:
        return ConspectusByteStore(engine, source=str(uuid4()))

    @pytest.fixture
    def three_values(self) -> tuple[bytes, bytes, bytes]:
        return b"1", b"2", b"3"


class TestByteStore(Values, suites.BaseStoreSyncTests[bytes]):
    pass


class TestByteStoreInALoop(Values, suites.BaseStoreAsyncTests[bytes]):
    pass
