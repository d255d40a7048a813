"""One PostgreSQL database for all contracts of records of this process, emptied for each test."""

from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest
from tests.support.postgres_server import PostgresProcess

from conspectus.records.store import SqlRecords, open_records
from conspectus.records.tables.core import metadata

EMPTYING = "; ".join(
    f'DELETE FROM "{table.name}"' for table in reversed(metadata.sorted_tables) if table.name != "counters"
)
COUNTING = "DELETE FROM counters WHERE collection <> ''; UPDATE counters SET value = 0"


@pytest.fixture(scope="session")
def shared_database(postgres: PostgresProcess) -> Iterator[tuple[str, psycopg.Connection]]:
    """A database and a connection to it that commits each statement."""
    with postgres.fresh() as url, psycopg.connect(url, autocommit=True) as connection:
        yield url, connection


@pytest.fixture
def emptied_url(shared_database: tuple[str, psycopg.Connection]) -> str:
    """A database at the newest version with nothing in it, far quicker than a new one."""
    url, connection = shared_database
    connection.execute(f"{EMPTYING}; {COUNTING}".encode())
    return url


@pytest.fixture
async def postgres_records(emptied_url: str) -> AsyncIterator[SqlRecords]:
    """An open store with nothing in it."""
    opened = await open_records(emptied_url, connections=2)
    yield opened
    await opened.close()
