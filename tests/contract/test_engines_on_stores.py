"""The engine on every combination of stores, held to the contract of engines."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.stores import Servers

from conspectus import Engine
from conspectus.testing.embedders import HashedEmbedder
from conspectus.testing.engine_asking_contract import AskingContract, UpkeepContract
from conspectus.testing.engine_contract import EngineContract
from conspectus.testing.engine_conversing_contract import ConversingContract
from conspectus.testing.engine_documents_contract import CatalogContract, DocumentsContract
from conspectus.testing.engine_people_contract import PeopleContract
from conspectus.testing.engine_remembering_contract import RememberingContract
from conspectus.testing.engine_streaming_contract import StreamingContract
from conspectus.testing.engine_vectors_contract import VectorsContract
from conspectus.testing.milvus_server import MilvusProcess
from conspectus.testing.postgres_server import PostgresProcess


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


class IndexGroups(
    CatalogContract, DocumentsContract, VectorsContract, AskingContract, UpkeepContract, StreamingContract
):
    """Where an index takes in, answers, follows, is built anew, checked and forgotten."""


class TestSqliteAndMilvus(OnStores, IndexGroups, ConversingContract, PeopleContract, RememberingContract):
    """All groups that put questions to an index; the others speak to the records alone."""

    store = "sqlite+milvus"


class TestPostgresAndMilvus(OnStores, IndexGroups):
    """What either side does is held to more by the two classes above; here they meet."""

    store = "postgresql+milvus"


@pytest.mark.slow
class TestSqliteAndMilvusInFull(OnStores, EngineContract):
    store = "sqlite+milvus"


@pytest.mark.slow
class TestPostgresAndMilvusInFull(OnStores, EngineContract):
    store = "postgresql+milvus"
