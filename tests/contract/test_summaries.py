"""Every keeper of summaries, held to its contract on SQLite and on PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contracts.summaries_contract import SummariesContract

from conspectus.ports.streams import Summaries
from conspectus.records.store import SqlRecords, open_records
from conspectus.records.streams.summaries import SqlSummaries


class TestSqlSummaries(SummariesContract):
    @pytest.fixture
    async def records(self, tmp_path: Path) -> AsyncIterator[SqlRecords]:
        opened = await open_records(tmp_path / "records.sqlite")
        yield opened
        await opened.close()

    @pytest.fixture
    def store(self, records: SqlRecords) -> Summaries:
        return SqlSummaries(records.transactions)


class TestPostgresSummaries(TestSqlSummaries):
    @pytest.fixture
    def records(self, postgres_records: SqlRecords) -> SqlRecords:
        return postgres_records
