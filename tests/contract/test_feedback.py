"""Every store of feedback, held to its contract on SQLite and on PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contracts.feedback_contract import FeedbackContract

from conspectus.ports import FeedbackStore
from conspectus.ports.accounts import Accounts
from conspectus.records.accounts.store import SqlAccounts
from conspectus.records.feedback import SqlFeedback
from conspectus.records.store import SqlRecords, open_records


class TestSqlFeedback(FeedbackContract):
    @pytest.fixture
    async def records(self, tmp_path: Path) -> AsyncIterator[SqlRecords]:
        opened = await open_records(tmp_path / "records.sqlite")
        yield opened
        await opened.close()

    @pytest.fixture
    def store(self, records: SqlRecords) -> FeedbackStore:
        return SqlFeedback(records.transactions)

    @pytest.fixture
    def accounts(self, records: SqlRecords) -> Accounts:
        return SqlAccounts(records.transactions)


class TestPostgresFeedback(TestSqlFeedback):
    @pytest.fixture
    def records(self, postgres_records: SqlRecords) -> SqlRecords:
        return postgres_records
