"""Speed of ingestion, and its effect on queries: python benchmarks/ingest.py.

Texts searchable by words (writing, and the first answer that must know them all), with and without the
shipped model embedding them at the same time; texts with vectors beside the speed of the embedder alone; and
questions asked without a pause while the index is built anew, and behind a writer of many texts, each timed.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from corpus import paragraphs, questions
from results import Result, option_parser

import conspectus
from conspectus import Engine, NewDocument, Settings
from conspectus.providers.onnx_embedder import OnnxEmbedder

WORDS = replace(Settings(), embedder="none")


@asynccontextmanager
async def fresh(settings: Settings) -> AsyncIterator[Engine]:
    """A new store, gone at the end of the block."""
    with tempfile.TemporaryDirectory() as folder:
        async with conspectus.open(Path(folder), settings=settings) as engine:
            await engine.collections.get_or_create()
            yield engine


async def searchable_by_words(texts: list[str], settings: Settings) -> float:
    """Chunks per second from the first write to an answer that knows the last one."""
    async with fresh(settings) as engine:
        start = time.perf_counter()
        await engine.add(NewDocument(text=text, key=str(position)) for position, text in enumerate(texts))
        assert (await engine.retrieve(texts[-1][:200], retrievers=("keyword",), limit=1)).outcome == "found"
        return len(texts) / (time.perf_counter() - start)


async def with_vectors(texts: list[str], rounds: int = 4) -> tuple[float, float]:
    """Chunks per second through the engine, and texts per second of the embedder alone, in turn."""
    model, alone, engine_took = OnnxEmbedder(), 0.0, 0.0
    await model.embed_documents(texts[:100])
    async with fresh(Settings()) as engine:
        await engine.add("warm", wait=True)
        for round in range(rounds):
            part = texts[round::rounds]
            start = time.perf_counter()
            for first in range(0, len(part), 256):
                await model.embed_documents(part[first : first + 256])
            between = time.perf_counter()
            await engine.add(part, wait=True)
            alone += between - start
            engine_took += time.perf_counter() - between
    await model.close()
    return len(texts) / engine_took, len(texts) / alone


async def while_building(texts: list[str]) -> tuple[list[float], list[float]]:
    """Milliseconds of each query before and during a rebuild of the whole index."""
    queries = questions(texts, 200)
    async with fresh(WORDS) as engine:
        await engine.add(NewDocument(text=text, key=str(position)) for position, text in enumerate(texts))
        await engine.retrieve(queries[0])
        before = [await _timed(engine, text) for text in queries]
        builder = asyncio.create_task(engine.maintenance.reindex())
        during: list[float] = []
        while not builder.done():
            during.append(await _timed(engine, queries[len(during) % len(queries)]))
        await builder
    return before, during


async def while_writing(texts: list[str]) -> list[float]:
    """Milliseconds of each query, sent without a pause behind a bulk writer in the same process."""
    queries = questions(texts, 200)
    async with fresh(WORDS) as engine:
        news = (NewDocument(text=text, key=str(position)) for position, text in enumerate(texts))
        writer = asyncio.create_task(engine.add(news))
        during: list[float] = []
        while not writer.done():
            during.append(await _timed(engine, queries[len(during) % len(queries)]))
        await writer
    return during


async def _timed(engine: Engine, text: str) -> float:
    start = time.perf_counter()
    await engine.retrieve(text)
    return (time.perf_counter() - start) * 1_000


def rates(texts: list[str], embedded: int) -> Iterator[list[str]]:
    """A row for each way to take texts in."""
    yield ["found by keywords", f"{asyncio.run(searchable_by_words(texts, WORDS)):,.0f}"]
    beside = asyncio.run(searchable_by_words(texts[: 5 * embedded], Settings()))
    yield ["found by keywords, while the included model embeds", f"{beside:,.0f}"]
    engine, alone = asyncio.run(with_vectors(texts[:embedded]))
    yield ["with vectors", f"{engine:,.0f} ({100 * engine / alone:.0f} % of the embedder)"]
    yield ["the embedder alone", f"{alone:,.0f}"]


def waits(texts: list[str]) -> Iterator[list[str]]:
    """A row for the queries of each time."""
    before, during = asyncio.run(while_building(texts))
    yield _wait("while nothing else happens", before)
    yield _wait("while the index is built anew", during)
    yield _wait("behind a bulk writer", asyncio.run(while_writing(texts)))


def _wait(when: str, times: list[float]) -> list[str]:
    figures = [f"{float(np.percentile(times, share)):.1f} ms" for share in (50, 95, 100)]
    return [f"a query {when} ({len(times):,})", "-", *figures]


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--chunks", type=int, default=50_000)
    parser.add_argument("--embedded", type=int, default=3_000)
    arguments = parser.parse_args()
    texts = paragraphs(arguments.chunks)
    rows = [[*row, "-", "-", "-"] for row in rates(texts, arguments.embedded)]
    rows += waits(texts)
    title = f"{arguments.chunks:,} paragraphs of about 260 characters, {arguments.embedded:,} with vectors."
    columns = ["", "chunks a second", "p50", "p95", "longest"]
    Result.of(title, columns, rows).shown("ingest", save=arguments.save)


if __name__ == "__main__":
    main()
