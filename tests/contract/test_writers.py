"""Works that wait for the write lock share a transaction, and each succeeds or fails by itself."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from threading import Event

import pytest
from sqlalchemy import Connection, insert, select

from conspectus.errors import Conflict
from conspectus.records.core.transactions import MOST, Transactions
from conspectus.records.store import open_records
from conspectus.records.tables.core import counters

Work = Callable[[Connection], int]
LONG = 60.0


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    url = "postgres_url" if request.param == "postgresql" else ""
    return request.getfixturevalue(url) if url else str(tmp_path / "records.sqlite")


@pytest.fixture
async def transactions(place: str) -> AsyncIterator[Transactions]:
    records = await open_records(place)
    yield records.transactions
    await records.close()


def counted(number: int, connection: Connection) -> int:
    """Something that is stored once, and fails where it was before."""
    connection.execute(insert(counters).values(name=f"test {number}", value=number))
    return number


def faulty(connection: Connection) -> int:
    counted(1_000, connection)
    raise ZeroDivisionError


async def stored(transactions: Transactions) -> set[str]:
    chosen = select(counters.c.name).where(counters.c.name.startswith("test "))
    return set(await transactions.read(lambda connection: connection.execute(chosen).scalars().all()))


async def queued(transactions: Transactions, *works: Work) -> list[int | BaseException]:
    """What becomes of works that all wait behind one."""
    go = Event()
    first = asyncio.create_task(transactions.write(lambda _: go.wait(LONG)))
    asked = [asyncio.create_task(transactions.write(work)) for work in works]
    await asyncio.sleep(0)
    go.set()
    await first
    return await asyncio.gather(*asked, return_exceptions=True)


async def test_those_who_wait_share_transactions(transactions: Transactions) -> None:
    ended: list[int] = []
    transactions.before_commit(lambda _: ended.append(1))
    many = 2 * MOST
    results = await queued(transactions, *(partial(counted, number) for number in range(many)))
    assert results == list(range(many))
    assert len(await stored(transactions)) == many
    assert len(ended) == 3


async def test_one_that_fails_takes_no_other_along(transactions: Transactions) -> None:
    works = [partial(counted, number) for number in (1, 2, 1, 3)]
    results = await queued(transactions, *works)
    assert isinstance(results.pop(2), Conflict)
    assert results == [1, 2, 3]
    assert await stored(transactions) == {"test 1", "test 2", "test 3"}


async def test_a_fault_of_the_program_is_told_to_whose_it_is(transactions: Transactions) -> None:
    results = await queued(transactions, partial(counted, 1), faulty, partial(counted, 2))
    assert isinstance(results.pop(1), ZeroDivisionError)
    assert results == [1, 2]
    assert await stored(transactions) == {"test 1", "test 2"}


async def test_who_gave_up_waiting_has_stored_nothing(transactions: Transactions) -> None:
    go = Event()
    first = asyncio.create_task(transactions.write(lambda _: go.wait(LONG)))
    asked = [asyncio.create_task(transactions.write(partial(counted, number))) for number in range(3)]
    await asyncio.sleep(0)
    asked[1].cancel()
    await asyncio.sleep(0)
    go.set()
    await first
    await asyncio.gather(*asked, return_exceptions=True)
    assert await stored(transactions) == {"test 0", "test 2"}


async def test_a_long_one_is_waited_for_by_nobody_before_it(transactions: Transactions) -> None:
    go, go_on = Event(), Event()
    first = asyncio.create_task(transactions.write(lambda _: go.wait(LONG)))
    asked = [asyncio.create_task(transactions.write(partial(counted, number))) for number in range(3)]
    long = asyncio.create_task(transactions.write(lambda _: go_on.wait(LONG), long=True))
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(first, *asked)
    assert not long.done()
    go_on.set()
    assert await long
