"""Every executor of jobs, held to the contract, and what only DBOS has to show."""

import asyncio
import gc
import threading
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest
from dbos import DBOS
from tests.contracts.jobs_contract import LONG, WORKERS, JobsContract, OpenJobs, Site
from tests.waiting import until

from conspectus.ingest.in_process_jobs import InProcessJobs
from conspectus.model.ids import JobId
from conspectus.ports.jobs import Jobs
from conspectus.providers.dbos_jobs import (
    POLL,
    SCHEMA,
    SHARED_POLL,
    SHARED_POLL_SECONDS,
    TABLES,
    DbosJobs,
    SharedExecutors,
    claim_executor,
)
from conspectus.records.jobs.locks import FileHold


class TestInProcessJobs(JobsContract):
    durable = False

    @pytest.fixture
    def open_jobs(self) -> OpenJobs:
        async def opened() -> Jobs:
            return InProcessJobs(workers=WORKERS, pause=0.01)

        return opened


class Turns:
    """Whose name is held by whom, as one process knows it."""

    def __init__(self) -> None:
        self.held = {"first": True}

    @asynccontextmanager
    async def take(self, name: str) -> AsyncIterator[FileHold]:
        mine = not self.held.get(name, False)
        self.held[name] = True
        yield FileHold(mine=mine)
        if mine:
            self.held[name] = False


def open_jobs_on(url: str, turns: Turns, executor: str = "first") -> DbosJobs:
    jobs = claim_executor(url, workers=WORKERS, pause=0.01, sharing=SharedExecutors(executor, turns.take))
    assert jobs is not None, "another test has left its instance of DBOS"
    return jobs


@pytest.mark.slow
class TestDbosJobs(JobsContract):
    durable = False

    @pytest.fixture
    async def open_jobs(self, postgres_url: str) -> AsyncIterator[OpenJobs]:
        executors: list[DbosJobs] = []

        async def open_executor() -> Jobs:
            executors.append(open_jobs_on(postgres_url, Turns(), f"executor {len(executors)}"))
            return executors[-1]

        yield open_executor
        for executor in executors:
            await executor.close(grace=0.0)


async def test_what_an_executor_left_behind_is_run_when_it_is_known_to_be_gone(postgres_url: str) -> None:
    turns, site = Turns(), Site()
    first = open_jobs_on(postgres_url, turns)
    await first.start(site.run)
    await first.submit(JobId("slow"))
    await site.until(lambda: site.running == {"slow"})
    await first.close(grace=0.0)
    second, later = open_jobs_on(postgres_url, turns, "second"), Site()
    later.let_go.set()
    await second.start(later.run)
    await second.submit(JobId("slow"))
    await second.submit(JobId("new"))
    await later.until(lambda: later.ended["new"] == 1)
    await asyncio.sleep(2 * SHARED_POLL_SECONDS)
    assert later.started["slow"] == 0
    turns.held["first"] = False
    await later.until(lambda: later.ended["slow"] == 1)
    await second.close(grace=LONG)


async def test_tables_are_made_by_one_executor_while_the_others_wait(postgres_url: str) -> None:
    turns, site = Turns(), Site()
    turns.held[TABLES] = True
    jobs = open_jobs_on(postgres_url, turns)
    starting = asyncio.create_task(jobs.start(site.run))
    await asyncio.sleep(4 * POLL)
    with psycopg.connect(postgres_url) as connection:
        schemas = connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname = %s", [SCHEMA])
        assert schemas.fetchone() == (0,)
    assert not starting.done()
    turns.held[TABLES] = False
    await starting
    await jobs.close(grace=0.0)


async def test_a_second_instance_in_one_process_is_declined(postgres_url: str) -> None:
    first = open_jobs_on(postgres_url, Turns())
    sharing = SharedExecutors("second", Turns().take)
    assert claim_executor(postgres_url, workers=1, sharing=sharing) is None
    await first.close(grace=0.0)
    await open_jobs_on(postgres_url, Turns(), "second").close(grace=0.0)


async def test_nothing_is_left_running(postgres_url: str, capfd: pytest.CaptureFixture[str]) -> None:
    before = {thread.name for thread in threading.enumerate()}
    jobs, site = open_jobs_on(postgres_url, Turns()), Site()
    await jobs.start(site.run)
    await jobs.submit(JobId("a"))
    await site.until(lambda: site.ended["a"] == 1)
    await jobs.close(grace=LONG)
    left = {thread.name for thread in threading.enumerate()} - before
    assert [name for name in left if not name.startswith("asyncio_")] == []
    assert capfd.readouterr() == ("", "")


async def test_a_job_taken_from_the_queue_during_the_close_runs_at_the_next_start(postgres_url: str) -> None:
    jobs, site = open_jobs_on(postgres_url, Turns()), Site()
    await jobs.start(site.run)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        job = await close_while_taking(jobs, postgres_url)
        gc.collect()
    assert [str(warning.message) for warning in caught] == []
    assert site.started[job] == 0
    jobs = open_jobs_on(postgres_url, Turns())
    site.let_go.set()
    await jobs.start(site.run)
    await site.until(lambda: site.ended[job] == 1)
    await jobs.close(grace=LONG)


STATUS = f"{SCHEMA}.workflow_status"


async def close_while_taking(jobs: DbosJobs, url: str) -> JobId:
    """Close while the thread that takes jobs from the queue waits to write that it has taken one."""
    with psycopg.connect(url) as connection:
        for number in range(100):
            job = JobId(f"job {number}")
            await jobs.submit(job)
            connection.execute(f"LOCK TABLE {STATUS} IN EXCLUSIVE MODE")
            row = f"SELECT status FROM {STATUS} WHERE workflow_uuid = %s"
            if connection.execute(row, [job]).fetchone() == ("ENQUEUED",):
                break
            connection.rollback()
        await asyncio.sleep(2 * SHARED_POLL)
        ending = asyncio.create_task(jobs.close(grace=0.0))
        await asyncio.sleep(3 * POLL)
        connection.rollback()
        await ending
    return job


async def test_the_close_waits_until_the_end_of_a_job_is_written_down(postgres_url: str) -> None:
    jobs, site = open_jobs_on(postgres_url, Turns()), Site()
    await jobs.start(site.run)
    await jobs.submit(JobId("slow"))
    await site.until(lambda: site.running == {"slow"})
    with psycopg.connect(postgres_url) as connection:
        connection.execute(f"LOCK TABLE {STATUS} IN EXCLUSIVE MODE")
        site.let_go.set()
        await site.until(lambda: site.ended["slow"] == 1)
        ending = asyncio.create_task(jobs.close(grace=LONG))
        await asyncio.sleep(5 * POLL)
        assert not ending.done()
        connection.rollback()
        await ending
        statuses = connection.execute(f"SELECT status FROM {STATUS}").fetchall()
    assert statuses == [("SUCCESS",)]


async def test_what_has_ended_is_forgotten_at_the_next_start(postgres_url: str) -> None:
    for name in ("a", "b"):
        jobs, site = open_jobs_on(postgres_url, Turns()), Site()
        await jobs.start(site.run)
        workflows = await asyncio.to_thread(DBOS.list_workflows)
        assert workflows == []
        await jobs.submit(JobId(name))
        # What has run, but whose end is not written down yet, would rightly run again.
        await until(lambda name=name: asyncio.to_thread(has_succeeded, name))
        assert site.ended[name] == 1
        await jobs.close(grace=LONG)


def has_succeeded(job: str) -> bool:
    status = DBOS.get_workflow_status(job)
    return status is not None and status.status == "SUCCESS"
