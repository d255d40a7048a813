"""Comparison of the stores: python benchmarks/stores.py --store pgvector --chunks 10000.

Speed of ingestion and of windows, recall of vector search with filters, and size on disk. Each pair of a
store and a size is measured once and saved in the result (`--again` measures anew), from which the table and
docs/figures/stores.svg are made.
"""

import argparse
import asyncio
import shutil
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
import psycopg
from corpus import paragraphs, questions
from latency import Given, timed
from results import Result
from tests.support.milvus_server import milvus_server
from tests.support.postgres_server import postgres_server
from vectors import vectors

import conspectus
from conspectus import Engine, NewDocument, Query, Settings
from conspectus.model.filter import EVERYTHING, Eq, Filter
from conspectus.ports import Vectors

STORES = {
    "embedded": ("sqlite", "segments"),
    "pgvector": ("postgresql", "pgvector"),
    "milvus": ("sqlite", "milvus"),
    "postgresql-milvus": ("postgresql", "milvus"),
}
SIZES = dict.fromkeys(STORES, (10000, 100000))
SHARES: Mapping[str, Filter] = {
    "100": EVERYTHING,
    "10": Eq(("tenth",), 0),
    "1": Eq(("hundredth",), 0),
    "0.1": Eq(("thousandth",), 0),
}
"""Filters by the per cent of chunks that they admit."""
STEPS = {"100": 1, "10": 10, "1": 100, "0.1": 1_000}
QUESTIONS, WARM, JUDGED = 200, 20, 50
BEST = 10
SLOW = 10.0
REST = 6.0
"""Seconds after which an index takes it that no more is written."""
POLL = 5.0


@dataclass(slots=True)
class Cell:
    """The measurements of one store at one size: seconds, milliseconds, shares, bytes."""

    store: str
    chunks: int
    words_seconds: float = 0.0
    vectors_seconds: float = 0.0
    p50: float = 0.0
    p95: float = 0.0
    recall: dict[str, float] = field(default_factory=dict)
    filtered_p50: dict[str, float] = field(default_factory=dict)
    disk: int = 0

    @property
    def with_vectors(self) -> float:
        """Seconds until everything is found by both."""
        return self.words_seconds + self.vectors_seconds


@dataclass(frozen=True, slots=True)
class Place:
    """The location and options of a store."""

    path: str
    settings: Settings
    folder: Path

    @asynccontextmanager
    async def opened(self, embedder: Given) -> AsyncIterator[Engine]:
        """The store, with an embedder that costs nothing for documents."""
        async with conspectus.open(self.path, settings=self.settings, embedder=embedder) as engine:
            yield engine


def placed(stack: ExitStack, store: str, folder: Path) -> Place:
    """A new store with the servers that it needs, all below one folder."""
    records, index = STORES[store]
    settings = replace(
        Settings(), index=index, cache=str(folder / "cache"), log_level="critical", entity_extractor="rules"
    )
    settings = replace(settings, milvus_timeout_seconds=600)
    path = str(folder / "data")
    if index == "milvus":
        settings = replace(settings, milvus_uri=stack.enter_context(milvus_server(folder / "milvus")).uri)
    if records == "postgresql":
        server = stack.enter_context(postgres_server(folder))
        # The server of the tests does not wait for the disk; a production server does.
        for name in ("fsync", "synchronous_commit", "full_page_writes"):
            server.run(f"ALTER SYSTEM SET {name} = on")
        server.run("ALTER SYSTEM SET max_wal_size = '4GB'")
        server.run("ALTER SYSTEM SET maintenance_work_mem = '3GB'")
        server.run("SELECT pg_reload_conf()")
        path = stack.enter_context(server.fresh())
    return Place(path, settings, folder)


async def fill(
    store_place: Place, cell: Cell, texts: Sequence[str], vectors_by_text: Mapping[str, Vectors]
) -> None:
    """Take the texts in, while vectors come in behind them, and wait for the rest of these."""
    documents = (
        NewDocument(
            text=text,
            key=str(number),
            metadata={"tenth": number % 10, "hundredth": number % 100, "thousandth": number % 1_000},
        )
        for number, text in enumerate(texts)
    )
    async with store_place.opened(Given(vectors_by_text)) as engine:
        start = time.perf_counter()
        await engine.add(documents)
        await engine.retrieve(texts[-1][:200], retrievers=("keyword",), limit=1)
        cell.words_seconds = time.perf_counter() - start
        start = time.perf_counter()
        await engine.documents.wait_until_embedded()
        await engine.retrieve(texts[-1][:200], limit=1)
        cell.vectors_seconds = await built(engine) - start


async def built(engine: Engine) -> float:
    """The moment from which on the index builds nothing more behind those who ask."""
    moment = time.perf_counter()
    await asyncio.sleep(REST)
    await engine.retrieve("anything", limit=1)
    while await builds(engine):
        await asyncio.sleep(POLL)
        moment = time.perf_counter()
    return moment


async def builds(engine: Engine) -> bool:
    """Whether the index reports that it does."""
    (collection,) = (await engine.maintenance.status()).collections
    return "building" in collection.index.details


