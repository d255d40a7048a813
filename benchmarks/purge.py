"""Purge one document while others write: python benchmarks/purge.py --documents 1000 5000.

The store has a collection of so many documents, another of 100, and vectors of 384 numbers for both. A
document of the small collection is purged, three times, while one writer adds documents to the large one;
with `--large`, one of the large collection. Measured are the purge and the writes, without a purge and during
one: on PostgreSQL with pgvector, or in a folder with `--folder`.
"""

import asyncio
import time
from collections.abc import Awaitable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from results import Result, option_parser
from tests.support.postgres_server import PostgresProcess, postgres_server

import conspectus
from conspectus import Engine, NewDocument, Settings
from conspectus.testing.embedders import HashedEmbedder

SMALL, PURGES, ALONE_SECONDS = 100, 3, 3.0
WORDS = ["tide", "harbor", "gull", "lamp", "rope", "mast", "anchor", "storm", "pier", "crane", "buoy", "sail"]


def texts(count: int, name: str) -> list[NewDocument]:
    chosen = np.random.default_rng(1).choice(WORDS, (count, 40))
    return [NewDocument(f"{name} {number} {' '.join(row)}") for number, row in enumerate(chosen)]


async def written(engine: Engine, stop: asyncio.Event) -> list[float]:
    """Milliseconds of each write until stopped."""
    took: list[float] = []
    while not stop.is_set():
        begun = time.perf_counter()
        await engine.add(texts(1, f"new {begun}"), source="written", collection="large")
        took.append(time.perf_counter() - begun)
    return took


async def measured(
    place: str, settings: Settings, documents: int, *, from_large: bool
) -> tuple[list[float], ...]:
    """The seconds of purges, of writes without them, and of writes during them."""
    embedder = HashedEmbedder(dimensions=384)
    async with conspectus.open(place, settings=settings, embedder=embedder) as engine:
        await engine.collections.create("large")
        await engine.collections.create("small")
        for start in range(0, documents, 1_000):
            block = texts(min(1_000, documents - start), f"large {start}")
            large = await engine.add(block, source="s", collection="large", wait=True)
        small = await engine.add(texts(SMALL, "small"), source="s", collection="small", wait=True)
        purges, during = [], []
        alone = await beside(engine, asyncio.sleep(ALONE_SECONDS))
        for written_document in (large if from_large else small)[:PURGES]:
            begun = time.perf_counter()
            during += await beside(engine, engine.documents.delete(written_document.id, purge=True))
            purges.append(time.perf_counter() - begun)
        return purges, alone, during


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
    parser.add_argument("--folder", action="store_true", help="a folder in place of PostgreSQL")
    parser.add_argument("--large", action="store_true", help="purge from the large collection")
    given = parser.parse_args()
    with TemporaryDirectory(prefix="conspectus-purge-") as name:
        folder = Path(name)
        with nullcontext() if given.folder else postgres_server(folder) as server:
            rows = rows_of(given.documents, server, folder, from_large=given.large)
    columns = ["documents", "purge", "write p95", "p95 during a purge", "longest"]
    title = "The median of three purges, and writes meanwhile."
    name = f"purge{'-large' if given.large else ''}{'-folder' if given.folder else ''}"
    Result.of(title, columns, rows).shown(name, save=given.save)


def rows_of(
    sizes: list[int], server: PostgresProcess | None, folder: Path, *, from_large: bool
) -> list[list[str]]:
    """A row for each size, each in a store of its own."""
    rows = []
    for size in sizes:
        here = folder / str(size)
        settings = replace(
            Settings(), log_level="critical", cache=str(here / "cache"), lock_timeout_seconds=60
        )
        settings = replace(settings, index="segments" if server is None else "pgvector")
        with nullcontext(str(here / "store")) if server is None else server.fresh() as place:
            purges, alone, during = asyncio.run(measured(place, settings, size, from_large=from_large))
        p95s = (1e3 * np.percentile(each, 95) for each in (alone, during))
        times = [f"{time:.0f} ms" for time in (*p95s, 1e3 * max(during))]
        rows.append([f"{size:,}", f"{np.median(purges):.2f} s", *times])
    return rows


if __name__ == "__main__":
    main()
