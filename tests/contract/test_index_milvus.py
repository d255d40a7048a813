"""The index in Milvus, held to the contract against a real server."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contracts.index_contract import DIMENSIONS, IndexContract, OpenIndex
from tests.milvus_locations import location_in
from tests.support import index_recall
from tests.support.index_recall import IndexRecall
from tests.support.journal import Journal
from tests.support.milvus_server import MilvusProcess

from conspectus.index.milvus.connection import MilvusServer
from conspectus.index.milvus.store import MilvusIndex
from conspectus.ports import Index
from conspectus.text.analyzer import Analyzer


@pytest.fixture
async def server(milvus: MilvusProcess) -> AsyncIterator[MilvusServer]:
    opened = MilvusServer(milvus.uri, seconds=20)
    yield opened
    for name in await opened.collections():
        await opened.drop(name)
    await opened.close()


class TestMilvus(IndexContract):
    @pytest.fixture
    def open_index(self, tmp_path: Path, server: MilvusServer) -> OpenIndex:
        location = location_in(server, tmp_path, DIMENSIONS)

        async def opened(journal: Journal) -> Index:
            return await MilvusIndex.open(location, journal, Analyzer("english").terms)

        return opened


@pytest.mark.slow
class TestRecall(IndexRecall):
    """Every vector is looked at in Milvus Lite; what this shows is that no filter starves the search."""

    size = 3_000

    @pytest.fixture
    def open_index(self, tmp_path: Path, server: MilvusServer) -> OpenIndex:
        location = location_in(server, tmp_path, index_recall.DIMENSIONS)

        async def opened(journal: Journal) -> Index:
            return await MilvusIndex.open(location, journal, str.split)

        return opened
