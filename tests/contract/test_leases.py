"""Leases: one holder at a time, given back at once, ended by themselves, and never held twice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeAlias

import pytest
from sqlalchemy import select, update

from conspectus.errors import LockLost
from conspectus.records.core.database_clock import MICROSECONDS, DatabaseTime
from conspectus.records.core.transactions import Transactions
from conspectus.records.jobs.locks import Leases
from conspectus.records.store import open_records
from conspectus.records.tables.jobs import leases

LONG, SHORT = 60.0, 1.0
HOUR = 3600 * MICROSECONDS


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "records.sqlite")
    return str(request.getfixturevalue("emptied_url"))


@pytest.fixture
async def processes(address: str) -> AsyncIterator[tuple[Transactions, Transactions]]:
    """Two that have the same store open, as two processes have."""
    both = [await open_records(address, connections=3) for _ in range(2)]
    yield both[0].transactions, both[1].transactions
    for records in both:
        await records.close()


Pair: TypeAlias = tuple[Transactions, Transactions]


async def ends_in(store: Transactions, microseconds: int) -> None:
    """Have every lease end so long from now, as it would after as long."""
    late = update(leases).values(until=DatabaseTime() + microseconds)
    await store.autocommit(lambda connection: connection.execute(late).rowcount)


async def test_one_at_a_time_and_the_next_as_soon_as_it_is_given_back(processes: Pair) -> None:
    first, second = (Leases(process, seconds=LONG) for process in processes)
    async with first.turn("jobs") as mine, second.turn("jobs") as yours, second.turn("alerts") as other:
        assert (bool(mine), bool(yours), bool(other)) == (True, False, True)
        async with first.turn("jobs") as again:
            assert not again
        await mine.confirm()
    async with second.turn("jobs") as yours:
        assert yours
        assert yours.fence > mine.fence


async def test_of_many_that_ask_at_once_for_what_nobody_ever_had_one_gets_it(processes: Pair) -> None:
    answered, over = asyncio.Semaphore(0), asyncio.Event()

    async def ask(store: Transactions) -> bool:
        async with Leases(store, seconds=LONG).turn("jobs") as mine:
            answered.release()
            await over.wait()
            return bool(mine)

    tasks = [asyncio.create_task(ask(process)) for process in processes * 10]
    for _ in tasks:
        await answered.acquire()
    over.set()
    assert sorted(await asyncio.gather(*tasks)) == [False] * (len(tasks) - 1) + [True]


async def test_a_lease_is_renewed_while_it_is_held(processes: Pair) -> None:
    first, second = (Leases(process, seconds=SHORT) for process in processes)
    async with first.turn("jobs") as mine:
        for _ in range(3):
            await asyncio.sleep(SHORT / 2)
            async with second.turn("jobs") as yours:
                assert not yours
        await mine.confirm()


async def test_who_stood_still_is_told_when_asking(processes: Pair) -> None:
    first, second = (Leases(process, seconds=LONG) for process in processes)
    async with first.turn("jobs") as mine:
        await ends_in(processes[0], 0)
        async with second.turn("jobs") as yours:
            assert yours
            with pytest.raises(LockLost):
                await mine.confirm()


async def test_work_is_stopped_when_the_lease_is_lost(processes: Pair) -> None:
    first, second = Leases(processes[0], seconds=SHORT), Leases(processes[1], seconds=LONG)

    async def stand_still() -> None:
        await ends_in(processes[0], 0)
        async with second.turn("alerts") as yours:
            assert yours
            await asyncio.Event().wait()

    with pytest.raises(LockLost):
        async with first.turn("alerts"):
            await stand_still()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_who_was_thought_dead_takes_nothing_from_the_next(processes: Pair) -> None:
    first, second = (Leases(process, seconds=LONG) for process in processes)
    async with AsyncExitStack() as later:
        async with first.turn("jobs"):
            await ends_in(processes[0], 0)
            yours = await later.enter_async_context(second.turn("jobs"))
        await yours.confirm()
        async with first.turn("jobs") as mine:
            assert not mine


async def test_a_clock_set_back_keeps_nobody_waiting(processes: Pair) -> None:
    first, second = (Leases(process, seconds=LONG) for process in processes)
    async with first.turn("jobs"):
        await ends_in(processes[0], HOUR)
        async with second.turn("jobs") as yours:
            assert yours


async def test_a_lease_that_ended_unnoticed_goes_on_if_nobody_came(processes: Pair) -> None:
    store, _ = processes
    async with Leases(store, seconds=SHORT).turn("jobs") as mine:
        await ends_in(store, -HOUR)
        await asyncio.sleep(SHORT)
        await mine.confirm()
    assert await store.read(lambda connection: connection.execute(select(leases)).all()) == []


async def test_what_stops_the_work_is_raised_as_it_is(processes: Pair) -> None:
    turns = Leases(processes[0], seconds=LONG)
    with pytest.raises(ZeroDivisionError):
        async with turns.turn("jobs"):
            raise ZeroDivisionError
    began = asyncio.Event()

    async def work() -> None:
        async with turns.turn("jobs"):
            began.set()
            await asyncio.Event().wait()

    working = asyncio.create_task(work())
    await began.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    async with turns.turn("jobs") as mine:
        assert mine
