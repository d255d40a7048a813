"""PostgreSQL databases for the contracts, emptied for each test."""

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.support.postgres_server import PostgresProcess

from conspectus.records.store import SqlRecords, open_records


@pytest.fixture
def emptied_url(postgres: PostgresProcess) -> Iterator[str]:
    """A database at the newest version with nothing in it, far quicker than a new one."""
    with postgres.lent() as url:
        yield url


@pytest.fixture
async def postgres_records(emptied_url: str) -> AsyncIterator[SqlRecords]:
    """An open store with nothing in it."""
    opened = await open_records(emptied_url, connections=2)
    yield opened
    await opened.close()
