"""Killed with -9 while it accepts and runs jobs: every accepted one is finished, exactly once."""

import asyncio
import random
import sys
from asyncio.subprocess import PIPE
from collections import Counter
from pathlib import Path

import pytest

import conspectus
from conspectus.engine import Engine
from conspectus.testing.web_server import Answer, ScriptedServer
from tests.faults.job_taker import SECRET, SETTINGS

TAKER = Path(__file__).with_name("job_taker.py")
EACH = 40


def text_of(number: int) -> str:
    return f"This is page number {number}, and there is none like it."


def page(number: int) -> list[Answer]:
    """Every third page is only there when it is asked for again."""
    there = Answer(text_of(number).encode(), delay=0.02)
    return [there] if number % 3 else [Answer(b"", 503), there]


async def take_and_die(path: Path, base: str, first: int, seconds: float) -> dict[str, int]:
    """The jobs that a program accepted before it was killed, some time after the first."""
    command = [sys.executable, str(TAKER), str(path), base, str(first), str(EACH)]
    taker = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
    assert taker.stdout is not None
    lines = [await taker.stdout.readline()]
    await asyncio.sleep(seconds)
    taker.kill()
    lines += (await taker.stdout.read()).splitlines(keepends=True)
    await taker.wait()
    said = [line.split() for line in lines if line.endswith(b"\n")]
    return {job.decode(): int(number) for job, number in said}


async def settled(engine: Engine) -> None:
    await engine.start_jobs()
    for state in ("queued", "running"):
        while page := (await engine.jobs(state=state)).jobs:
            await engine.wait_job(page[0].id)


async def verify(path: Path, accepted: dict[str, int]) -> None:
    async with conspectus.open(path, settings=SETTINGS) as engine:
        await settled(engine)
        jobs = [await engine.job(each) for each in accepted]
        assert Counter(job.state for job in jobs) == {"succeeded": len(accepted)}, jobs
        documents = (await engine.list(limit=1000)).documents
        numbers = Counter(int(each.key.rpartition("/")[2]) for each in documents)
        assert set(numbers) >= set(accepted.values())
        assert set(numbers.values()) == {1}
        for each in documents:
            assert await engine.text(each.id) == text_of(int(each.key.rpartition("/")[2]))
        assert (await engine.check()).clean


def kept_secrets(path: Path) -> set[str]:
    """The jobs whose secret is still kept; in no other file may one be found."""
    files = [each for each in path.rglob("*") if each.is_file()]
    holding = [each for each in files if SECRET.encode() in each.read_bytes()]
    assert {each.parent.name for each in holding} <= {"secrets"}
    return {each.name for each in holding}


async def kill_repeatedly(path: Path, times: int) -> None:
    chance = random.Random(times)
    accepted: dict[str, int] = {}
    async with ScriptedServer() as server:
        for number in range(times * EACH):
            server.answers[f"/{number}"] = page(number)
        for turn in range(times):
            said = await take_and_die(path, server.base, turn * EACH, chance.uniform(0.0, 1.5))
            assert said, "no job was accepted before the kill"
            accepted |= said
        await verify(path, accepted)
    assert not kept_secrets(path) & accepted.keys()


async def test_every_accepted_job_is_finished_once_at_three_moments(tmp_path: Path) -> None:
    await kill_repeatedly(tmp_path / "store", 3)


@pytest.mark.slow
async def test_every_accepted_job_is_finished_once_at_twenty_moments(tmp_path: Path) -> None:
    await kill_repeatedly(tmp_path / "store", 20)
