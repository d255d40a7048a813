"""Traversal speed of a graph of a million edges, in the store and in memory: python benchmarks/graph.py.

Who is linked with whom follows a power law, so a few nodes have tens of thousands of edges, and two steps
from most nodes lead over one of them. The store is asked through the engine, permission and all. Beside it
stand rustworkx and NetworkX, which first have to hold the whole graph in the memory of every process: the
same answer (fewest steps, best product of weights, the first hundred) by loops over their edges. How long
reading it from a file would take is left out. Both have to be installed: pip install networkx rustworkx.
"""

import asyncio
import heapq
import random
import resource
import shutil
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

import networkx
import numpy as np
import rustworkx
from results import Result, option_parser

import conspectus
from conspectus import Engine, Settings
from conspectus.model.graph import NewEdge, NewNode, Traversal
from conspectus.text.times import parse_instant

STEEPNESS = 0.9
BATCH = 10_000
TYPES = ("knows", "likes", "works_with", "lives_in", "cites")
SETTINGS = Settings(embedder="none")
SHOWN = 100
Links = list[tuple[int, int, float]]
Reached = list[tuple[str, int, float]]
Steps = Callable[[str], Iterable[tuple[str, float]]]
Ask = Callable[[str], Awaitable[Reached]]


def links(nodes: int, edges: int) -> Links:
    """Ends by a power law, weights from .05 to 1."""
    chance = np.random.default_rng(1)
    share = np.arange(1, nodes + 1) ** -STEEPNESS
    ends = chance.choice(nodes, (2, edges), p=share / share.sum())
    places = chance.permutation(nodes)[ends].tolist()
    weights = np.round(chance.uniform(0.05, 1, edges), 2).tolist()
    return list(zip(*places, weights, strict=True))


def name(number: int) -> str:
    """The id of a node."""
    return f"node-{number:07}"


async def build(engine: Engine, nodes: int, edges: Links) -> None:
    """Store everything in batches, as a program would."""
    for start in range(0, nodes, BATCH):
        await engine.graph.add_nodes(
            NewNode(name(number)) for number in range(start, min(start + BATCH, nodes))
        )
    for start in range(0, len(edges), BATCH):
        await engine.graph.add_edges(
            NewEdge(
                name(a), name(b), TYPES[(start + n) % len(TYPES)], weight, valid_from=parse_instant(start + n)
            )
            for n, (a, b, weight) in enumerate(edges[start : start + BATCH])
        )


def stored(engine: Engine, walk: Traversal) -> Ask:
    """Ask the store."""

    async def ask(start: str) -> Reached:
        neighbors = await engine.graph.neighbors(start, walk)
        return [(neighbor.node.id, neighbor.hop, round(neighbor.decay, 9)) for neighbor in neighbors]

    return ask


def further(steps: Steps, layer: dict[str, float], best: dict[str, float]) -> dict[str, float]:
    """The nodes one hop from a layer, with the best product of weights."""
    fresh: dict[str, float] = {}
    for here, decay in layer.items():
        for there, weight in steps(here):
            if there not in best and decay * weight > fresh.get(there, 0.0):
                fresh[there] = decay * weight
    return fresh


def in_memory(steps: Steps, hops: int) -> Ask:
    """Ask a graph in memory, whose steps from a node are given."""

    async def ask(start: str) -> Reached:
        best, layer, order = {start: 1.0}, {start: 1.0}, Reached()
        for hop in range(1, hops + 1):
            fresh = further(steps, layer, best)
            first = heapq.nsmallest(SHOWN - len(order), fresh, key=lambda node: (-fresh[node], node))
            order += [(node, hop, round(fresh[node], 9)) for node in first]
            if len(order) >= SHOWN:
                break
            best |= fresh
            layer = fresh
        return order

    return ask


def in_rustworkx(nodes: int, edges: Links) -> Steps:
    """The steps of a graph in rustworkx."""
    graph = rustworkx.PyDiGraph()
    graph.add_nodes_from([name(number) for number in range(nodes)])
    graph.add_edges_from(edges)

    def steps(here: str) -> Iterable[tuple[str, float]]:
        index = int(here.removeprefix("node-"))
        for _, there, weight in graph.out_edges(index):
            yield graph[there], weight
        for there, _, weight in graph.in_edges(index):
            yield graph[there], weight

    return steps


def in_networkx(edges: Links) -> Steps:
    """The steps of a graph in NetworkX."""
    graph = networkx.MultiDiGraph()
    graph.add_weighted_edges_from((name(a), name(b), weight) for a, b, weight in edges)

    def steps(here: str) -> Iterable[tuple[str, float]]:
        for _, there, weight in graph.out_edges(here, data="weight"):
            yield there, weight
        for there, _, weight in graph.in_edges(here, data="weight"):
            yield there, weight

    return steps


