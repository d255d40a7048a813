"""A day of captions in one stream, and the speed of ranges and queries: python benchmarks/video.py.

20,000 real captions, one every 4.32 seconds. A range is five minutes, chosen anywhere; a question is words of
a caption, with a time range of an hour. The documents' vectors are made beforehand (see `vectors.py`);
questions are embedded by the shipped model. For Milvus a Milvus Lite server is started; beside it, on the
same server, stands what a program does with Milvus alone: a search by vectors with the times in its filter.
"""

import asyncio
import json
import random
import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
from plain_milvus import PlainMilvus
from results import Result, option_parser
from tests.support.milvus_server import milvus_server
from vectors import Matrix, vectors

import conspectus
from conspectus import Engine, Settings
from conspectus.model.captions import CaptionRange, NewCaption
from conspectus.providers.onnx_embedder import OnnxEmbedder
from conspectus.text.stream_clocks import timecode

DATA = Path(__file__).resolve().parents[2] / "shared" / "eval"
SETS = ("activitynet_captions", "tutorialvqa", "youcook2")
CAPTIONS = 20_000
DAY = 86_400.0
RANGE = 300.0
HOUR = 3_600.0
QUESTIONS = 200
WARM = 10
STREAM = "day"
Ask = Callable[[Engine, random.Random], Awaitable[object]]


def texts(number: int) -> list[str]:
    """Real captions, each once; where there are too few, with the number of their repetition."""
    distinct: dict[str, None] = {}
    for name in SETS:
        for line in (DATA / name / "captions.jsonl").read_text(encoding="utf-8").split("\n"):
            if line:
                distinct.setdefault(json.loads(line)["text"])
    shuffled = list(distinct)
    random.Random(1).shuffle(shuffled)
    return [
        shuffled[n] if n < len(shuffled) else f"{shuffled[n % len(shuffled)]} ({n // len(shuffled)})"
        for n in range(number)
    ]


def captions(caption_texts: Sequence[str], matrix: Matrix) -> list[NewCaption]:
    """One after the other, all day long."""
    step = DAY / len(caption_texts)
    return [
        NewCaption(text, n * step, (n + 1) * step, index=n, vector=tuple(map(float, matrix[n])))
        for n, text in enumerate(caption_texts)
    ]


async def ask_range(engine: Engine, chance: random.Random) -> object:
    """Five minutes."""
    start = chance.uniform(0, DAY - RANGE)
    page = await engine.streams.list_captions(stream=STREAM, range=CaptionRange(start, start + RANGE))
    return page.captions[0]


def ask_question(caption_texts: Sequence[str], *, budget: int | None) -> Ask:
    """A query for a caption, within an hour that the query names."""

    async def ask(engine: Engine, chance: random.Random) -> object:
        number = chance.randrange(len(caption_texts))
        at = number * DAY / len(caption_texts)
        start = max(0.0, min(at - chance.uniform(0, HOUR), DAY - HOUR))
        words = " ".join(caption_texts[number].split()[:8])
        prompt = f"{words} between {timecode(round(start))} and {timecode(round(start + HOUR))}"
        if budget is not None:
            window = await engine.streams.window(prompt, streams=(STREAM,), max_tokens=budget)
            return window.plan["time_range"]
        return (await engine.streams.search(prompt, streams=(STREAM,))).plan["time_range"]

    return ask


async def post(engine: Engine, chance: random.Random) -> object:
    """Milliseconds from adding one caption until a query by its words finds it."""
    word = f"zanzibar{chance.randrange(10**9)}"
    at = chance.uniform(0, DAY)
    await engine.streams.add_captions(
        NewCaption(f"the word of the hour is {word}", at, at + 2), stream=STREAM
    )
    answer = await engine.streams.search(word, streams=(STREAM,), limit=1)
    return answer.moments[0]


async def timed(engine: Engine, ask: Ask, number: int) -> list[float]:
    """Milliseconds of each of many, after some that do not count."""
    chance = random.Random(2)
    took = []
    for round_number in range(number + WARM):
        start = time.perf_counter()
        await ask(engine, chance)
        if round_number >= WARM:
            took.append((time.perf_counter() - start) * 1_000)
    return took


