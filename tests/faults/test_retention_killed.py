"""Killed with -9 while memories go: each is there as a whole or gone as a whole, and the receipt is right."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import conspectus
from conspectus.engine import Engine
from conspectus.model.graph import Fact
from conspectus.model.jobs import Job
from conspectus.model.memory import MemorySelection, NewMemory, Retention, Scope
from tests.faults.forgetter import ANN, SETTINGS
from tests.programs import program, said

MANY = 1_600
"""Several transactions of them."""
STAY = 10
FACTS = MANY // 100
BOB = Scope("bob", "bot", "monday")
PATIENCE = 6_000


async def add_memories(engine: Engine) -> None:
    """Many memories of Ann, every hundredth with a fact and a version; one of Bob."""
    memories = [
        NewMemory(
            f"memory {number}", str(number), at=number, fact=fact_of(number) if number % 100 == 0 else None
        )
        for number in range(MANY)
    ]
    done = await engine.memory.add(memories, scope=ANN)
    for memory in done[::100]:
        await engine.memory.update(memory.id, scope=ANN, text="changed")
    await engine.memory.add("Bob's own", scope=BOB)


def fact_of(number: int) -> Fact:
    return Fact(f"thing {number}", "is", f"number {number}")


async def count_memories(engine: Engine) -> int:
    return await engine.memory.count(scope=ANN)


async def run_and_kill(store: Path, how: str, engine: Engine) -> None:
    """Let the program forget, and kill it when it has begun to."""
    before = await count_memories(engine)
    async with program("-m", "tests.faults.forgetter", store, how) as running:
        for _ in range(PATIENCE):
            if await count_memories(engine) < before:
                break
            await asyncio.sleep(0.002)
        running.kill()
        assert await said(running) == "", "it was through before it was killed"


async def require_complete(engine: Engine, left: int) -> None:
    """What is left is there in full and nothing is left of what went, in records, index and graph."""
    exported = await engine.memory.export(scope=ANN)
    stats = await engine.memory.stats(scope=ANN)
    assert (len(exported.lines), stats.memories) == (min(left, 1_000), left)
    facts = stats.facts
    assert stats.versions == facts
    [graph] = await engine.graph.list(collection="memory")
    assert (graph.nodes, graph.edges) == (2 * facts, facts)
    assert await engine.memory.count(scope=BOB) == 1
    assert (await engine.maintenance.check()).clean


async def find_last_job(engine: Engine) -> Job:
    [job] = (await engine.jobs.list()).jobs
    return job


async def removed_counts(engine: Engine) -> dict[str, Any]:
    return dict((await find_last_job(engine)).result or {})


@pytest.mark.parametrize("how", ["retention", pytest.param("forget", marks=pytest.mark.slow)])
async def test_killed_while_memories_go(tmp_path: Path, how: str) -> None:
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        await add_memories(engine)
        await engine.retention.set(Retention(max_count=STAY), scope=ANN)
        await run_and_kill(tmp_path, how, engine)
        left = await count_memories(engine)
        assert STAY < left < MANY
        await require_complete(engine, left)
        if how == "forget":
            receipt = await engine.memory.forget(MemorySelection(everything=True), scope=ANN)
            assert (receipt.memories, await count_memories(engine)) == (left, 0)
            return
        assert (await removed_counts(engine))["memories"] == MANY - left
        job = await engine.jobs.wait((await find_last_job(engine)).id)
        assert (job.state, job.done, job.total) == ("succeeded", MANY - STAY, MANY - STAY)
        expected = {
            "memories": MANY - STAY,
            "versions": FACTS,
            "facts": 0,
            "chunks": MANY - STAY + FACTS,
            "vectors": 0,
            "edges": FACTS,
            "answers": 0,
        }
        assert await removed_counts(engine) == expected
        await require_complete(engine, STAY)


async def test_a_job_that_is_cancelled_tells_what_went(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        await add_memories(engine)
        await engine.retention.set(Retention(max_count=0), scope=ANN)
        job = await engine.retention.start_job()
        assert (await engine.retention.start_job()).id == job.id
        for _ in range(PATIENCE):
            if await count_memories(engine) < MANY:
                break
            await asyncio.sleep(0.002)
        cancelled = await engine.jobs.cancel(job.id)
        assert cancelled.state == "cancelled"
        for _ in range(PATIENCE):
            gone = MANY - await count_memories(engine)
            if (await removed_counts(engine))["memories"] == gone:
                break
            await asyncio.sleep(0.002)
        assert 0 < (await removed_counts(engine))["memories"] == gone < MANY
        await require_complete(engine, MANY - gone)
