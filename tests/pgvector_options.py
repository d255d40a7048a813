"""Where the tests of the index in PostgreSQL keep theirs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from conspectus.bootstrap.pgvector import IndexTransactions
from conspectus.index.pgvector.options import PgvectorOptions
from conspectus.records.core.database import DatabaseAccess, database_at
from conspectus.records.core.transactions import Transactions


@asynccontextmanager
async def options_at(
    url: str, dimensions: int, *, graph_from: int = 20_000, max_listed: int = 10_000
) -> AsyncIterator[PgvectorOptions]:
    """A place for one index; the same database gives the same place again."""
    transactions = Transactions(database_at(url, DatabaseAccess(connections=4)))
    database = IndexTransactions(transactions)
    yield PgvectorOptions(database, "index_1", dimensions, graph_from, max_listed)
    await database.close()
    await transactions.close()