async def measure(
    folder: Path, settings: Settings, caption_texts: Sequence[str], matrix: Matrix, questions: int
) -> dict[str, list[float]]:
    """Add a day of captions, then search."""
    async with conspectus.open(folder, settings=settings, embedder=OnnxEmbedder(threads=1)) as engine:
        start = time.perf_counter()
        await engine.streams.add_captions(captions(caption_texts, matrix), stream=STREAM, wait=True)
        await engine.streams.search("anything", streams=(STREAM,))
        seconds = time.perf_counter() - start
        await engine.maintenance.reindex()
        figures = {"taken in and found": [seconds * 1_000]}
        for name, ask in (
            ("range of 5 minutes", ask_range),
            ("question with a time range: moments", ask_question(caption_texts, budget=None)),
            ("question with a time range: window of 2,048 tokens", ask_question(caption_texts, budget=2_048)),
            ("one caption until found", post),
        ):
            figures[name] = await timed(engine, ask, questions)
    return figures


async def plain(
    uri: str, caption_texts: Sequence[str], matrix: Matrix, questions: int
) -> dict[str, list[float]]:
    """The same day by Milvus's own client."""
    chance, step = random.Random(2), DAY / len(caption_texts)
    ranges: list[float] = []
    nearest: list[float] = []
    model = OnnxEmbedder(threads=1)
    with PlainMilvus(uri, matrix.shape[1]) as milvus:
        begun = time.perf_counter()
        milvus.fill(caption_texts, matrix, step)
        milliseconds = (time.perf_counter() - begun) * 1_000
        for _ in range(questions + WARM):
            number = chance.randrange(len(caption_texts))
            start = max(0.0, min(number * step - chance.uniform(0, HOUR), DAY - HOUR))
            begun = time.perf_counter()
            milvus.between(start, start + RANGE)
            ranges.append((time.perf_counter() - begun) * 1_000)
            begun = time.perf_counter()
            vector = await model.embed_query(" ".join(caption_texts[number].split()[:8]))
            milvus.nearest(vector.tolist(), (start, start + HOUR))
            nearest.append((time.perf_counter() - begun) * 1_000)
    await model.close()
    return {
        "taken in and found": [milliseconds],
        "range of 5 minutes": ranges[WARM:],
        "question with a time range: moments": nearest[WARM:],
    }


def result(
    number: int, figures: dict[str, list[float]], beside: dict[str, list[float]] | None = None
) -> Result:
    """The median and the slow end, and how many times the peer's median ours is."""
    rows = []
    for name, took in figures.items():
        rows.append([name, *percentiles(took)])
        if beside is not None and name in beside:
            ratio = np.percentile(took, 50) / np.percentile(beside[name], 50)
            rows[-1] += [*percentiles(beside[name]), f"{ratio:.2g}"]
        elif beside is not None:
            rows[-1] += ["-"] * 3
    columns = ["", "p50", "p95", *(["plain Milvus p50", "p95", "ours / plain"] if beside else [])]
    return Result.of(f"{number:,} captions of one stream.", columns, rows)


def percentiles(took: list[float]) -> list[str]:
    """The median and the slow end."""
    return [f"{np.percentile(took, share):,.1f} ms" for share in (50, 95)]


def main() -> None:
    """Both indexes, or the one asked for."""
    parser = option_parser(__doc__)
    parser.add_argument("--index", choices=("segments", "milvus", "both"), default="both")
    parser.add_argument("--captions", type=int, default=CAPTIONS)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--folder", type=Path, default=Path(".benchmarks"))
    arguments = parser.parse_args()
    caption_texts = texts(arguments.captions)
    matrix = vectors(caption_texts, arguments.folder)
    store = arguments.folder / "video"
    for index in ("segments", "milvus") if arguments.index == "both" else (arguments.index,):
        shutil.rmtree(store, ignore_errors=True)
        settings = replace(Settings(), index=index)
        beside = None
        with milvus_server(store / "milvus") if index == "milvus" else nullcontext() as server:
            if server is not None:
                settings = replace(settings, milvus_uri=server.uri)
            ours = asyncio.run(measure(store / "data", settings, caption_texts, matrix, arguments.questions))
            if server is not None:
                beside = asyncio.run(plain(server.uri, caption_texts, matrix, arguments.questions))
        result(len(caption_texts), ours, beside).shown(f"video-{index}", save=arguments.save)


if __name__ == "__main__":
    main()
