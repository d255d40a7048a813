"""The engine on every combination of stores, held to the contract of engines."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contracts.engine_contract import EngineContract
from tests.contracts.engine_documents_contract import DocumentsContract
from tests.contracts.engine_memory_contract import MemoryContract
from tests.contracts.engine_search_contract import SearchContract, UpkeepContract
from tests.contracts.engine_vectors_contract import VectorsContract
from tests.stores import Servers
from tests.support.milvus_server import MilvusProcess
from tests.support.postgres_server import PostgresProcess

from conspectus import Engine
from conspectus.testing.embedders import HashedEmbedder


@pytest.fixture(scope="session")
def servers(postgres: PostgresProcess, milvus: MilvusProcess) -> Servers:
    return Servers(postgres, milvus)


class OnStores:
    """One engine is both the one that is tested and the one of its store in this process."""

    store = "sqlite+segments"

    @pytest.fixture
    async def local(self, servers: Servers, tmp_path: Path) -> AsyncIterator[Engine]:
        async with servers.opened(self.store, tmp_path, HashedEmbedder()) as engine:
            yield engine

    @pytest.fixture
    def engine(self, local: Engine) -> Engine:
        return local


class TestPostgresAndPgvector(OnStores, EngineContract):
    store = "postgresql+pgvector"


class TestPostgresAndMilvus(
    OnStores, DocumentsContract, VectorsContract, SearchContract, UpkeepContract, MemoryContract
):
    """What an index takes part in most."""

    store = "postgresql+milvus"


@pytest.mark.slow
class TestSqliteAndMilvus(OnStores, EngineContract):
    store = "sqlite+milvus"
