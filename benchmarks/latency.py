"""How fast a window is, how fast a store opens and how much memory it takes: python benchmarks/latency.py.

Real paragraphs, exact budgets, the whole production path from question to rendered window. The documents'
vectors are made beforehand (see `vectors.py`); questions are embedded by the shipped model.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from corpus import paragraphs, questions
from results import Result, option_parser
from vectors import vectors

import conspectus
from conspectus import Engine, NewDocument, Query, Settings
from conspectus.model.records import EmbeddingSpace
from conspectus.ports import Vectors
from conspectus.providers.onnx_embedder import OnnxEmbedder

QUESTIONS = 300
WARM = 50
BUDGET = 2_048
ROWS: Sequence[tuple[str, Callable[[int, dict[str, dict[str, float]]], float], str, str]] = (
    ("window, vector given, p50", lambda _, steps: steps["ask"]["given p50"], ".1f", " ms"),
    ("window, vector given, p95", lambda _, steps: steps["ask"]["given p95"], ".1f", " ms"),
    ("window, query embedded, p50", lambda _, steps: steps["ask"]["embedded p50"], ".1f", " ms"),
    ("window, query embedded, p95", lambda _, steps: steps["ask"]["embedded p95"], ".1f", " ms"),
    ("opening, first answer included", lambda _, steps: steps["ask"]["open"], ",.0f", " ms"),
    ("resident memory", lambda _, steps: steps["ask"]["memory"], ",.0f", " MB"),
    ("written, chunks a second", lambda size, steps: size / steps["fill"]["write"], ",.0f", ""),
    ("index built anew", lambda _, steps: steps["fill"]["index built anew"], ".1f", " s"),
)


class Given:
    """Hands out vectors made beforehand for documents; other texts are embedded by the shipped model."""

    def __init__(self, vectors: Mapping[str, Vectors]) -> None:
        self._known = vectors
        self._model = OnnxEmbedder(threads=1)

    @property
    def space(self) -> EmbeddingSpace:
        return self._model.space

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if all(text in self._known for text in texts):
            return np.stack([self._known[text] for text in texts])
        return await self._model.embed_documents(texts)

    async def embed_query(self, text: str) -> Vectors:
        return await self._model.embed_query(text)

    async def close(self) -> None:
        await self._model.close()


@asynccontextmanager
async def opened(path: Path, embedder: Given) -> AsyncIterator[Engine]:
    """The store, with an embedder that costs nothing for documents."""
    async with conspectus.open(
        path, settings=replace(Settings(), path=str(path)), embedder=embedder
    ) as engine:
        yield engine


async def fill(path: Path, texts: Sequence[str], vectors_by_text: Mapping[str, Vectors]) -> dict[str, float]:
    """Write texts with vectors, and rebuild the index; seconds of each step."""
    embedder = Given(vectors_by_text)
    took: dict[str, float] = {}
    start = time.perf_counter()

    def lap(step: str) -> None:
        nonlocal start
        took[step] = time.perf_counter() - start
        start = time.perf_counter()

    async with opened(path, embedder) as engine:
        lap("open empty")
        await engine.add(NewDocument(text=text, key=str(position)) for position, text in enumerate(texts))
        lap("write")
        await engine.retrieve(texts[-1][:200], retrievers=("keyword",), limit=1)
        lap("first question by words")
        await engine.documents.wait_until_embedded()
        lap("vectors")
        await engine.retrieve(texts[-1][:200], limit=1)
        lap("first question by both")
        await engine.maintenance.reindex()
        lap("index built anew")
    return took


async def ask(path: Path) -> dict[str, float]:
    """Open in a fresh process and ask; milliseconds, megabytes."""
    result: dict[str, float] = {}
    embedder = Given({})
    start = time.perf_counter()
    async with opened(path, embedder) as engine:
        await engine.retrieve("opening", retrievers=("keyword",), limit=1)
        result["open"] = (time.perf_counter() - start) * 1_000
        queries = questions(await sample(engine), QUESTIONS + WARM)
        query_vectors = [tuple(map(float, await embedder.embed_query(text))) for text in queries]
        for text in queries[-WARM:]:
            await engine.window(text, BUDGET)
        vector_times = [
            await timed(engine, Query(text, vector=vector))
            for text, vector in zip(queries[:QUESTIONS], query_vectors, strict=False)
        ]
        text_times = [await timed(engine, Query(text)) for text in queries[:QUESTIONS]]
        result["memory"] = resident_megabytes()
    for name, times in (("given", vector_times), ("embedded", text_times)):
        for share in (50, 95, 99):
            result[f"{name} p{share}"] = float(np.percentile(times, share))
    return result


def resident_megabytes() -> float:
    """Memory of this process that is its own or mapped in, as the system counts it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


async def sample(engine: Engine) -> list[str]:
    """Texts of some stored documents, as a source of queries."""
    page = await engine.documents.list(limit=1_000)
    return [await engine.documents.get_text(document.id) for document in page.documents]


async def timed(engine: Engine, query: Query) -> float:
    """Milliseconds of one window."""
    start = time.perf_counter()
    window = await engine.window(query, BUDGET)
    took = (time.perf_counter() - start) * 1_000
    assert 0 < window.tokens <= BUDGET
    return took


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--path", type=Path, default=Path(".benchmarks"))
    parser.add_argument("--step", choices=["fill", "ask"], help="one step, in this process, as JSON")
    arguments = parser.parse_args()
    path = arguments.path / f"latency-{arguments.chunks}"
    if arguments.step == "fill":
        texts = paragraphs(arguments.chunks)
        vectors_by_text = dict(zip(texts, vectors(texts, arguments.path), strict=True))
        print(json.dumps(asyncio.run(fill(path, texts, vectors_by_text))))
        return
    if arguments.step == "ask":
        print(json.dumps(asyncio.run(ask(path))))
        return
    figures = {}
    for step in ("fill", "ask"):
        if step == "fill":
            shutil.rmtree(path, ignore_errors=True)
        command = [sys.executable, __file__, "--chunks", str(arguments.chunks), "--path", str(arguments.path)]
        done = subprocess.run([*command, "--step", step], check=True, stdout=subprocess.PIPE, env=os.environ)
        figures[step] = json.loads(done.stdout)
    result(arguments.chunks, figures).shown("latency", save=arguments.save)


def result(chunks: int, figures: dict[str, dict[str, float]]) -> Result:
    """The figures beside those of other sizes that were saved."""
    saved = Result.read("latency")
    sizes = {int(size): steps for size, steps in (saved.figures if saved else {}).items()}
    sizes = dict(sorted({**sizes, chunks: figures}.items()))
    names = [f"{size:,} chunks" for size in sizes]
    rows = [
        [name, *(f"{form(size, steps):{spec}}{unit}" for size, steps in sizes.items())]
        for name, form, spec, unit in ROWS
    ]
    title = f"Windows of {BUDGET:,} tokens; {QUESTIONS} queries after {WARM} that warm the caches."
    return Result.of(title, ["", *names], rows, figures=sizes)


if __name__ == "__main__":
    main()
