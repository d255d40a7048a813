"""Every keeper of jobs, calls and answers, held to its contract, in memory, on SQLite and on PostgreSQL."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contracts.ledger_contract import (
    MINUTE,
    NOON,
    LedgerContract,
    ReplaysContract,
    RequestLogContract,
    Store,
    job,
)
from tests.support.in_memory_jobs import MemoryLedger, MemoryReplays, MemoryRequestLog
from tests.support.samples import SHELF, shelf
from tests.waiting import PATIENCE

from conspectus.errors import Conflict, NotFound
from conspectus.model.jobs import safe_rate
from conspectus.ports.jobs import IdempotencyStore, JobStore, RequestLog
from conspectus.records.jobs.idempotency import GRACE_SECONDS, SqlIdempotencyStore
from conspectus.records.jobs.request_log import SqlRequestLog
from conspectus.records.jobs.store import SqlJobStore
from conspectus.records.store import SqlRecords, open_records


async def stocked(records: SqlRecords) -> SqlRecords:
    for name in (SHELF, "other"):
        await records.create_collection(shelf(name))
    return records


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[SqlRecords]:
    opened = await open_records(tmp_path / "records.sqlite")
    yield await stocked(opened)
    await opened.close()


class TestMemoryLedger(LedgerContract):
    @pytest.fixture
    def ledger(self) -> JobStore:
        return MemoryLedger()


class TestSqlLedger(LedgerContract):
    @pytest.fixture
    def ledger(self, records: SqlRecords) -> JobStore:
        return SqlJobStore(records.transactions)

    async def test_jobs_go_with_their_collection(self, ledger: JobStore, records: SqlRecords) -> None:
        await ledger.add(job("one"))
        await records.delete_collection(SHELF)
        assert await ledger.job(job("one").id) is None
        with pytest.raises(NotFound):
            await ledger.change(job("one").id, state="running")
        with pytest.raises(NotFound):
            await ledger.add(job("two"))


class OnPostgres:
    @pytest.fixture
    async def records(self, postgres_records: SqlRecords) -> SqlRecords:
        return await stocked(postgres_records)


class TestPostgresLedger(OnPostgres, TestSqlLedger):
    pass


class TestMemoryRequestLog(RequestLogContract):
    @pytest.fixture
    def log(self) -> RequestLog:
        return MemoryRequestLog()


class TestSqlRequestLog(RequestLogContract):
    @pytest.fixture
    def log(self, records: SqlRecords) -> RequestLog:
        return SqlRequestLog(records.transactions)


class TestPostgresRequestLog(OnPostgres, TestSqlRequestLog):
    pass


class TestMemoryReplays(ReplaysContract):
    @pytest.fixture
    def replays(self) -> IdempotencyStore:
        return MemoryReplays()

    @pytest.fixture
    def store(self, replays: MemoryReplays) -> Store:
        return replays.store

    @pytest.fixture
    def ended(self, replays: MemoryReplays) -> IdempotencyStore:
        return MemoryReplays(beside=replays)

    @pytest.fixture
    def store_elsewhere(self, ended: MemoryReplays) -> Store:
        return ended.store


class TestSqlReplays(ReplaysContract):
    @pytest.fixture
    def replays(self, records: SqlRecords) -> IdempotencyStore:
        return SqlIdempotencyStore(records.transactions, seconds=600, alone=False)

    @pytest.fixture
    def store(self, records: SqlRecords) -> Store:
        async def stored() -> None:
            await records.transactions.write(lambda _: None)

        return stored

    @pytest.fixture
    def ended(self, records: SqlRecords) -> IdempotencyStore:
        return SqlIdempotencyStore(records.transactions, seconds=0, alone=False)

    @pytest.fixture
    def store_elsewhere(self, store: Store) -> Store:
        return store

    async def test_alone_whatever_another_process_left_is_free(self, records: SqlRecords) -> None:
        left = SqlIdempotencyStore(records.transactions, seconds=600, alone=False)
        await left.begin("ann", "k", "f", at=NOON)
        alone = SqlIdempotencyStore(records.transactions, seconds=600, alone=True)
        assert await alone.give_back() == 1
        assert await alone.begin("ann", "k", "f", at=NOON) is None
        assert await alone.give_back() == 0

    async def test_a_late_renewal_is_waited_for(self, records: SqlRecords) -> None:
        """The database may keep a living process waiting for longer than its claim lasts."""
        late = SqlIdempotencyStore(records.transactions, seconds=0, alone=False)
        other = SqlIdempotencyStore(records.transactions, seconds=600, alone=False)
        await late.begin("ann", "k", "f", at=NOON)
        retry = asyncio.create_task(other.begin("ann", "k", "f", at=NOON + MINUTE))
        released = asyncio.create_task(other.give_back())
        await asyncio.sleep(GRACE_SECONDS / 2)
        await late.renew()
        with pytest.raises(Conflict):
            await retry
        assert await released == 0
        await late.finish("ann", "k", {"status": 201})
        assert await other.begin("ann", "k", "f", at=NOON + MINUTE) == {"status": 201}


class TestPostgresReplays(OnPostgres, TestSqlReplays):
    async def test_renewals_wait_for_no_other_write(self, records: SqlRecords) -> None:
        claims = SqlIdempotencyStore(records.transactions, seconds=600, alone=False)
        await claims.begin("ann", "k", "f", at=NOON)
        ended = threading.Event()
        writing = asyncio.create_task(records.transactions.write(lambda _: ended.wait(PATIENCE)))
        await asyncio.sleep(0)
        await asyncio.wait_for(claims.renew(), PATIENCE / 4)
        assert not writing.done()
        ended.set()
        assert await writing


@pytest.mark.parametrize(
    ("part", "total", "rate"), [(5, 0, 0.0), (0, 0, 0.0), (1, 4, 25.0), (1, 3, 33.3), (3, 3, 100.0)]
)
def test_rates_are_percent_with_one_decimal(part: int, total: int, rate: float) -> None:
    assert safe_rate(part, total) == rate
