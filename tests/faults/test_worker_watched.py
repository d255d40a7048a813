"""A worker that cannot go on, or stands still: whoever watches over its process finds out."""

import asyncio
import json
import signal
import sqlite3
import sys
from asyncio.subprocess import DEVNULL
from contextlib import closing
from pathlib import Path

import pytest

import conspectus
from tests.deployed import pods
from tests.faults.test_workers_shared import SETTINGS, running_worker
from tests.waiting import PATIENCE, until

UNREADABLE = {
    "run_background_work": "UPDATE collections SET created = 'then'",
    "watch_work": "INSERT INTO connections (id, collection, owner, name, connector, "
    "options, cursor, state, error, last_run) "
    "SELECT 'c', id, owner, 'c', 'git', '{', NULL, 'idle', NULL, NULL FROM collections",
}
"""What no version of the program wrote, by the task that it ends."""


def read_probe() -> list[str]:
    """What is asked of a worker by those who watch over it; the compose file has the same."""
    (pod,) = [pod for name, _, pod in pods() if name == "worker"]
    python, *arguments, _, _ = pod["containers"][0]["livenessProbe"]["exec"]["command"]
    assert python == "python"
    return [sys.executable, *arguments]


async def run_probe(pulse: Path, seconds: str, *, code: int) -> bool:
    """Whether the probe, of another file and of another age, ends with this code."""
    process = await asyncio.create_subprocess_exec(*read_probe(), str(pulse), seconds, stderr=DEVNULL)
    return await process.wait() == code


@pytest.mark.parametrize("task", UNREADABLE)
async def test_a_worker_that_cannot_go_on_ends_and_says_why(tmp_path: Path, task: str) -> None:
    async with conspectus.open(tmp_path / "data", settings=SETTINGS) as engine:
        await engine.collections.get_or_create()
    async with running_worker(str(tmp_path / "data"), tmp_path / "cache") as process:
        assert process.stderr is not None
        with closing(sqlite3.connect(tmp_path / "data" / "records.sqlite")) as other, other:
            other.execute(UNREADABLE[task])
        async with asyncio.timeout(PATIENCE):
            event = json.loads(await process.stderr.readline())
            assert await process.wait() == 1
        assert event["event"] == "worker_failed"
        assert event["traceback"][0].endswith(task)


async def test_a_worker_that_stands_still_has_no_pulse(tmp_path: Path) -> None:
    pulse = tmp_path / "pulse"
    async with conspectus.open(tmp_path / "data", settings=SETTINGS):
        pass
    assert await run_probe(pulse, "60", code=1)
    async with running_worker(
        str(tmp_path / "data"), tmp_path / "cache", "--heartbeat-file", str(pulse)
    ) as process:
        assert await run_probe(pulse, "60", code=0)
        process.send_signal(signal.SIGSTOP)
        await until(lambda: run_probe(pulse, "3", code=1))
        process.send_signal(signal.SIGCONT)
        await until(lambda: run_probe(pulse, "3", code=0))
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
