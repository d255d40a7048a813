"""Killed with -9 while a large batch is added to a graph, and two processes that add the same at once."""

import asyncio
import random
from asyncio.subprocess import Process
from collections import Counter
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

import conspectus
from conspectus import Engine
from conspectus.model.graph import Traversal
from tests.faults.grapher import HUB, SETTINGS, SIZE, node_names
from tests.programs import program, said, tell

EDGES = 2 * SIZE - 1


def running_grapher(store: Path, batches: int) -> AbstractAsyncContextManager[Process]:
    """The program, ready to begin when it is told; killed at the end of the block."""
    return program("-m", "tests.faults.grapher", store, str(batches))


async def count_stored(engine: Engine) -> tuple[Counter[str], Counter[str]]:
    """How many nodes and edges each batch has."""
    nodes, edges, after = Counter[str](), Counter[str](), None
    while True:
        page = await engine.graph.list_nodes(after=after, limit=1_000)
        nodes.update(node.id.partition("-")[0] for node in page.nodes)
        if (after := page.next) is None:
            break
    while True:
        edge_page = await engine.graph.list_edges(after=after, limit=1_000)
        edges.update(edge.source.partition("-")[0] for edge in edge_page.edges)
        if (after := edge_page.next) is None:
            return nodes, edges


@pytest.mark.parametrize(
    "seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)]
)
async def test_a_batch_is_there_as_a_whole_or_not_at_all(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    heard: list[tuple[str, str]] = []
    async with running_grapher(tmp_path, 100) as running:
        await tell(running, "go")
        for _ in range(chance.randrange(1, 9)):
            kind, number = (await said(running)).split()
            heard.append((kind, f"{int(number):03}"))
        await asyncio.sleep(chance.uniform(0, 0.15))
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        assert await engine._context.core.records.check() == []
        await engine.graph.get_or_create()
        nodes, edges = await count_stored(engine)
        del nodes[HUB]
        assert set(nodes.values()) <= {SIZE}
        assert set(edges.values()) <= {EDGES}
        assert {number for kind, number in heard if kind == "edges"} <= set(nodes)
        assert {number for kind, number in heard if kind == "done"} <= set(edges)


async def test_processes_that_add_the_same_at_once_have_it_once(tmp_path: Path) -> None:
    async with running_grapher(tmp_path, 2) as one, running_grapher(tmp_path, 2) as other:
        for grapher in (one, other):
            await tell(grapher, "go")
        for grapher in (one, other):
            output, _ = await grapher.communicate()
            assert grapher.returncode == 0, output
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        nodes, edges = await count_stored(engine)
        assert nodes == {HUB: 1, "000": SIZE, "001": SIZE}
        assert edges == {"000": EDGES, "001": EDGES}
        neighbors = await engine.graph.neighbors(HUB, Traversal(hops=2, limit=1_000, offset=900))
        assert [neighbor.node.id for neighbor in neighbors] == (node_names(0) + node_names(1))[900:]
        assert await engine._context.core.records.check() == []
