"""Killed with -9 while facts are extracted: what was answered is asked once, and each fact is there once."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from conspectus.testing.chat_models import ScriptedChatModel
from tests.extracting import SETTINGS, facts_of, found, message_in, opened, report
from tests.faults.extractor import MEMORIES

ROOT = Path(__file__).parents[2]


async def run_and_kill(path: Path, questions: int) -> tuple[str, list[str]]:
    """Run the program until it has put so many questions; its job, and what it asked about."""
    command = [sys.executable, "-m", "tests.faults.extractor", str(path)]
    program = await asyncio.create_subprocess_exec(*command, stdout=PIPE, cwd=ROOT)
    assert program.stdout is not None
    job, asked_messages = "", list[str]()
    while not job or len(asked_messages) < questions:
        line = (await program.stdout.readline()).decode().strip()
        assert line, "the program ended by itself"
        if line.startswith("job "):
            job = line.removeprefix("job ")
        else:
            asked_messages.append(line)
    program.kill()
    await program.wait()
    return job, asked_messages


@pytest.mark.parametrize("questions", [*(pytest.param(n, marks=pytest.mark.slow) for n in (1, 11)), 6])
async def test_a_run_goes_on_where_it_was_killed(tmp_path: Path, questions: int) -> None:
    job, asked_messages = await run_and_kill(tmp_path, questions)
    model = ScriptedChatModel(found)
    async with opened(tmp_path, model) as engine:
        ended = await engine.jobs.wait(job)
        assert (ended.state, ended.done, ended.total) == ("succeeded", MEMORIES, MEMORIES)
        assert report(ended)["outcome"] == "complete"
        again = [message_in(call.messages) for call in model.asked]
        assert len(again) == len(set(again))
        assert (
            MEMORIES - len(asked_messages)
            <= len(again)
            <= MEMORIES - len(asked_messages) + SETTINGS.summary_concurrency
        )
        facts = await facts_of(engine)
        assert len(facts) == len({fact.text for fact in facts}) == 2 * MEMORIES
        open_homes = [fact for fact in facts if fact.kind == "relation" and fact.valid_until is None]
        assert [fact.text for fact in open_homes] == [f"So Ann lives_in Town{MEMORIES - 1}."]
        assert (await engine.maintenance.check()).clean
