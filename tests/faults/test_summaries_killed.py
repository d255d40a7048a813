"""Killed with -9 in the middle of a summary: what was kept is asked for once, and nothing is left out."""

import asyncio
import sqlite3
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

import conspectus
from conspectus.testing.chat_models import ScriptedChatModel
from tests.faults.summariser import BATCHES, REQUEST, SETTINGS
from tests.films import asked_about, scenes, told

ROOT = Path(__file__).parents[2]


async def run_and_kill(path: Path, questions: int) -> str:
    """Run the program until it has put so many questions; its job."""
    command = [sys.executable, "-m", "tests.faults.summariser", str(path)]
    program = await asyncio.create_subprocess_exec(*command, stdout=PIPE, cwd=ROOT)
    assert program.stdout is not None
    job, count = "", 0
    while not job or count < questions:
        line = (await program.stdout.readline()).decode().strip()
        assert line, "the program ended by itself"
        if line.startswith("scene"):
            count += 1
        else:
            job = line
    program.kill()
    await program.wait()
    return job


def count_stored(path: Path) -> int:
    """How many summaries were stored."""
    database = sqlite3.connect(path / "records.sqlite")
    try:
        return int(database.execute("SELECT count(*) FROM summaries").fetchone()[0])
    finally:
        database.close()


@pytest.mark.parametrize("questions", [*(pytest.param(n, marks=pytest.mark.slow) for n in (1, 19)), 7])
async def test_each_batch_that_was_answered_is_asked_once(tmp_path: Path, questions: int) -> None:
    job = await run_and_kill(tmp_path, questions)
    stored = await asyncio.to_thread(count_stored, tmp_path)
    assert questions - SETTINGS.summary_concurrency <= stored <= BATCHES
    model = ScriptedChatModel(told)
    async with conspectus.open(tmp_path, settings=SETTINGS, chat_model=model) as engine:
        ended = await engine.jobs.wait(job)
        assert (ended.state, ended.done, ended.total) == ("succeeded", BATCHES, BATCHES)
        assert ended.result is not None
        assert (ended.result["captions"], ended.result["failures"]) == (6 * BATCHES, [])
        assert len(model.asked) == BATCHES - stored + 1
        batches = [asked_scenes for asked_scenes in asked_about(model) if len(asked_scenes) == 6]
        assert len(batches) == BATCHES - stored
        summary = await engine.summaries.get(**REQUEST)
        assert summary is not None
        assert summary.text == f"[{', '.join(scenes(*range(6 * BATCHES)))}]"
        assert sum(batch.captions for batch in summary.batches) == 6 * BATCHES
        assert (await engine.maintenance.check()).clean
