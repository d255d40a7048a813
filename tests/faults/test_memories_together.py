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
from tests.faults.companion import ANN, EACH, NAMED, ROUNDS, SETTINGS, TASKS, first_of
from tests.programs import program, said, tell

MANY = 1_000


async def at_once(store: Path, what: str, processes: int = 2) -> None:
    """Let so many of the programs do the same at the same time, each to its end."""
    async with conspectus.open(store, settings=SETTINGS) as engine:
        await engine.memory.add("We begin.", scope=ANN)
    async with AsyncExitStack() as stack:
        running = [
            await stack.enter_async_context(companion(store, what, each)) for each in "abc"[:processes]
        ]
        await asyncio.gather(*(each.communicate(b"go\n") for each in running))
    assert [each.returncode for each in running] == [0] * processes


def companion(store: Path, what: str, name: str) -> AbstractAsyncContextManager[Process]:
    """The program, ready to begin when it is told; killed at the end of the block."""
    return program("-m", "tests.faults.companion", store, what, name)


async def all_said(engine: Engine) -> list[Memory]:
    return list((await engine.memory.list(scope=ANN, limit=MANY)).memories)


@pytest.mark.slow
async def test_many_speak_into_one_conversation(tmp_path: Path) -> None:
    await at_once(tmp_path, "say")
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        said = [each.text for each in await all_said(engine)]
        expected = [
            [f"{who}-{task} says {number:03d}" for number in range(EACH)]
            for who in "ab"
            for task in range(TASKS)
        ]
        assert sorted(said) == sorted(["We begin.", *(text for own in expected for text in own)])
        for own in expected:
            begins = own[0].partition(" ")[0] + " "
            assert [text for text in said if text.startswith(begins)] == own
        last = await engine.memory.list_recent(scope=ANN, limit=MANY, max_tokens=100_000)
        stored = [each.memory.text for each in last]
        assert sorted(stored) == sorted(said)
        for own in expected:
            assert [text for text in stored if text in own] == own
        few = await engine.memory.list_recent(scope=ANN, limit=5, max_tokens=100_000)
        assert [each.memory.text for each in few] == stored[-5:]
        assert await engine._context.core.records.check() == []


@pytest.mark.slow
async def test_of_facts_that_contradict_each_other_one_stays_true(tmp_path: Path) -> None:
    await at_once(tmp_path, "state")
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        page = await engine.graph.list_edges(graph="graph/ann/bot/monday", collection=MEMORY, limit=MANY)
        assert len(page.edges) == 2 * ROUNDS
        assert len([each for each in page.edges if each.valid_until is None]) == 1
        facts = {each.id: each for each in await all_said(engine) if each.fact is not None}
        [true] = [each for each in facts.values() if each.valid_until is None]
        assert true.closed_by is None
        for edge in page.edges:
            memory = facts[str(edge.evidence)]
            assert memory.valid_until == edge.valid_until
        for each in facts.values():
            if each.id != true.id:
                assert each.closed_by in facts
        for each in facts.values():
            assert each.id not in each.closes


async def test_what_is_changed_and_forgotten_at_once_is_one_or_the_other(tmp_path: Path) -> None:
    await at_once(tmp_path, "change", processes=3)
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        left = await all_said(engine)
        for each in left:
            versions = await engine.memory.list_versions(each.id, scope=ANN)
            assert versions[-1] == each
            assert (await engine.memory.get(each.id, scope=ANN)) == each
        totals = await engine.memory.stats(scope=ANN)
        kept = [await engine.memory.list_versions(each.id, scope=ANN) for each in left]
        assert totals.memories == len(left)
        assert totals.versions == sum(len(each) - 1 for each in kept)
        assert (await engine.maintenance.check()).clean


@pytest.mark.parametrize(
    "seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)]
)
async def test_a_reader_of_names_that_is_killed_is_gone_on_with(tmp_path: Path, seed: int) -> None:
    async with companion(tmp_path, "name", "Ann") as running:
        await tell(running, "go")
        assert await said(running) == "told"
        await asyncio.sleep(random.Random(seed).uniform(0, 0.4))
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        await engine.graph.wait_until_extracted(collection=MEMORY)
        found = await engine.graph.list_entities(collection=MEMORY, prefix="zol", limit=MANY)
        assert {each.name: each.passages for each in found} == {
            f"{first_of(number)} Nagy": 1 for number in range(NAMED)
        }
        assert await engine._context.core.records.check() == []
