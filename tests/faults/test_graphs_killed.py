"""Killed with -9 while a large batch is added to a graph, and two processes that add the same at once."""

import asyncio
import random
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from pathlib import Path

import pytest

import conspectus
from conspectus import Engine
from conspectus.model.graph import Walk
from tests.faults.grapher import HUB, SETTINGS, SIZE, names

ROOT = Path(__file__).parents[2]
EDGES = 2 * SIZE - 1


async def started(store: Path, batches: int) -> Process:
    """The program, ready to begin."""
    command = [sys.executable, "-m", "tests.faults.grapher", str(store), str(batches)]
    running = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, cwd=ROOT)
    assert running.stdout is not None
    assert await running.stdout.readline() == b"ready\n"
    return running


async def begin(running: Process) -> None:
    assert running.stdin is not None
    running.stdin.write(b"go\n")
    await running.stdin.drain()
    running.stdin.close()


async def stored(engine: Engine) -> tuple[Counter[str], Counter[str]]:
    """How many nodes and edges each batch has."""
    nodes, edges, after = Counter[str](), Counter[str](), None
    while True:
        page = await engine.nodes(after=after, limit=1_000)
        nodes.update(each.id.partition("-")[0] for each in page.nodes)
        if (after := page.next) is None:
            break
    while True:
        some = await engine.edges(after=after, limit=1_000)
        edges.update(each.source.partition("-")[0] for each in some.edges)
        if (after := some.next) is None:
            return nodes, edges


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_a_batch_is_there_as_a_whole_or_not_at_all(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    running = await started(tmp_path, 100)
    assert running.stdout is not None
    await begin(running)
    said: list[tuple[str, str]] = []
    for _ in range(chance.randrange(1, 9)):
        kind, number = (await running.stdout.readline()).decode().split()
        said.append((kind, f"{int(number):03}"))
    await asyncio.sleep(chance.uniform(0, 0.15))
    running.kill()
    await running.wait()
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        assert await engine._core.records.check() == []
        await engine.graph()
        nodes, edges = await stored(engine)
        del nodes[HUB]
        assert set(nodes.values()) <= {SIZE}
        assert set(edges.values()) <= {EDGES}
        assert {number for kind, number in said if kind == "edges"} <= set(nodes)
        assert {number for kind, number in said if kind == "done"} <= set(edges)


async def test_processes_that_add_the_same_at_once_have_it_once(tmp_path: Path) -> None:
    running = [await started(tmp_path, 2) for _ in range(2)]
    for each in running:
        await begin(each)
    for each in running:
        output, _ = await each.communicate()
        assert each.returncode == 0, output
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        nodes, edges = await stored(engine)
        assert nodes == {HUB: 1, "000": SIZE, "001": SIZE}
        assert edges == {"000": EDGES, "001": EDGES}
        found = await engine.neighbours(HUB, Walk(hops=2, limit=1_000, skip=900))
        assert [each.node.id for each in found] == (names(0) + names(1))[900:]
        assert await engine._core.records.check() == []
