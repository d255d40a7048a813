"""Many who write at once: python benchmarks/writers.py --processes 1 4 --writers 1 16.

Each process has so many writers, each of which adds one document after the other to one of eight sources
of one collection: on PostgreSQL, or in a folder with `--folder`. Measured is how many documents all store
in a second, each found by words when it is acknowledged, and how long one takes. No vectors are made.
"""

import argparse
import asyncio
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console
from rich.table import Table
from tests.support.postgres_server import PostgresProcess, postgres_server

import conspectus
from conspectus import NewDocument, Settings

SETTINGS = replace(Settings(), embedder="none", run_background_jobs="off", log_level="critical")
SOURCES = 8


async def work(place: str, cache: str, writers: int, seconds: float) -> None:
    """What one process does: it says that it is ready, begins when told, and says how long each took."""
    async with conspectus.open(place, settings=replace(SETTINGS, cache=cache)) as engine:
        took: list[float] = []

        async def write(writer: int, until: float) -> None:
            while (begun := time.perf_counter()) < until:
                text = f"{writer} {len(took)} tides turn in the harbour while gulls sit on the lamps"
                await engine.add([NewDocument(text)], source=f"s{writer % SOURCES}", collection="shared")
                took.append(time.perf_counter() - begun)

        await write(0, time.perf_counter() + 0.2)
        took.clear()
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        until = time.perf_counter() + seconds
        await asyncio.gather(*(write(writer, until) for writer in range(writers)))
        print(" ".join(map(str, took)), flush=True)


async def said(process: Process) -> str:
    """The next line of a process."""
    assert process.stdout is not None
    line = await process.stdout.readline()
    if not line:
        raise SystemExit("a process ended early")
    return line.decode()


async def measured(place: str, folder: Path, processes: int, writers: int, seconds: float) -> Sequence[float]:
    """How long each document took that so many processes stored in so many seconds."""
    async with conspectus.open(place, settings=replace(SETTINGS, cache=str(folder / "founding"))) as engine:
        await engine.collections.create("shared")
        for number in range(SOURCES):
            await engine.collections.get_or_create_source(f"s{number}", collection="shared")
    told = ["--writers", str(writers), "--seconds", str(seconds), "--work", place]
    command = [sys.executable, __file__, *told]
    running = [
        await asyncio.create_subprocess_exec(
            *command, str(folder / f"cache {number}"), stdin=PIPE, stdout=PIPE, limit=2**26
        )
        for number in range(processes)
    ]
    for each in running:
        await said(each)
    for each in running:
        assert each.stdin is not None
        each.stdin.write(b"go\n")
    took = [float(one) for each in running for one in (await said(each)).split()]
    for each in running:
        await each.communicate()
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--writers", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--folder", action="store_true", help="a folder in place of PostgreSQL")
    parser.add_argument("--work", nargs=2, metavar=("PLACE", "CACHE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        asyncio.run(work(*given.work, given.writers[0], given.seconds))
        return
    with TemporaryDirectory(prefix="conspectus-writers-") as name:
        folder = Path(name)
        with nullcontext() if given.folder else postgres_server(folder) as server:
            Console(width=100).print(table_of(given, server, folder))


def table_of(given: argparse.Namespace, server: PostgresProcess | None, folder: Path) -> Table:
    """A row for each number of processes and writers, each in a store of its own."""
    table = Table("processes", "writers in each", "documents a second", "p50 ms", "p95 ms")
    for number, (processes, writers) in enumerate(product(given.processes, given.writers)):
        here = folder / str(number)
        with nullcontext(str(here / "store")) if server is None else server.fresh() as place:
            took = asyncio.run(measured(place, here, processes, writers, given.seconds))
        low, high = np.percentile(took, [50, 95]) * 1_000
        rate = len(took) / given.seconds
        table.add_row(str(processes), str(writers), f"{rate:.1f}", f"{low:.0f}", f"{high:.0f}")
    return table


if __name__ == "__main__":
    main()
