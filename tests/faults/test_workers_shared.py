"""Workers of one database: they share the jobs, and what one leaves behind another one does, once."""

import asyncio
import json
import os
import signal
import sqlite3
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import conspectus
from conspectus.engine import Engine
from conspectus.model.jobs import Upload
from conspectus.settings import Settings
from tests.support.web_server import Answer, ScriptedServer
from tests.waiting import until

PROGRAM = [sys.executable, "-c", "from conspectus.cli.entry import main; main()", "worker"]
SETTINGS = replace(
    Settings(),
    embedder="none",
    fetch_allowed_networks="127.0.0.1",
    lease_seconds=3,
    job_workers=2,
    job_grace_seconds=5,
    run_background_jobs="off",
)
COUNT = 8
LONG = 120.0


def text_of(number: int) -> str:
    return f"This is number {number}, and there is none like it."


@asynccontextmanager
async def running_worker(url: str, cache: Path, *arguments: str) -> AsyncIterator[Process]:
    """A `conspectus worker` that works."""
    settings = replace(SETTINGS, path=url, cache=str(cache), run_background_jobs="on")
    variables = {f"CONSPECTUS_{name.upper()}": str(value) for name, value in asdict(settings).items()}
    process = await asyncio.create_subprocess_exec(
        *PROGRAM, *arguments, env={**os.environ, **variables}, stderr=PIPE
    )
    assert process.stderr is not None
    try:
        line = await process.stderr.readline()
        assert line == b"working\n", line + await process.stderr.read()
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def submit_jobs(engine: Engine, base: str) -> list[str]:
    """Jobs of every kind of need: an address, a secret header, a file that is handed in."""
    jobs = []
    for number in range(COUNT):
        if number % 4 == 3:
            job = await engine.jobs.ingest_files([Upload(f"files/{number}", text_of(number).encode())])
        else:
            job = await engine.jobs.ingest_url(f"{base}/{number}", headers={"X-Secret": "s3cr3t"})
        jobs.append(str(job.id))
    return jobs


async def verify(engine: Engine, jobs: list[str]) -> None:
    """Each has succeeded, its document is there once, and nothing that it needed is kept any more."""
    for job in jobs:
        await engine.jobs.wait(job, timeout=LONG)
    done = [await engine.jobs.get(job) for job in jobs]
    assert Counter(job.state for job in done) == {"succeeded": COUNT}, done
    documents = (await engine.documents.list(limit=1000)).documents
    assert Counter(int(document.key.rpartition("/")[2]) for document in documents) == Counter(range(COUNT))
    assert (await engine.maintenance.check()).clean


async def wait_until_begun(engine: Engine, least: int) -> None:
    async def have_begun() -> bool:
        return sum(job.state != "queued" for job in (await engine.jobs.list()).jobs) >= least

    await until(have_begun)


async def wait_until_asked(server: ScriptedServer, least: int) -> None:
    for _ in range(int(20 * LONG)):
        if len(server.requests) >= least:
            return
        await asyncio.sleep(0.05)
    raise TimeoutError


def build_page(number: int) -> list[Answer]:
    """What is asked for a second time says more."""
    first = text_of(number).encode()
    return [Answer(first, delay=0.5), Answer(first + b" So it is.", delay=0.5)]


async def stored_texts(engine: Engine) -> dict[str, str]:
    """Every document, by its key, with its text."""
    return {
        document.key: await engine.documents.get_text(document.id)
        for document in (await engine.documents.list(limit=1000)).documents
    }


@asynccontextmanager
async def site_with_jobs(url: str, cache: Path) -> AsyncIterator[tuple[Engine, list[str], ScriptedServer]]:
    """Jobs that wait for workers, as the process that takes them in leaves them alone."""
    pages = {f"/{number}": build_page(number) for number in range(COUNT)}
    settings = replace(SETTINGS, cache=str(cache))
    async with ScriptedServer(pages) as server, conspectus.open(url, settings=settings) as engine:
        jobs = await submit_jobs(engine, server.base)
        yield engine, jobs, server


async def test_workers_share_jobs_and_take_over_what_one_left(postgres_url: str, tmp_path: Path) -> None:
    async with site_with_jobs(postgres_url, tmp_path / "server") as (engine, jobs, _):
        assert {job.state for job in (await engine.jobs.list()).jobs} == {"queued"}
        async with running_worker(postgres_url, tmp_path / "one") as first:
            await wait_until_begun(engine, 2)
            first.kill()
            async with running_worker(postgres_url, tmp_path / "two") as second:
                await verify(engine, jobs)
                second.send_signal(signal.SIGTERM)
                assert await second.wait() == 0
        assert not list(tmp_path.rglob("uploads/*"))


@pytest.mark.slow
async def test_a_worker_that_stood_still_ends_no_job_that_another_took(
    postgres_url: str, tmp_path: Path
) -> None:
    async with site_with_jobs(postgres_url, tmp_path / "server") as (engine, jobs, pages):
        async with running_worker(postgres_url, tmp_path / "one") as first:
            await wait_until_asked(pages, 2)
            first.send_signal(signal.SIGSTOP)
            async with running_worker(postgres_url, tmp_path / "two"):
                await verify(engine, jobs)
                before = [await engine.jobs.get(job) for job in jobs], await stored_texts(engine)
                assert any(text.endswith("So it is.") for text in before[1].values())
                first.send_signal(signal.SIGCONT)
                await asyncio.sleep(2)
                first.send_signal(signal.SIGTERM)
                assert await first.wait() == 0
                assert ([await engine.jobs.get(job) for job in jobs], await stored_texts(engine)) == before
        await verify(engine, jobs)


async def test_what_a_worker_has_to_say_is_a_line_of_json(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path / "data", settings=SETTINGS):
        pass
    async with running_worker(str(tmp_path / "data"), tmp_path / "cache") as process:
        assert process.stderr is not None
        with closing(sqlite3.connect(tmp_path / "data" / "records.sqlite")) as other:
            other.execute("ALTER TABLE collections RENAME TO gone")
            async with asyncio.timeout(LONG):
                event = json.loads(await process.stderr.readline())
        assert event["level"] == "warning"
        assert event["logger"].startswith("conspectus.")
        assert {"timestamp", "event"} <= event.keys()
