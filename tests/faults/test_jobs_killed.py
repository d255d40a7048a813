"""Killed with -9 while it accepts and runs jobs: every accepted one is finished, exactly once."""

import asyncio
import random
import sys
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

import conspectus
from conspectus.engine import Engine
from conspectus.model.records import Document
from tests.faults.job_taker import SECRET, SETTINGS, text_of
from tests.files import holding
from tests.support.web_server import Answer, ScriptedServer

TAKER = Path(__file__).with_name("job_taker.py")
EACH = 40


def page(number: int) -> list[Answer]:
    """Every third page is only there when it is asked for again."""
    there = Answer(text_of(number).encode(), delay=0.02)
    return [there] if number % 3 else [Answer(b"", 503), there]


@asynccontextmanager
async def running_taker(path: Path, base: str, first: int, accepted: dict[str, int]) -> AsyncIterator[None]:
    """While a program accepts jobs; it is killed at the end, and those that it accepted are added."""
    command = [sys.executable, str(TAKER), str(path), base, str(first), str(EACH)]
    taker = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
    assert taker.stdout is not None
    lines = [await taker.stdout.readline()]
    yield
    taker.kill()
    lines += (await taker.stdout.read()).splitlines(keepends=True)
    await taker.wait()
    accepted_lines = [line.split() for line in lines if line.endswith(b"\n")]
    assert accepted_lines, "no job was accepted before the kill"
    accepted |= {job.decode(): int(number) for job, number in accepted_lines}


async def wait_until_settled(engine: Engine) -> None:
    await engine.jobs.start()
    for state in ("queued", "running"):
        while page := (await engine.jobs.list(state=state)).jobs:
            await engine.jobs.wait(page[0].id)


async def all_documents(engine: Engine) -> list[Document]:
    page = await engine.documents.list(limit=1_000)
    documents = list(page.documents)
    while page.next is not None:
        page = await engine.documents.list(after=page.next, limit=1_000)
        documents += page.documents
    return documents


async def verify(engine: Engine, accepted: dict[str, int]) -> None:
    await wait_until_settled(engine)
    jobs = [await engine.jobs.get(job) for job in accepted]
    assert Counter(job.state for job in jobs) == {"succeeded": len(accepted)}, jobs
    documents = await all_documents(engine)
    numbers = Counter(int(document.key.rpartition("/")[2]) for document in documents)
    assert set(numbers) >= set(accepted.values())
    assert set(numbers.values()) == {1}
    for document in documents:
        assert await engine.documents.get_text(document.id) == text_of(int(document.key.rpartition("/")[2]))
    assert (await engine.maintenance.check()).clean


def jobs_with_secrets(path: Path) -> set[str]:
    """The jobs whose secret is still kept; in no other file may one be found."""
    files = holding(path, SECRET)
    assert {file.parent.name for file in files} <= {"secrets"}
    return {file.name for file in files}


@asynccontextmanager
async def pages(count: int) -> AsyncIterator[str]:
    async with ScriptedServer({f"/{number}": page(number) for number in range(count)}) as server:
        yield server.base


async def kill_repeatedly(path: Path, times: int) -> None:
    chance = random.Random(times)
    accepted: dict[str, int] = {}
    async with pages(times * EACH) as base:
        for turn in range(times):
            async with running_taker(path, base, turn * EACH, accepted):
                await asyncio.sleep(chance.uniform(0.0, 1.5))
        async with conspectus.open(path, settings=SETTINGS) as engine:
            await verify(engine, accepted)
    assert not jobs_with_secrets(path) & accepted.keys()


async def test_another_process_goes_on_with_what_the_killed_one_ran(tmp_path: Path) -> None:
    accepted: dict[str, int] = {}
    async with pages(EACH) as base, AsyncExitStack() as opened:
        async with running_taker(tmp_path, base, 0, accepted):
            engine = await opened.enter_async_context(conspectus.open(tmp_path, settings=SETTINGS))
            await engine.jobs.start()
        await verify(engine, accepted)


async def test_every_accepted_job_is_finished_once_at_two_moments(tmp_path: Path) -> None:
    await kill_repeatedly(tmp_path / "store", 2)


@pytest.mark.slow
async def test_every_accepted_job_is_finished_once_at_twenty_moments(tmp_path: Path) -> None:
    await kill_repeatedly(tmp_path / "store", 20)
