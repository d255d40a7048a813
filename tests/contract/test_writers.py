"""Works that wait for the write lock share a transaction, and each succeeds or fails by itself."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event

import pytest
from sqlalchemy import Connection, insert, select
from tests.support.counting import counting
from tests.support.samples import NOON, SPACE, notes, prepared, shelf

from conspectus.errors import Conflict, NotFound, PreconditionFailed
from conspectus.model.access import Group, User
from conspectus.model.ids import CollectionId, DocumentId, GroupId, SourceId, UserId
from conspectus.model.index import WriteResult
from conspectus.model.records import PreparedDocument
from conspectus.records.accounts.store import SqlAccounts
from conspectus.records.core.transactions import Transactions
from conspectus.records.core.write_queue import MAX_BATCH_UNITS
from conspectus.records.store import SqlRecords, open_records
from conspectus.records.tables.core import counters

Work = Callable[[Connection], int]
LONG = 60.0
HOMES = (CollectionId("here"), CollectionId("there"))


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    url = "emptied_url" if request.param == "postgresql" else ""
    return request.getfixturevalue(url) if url else str(tmp_path / "records.sqlite")


@pytest.fixture
async def transactions(address: str) -> AsyncIterator[Transactions]:
    records = await open_records(address)
    yield records.transactions
    await records.close()


def insert_counter(number: int, connection: Connection) -> int:
    """Something that is stored once, and fails where it was before."""
    connection.execute(
        insert(counters).values(name=f"test {number}", collection="", value=number, end=number)
    )
    return number


def fail_once(connection: Connection) -> int:
    insert_counter(1_000, connection)
    raise ZeroDivisionError


async def stored_counters(transactions: Transactions) -> set[str]:
    query = select(counters.c.name).where(counters.c.name.startswith("test "))
    return set(await transactions.read(lambda connection: connection.execute(query).scalars().all()))


async def run_behind_one(transactions: Transactions, *works: Work) -> list[int | BaseException]:
    """What becomes of works that all wait behind one."""
    go = Event()
    first = asyncio.create_task(transactions.write(lambda _: go.wait(LONG)))
    writes = [asyncio.create_task(transactions.write(work)) for work in works]
    await asyncio.sleep(0)
    go.set()
    await first
    return await asyncio.gather(*writes, return_exceptions=True)


async def test_those_who_wait_share_transactions(transactions: Transactions) -> None:
    ended: list[int] = []
    transactions.before_commit(lambda _: ended.append(1))
    many = 2 * MAX_BATCH_UNITS
    results = await run_behind_one(transactions, *(partial(insert_counter, number) for number in range(many)))
    assert results == list(range(many))
    assert len(await stored_counters(transactions)) == many
    assert 3 <= len(ended) < many // 4


async def test_one_that_fails_takes_no_other_along(transactions: Transactions) -> None:
    works = [partial(insert_counter, number) for number in (1, 2, 1, 3)]
    results = await run_behind_one(transactions, *works)
    assert isinstance(results.pop(2), Conflict)
    assert results == [1, 2, 3]
    assert await stored_counters(transactions) == {"test 1", "test 2", "test 3"}


async def test_a_fault_of_the_program_is_told_to_whose_it_is(transactions: Transactions) -> None:
    results = await run_behind_one(
        transactions, partial(insert_counter, 1), fail_once, partial(insert_counter, 2)
    )
    assert isinstance(results.pop(1), ZeroDivisionError)
    assert results == [1, 2]
    assert await stored_counters(transactions) == {"test 1", "test 2"}


async def test_who_gave_up_waiting_has_stored_nothing(transactions: Transactions) -> None:
    go = Event()
    first = asyncio.create_task(transactions.write(lambda _: go.wait(LONG)))
    writes = [asyncio.create_task(transactions.write(partial(insert_counter, number))) for number in range(3)]
    await asyncio.sleep(0)
    writes[1].cancel()
    await asyncio.sleep(0)
    go.set()
    await first
    await asyncio.gather(*writes, return_exceptions=True)
    assert await stored_counters(transactions) == {"test 0", "test 2"}


async def test_a_long_one_is_waited_for_by_nobody_before_it(transactions: Transactions) -> None:
    go, go_on = Event(), Event()
    first = asyncio.create_task(transactions.write(lambda _: go.wait(LONG)))
    writes = [asyncio.create_task(transactions.write(partial(insert_counter, number))) for number in range(3)]
    long = asyncio.create_task(transactions.write(lambda _: go_on.wait(LONG), long=True))
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(first, *writes)
    assert not long.done()
    go_on.set()
    assert await long


@pytest.fixture
async def two(emptied_url: str) -> AsyncIterator[tuple[Transactions, Transactions]]:
    """The transactions of two processes, as the server sees it."""
    first, second = await open_records(emptied_url), await open_records(emptied_url)
    yield first.transactions, second.transactions
    await first.close()
    await second.close()


class Held:
    """A work that stays in its transaction until it is let go."""

    def __init__(self, transactions: Transactions, lock: str | None) -> None:
        self._begun, self._go = Event(), Event()
        self.task = asyncio.create_task(transactions.write(self._hold, locks={lock}))

    def _hold(self, _: Connection) -> bool:
        self._begun.set()
        return self._go.wait(LONG)

    async def begun(self) -> None:
        assert await asyncio.to_thread(self._begun.wait, LONG)

    async def let_go(self) -> None:
        self._go.set()
        assert await self.task


@pytest.mark.parametrize(("held_lock", "wanted_lock"), [("a", "b"), ("b", "a")])
@pytest.mark.parametrize("other_process", [False, True])
async def test_writers_of_other_parts_wait_for_nobody(
    two: tuple[Transactions, Transactions], held_lock: str, wanted_lock: str, other_process: bool
) -> None:
    holding = Held(two[0], held_lock)
    await holding.begun()
    assert await two[other_process].write(partial(insert_counter, 1), locks={wanted_lock}) == 1
    await holding.let_go()


@pytest.mark.parametrize(("held_lock", "wanted_lock"), [("a", "a"), ("a", None), (None, "a"), (None, None)])
@pytest.mark.parametrize("other_process", [False, True])
async def test_writers_of_one_part_take_turns(
    two: tuple[Transactions, Transactions],
    held_lock: str | None,
    wanted_lock: str | None,
    other_process: bool,
) -> None:
    holding = Held(two[0], held_lock)
    await holding.begun()
    waiting = asyncio.create_task(two[other_process].write(partial(insert_counter, 1), locks={wanted_lock}))
    assert await asyncio.wait([waiting], timeout=0.2) == (set(), {waiting})
    await holding.let_go()
    assert await waiting == 1


async def test_one_for_the_whole_database_is_not_overtaken(two: tuple[Transactions, Transactions]) -> None:
    holding, order = Held(two[0], "a"), list[str]()
    await holding.begun()
    unlocked = asyncio.create_task(two[0].write(lambda _: order.append("whole")))
    after = asyncio.create_task(two[0].write(lambda _: order.append("b"), locks={"b"}))
    assert await asyncio.wait([unlocked, after], timeout=0.2) == (set(), {unlocked, after})
    await holding.let_go()
    await asyncio.gather(unlocked, after)
    assert order == ["whole", "b"]


async def test_parts_that_wait_share_a_transaction_with_all_their_locks(
    two: tuple[Transactions, Transactions],
) -> None:
    busy = [Held(two[0], f"busy {number}") for number in range(two[0].database.writers)]
    await asyncio.gather(*(writer.begun() for writer in busy))
    ended: list[int] = []
    two[0].before_commit(lambda _: ended.append(1))
    writes = [
        asyncio.create_task(two[0].write(partial(insert_counter, number), locks={f"part {number % 5}"}))
        for number in range(10)
    ]
    await asyncio.sleep(0)
    for writer in busy:
        await writer.let_go()
    assert await asyncio.gather(*writes) == list(range(10))
    assert len(ended) < len(busy) + len(writes)


async def test_closing_lets_all_that_waits_be_done(emptied_url: str) -> None:
    records = await open_records(emptied_url)
    writes = [
        asyncio.create_task(records.transactions.write(partial(insert_counter, number), locks={lock}))
        for number, lock in enumerate(["a", "b", None, "a", "c", None, "b"])
    ]
    await asyncio.sleep(0)
    await records.close()
    assert await asyncio.gather(*writes) == list(range(7))


async def write_behind_one(
    records: SqlRecords, *batches: list[PreparedDocument]
) -> list[WriteResult | BaseException]:
    """What becomes of documents of several callers that all wait behind a writer of the whole database."""
    holding = Held(records.transactions, None)
    await holding.begun()
    writes = [asyncio.create_task(records.write(batch)) for batch in batches]
    await asyncio.sleep(0)
    await holding.let_go()
    return await asyncio.gather(*writes, return_exceptions=True)


@pytest.fixture
async def records(address: str) -> AsyncIterator[SqlRecords]:
    opened = await open_records(address)
    for name in HOMES:
        await opened.create_collection(shelf(name))
        await opened.put_source(notes(f"notes of {name}", name))
    yield opened
    await opened.close()


def one(key: str, text: str = "tides", home: CollectionId = HOMES[0]) -> list[PreparedDocument]:
    return [prepared(key, text, collection=home, source=SourceId(f"notes of {home}"))]


async def test_documents_of_many_callers_are_one_write(records: SqlRecords) -> None:
    for home in HOMES:
        await records.write(one(f"first of {home}", home=home))
    with counting() as counts:
        results = await write_behind_one(
            records, *(one(f"{number}", home=HOMES[number % 2]) for number in range(16))
        )
    assert [outcome.written[0].id for outcome in results if isinstance(outcome, WriteResult)] == [
        f"{number}" for number in range(16)
    ]
    updates = {id(outcome.update) for outcome in results if isinstance(outcome, WriteResult)}
    assert len(updates) == 2
    # A statement for each of sixteen documents would be sixty-four.
    assert counts.statements <= 30
    assert await records.check() == []


async def test_a_bad_document_fails_none_of_its_neighbours(records: SqlRecords) -> None:
    batches = [one(f"{number}") for number in range(4)]
    batches[1] = [replace(document, if_match="another") for document in batches[1]]
    batches[2] = one("lost", home=CollectionId("nowhere"))
    results = await write_behind_one(records, *batches)
    assert isinstance(results[1], PreconditionFailed)
    assert isinstance(results[2], NotFound)
    assert all(isinstance(results[number], WriteResult) for number in (0, 3))
    assert len(await records.documents([DocumentId(f"{number}") for number in range(4)])) == 2
    assert await records.check() == []


async def test_the_last_of_many_callers_with_one_key_is_stored(records: SqlRecords) -> None:
    results = await write_behind_one(records, *(one("same", f"text {number}") for number in range(5)))
    outcomes = [outcome.written[0].outcome for outcome in results if isinstance(outcome, WriteResult)]
    assert outcomes == ["added", *["replaced"] * 4]
    assert await records.text(DocumentId("same")) == "text 4"
    history = await records.reader(HOMES[0], SPACE).changes_since(0, limit=100)
    assert [change.operation for change in history] == ["put", *["remove", "put"] * 4]


@pytest.fixture
async def offices(emptied_url: str) -> AsyncIterator[tuple[SqlRecords, SqlRecords]]:
    """The records of two processes."""
    first, second = await open_records(emptied_url), await open_records(emptied_url)
    yield first, second
    await first.close()
    await second.close()


async def test_new_names_wait_for_no_collection(offices: tuple[SqlRecords, SqlRecords]) -> None:
    holding = Held(offices[0].transactions, HOMES[0])
    await holding.begun()
    person, accounts = User(UserId("u"), "ann", NOON), SqlAccounts(offices[1].transactions)
    async with asyncio.timeout(LONG / 2):
        await offices[1].create_collection(shelf(HOMES[0]))
        await accounts.add_user(person)
        await accounts.add_group(Group(GroupId("g"), "team", NOON))
        disabled = await accounts.set_user_disabled(person.id, disabled=True)
    await holding.let_go()
    assert disabled.disabled


async def test_one_user_of_two_processes_gets_a_name(offices: tuple[SqlRecords, SqlRecords]) -> None:
    accounts = [SqlAccounts(writer.transactions) for writer in offices]
    added = [accounts[number % 2].add_user(User(UserId(f"u{number}"), "ann", NOON)) for number in range(20)]
    outcomes = await asyncio.gather(*added, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes if outcome is not None] == [Conflict] * 19


async def test_one_name_is_one_collection_in_two_processes(offices: tuple[SqlRecords, SqlRecords]) -> None:
    collections_wanted = [replace(shelf(f"c{number}"), name="same") for number in range(20)]
    creations = [
        offices[number % 2].create_collection(collection)
        for number, collection in enumerate(collections_wanted)
    ]
    assert len({collection.id for collection in await asyncio.gather(*creations)}) == 1
