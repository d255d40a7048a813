"""Many concurrent writers: python benchmarks/writers.py --processes 1 4 --writers 1 16 --collections 16.

Each process has so many writers, each of which adds one document after the other to one of eight sources of
its collection: on PostgreSQL, or in a folder with `--folder`. With `--commit-ms` a commit takes the server so
long, as on a disk elsewhere. Measured is how many documents all store in a second, each found by words when
it is acknowledged, how long one takes, and the processor time of one in the processes that write (of the
server, none). No vectors are made. With `--deletions`, one more process makes collections of 200 texts and
deletes them, one after the other; how long a deletion takes is measured, too.
"""

import argparse
import asyncio
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from results import Result, option_parser
from tests.support.postgres_server import PostgresProcess, postgres_server

import conspectus
from conspectus import NewDocument, Settings

SETTINGS = replace(Settings(), embedder="none", run_background_jobs="off", log_level="critical")
SOURCES = 8


async def work(address: str, cache: str, writers: range, homes: int, seconds: float) -> None:
    """The work of one process, deletions without writers: it says when it is ready, and then its times."""
    async with conspectus.open(address, settings=replace(SETTINGS, cache=cache)) as engine:
        took: list[float] = []

        async def write(writer: int, until: float) -> None:
            while (begun := time.perf_counter()) < until:
                text = f"{writer} {len(took)} tides turn in the harbour while gulls sit on the lamps"
                home = f"shared {writer % homes}"
                await engine.add([NewDocument(text)], source=f"s{writer % SOURCES}", collection=home)
                took.append(time.perf_counter() - begun)

        async def delete(until: float) -> None:
            while time.perf_counter() < until:
                name = f"gone {len(took)} {until}"
                await engine.collections.create(name)
                texts = [NewDocument(f"{number} tides turn in the harbour") for number in range(200)]
                await engine.add(texts, collection=name)
                begun = time.perf_counter()
                await engine.collections.delete(name)
                took.append(time.perf_counter() - begun)

        begin = partial(write, writers.start) if writers else delete
        await begin(time.perf_counter() + 0.2)
        took.clear()
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        until, before = time.perf_counter() + seconds, time.process_time()
        works = [write(writer, until) for writer in writers] if writers else [delete(until)]
        await asyncio.gather(*works)
        print(time.process_time() - before, *took, flush=True)


async def read_line(process: Process) -> str:
    """The next line of a process."""
    assert process.stdout is not None
    line = await process.stdout.readline()
    if not line:
        raise SystemExit("a process ended early")
    return line.decode()


async def measured(
    address: str, folder: Path, arguments: argparse.Namespace, processes: int, writers: int
) -> tuple[float, Sequence[float], Sequence[float]]:
    """The processor time of so many processes in so many seconds, the times of documents and of deletions."""
    homes: int = arguments.collections
    async with conspectus.open(address, settings=replace(SETTINGS, cache=str(folder / "founding"))) as engine:
        for home in range(homes):
            await engine.collections.create(f"shared {home}")
            for number in range(SOURCES):
                await engine.collections.get_or_create_source(f"s{number}", collection=f"shared {home}")
    command = [sys.executable, __file__, "--seconds", str(arguments.seconds), "--collections", str(homes)]
    running = []
    for number, many in enumerate([*[writers] * processes, *[0] * arguments.deletions]):
        options = ["--writers", str(many), "--work", address, str(folder / f"cache {number}"), str(number)]
        running.append(
            await asyncio.create_subprocess_exec(*command, *options, stdin=PIPE, stdout=PIPE, limit=2**26)
        )
    for process in running:
        await read_line(process)
    for process in running:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
    reports = [[float(one) for one in (await read_line(process)).split()] for process in running]
    for process in running:
        await process.communicate()
    writing, gone = reports[:processes], [one for _, *took in reports[processes:] for one in took]
    return sum(used for used, *_ in writing), [one for _, *took in writing for one in took], gone


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--writers", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--folder", action="store_true", help="a folder in place of PostgreSQL")
    parser.add_argument("--collections", type=int, default=1)
    parser.add_argument("--commit-ms", type=int, default=0)
    parser.add_argument("--deletions", action="store_true", help="a process that deletes collections")
    parser.add_argument("--work", nargs=3, metavar=("PLACE", "CACHE", "PROCESS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        address, cache, process = arguments.work
        first = int(process) * arguments.writers[0]
        writers = range(first, first + arguments.writers[0])
        asyncio.run(work(address, cache, writers, arguments.collections, arguments.seconds))
        return
    with TemporaryDirectory(prefix="conspectus-writers-") as name:
        folder = Path(name)
        with nullcontext() if arguments.folder else postgres_server(folder) as server:
            if server is not None and arguments.commit_ms:
                slow_down(server, arguments.commit_ms)
            columns = ["", "documents a second", "p50", "p95", "processor time"]
            columns += ["deletions, p50"] * arguments.deletions
            title = f"{arguments.collections} collections, {arguments.commit_ms} ms for a commit at least."
            table = Result.of(title, columns, rows_of(arguments, server, folder))
            table.shown("writers-folder" if arguments.folder else "writers", save=arguments.save)


def slow_down(server: PostgresProcess, milliseconds: int) -> None:
    """Make the server take at least so long to flush its log, for all commits at the same time."""
    for setting in ("fsync = on", "commit_siblings = 0", f"commit_delay = {1_000 * milliseconds}"):
        server.run(f"ALTER SYSTEM SET {setting}")
    server.run("SELECT pg_reload_conf()")


def rows_of(arguments: argparse.Namespace, server: PostgresProcess | None, folder: Path) -> list[list[str]]:
    """A row for each number of processes and writers, each in a store of its own."""
    rows = []
    for number, (processes, writers) in enumerate(product(arguments.processes, arguments.writers)):
        here = folder / str(number)
        with nullcontext(str(here / "store")) if server is None else server.fresh() as address:
            used, took, gone = asyncio.run(measured(address, here, arguments, processes, writers))
        low, high = np.percentile(took, [50, 95]) * 1_000
        rate, processor = len(took) / arguments.seconds, 1_000 * used / len(took)
        what = f"{processes} process{'es' * (processes > 1)}, {writers} writer{'s' * (writers > 1)} each"
        rows.append([what, f"{rate:.1f}", f"{low:.0f} ms", f"{high:.0f} ms", f"{processor:.1f} ms"])
        rows[-1] += [f"{len(gone)}, {1_000 * np.median(gone):.0f} ms"] if gone else []
    return rows


if __name__ == "__main__":
    main()
