"""Several machines embed one collection: python benchmarks/embedding.py --machines 1 2 4 8.

Texts wait in one collection on PostgreSQL. Processes, each with a cache as on a machine of its own, make
their vectors with a model elsewhere: its answer to a batch takes `--answer` seconds and none of the two cores
here. Measured is the time until no text waits, and whether any was asked for twice.
"""

import argparse
import asyncio
import shutil
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from results import Result, option_parser
from tests.support.postgres_server import postgres_server

import conspectus
from conspectus import NewDocument, Settings
from conspectus.ports import Vectors
from conspectus.testing.embedders import HashedEmbedder

DIMENSIONS = 384
SETTINGS = replace(Settings(), run_background_jobs="off", log_level="critical")


class Elsewhere(HashedEmbedder):
    """A model that answers after a delay, and counts the texts of its requests."""

    def __init__(self, answer: float) -> None:
        super().__init__(DIMENSIONS)
        self._answer = answer
        self.texts = 0

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit rows."""
        self.texts += len(texts)
        ready = time.monotonic() + self._answer
        rows = await super().embed_documents(texts)
        await asyncio.sleep(ready - time.monotonic())
        return rows


@dataclass(frozen=True, slots=True)
class Measured:
    """One number of machines: seconds, and how often a text was asked for on average."""

    machines: int
    seconds: float
    calls_per_text: float


async def work(url: str, cache: str, answer: float) -> None:
    """The work of one machine: it reports that it is ready, waits for the start, and reports its requests."""
    model = Elsewhere(answer)
    async with conspectus.open(url, settings=replace(SETTINGS, cache=cache), embedder=model) as engine:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await engine.documents.wait_until_embedded()
        print(model.texts, flush=True)


async def measured(url: str, folder: Path, machines: int, texts: int, *, answer: float) -> Measured:
    """Fill the store, let so many machines embed it, and measure the time."""
    filling = conspectus.open(
        url, settings=replace(SETTINGS, cache=str(folder / "filling")), embedder=Elsewhere(0.0)
    )
    async with filling as engine:
        await engine.add(NewDocument(f"Text {number} of many.", key=str(number)) for number in range(texts))
    command = [sys.executable, __file__, "--answer", str(answer), "--work", url]
    running = [
        await asyncio.create_subprocess_exec(*command, str(folder / str(number)), stdin=PIPE, stdout=PIPE)
        for number in range(machines)
    ]
    for process in running:
        await read_line(process)
    start = time.perf_counter()
    for process in running:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
    calls = [int(await read_line(process)) for process in running]
    seconds = time.perf_counter() - start
    for process in running:
        await process.communicate()
    return Measured(machines, seconds, sum(calls) / texts)


async def read_line(running: Process) -> str:
    """The next line of a process."""
    assert running.stdout is not None
    return (await running.stdout.readline()).decode().strip()


def measure(arguments: argparse.Namespace) -> list[Measured]:
    """Every number of machines, on a database of its own."""
    folder = arguments.path / "embedding"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    measurements = []
    with postgres_server(folder) as server:
        server.run("ALTER SYSTEM SET fsync = on")
        server.run("SELECT pg_reload_conf()")
        for machines in arguments.machines:
            caches = folder / f"caches-{machines}"
            with server.fresh() as url:
                one = measured(url, caches, machines, arguments.texts, answer=arguments.answer)
                measurements.append(asyncio.run(one))
    return measurements


def result(measurements: Sequence[Measured], texts: int) -> Result:
    """Each number of machines compared with the first."""
    rows = []
    for measurement in measurements:
        rate, ratio = texts / measurement.seconds, measurements[0].seconds / measurement.seconds
        rows.append(
            [
                str(measurement.machines),
                f"{rate:,.0f}",
                f"{ratio:.2f}",
                f"{measurement.calls_per_text:.2f} times",
            ]
        )
    columns = ["machines", "texts a second", "of the first", "each text asked for"]
    return Result.of(f"{texts:,} texts that wait in one collection.", columns, rows)


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--machines", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--answer", type=float, default=1.0, help="seconds until a batch of 288 comes back")
    parser.add_argument("--path", type=Path, default=Path(".benchmarks"))
    parser.add_argument("--work", nargs=2, metavar=("URL", "CACHE"), help="be one of the machines")
    arguments = parser.parse_args()
    if arguments.work:
        url, cache = arguments.work
        asyncio.run(work(url, cache, arguments.answer))
    else:
        result(measure(arguments), arguments.texts).shown("embedding", save=arguments.save)


if __name__ == "__main__":
    main()
