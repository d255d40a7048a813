"""Every store of graphs, held to the contract, and what only a database can show."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from conspectus.model.ids import DocumentId, SourceId
from conspectus.records.graphs import SqlGraphs
from conspectus.records.store import SqlRecords, open_records
from conspectus.testing.graph_samples import PEOPLE, PLACES, GraphShelf
from conspectus.testing.graph_walks_contract import GraphMergesContract, GraphWalksContract
from conspectus.testing.graphs_contract import GraphsContract
from conspectus.testing.memory_graphs import MemoryGraphs
from conspectus.testing.samples import notes, prepared
from conspectus.testing.samples import shelf as a_shelf


class StoredShelf:
    """Graphs of a database."""

    def __init__(self, records: SqlRecords) -> None:
        self.records = records
        self.graphs = SqlGraphs(records.transactions)

    async def write(self, *documents: str) -> None:
        await self.records.write([prepared(name, name) for name in documents])

    async def forget(self, *documents: str) -> None:
        await self.records.delete([DocumentId(name) for name in documents])
        assert await self.records.check() == []

    async def drop(self, graph: SourceId) -> None:
        await self.records.delete_source(graph)
        assert await self.records.check() == []


class RememberedShelf:
    """Graphs in memory."""

    def __init__(self) -> None:
        self.graphs = MemoryGraphs(PEOPLE, PLACES)

    async def write(self, *documents: str) -> None:
        self.graphs.write(*documents)

    async def forget(self, *documents: str) -> None:
        self.graphs.forget(*documents)

    async def drop(self, graph: SourceId) -> None:
        self.graphs.drop(graph)


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[SqlRecords]:
    opened = await open_records(tmp_path / "records.sqlite")
    await opened.create_collection(a_shelf())
    for source in (notes(), PEOPLE, PLACES):
        await opened.put_source(source)
    yield opened
    await opened.close()


class TestSqlite(GraphsContract, GraphWalksContract, GraphMergesContract):
    @pytest.fixture
    def shelf(self, records: SqlRecords) -> GraphShelf:
        return StoredShelf(records)


class TestMemory(GraphsContract, GraphWalksContract, GraphMergesContract):
    @pytest.fixture
    def shelf(self) -> GraphShelf:
        return RememberedShelf()
