"""The index in PostgreSQL, held to the contract against a real server."""

from collections.abc import AsyncIterator

import pytest
from tests.contracts.index_contract import DIMENSIONS, IndexContract, OpenIndex
from tests.support import index_recall
from tests.support.index_recall import IndexRecall
from tests.support.journal import Journal

from conspectus.bootstrap.pgvector import IndexTransactions
from conspectus.index.pgvector.options import PgvectorOptions
from conspectus.index.pgvector.store import PgvectorIndex
from conspectus.ports import Index
from conspectus.records.core.database import DatabaseAccess, database_at
from conspectus.records.core.transactions import Transactions
from conspectus.text.analyzer import Analyzer


@pytest.fixture
async def database(emptied_url: str) -> AsyncIterator[IndexTransactions]:
    transactions = Transactions(database_at(emptied_url, DatabaseAccess(connections=4)))
    opened = IndexTransactions(transactions)
    yield opened
    await opened.close()
    await transactions.close()


class TestPgvector(IndexContract):
    @pytest.fixture
    def open_index(self, database: IndexTransactions) -> OpenIndex:
        options = PgvectorOptions(database, "index_1", DIMENSIONS)

        async def opened(journal: Journal) -> Index:
            return await PgvectorIndex.open(options, journal, Analyzer("english").terms)

        return opened


@pytest.mark.slow
class TestRecall(IndexRecall):
    """With a graph of vectors that would be looked at one by one otherwise."""

    @pytest.fixture
    def open_index(self, database: IndexTransactions) -> OpenIndex:
        options = PgvectorOptions(database, "index_1", index_recall.DIMENSIONS, graph_from=1_000)

        async def opened(journal: Journal) -> Index:
            return await PgvectorIndex.open(options, journal, str.split)

        return opened
