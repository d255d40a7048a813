"""Every store of answer records, held to its contract on SQLite and on PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contracts.answers_contract import AnswersContract

from conspectus.ports.answers import AnswerStore
from conspectus.records.answers import SqlAnswers
from conspectus.records.store import SqlRecords, open_records


class TestSqlAnswers(AnswersContract):
    @pytest.fixture
    async def records(self, tmp_path: Path) -> AsyncIterator[SqlRecords]:
        opened = await open_records(tmp_path / "records.sqlite")
        yield opened
        await opened.close()

    @pytest.fixture
    def store(self, records: SqlRecords) -> AnswerStore:
        return SqlAnswers(records.transactions)


class TestPostgresAnswers(TestSqlAnswers):
    @pytest.fixture
    def records(self, postgres_records: SqlRecords) -> SqlRecords:
        return postgres_records
