"""Every keeper of names, held to its contract: in memory, on SQLite and on PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contracts.names_contract import NamesContract
from tests.support.in_memory_names import MemoryNames

from conspectus.ports.graphs import MentionStore
from conspectus.records.graph.mentions import SqlNames
from conspectus.records.store import SqlRecords, open_records


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[SqlRecords]:
    opened = await open_records(tmp_path / "records.sqlite")
    yield opened
    await opened.close()


class TestSqlNames(NamesContract):
    @pytest.fixture
    def store(self, records: SqlRecords) -> MentionStore:
        return SqlNames(records.transactions)


class TestPostgresNames(TestSqlNames):
    @pytest.fixture
    def records(self, postgres_records: SqlRecords) -> SqlRecords:
        return postgres_records


class TestMemoryNames(NamesContract):
    @pytest.fixture
    def store(self, records: SqlRecords) -> MentionStore:
        return MemoryNames(records)
