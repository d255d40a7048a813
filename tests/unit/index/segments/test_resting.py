import asyncio

from tests.waiting import until

from conspectus.index.segments.resting import RestingWork


class Work:
    def __init__(self) -> None:
        self.begun = self.given_up = 0
        self.may_end = asyncio.Event()

    async def run(self) -> None:
        self.begun += 1
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise


async def test_work_begins_once_however_often_it_is_planned():
    work = Work()
    resting = RestingWork(work.run, 0.01)
    for _ in range(5):
        resting.plan()
    await until(lambda: work.begun > 0)
    work.may_end.set()
    await asyncio.sleep(0.05)
    assert (work.begun, work.given_up) == (1, 0)
    resting.plan()
    await until(lambda: work.begun == 2)
    await resting.stop()


async def test_work_that_is_planned_while_it_runs_runs_once_more():
    """What came meanwhile may have come too late for it."""
    work = Work()
    resting = RestingWork(work.run, 0.01)
    resting.plan()
    await until(lambda: work.begun == 1)
    for _ in range(5):
        resting.plan()
    work.may_end.set()
    await until(lambda: work.begun == 2)
    await asyncio.sleep(0.05)
    assert (work.begun, work.given_up) == (2, 0)


async def test_work_that_is_given_up_does_not_run_again():
    work = Work()
    resting = RestingWork(work.run, 0.0)
    resting.plan()
    await until(lambda: work.begun == 1)
    resting.plan()
    await resting.stop()
    await asyncio.sleep(0.01)
    assert (work.begun, work.given_up) == (1, 1)


async def test_work_that_is_planned_may_be_given_up():
    work = Work()
    resting = RestingWork(work.run, 0.0)
    resting.plan()
    await resting.stop()
    await asyncio.sleep(0.01)
    assert work.begun == 0


async def test_work_that_runs_has_ended_when_it_is_given_up():
    work = Work()
    resting = RestingWork(work.run, 0.0)
    await resting.stop()
    resting.plan()
    await until(lambda: work.begun > 0)
    await resting.stop()
    await resting.stop()
    assert work.given_up == 1
