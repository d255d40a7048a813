"""Several processes with one agent's memories at once: nothing is lost, crossed, or true twice."""

import asyncio
import random
from asyncio.subprocess import Process
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

import pytest

import conspectus
from conspectus.engine import Engine
from conspectus.model.memory import MEMORY, Memory
from tests.faults.companion import ANN, EACH, NAMED, ROUNDS, SETTINGS, TASKS, first_name
from tests.programs import program, said, tell

MANY = 1_000


async def run_at_once(store: Path, what: str, processes: int = 2) -> None:
    """Let so many of the programs do the same at the same time, each to its end."""
    async with conspectus.open(store, settings=SETTINGS) as engine:
        await engine.memory.add("We begin.", scope=ANN)
    async with AsyncExitStack() as stack:
        running = [
            await stack.enter_async_context(running_companion(store, what, name))
            for name in "abc"[:processes]
        ]
        await asyncio.gather(*(program.communicate(b"go\n") for program in running))
    assert [program.returncode for program in running] == [0] * processes


def running_companion(store: Path, what: str, name: str) -> AbstractAsyncContextManager[Process]:
    """The program, ready to begin when it is told; killed at the end of the block."""
    return program("-m", "tests.faults.companion", store, what, name)


async def all_memories(engine: Engine) -> list[Memory]:
    return list((await engine.memory.list(scope=ANN, limit=MANY)).memories)


@pytest.mark.slow
async def test_many_speak_into_one_conversation(tmp_path: Path) -> None:
    await run_at_once(tmp_path, "say")
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        texts = [memory.text for memory in await all_memories(engine)]
        expected = [
            [f"{who}-{task} says {number:03d}" for number in range(EACH)]
            for who in "ab"
            for task in range(TASKS)
        ]
        assert sorted(texts) == sorted(
            ["We begin.", *(text for task_texts in expected for text in task_texts)]
        )
        for task_texts in expected:
            begins = task_texts[0].partition(" ")[0] + " "
            assert [text for text in texts if text.startswith(begins)] == task_texts
        last = await engine.memory.list_recent(scope=ANN, limit=MANY, max_tokens=100_000)
        stored = [recollection.memory.text for recollection in last]
        assert sorted(stored) == sorted(texts)
        for task_texts in expected:
            assert [text for text in stored if text in task_texts] == task_texts
        few = await engine.memory.list_recent(scope=ANN, limit=5, max_tokens=100_000)
        assert [recollection.memory.text for recollection in few] == stored[-5:]
        assert await engine._context.core.records.check() == []


@pytest.mark.slow
async def test_of_facts_that_contradict_each_other_one_stays_true(tmp_path: Path) -> None:
    await run_at_once(tmp_path, "state")
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        page = await engine.graph.list_edges(graph="graph/ann/bot/monday", collection=MEMORY, limit=MANY)
        assert len(page.edges) == 2 * ROUNDS
        assert len([edge for edge in page.edges if edge.valid_until is None]) == 1
        facts = {fact.id: fact for fact in await all_memories(engine) if fact.fact is not None}
        [true] = [fact for fact in facts.values() if fact.valid_until is None]
        assert true.closed_by is None
        for edge in page.edges:
            memory = facts[str(edge.evidence)]
            assert memory.valid_until == edge.valid_until
        for fact in facts.values():
            if fact.id != true.id:
                assert fact.closed_by in facts
        for fact in facts.values():
            assert fact.id not in fact.closes


async def test_what_is_changed_and_forgotten_at_once_is_one_or_the_other(tmp_path: Path) -> None:
    await run_at_once(tmp_path, "change", processes=3)
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        left = await all_memories(engine)
        for memory in left:
            versions = await engine.memory.list_versions(memory.id, scope=ANN)
            assert versions[-1] == memory
            assert (await engine.memory.get(memory.id, scope=ANN)) == memory
        totals = await engine.memory.stats(scope=ANN)
        all_versions = [await engine.memory.list_versions(memory.id, scope=ANN) for memory in left]
        assert totals.memories == len(left)
        assert totals.versions == sum(len(memory_versions) - 1 for memory_versions in all_versions)
        assert (await engine.maintenance.check()).clean


@pytest.mark.parametrize(
    "seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)]
)
async def test_a_reader_of_names_that_is_killed_is_gone_on_with(tmp_path: Path, seed: int) -> None:
    async with running_companion(tmp_path, "name", "Ann") as running:
        await tell(running, "go")
        assert await said(running) == "told"
        await asyncio.sleep(random.Random(seed).uniform(0, 0.4))
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        await engine.graph.wait_until_extracted(collection=MEMORY)
        entities = await engine.graph.list_entities(collection=MEMORY, prefix="zol", limit=MANY)
        assert {entity.name: entity.passages for entity in entities} == {
            f"{first_name(number)} Nagy": 1 for number in range(NAMED)
        }
        assert await engine._context.core.records.check() == []