async def ask(store_place: Place, cell: Cell, texts: Sequence[str], matrix: Vectors) -> None:
    """Ask for windows, and for the nearest vectors under filters."""
    embedder = Given({})
    queries = [
        Query(text, vector=tuple(map(float, await embedder.embed_query(text))))
        for text in questions(texts, QUESTIONS + WARM)
    ]
    async with store_place.opened(embedder) as engine:
        for query in queries[-WARM:]:
            await engine.window(query, 2_048)
        times = []
        for query in queries[:QUESTIONS]:
            times.append(await timed(engine, query))
            if sum(times) > 1_000 * 60 * SLOW:
                break
        cell.p50, cell.p95 = (float(np.percentile(times, share)) for share in (50, 95))
        for share, where in SHARES.items():
            await judge(engine, cell, share, where, queries=queries[:JUDGED], matrix=matrix)


async def judge(
    engine: Engine, cell: Cell, share: str, where: Filter, *, queries: Sequence[Query], matrix: Vectors
) -> None:
    """How many of the nearest vectors under a filter are found."""
    rows = np.arange(0, len(matrix), STEPS[share])
    hit_count, times = 0, []
    best = min(BEST, len(rows))
    for query in queries:
        near = rows[np.argsort(-(matrix[rows] @ np.array(query.vector, np.float32)), kind="stable")[:best]]
        start = time.perf_counter()
        hits = (await engine.retrieve(replace(query, filter=where, retrievers=("vector",), limit=best))).hits
        times.append((time.perf_counter() - start) * 1_000)
        hit_count += len({int(hit.document.key) for hit in hits} & set(near.tolist()))
    cell.recall[share] = hit_count / (best * len(queries))
    cell.filtered_p50[share] = float(np.percentile(times, 50))


def on_disk(store_place: Place) -> int:
    """The bytes of all data of the store: its folder, its database, and its data in Milvus."""
    folders = [store_place.folder / name for name in ("data", "milvus", "cache")]
    files = sum(path.stat().st_size for folder in folders for path in folder.rglob("*") if path.is_file())
    if not store_place.path.startswith("postgresql"):
        return files
    with psycopg.connect(store_place.path) as connection:
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    return files + (row[0] if row else 0)


def measured(store: str, chunks: int, folder: Path) -> Cell:
    """One cell, in an empty folder that is removed afterwards."""
    texts = paragraphs(chunks)
    matrix = vectors(texts, folder)
    cell, here = Cell(store, chunks), folder / "stores" / f"{store}-{chunks}"
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir(parents=True)
    with ExitStack() as stack:
        store_place = placed(stack, store, here)
        asyncio.run(fill(store_place, cell, texts, dict(zip(texts, matrix, strict=True))))
        asyncio.run(ask(store_place, cell, texts, matrix))
        cell.disk = on_disk(store_place)
    shutil.rmtree(here, ignore_errors=True)
    return cell


def saved() -> list[Cell]:
    """All cells that were ever measured."""
    result = Result.read("stores")
    return [Cell(**cell) for cell in result.figures] if result else []


def save(cells: Sequence[Cell]) -> None:
    """Write the table of the documentation."""
    names = ["store", "chunks", "by words, a second", "with vectors", "window p50", "p95", "bytes a chunk"]
    names += [f"recall@10 of {share} %" for share in SHARES]
    rows = []
    for cell in cells:
        row = [cell.store, f"{cell.chunks:,}", f"{cell.chunks / cell.words_seconds:,.0f}"]
        row += [f"{cell.chunks / cell.with_vectors:,.0f}", f"{cell.p50:.1f} ms", f"{cell.p95:.1f} ms"]
        row += [f"{cell.disk / cell.chunks:,.0f}"]
        row += [f"{cell.recall[share]:.3f} in {cell.filtered_p50[share]:.1f} ms" for share in SHARES]
        rows.append(row)
    figures = [asdict(cell) for cell in cells]
    Result.of("Windows of 2,048 tokens.", names, rows, figures=figures).save("stores")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", choices=list(STORES), help="only this one")
    parser.add_argument("--chunks", type=int, help="only this size")
    parser.add_argument("--path", type=Path, default=Path(".benchmarks"))
    parser.add_argument("--again", action="store_true", help="measure what is kept anew")
    arguments = parser.parse_args()
    selected = [
        (store, chunks)
        for chunks in ([arguments.chunks] if arguments.chunks else sorted({*sum(SIZES.values(), ())}))
        for store in ([arguments.store] if arguments.store else STORES)
    ]
    cells = {(cell.store, cell.chunks): cell for cell in saved()}
    for store, chunks in selected:
        if arguments.again or (store, chunks) not in cells:
            cells[store, chunks] = measured(store, chunks, arguments.path)
            print(f"{store}, {chunks:,} chunks: done", file=sys.stderr)
            order = list(STORES)
            save(sorted(cells.values(), key=lambda cell: (order.index(cell.store), cell.chunks)))


if __name__ == "__main__":
    main()