async def measured(ask: Ask, starts: Sequence[str]) -> tuple[list[float], list[Reached]]:
    """Milliseconds of each query, sorted, and the results."""
    times, answers = [], []
    for start in starts:
        began = time.perf_counter()
        answers.append(await ask(start))
        times.append((time.perf_counter() - began) * 1_000)
    return sorted(times), answers


def memory() -> float:
    """Megabytes that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024


def row(what: str, times: Sequence[float], beside: float, *more: str) -> list[str]:
    """A row of the table, with how many times as long the 95th percentile is as the store's."""
    p50, p95 = times[len(times) // 2], p95_of(times)
    figures = [f"{p50:.2f} ms", f"{p95:.2f} ms", f"{times[-1]:.1f} ms", f"{p95 / beside:.1f}"]
    return [what, *figures, *(more or ("-", "-"))]


def p95_of(times: Sequence[float]) -> float:
    """The 95th percentile of sorted times."""
    return times[int(len(times) * 0.95)]


async def compare(engine: Engine, nodes: int, edges: Links, starts: Sequence[str]) -> list[list[str]]:
    """The store and the peers on the same queries; raises if they do not agree."""
    ask = stored(engine, Traversal(hops=2, limit=SHOWN))
    await measured(ask, starts[:20])
    base, expected = await measured(ask, starts)
    p95 = p95_of(base)
    rows = [row("store", base, p95, "0 s", f"{memory():.0f} MB")]
    libraries: dict[str, Callable[[], Steps]] = {
        "rustworkx": lambda: in_rustworkx(nodes, edges),
        "NetworkX": lambda: in_networkx(edges),
    }
    for title, load in libraries.items():
        before, began = memory(), time.perf_counter()
        peer = in_memory(load(), 2)
        ready = time.perf_counter() - began
        times, answers = await measured(peer, starts)
        assert answers == expected, f"{title} answers otherwise"
        rows.append(row(title, times, p95, f"{ready:.1f} s", f"{memory() - before:.0f} MB"))
    return rows + await others(engine, starts, p95)


async def others(engine: Engine, starts: Sequence[str], p95: float) -> list[list[str]]:
    """Other queries to the store."""
    instant = parse_instant(500_000)
    walks = {
        "store, one hop": Traversal(limit=SHOWN),
        "store, outwards": Traversal(hops=2, direction="out", limit=SHOWN),
        "store, one type of five": Traversal(hops=2, types=TYPES[:1], limit=SHOWN),
        "store, at an instant": Traversal(hops=2, at=instant, limit=SHOWN),
        "store, weights from .9": Traversal(hops=2, min_weight=0.9, limit=SHOWN),
        "store, three hops, 1,000": Traversal(hops=3, limit=1_000),
    }
    return [
        row(title, (await measured(stored(engine, walk), starts))[0], p95) for title, walk in walks.items()
    ]


async def run(folder: Path, nodes: int, edges: int, questions: int) -> Result:
    """Build the store where it is not there yet, then ask."""
    graph_links = links(nodes, edges)
    degrees = np.bincount(np.array([link[:2] for link in graph_links]).ravel(), minlength=nodes)
    ready = folder / "ready"
    if not ready.exists():
        shutil.rmtree(folder, ignore_errors=True)
        began = time.perf_counter()
        async with conspectus.open(folder, settings=SETTINGS) as engine:
            await build(engine, nodes, graph_links)
        ready.write_text(f"{time.perf_counter() - began:.1f}")
    chance = random.Random(2)
    linked = np.flatnonzero(degrees).tolist()
    starts = [name(number) for number in chance.choices(linked, k=questions)]
    hubs = [name(number) for number in np.argsort(-degrees)[:20].tolist()]
    size = (folder / "records.sqlite").stat().st_size / 1e6
    async with conspectus.open(folder, settings=SETTINGS) as engine:
        rows = await compare(engine, nodes, graph_links, starts)
        times, _ = await measured(stored(engine, Traversal(hops=2, limit=SHOWN)), hubs)
        rows.append(row("store, from hubs", times, float(rows[0][2].split()[0])))
    title = (
        f"{nodes:,} nodes, {edges:,} edges, hubs of up to {degrees.max():,}; {size:.0f} MB on disk, stored "
        f"in {float(ready.read_text()):.0f} s. Two hops in both directions, the best {SHOWN}."
    )
    columns = ["", "p50", "p95", "longest", "p95 / store", "ready after", "memory"]
    return Result.of(title, columns, rows)


def main() -> None:
    """Read the options."""
    options = option_parser(__doc__)
    options.add_argument("--nodes", type=int, default=200_000)
    options.add_argument("--edges", type=int, default=1_000_000)
    options.add_argument("--questions", type=int, default=300)
    arguments = options.parse_args()
    folder = Path(".benchmarks") / f"graph-{arguments.nodes}-{arguments.edges}"
    table = asyncio.run(run(folder, arguments.nodes, arguments.edges, arguments.questions))
    table.shown("graph", save=arguments.save)


if __name__ == "__main__":
    main()
