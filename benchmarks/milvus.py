"""Questions to Milvus Lite beside a plain search there: python benchmarks/milvus.py --chunks 5000.

The same passages and vectors in both, asked in turn. The processor time of the server hardly depends on what
else the machine does.
"""

import argparse
import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from corpus import paragraphs, questions
from latency import Given
from plain_milvus import PlainMilvus
from rich.console import Console
from rich.table import Table
from vectors import Matrix, vectors

from conspectus import Engine, Query
from stores import Cell, Place, fill, placed

ASKED, ROUNDS = 20, 3
Ask = Callable[[Query], Awaitable[object]]


def asks(plain: PlainMilvus, engine: Engine, end: float) -> Mapping[str, Ask]:
    """What is measured; the first is what the rest is compared with."""
    return {
        "plain search for ten": lambda query: asyncio.to_thread(plain.nearest, list(query.vector or ())),
        "the same, filtered": lambda query: asyncio.to_thread(
            plain.nearest, list(query.vector or ()), (-1.0, end)
        ),
        "window": lambda query: engine.window(query, 2_048),
        "vector search": lambda query: engine.retrieve(replace(query, retrievers=("vector",))),
        "keyword search": lambda query: engine.retrieve(replace(query, retrievers=("keyword",))),
    }


def server_seconds() -> float:
    """The processor time of the server, the only child of this process."""
    children = [child for task in Path("/proc/self/task").glob("*/children") for child in _words(task)]
    used = [_words(Path(f"/proc/{child}/stat"))[13:15] for child in children]
    return sum(int(ticks) for child_ticks in used for ticks in child_ticks) / os.sysconf("SC_CLK_TCK")


def _words(file: Path) -> list[str]:
    return file.read_text().split()


async def measured(
    store_place: Place, texts: Sequence[str], matrix: Matrix
) -> Mapping[str, Sequence[tuple[float, float]]]:
    """Milliseconds of each question, and of the server for it on average in its round."""
    before, embedder = server_seconds(), Given({})
    await fill(store_place, Cell("milvus", len(texts)), texts, dict(zip(texts, matrix, strict=True)))
    print(f"filled in {server_seconds() - before:.1f} s of processor time of the server")
    queries = [
        Query(text, vector=tuple(map(float, await embedder.embed_query(text))))
        for text in questions(texts, ASKED)
    ]
    with PlainMilvus(store_place.settings.milvus_uri, matrix.shape[1]) as plain:
        plain.fill(texts, matrix, 1.0)
        async with store_place.opened(embedder) as engine:
            return await rounds(asks(plain, engine, len(texts) + 1.0), queries)


async def rounds(
    asks: Mapping[str, Ask], queries: Sequence[Query]
) -> Mapping[str, Sequence[tuple[float, float]]]:
    """All questions in turn, after a round that only warms up."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in asks}
    for number in range(ROUNDS + 1):
        for name, ask in asks.items():
            samples = await one_round(ask, queries)
            times[name] += samples if number else []
    return times


async def one_round(ask: Ask, queries: Sequence[Query]) -> list[tuple[float, float]]:
    """Milliseconds of each question, each with the mean of the server."""
    before, took = server_seconds(), []
    for query in queries:
        start = time.perf_counter()
        await ask(query)
        took.append((time.perf_counter() - start) * 1_000)
    used = (server_seconds() - before) * 1_000 / len(queries)
    return [(milliseconds, used) for milliseconds in took]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=5_000)
    parser.add_argument("--path", type=Path, default=Path(".benchmarks"))
    arguments = parser.parse_args()
    texts = paragraphs(arguments.chunks)
    matrix = vectors(texts, arguments.path)
    with TemporaryDirectory(prefix="conspectus-milvus-") as name, ExitStack() as stack:
        times = asyncio.run(measured(placed(stack, "milvus", Path(name)), texts, matrix))
    table = Table("question", "p50 ms", "of the server ms", "of a plain search")
    plain = min(used for _, used in next(iter(times.values())))
    for name, samples in times.items():
        used = min(used for _, used in samples)
        p50 = float(np.median([took for took, _ in samples]))
        table.add_row(name, f"{p50:.1f}", f"{used:.1f}", f"{used / plain:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
