"""Every store of people, held to the contract, and what only a database can show."""

import random
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, select
from tests.contracts.accounts_contract import ANNA, BEN, WIKI, AccountsContract, Catalog, a_user
from tests.support.in_memory_accounts import MemoryAccounts, MemoryCatalog
from tests.support.samples import NOON, notes, shelf

from conspectus.model.access import Grant, Group, Principal, User
from conspectus.model.ids import CollectionId, GroupId, SourceId
from conspectus.ports.accounts import Accounts
from conspectus.records.accounts.store import SqlAccounts
from conspectus.records.store import SqlRecords, open_records
from conspectus.records.tables.jobs import connections, jobs

USERS = [a_user(f"user {number}") for number in range(6)]
GROUPS = [Group(GroupId(f"group {number}"), f"group {number}", NOON) for number in range(2)]
COLLECTIONS = [
    replace(shelf(f"c{number}"), id=CollectionId(f"c{number}"), owner=USERS[number].id) for number in range(3)
]
SOURCES = {
    collection.id: [SourceId(f"{collection.id} s{number}") for number in range(2)]
    for collection in COLLECTIONS
}


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


async def fill(store: Accounts, catalog: Catalog) -> None:
    """Add the users, groups, collections and sources."""
    for user in USERS:
        await store.add_user(user)
    for group in GROUPS:
        await store.add_group(group)
    for collection in COLLECTIONS:
        await catalog.create_collection(collection)
        for source in SOURCES[collection.id]:
            await catalog.put_source(notes(source, collection.id))


async def change_at_random(store: Accounts, draw: random.Random) -> None:
    """Give or end a role or a membership."""
    collection = draw.choice(COLLECTIONS)
    source = draw.choice([None, *SOURCES[collection.id]])
    group, user = draw.choice(GROUPS).id, draw.choice(USERS).id
    principal = draw.choice([Principal("user", user), Principal("group", group)])
    await draw.choice(
        [
            lambda: store.put_grant(Grant(collection.id, source, principal, "viewer", NOON)),
            lambda: store.revoke(collection.id, source, principal),
            lambda: store.join(group, user),
            lambda: store.leave(group, user),
        ]
    )()


async def test_people_know_whom_the_model_says(records: SqlRecords) -> None:
    catalog = MemoryCatalog()
    stored, model = SqlAccounts(records.transactions), MemoryAccounts(catalog)
    await fill(stored, records)
    await fill(model, catalog)
    for seed in range(60):
        for store in (stored, model):
            await change_at_random(store, random.Random(seed))
        for user in USERS:
            assert await stored.list_acquaintances(user.id) == await model.list_acquaintances(user.id)


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
    await records.transactions.write(
        lambda database_connection: database_connection.execute(insert(jobs), job)
    )
    values = {**connection, "options": "{}", "state": "idle"}
    await records.transactions.write(
        lambda database_connection: database_connection.execute(insert(connections), values)
    )
    await accounts.delete_user(ANNA, transfer_to=BEN)
    for table in (jobs, connections):
        owners = partial(Connection.scalar, statement=select(table.c.owner))
        assert await records.transactions.read(owners) == BEN


async def test_a_disabled_owner_comes_back_as_stored(records: SqlRecords) -> None:
    accounts = SqlAccounts(records.transactions)
    stored = User(ANNA, "Ännä 'x' \"y\" 🎉", NOON, owner=True, disabled=True)
    await accounts.add_user(stored)
    assert await accounts.users() == [stored]
