"""Every store of memories, held to its contract on SQLite and on PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contracts.memories_contract import MemoriesContract

from conspectus.ports.memories import Memories
from conspectus.records.memories.store import SqlMemories
from conspectus.records.store import SqlRecords, open_records


class TestSqlMemories(MemoriesContract):
    @pytest.fixture
    async def records(self, tmp_path: Path) -> AsyncIterator[SqlRecords]:
        opened = await open_records(tmp_path / "records.sqlite")
        yield opened
        await opened.close()

    @pytest.fixture
    def store(self, records: SqlRecords) -> Memories:
        return SqlMemories(records.transactions)


class TestPostgresMemories(TestSqlMemories):
    @pytest.fixture
    def records(self, postgres_records: SqlRecords) -> SqlRecords:
        return postgres_records
