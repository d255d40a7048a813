"""Purge one document while others write: python benchmarks/purge.py --documents 1000 5000.

The store has a collection of so many documents, another of 100, and vectors of 384 numbers for both. A
document of the small collection is purged, three times, while one writer adds documents to the large one;
with `--large`, one of the large collection. Measured are the purge and the writes, without a purge and during
one: on PostgreSQL with pgvector, in a folder with `--folder`, or in a folder with its index in a server of
Milvus Lite with `--milvus`. With `--build`, the index of the large collection is built again meanwhile.
"""

import asyncio
import time
from argparse import Namespace
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import ExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from results import Result, option_parser
from tests.support.milvus_server import milvus_server
from tests.support.postgres_server import PostgresProcess, postgres_server
from tests.waiting import until

import conspectus
from conspectus import Engine, NewDocument, Settings
from conspectus.testing.embedders import HashedEmbedder

SMALL, PURGES, ALONE_SECONDS = 100, 3, 3.0
BUILD_SECONDS, LONGEST_SECONDS = 4.0, 3_600.0
WORDS = ["tide", "harbor", "gull", "lamp", "rope", "mast", "anchor", "storm", "pier", "crane", "buoy", "sail"]


def texts(count: int, name: str) -> list[NewDocument]:
    word_rows = np.random.default_rng(1).choice(WORDS, (count, 40))
    return [NewDocument(f"{name} {number} {' '.join(row)}") for number, row in enumerate(word_rows)]


async def written(engine: Engine, stop: asyncio.Event) -> list[float]:
    """Milliseconds of each write until stopped."""
    took: list[float] = []
    while not stop.is_set():
        begun = time.perf_counter()
        await engine.add(texts(1, f"new {begun}"), source="written", collection="large")
        took.append(time.perf_counter() - begun)
    return took


@dataclass(frozen=True, slots=True)
class Place:
    """Where a store is, and which document is purged beside what."""

    address: str
    settings: Settings
    from_large: bool
    is_building: bool


@dataclass(slots=True)
class Times:
    """Seconds of purges, until the caller is answered and until all is erased, and of writes."""

    answers: list[float] = field(default_factory=list)
    erasures: list[float] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)
    during: list[float] = field(default_factory=list)


async def measure(purged_store: Place, documents: int) -> Times:
    """Fill a store, and purge documents beside a writer."""
    embedder = HashedEmbedder(dimensions=384)
    times = Times()
    async with conspectus.open(
        purged_store.address, settings=purged_store.settings, embedder=embedder
    ) as engine:
        await engine.collections.create("large")
        await engine.collections.create("small")
        for start in range(0, documents, 1_000):
            block = texts(min(1_000, documents - start), f"large {start}")
            large = await engine.add(block, source="s", collection="large", wait=True)
        small = await engine.add(texts(SMALL, "small"), source="s", collection="small", wait=True)
        times.alone = await beside(engine, asyncio.sleep(ALONE_SECONDS))
        for document in (large if purged_store.from_large else small)[:PURGES]:
            async with building(engine, is_building=purged_store.is_building):
                times.during += await beside(engine, purge(engine, document.id, times))
    return times


@asynccontextmanager
async def building(engine: Engine, *, is_building: bool) -> AsyncIterator[None]:
    """A block beside which the index of the large collection is built, once that has begun."""
    if not is_building:
        yield
        return
    build = asyncio.create_task(engine.maintenance.reindex(collection="large"))
    await asyncio.sleep(BUILD_SECONDS)
    print("building" if not build.done() else "built before the purge", flush=True)
    yield
    await build


async def purge(engine: Engine, document: str, times: Times) -> None:
    """Purge a document, and wait until it is erased."""
    begun = time.perf_counter()
    receipt = await engine.documents.delete(document, purge=True)
    times.answers.append(time.perf_counter() - begun)

    async def is_erased() -> bool:
        return not await engine._context.core.records.list_unfinished_purges()

    if not receipt.purged:
        await until(is_erased, seconds=LONGEST_SECONDS)
    times.erasures.append(time.perf_counter() - begun)
    print(f"answered {times.answers[-1]:.1f} s, erased {times.erasures[-1]:.1f} s", flush=True)


async def beside(engine: Engine, work: Awaitable[object]) -> list[float]:
    """How long writes took while something else was done."""
    stop = asyncio.Event()
    writer = asyncio.create_task(written(engine, stop))
    await work
    stop.set()
    return await writer


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--documents", type=int, nargs="+", default=[1_000, 5_000])
    stores = parser.add_mutually_exclusive_group()
    stores.add_argument("--folder", action="store_true", help="a folder in place of PostgreSQL")
    stores.add_argument("--milvus", action="store_true", help="a folder with its index in Milvus")
    parser.add_argument("--large", action="store_true", help="purge from the large collection")
    parser.add_argument("--build", action="store_true", help="while an index with its graph is built")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="conspectus-purge-") as folder, ExitStack() as stack:
        rows = [
            row_of(size, asyncio.run(measure(purged_store, size)))
            for size, purged_store in places(options, Path(folder), stack)
        ]
    columns = ["documents", "answer", "purge", "write p95", "p95 during a purge", "longest"]
    title = "The median of three purges, until the answer and until all is erased, and writes meanwhile."
    parts = {"large": options.large, "folder": options.folder, "milvus": options.milvus}
    parts |= {"build": options.build}
    name = "-".join(["purge", *(part for part, is_on in parts.items() if is_on)])
    Result.of(title, columns, rows).shown(name, save=options.save)


def places(options: Namespace, folder: Path, stack: ExitStack) -> Iterator[tuple[int, Place]]:
    """Yield a new place for each size, with one server for all."""
    settings = replace(Settings(), log_level="critical", lock_timeout_seconds=60)
    server: PostgresProcess | None = None
    if options.milvus:
        address = stack.enter_context(milvus_server(folder / "milvus")).uri
        settings = replace(settings, index="milvus", milvus_uri=address)
    elif not options.folder:
        server = stack.enter_context(postgres_server(folder))
        settings = replace(settings, index="pgvector")
    for size in options.documents:
        of_size = replace(settings, cache=str(folder / f"cache{size}"), milvus_prefix=f"size{size}")
        with nullcontext(str(folder / f"{size}")) if server is None else server.fresh() as address:
            yield size, Place(address, of_size, options.large, options.build)


def row_of(size: int, times: Times) -> list[str]:
    """The row of a store with so many documents."""
    p95s = [1e3 * np.percentile(seconds, 95) for seconds in (times.alone, times.during)]
    milliseconds = [*p95s, 1e3 * max(times.during)]
    answered, erased = np.median(times.answers), np.median(times.erasures)
    return [
        f"{size:,}",
        f"{answered:.2f} s",
        f"{erased:.2f} s",
        *(f"{figure:.0f} ms" for figure in milliseconds),
    ]


if __name__ == "__main__":
    main()
