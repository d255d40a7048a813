"""Every executor of jobs, held to the contract, and what only DBOS has to show."""

import asyncio
import gc
import sqlite3
import threading
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from dbos import DBOS
from tests.contracts.jobs_contract import LONG, WORKERS, JobsContract, OpenJobs, Site
from tests.waiting import until

from conspectus.ingest.job_execution import InProcessJobs
from conspectus.model.ids import JobId
from conspectus.ports.jobs import Jobs
from conspectus.providers.dbos_jobs import (
    POLL,
    SCHEMA,
    SHARED_POLL_SECONDS,
    TABLES,
    DbosJobs,
    SharedExecutors,
    claimed,
)
from conspectus.records.jobs.locks import FileHold


class TestInProcessJobs(JobsContract):
    durable = False

    @pytest.fixture
    def open_jobs(self) -> OpenJobs:
        async def opened() -> Jobs:
            return InProcessJobs(workers=WORKERS, pause=0.01)

        return opened


def claim(path: Path) -> DbosJobs:
    jobs = claimed(f"sqlite:///{quote(str(path))}", workers=WORKERS, pause=0.01)
    assert jobs is not None, "another test has left its instance of DBOS"
    return jobs


class TestDbosJobs(JobsContract):
    @pytest.fixture
    async def open_jobs(self, tmp_path: Path) -> AsyncIterator[OpenJobs]:
        made: list[DbosJobs] = []

        async def opened() -> Jobs:
            made.append(claim(tmp_path / "a?b#c%20 ü.sqlite"))
            return made[-1]

        yield opened
        for each in made:
            await each.close(grace=0.0)


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


def share(url: str, turns: Turns, executor: str = "first") -> DbosJobs:
    jobs = claimed(url, workers=WORKERS, pause=0.01, sharing=SharedExecutors(executor, turns.take))
    assert jobs is not None, "another test has left its instance of DBOS"
    return jobs


@pytest.mark.slow
class TestSharedDbosJobs(JobsContract):
    durable = False

    @pytest.fixture
    async def open_jobs(self, postgres_url: str) -> AsyncIterator[OpenJobs]:
        made: list[DbosJobs] = []

        async def opened() -> Jobs:
            made.append(share(postgres_url, Turns(), f"executor {len(made)}"))
            return made[-1]

        yield opened
        for each in made:
            await each.close(grace=0.0)


async def test_what_an_executor_left_behind_is_run_when_it_is_known_to_be_gone(postgres_url: str) -> None:
    turns, site = Turns(), Site()
    first = share(postgres_url, turns)
    await first.start(site.run)
    await first.submit(JobId("slow"))
    await site.until(lambda: site.running == {"slow"})
    await first.close(grace=0.0)
    second, later = share(postgres_url, turns, "second"), Site()
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
    jobs = share(postgres_url, turns)
    starting = asyncio.create_task(jobs.start(site.run))
    await asyncio.sleep(4 * POLL)
    with psycopg.connect(postgres_url) as connection:
        told = connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname = %s", [SCHEMA])
        assert told.fetchone() == (0,)
    assert not starting.done()
    turns.held[TABLES] = False
    await starting
    await jobs.close(grace=0.0)


async def test_a_second_instance_in_one_process_is_declined(tmp_path: Path) -> None:
    first = claim(tmp_path / "one.sqlite")
    assert claimed(f"sqlite:///{tmp_path / 'two.sqlite'}", workers=1) is None
    await first.close(grace=0.0)
    await claim(tmp_path / "two.sqlite").close(grace=0.0)


async def test_nothing_is_left_running(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = {thread.name for thread in threading.enumerate()}
    jobs, site = claim(tmp_path / "jobs.sqlite"), Site()
    await jobs.start(site.run)
    await jobs.submit(JobId("a"))
    await site.until(lambda: site.ended["a"] == 1)
    await jobs.close(grace=LONG)
    left = {thread.name for thread in threading.enumerate()} - before
    assert [name for name in left if not name.startswith("asyncio_")] == []
    assert capfd.readouterr() == ("", "")


async def test_a_job_taken_from_the_queue_during_the_close_runs_at_the_next_start(tmp_path: Path) -> None:
    jobs, site = claim(tmp_path / "jobs.sqlite"), Site()
    await jobs.start(site.run)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        job = await closed_while_taking(jobs, tmp_path / "jobs.sqlite")
        gc.collect()
    assert [str(each.message) for each in told] == []
    assert site.started[job] == 0
    jobs = claim(tmp_path / "jobs.sqlite")
    site.let_go.set()
    await jobs.start(site.run)
    await site.until(lambda: site.ended[job] == 1)
    await jobs.close(grace=LONG)


async def closed_while_taking(jobs: DbosJobs, path: Path) -> JobId:
    """Close while the thread that takes jobs from the queue waits to write that it has taken one."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for number in range(100):
            job = JobId(f"job {number}")
            await jobs.submit(job)
            connection.execute("BEGIN IMMEDIATE")
            row = "SELECT status FROM workflow_status WHERE workflow_uuid = ?"
            if connection.execute(row, [job]).fetchone() == ("ENQUEUED",):
                break
            connection.execute("ROLLBACK")
        await asyncio.sleep(3 * POLL)
        ending = asyncio.create_task(jobs.close(grace=0.0))
        await asyncio.sleep(3 * POLL)
        connection.execute("ROLLBACK")
        await ending
    return job


async def test_the_close_waits_until_the_end_of_a_job_is_written_down(tmp_path: Path) -> None:
    jobs, site = claim(tmp_path / "jobs.sqlite"), Site()
    await jobs.start(site.run)
    await jobs.submit(JobId("slow"))
    await site.until(lambda: site.running == {"slow"})
    with closing(sqlite3.connect(tmp_path / "jobs.sqlite", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        site.let_go.set()
        await site.until(lambda: site.ended["slow"] == 1)
        ending = asyncio.create_task(jobs.close(grace=LONG))
        await asyncio.sleep(5 * POLL)
        assert not ending.done()
        connection.execute("ROLLBACK")
        await ending
        told = connection.execute("SELECT status FROM workflow_status").fetchall()
    assert told == [("SUCCESS",)]


async def test_what_has_ended_is_forgotten_at_the_next_start(tmp_path: Path) -> None:
    for name in ("a", "b"):
        jobs, site = claim(tmp_path / "jobs.sqlite"), Site()
        await jobs.start(site.run)
        known = await asyncio.to_thread(DBOS.list_workflows)
        assert known == []
        await jobs.submit(JobId(name))
        # What has run, but whose end is not written down yet, would rightly run again.
        await until(lambda name=name: asyncio.to_thread(noted, name))
        assert site.ended[name] == 1
        await jobs.close(grace=LONG)


def noted(job: str) -> bool:
    known = DBOS.get_workflow_status(job)
    return known is not None and known.status == "SUCCESS"
