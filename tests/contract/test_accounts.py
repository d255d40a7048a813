"""Every store of people, held to the contract, and what only a database can show."""

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, select
from tests.contracts.accounts_contract import ANNA, BEN, WIKI, AccountsContract, a_user
from tests.support.in_memory_accounts import MemoryAccounts, MemoryCatalog
from tests.support.samples import NOON, shelf

from conspectus.model.access import User
from conspectus.records.accounts.store import SqlAccounts
from conspectus.records.store import SqlRecords, open_records
from conspectus.records.tables.jobs import connections, jobs


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[SqlRecords]:
    opened = await open_records(tmp_path / "records.sqlite")
    yield opened
    await opened.close()


class TestMemory(AccountsContract):
    @pytest.fixture
    def catalog(self) -> MemoryCatalog:
        return MemoryCatalog()

    @pytest.fixture
    def accounts(self, catalog: MemoryCatalog) -> MemoryAccounts:
        return MemoryAccounts(catalog)


class TestSqlite(AccountsContract):
    @pytest.fixture
    def catalog(self, records: SqlRecords) -> SqlRecords:
        return records

    @pytest.fixture
    def accounts(self, records: SqlRecords) -> SqlAccounts:
        return SqlAccounts(records.transactions)


class TestPostgres(TestSqlite):
    @pytest.fixture
    def records(self, postgres_records: SqlRecords) -> SqlRecords:
        return postgres_records


async def test_jobs_and_connections_go_to_the_heir(records: SqlRecords) -> None:
    accounts = SqlAccounts(records.transactions)
    for name in ("anna", "ben"):
        await accounts.add_user(a_user(name))
    await records.create_collection(replace(shelf("wiki"), id=WIKI))
    job = {
        "id": "j", "kind": "url", "owner": ANNA, "collection": WIKI, "title": "", "created": 1,
        "arguments": "{}", "state": "waiting", "done": 0, "total": 0, "attempts": 0,
    }  # fmt: skip
    connection = {"id": "c", "collection": WIKI, "owner": ANNA, "name": "n", "connector": "markdown"}
    await records.transactions.write(lambda each: each.execute(insert(jobs), job))
    values = {**connection, "options": "{}", "state": "idle"}
    await records.transactions.write(lambda each: each.execute(insert(connections), values))
    await accounts.delete_user(ANNA, transfer_to=BEN)
    for table in (jobs, connections):
        owners = partial(Connection.scalar, statement=select(table.c.owner))
        assert await records.transactions.read(owners) == BEN


async def test_a_disabled_owner_comes_back_as_stored(records: SqlRecords) -> None:
    accounts = SqlAccounts(records.transactions)
    stored = User(ANNA, "Ännä 'x' \"y\" 🎉", NOON, owner=True, disabled=True)
    await accounts.add_user(stored)
    assert await accounts.users() == [stored]
