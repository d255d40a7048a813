"""Every store of graphs, held to the contract, and what only a database can show."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, event
from tests.contracts.graph_walks_contract import (
    GraphLevelsContract,
    GraphMergesContract,
    GraphWalksContract,
)
from tests.contracts.graphs_contract import GraphsContract
from tests.support.graph_samples import PEOPLE, PLACES, GraphShelf, adding, edge, node
from tests.support.in_memory_graphs import MemoryGraphs
from tests.support.samples import notes, prepared
from tests.support.samples import shelf as a_shelf

from conspectus.model.graph import GraphReceipt, Traversal
from conspectus.model.ids import DocumentId, SourceId
from conspectus.records.graph.store import SqlGraphs
from conspectus.records.graph.traversal import EDGE_QUERIES
from conspectus.records.store import SqlRecords, open_records

RIM = 20_000


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


async def stocked(records: SqlRecords) -> SqlRecords:
    await records.create_collection(a_shelf())
    for source in (notes(), PEOPLE, PLACES):
        await records.put_source(source)
    return records


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[SqlRecords]:
    opened = await stocked(await open_records(tmp_path / "records.sqlite"))
    yield opened
    await opened.close()


class TestSqlite(GraphsContract, GraphWalksContract, GraphLevelsContract, GraphMergesContract):
    @pytest.fixture
    def shelf(self, records: SqlRecords) -> GraphShelf:
        return StoredShelf(records)


class TestPostgres(TestSqlite):
    @pytest.fixture
    async def records(self, postgres_records: SqlRecords) -> SqlRecords:
        return await stocked(postgres_records)


class TestMemory(GraphsContract, GraphWalksContract, GraphLevelsContract, GraphMergesContract):
    @pytest.fixture
    def shelf(self) -> GraphShelf:
        return RememberedShelf()


@pytest.mark.parametrize("way", EDGE_QUERIES, ids=str)
async def test_a_step_of_a_walk_reads_an_index_and_sorts_nothing(
    records: SqlRecords, way: tuple[bool, bool, bool, bool, bool]
) -> None:
    all_values = {
        "near": 1,
        "least": 0.5,
        "maximum": 16,
        "skipped": 0,
        "moment": 5,
        "types": ["a", "b"],
        "as_of": 5,
        "levels": ["trusted"],
    }
    back, typed, dated, has_as_of, levels = way
    is_named = {"moment": dated, "types": typed, "as_of": has_as_of, "levels": levels}
    values_of_query = {name: value for name, value in all_values.items() if is_named.get(name, True)}

    def explain_query(connection: Connection) -> list[str]:
        statements: list[tuple[str, Any]] = []
        event.listen(
            connection,
            "before_cursor_execute",
            lambda *arguments: statements.append((arguments[2], arguments[3])),
        )
        connection.execute(EDGE_QUERIES[way], values_of_query)
        sql, values = statements[0]
        return [row[-1] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values)]

    plan = await records.transactions.read(explain_query)
    index = f"INDEX ix_graph_edges_{'in' if back else 'out'}"
    assert (index if has_as_of or levels else f"COVERING {index}") in plan[0]
    assert len(plan) == 1 + (dated or has_as_of or levels)
    assert not any("TEMP B-TREE" in line for line in plan)


async def test_a_hub_of_twenty_thousand_edges_is_walked_and_deleted(records: SqlRecords) -> None:
    graphs = SqlGraphs(records.transactions, maximum=500)
    names = [f"n{number:05}" for number in range(RIM)]
    await graphs.add(adding(node("hub"), *map(node, names)))
    await graphs.add(adding(*(edge("hub", name) for name in names)))
    neighbors = await graphs.walk([PEOPLE.id], ["n00007"], Traversal(hops=3, limit=1_000))
    assert [neighbor.node.id for neighbor in neighbors] == ["hub", *names[:7], *names[8:500]]
    assert await graphs.delete_nodes(PEOPLE.id, ["hub"]) == GraphReceipt(1, RIM)
    assert (await records.check()) == []
