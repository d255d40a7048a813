"""Learn the weights of `FusionProfile` from a directory of public sets, and check each set left out.

    python scripts/train_fusion.py DIRECTORY [--weight NAME=NUMBER ...]

Every folder below DIRECTORY with `corpus.jsonl`, `queries.jsonl` and `qrels.tsv` is one set, and so is every
folder with `messages.jsonl` and `questions.jsonl`. All go through the production path, so a run embeds every
text once. Sets weigh the same whatever their size, unless `--weight` says otherwise.

For every question nDCG@10 is computed once on a grid of log odds between words and vectors. The weights then
maximise the mean of those curves, smoothed along the grid, by gradient ascent with a small L2 penalty on
standardised signals: the measure itself is optimised, not a stand-in for it.

The shipped weights come from scifact (train), cranfield, hotpotqa100, cosqa, zoomcamp_faq, cookbook_code,
mtrag_un, rag_blueprint, legalbench_rag and chunking_evaluation (chunks that hold the cited span), tutorialvqa
(one document a caption), fastapi_docs (title asks for body), locomo and the four languages of xquad, each
language a folder of its own, with --weight cosqa=3 cranfield=2 chunking_evaluation=1.5 and 0.5 for each
language of xquad other than English.

`CONSPECTUS_EMBEDDER=multilingual` learns those of that model. They come from hotpotqa100, cranfield,
cookbook_code, mtrag_un, rag_blueprint, zoomcamp_faq, cosqa, locomo, the four languages of xquad, and six
folders with the questions of one of them and the paragraphs of another, with --weight cosqa=3 cranfield=2 and
0.5 for each folder of xquad other than English.
"""

import argparse
import asyncio
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from conspectus import bootstrap
from conspectus.engine import Engine
from conspectus.evals.datasets import read_conversation_set, read_retrieval_set
from conspectus.model.filter import And, Eq, Filter
from conspectus.model.query import Query
from conspectus.model.records import NewDocument
from conspectus.retrieval.fusion import DEFAULT_FUSION, FusionProfile, fuse, fusion_signals
from conspectus.text.analyzer import Analyzer

Floats = NDArray[np.float64]

DEPTH = 10
CANDIDATES = 200
QUESTIONS = 800
STEP = 0.25
GRID = np.arange(-5.0, 5.0 + STEP, STEP)
SMOOTHING = 2.0
PENALTY = 1e-3
ROUNDS = 400
RATE = 0.05
NAMES = ("words_lead", "cosine_lead", "best_cosine", "cosine_apart", "words_apart", "terms")


@dataclass(frozen=True)
class Asked:
    """A question's text, the filter it is asked under, and its relevant documents by source and key."""

    text: str
    where: Filter
    source: str
    grades: Mapping[str, float]


@dataclass(frozen=True)
class Judged:
    """The candidates of one question: raw scores, grades, the number of terms and the ideal DCG."""

    words: Floats
    cosine: Floats
    grades: Floats
    terms: int
    ideal: float

    def ndcg(self, scores: Floats) -> float:
        return discounted(self.grades[np.argsort(-scores, kind="stable")]) / self.ideal


@dataclass(frozen=True)
class Curves:
    """One set: nDCG@10 of each question along the grid, its signals, and the nDCG@10 of both arms."""

    values: Floats
    signals: Floats
    arms: tuple[float, float]


def discounted(gains: Floats) -> float:
    best = gains[:DEPTH]
    return float((best / np.log2(np.arange(2, len(best) + 2))).sum())


async def judged(folder: Path) -> list[Judged]:
    """All questions of a folder through a fresh store; those without a relevant candidate are kept."""
    documents, questions = read(folder)
    analyse = Analyzer().terms
    found = []
    with tempfile.TemporaryDirectory() as store:
        async with bootstrap.open(store) as engine:
            keys: dict[str, str] = {}
            for source, each in documents.items():
                written = await engine.add(each, source=source)
                keys |= {one.id: document.key or "" for one, document in zip(written, each, strict=True)}
            await engine.documents.wait_until_embedded()
            for question in questions[:: max(1, len(questions) // QUESTIONS)]:
                terms = len(set(analyse(question.text)))
                found.append(await candidates(engine, question, keys, terms))
    return [each for each in found if len(each.words)]


def read(folder: Path) -> tuple[Mapping[str, Sequence[NewDocument]], list[Asked]]:
    """The documents of a folder by source, and its questions."""
    if (folder / "corpus.jsonl").exists():
        given = read_retrieval_set(folder)
        return {"corpus": given.documents}, [
            Asked(query.text, query.where, "corpus", query.grades) for query in given.queries
        ]
    talks = read_conversation_set(folder)
    return talks.conversations, [
        Asked(each.text, And(()), each.conversation, dict.fromkeys(each.evidence, 1.0))
        for each in talks.questions
    ]


async def candidates(engine: Engine, asked: Asked, keys: Mapping[str, str], terms: int) -> Judged:
    """The raw scores of the question's candidates, each document's best."""
    source = await engine.collections.get_or_create_source(asked.source)
    where = And((asked.where, Eq("source", source.id)))
    hits = (await engine.retrieve(Query(asked.text, filter=where, limit=CANDIDATES))).hits
    best: dict[str, tuple[float, float]] = {}
    for hit in hits:
        words, cosine = best.get(keys[hit.document.id], (0.0, -1.0))
        scores = max(words, hit.bm25 or 0.0), max(cosine, hit.similarity or 0.0)
        best[keys[hit.document.id]] = scores
    ideal = discounted(np.sort(np.array(list(asked.grades.values())))[::-1])
    both = np.array(list(best.values())).reshape(-1, 2)
    grades = np.array([asked.grades.get(key, 0.0) for key in best])
    return Judged(both[:, 0], both[:, 1], grades, terms, ideal)


def curves(questions: Sequence[Judged]) -> Curves:
    """What every weight of words would give for every question."""
    values, rows = [], []
    for each in questions:
        fixed = (FusionProfile(*(float(odds), 0, 0, 0, 0, 0, 0)) for odds in GRID)
        scores = (fuse(each.words, each.cosine, terms=each.terms, profile=one).score for one in fixed)
        values.append([each.ndcg(one) for one in scores])
        seen = fusion_signals(each.words, each.cosine, terms=each.terms)
        rows.append([1.0, *(float(getattr(seen, name)) for name in NAMES[:-1]), math.log(max(seen.terms, 1))])
    arms = [float(np.mean([each.ndcg(arm(each)) for each in questions])) for arm in (_words, _cosine)]
    return Curves(np.array(values), np.array(rows), (arms[0], arms[1]))


def _words(each: Judged) -> Floats:
    return each.words


def _cosine(each: Judged) -> Floats:
    return each.cosine


def smoothed(values: Floats) -> Floats:
    """The curves, averaged over neighbouring points of the grid with Gaussian weights."""
    reach = np.arange(-4, 5)
    kernel = np.exp(-0.5 * (reach / SMOOTHING) ** 2)
    padded = np.pad(values, ((0, 0), (4, 4)), mode="edge")
    shifted = [weight * padded[:, at : at + len(GRID)] for at, weight in enumerate(kernel / kernel.sum())]
    result: Floats = np.sum(shifted, axis=0)
    return result


def read_off(values: Floats, odds: Floats) -> tuple[Floats, Floats]:
    """The curves at these log odds, and their slopes there."""
    place = np.clip((odds - GRID[0]) / STEP, 0.0, len(GRID) - 1.001)
    left = place.astype(np.int64)
    rows = np.arange(len(values))
    low, high = values[rows, left], values[rows, left + 1]
    inside = (odds > GRID[0]) & (odds < GRID[-1])
    return low + (high - low) * (place - left), (high - low) / STEP * inside


def learn(sets: Sequence[Curves], weights: Sequence[float]) -> Floats:
    """The intercept and the weights of the signals, by gradient ascent with Adam."""
    values, rows = (
        smoothed(np.concatenate([one.values for one in sets])),
        np.concatenate([one.signals for one in sets]),
    )
    share = np.concatenate(
        [np.full(len(one.values), w / len(one.values)) for one, w in zip(sets, weights, strict=True)]
    )
    share /= share.sum()
    mean = share @ rows
    spread = np.sqrt(share @ (rows - mean) ** 2)
    mean[0], spread[0] = 0.0, 1.0
    rows = (rows - mean) / np.maximum(spread, 1e-9)
    learnt = np.zeros(rows.shape[1])
    learnt[0] = GRID[np.argmax(share @ values)]
    first, second = np.zeros_like(learnt), np.zeros_like(learnt)
    for step in range(1, ROUNDS + 1):
        _, slopes = read_off(values, rows @ learnt)
        slope = (share * slopes) @ rows - 2 * PENALTY * np.concatenate([[0.0], learnt[1:]])
        first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope**2
        move = (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
        learnt = learnt + RATE * (1 - step / ROUNDS) * move
    raw = learnt / np.maximum(spread, 1e-9)
    raw[0] = learnt[0] - float((raw * mean)[1:].sum())
    result: Floats = raw
    return result


def family(name: str) -> str:
    """Translations of one set are left out together."""
    return name.split("_")[0] if name.startswith("xquad") else name


def report(sets: Mapping[str, Curves], weights: Mapping[str, float]) -> Iterator[str]:
    """The learnt profile, and a row for each set: both arms, all sets learnt from, this one left out."""
    learnt = learn(list(sets.values()), [weights.get(name, 1.0) for name in sets])
    yield f"learnt: {dict(zip(('intercept', *NAMES), learnt.round(2).tolist(), strict=True))}"
    yield f"shipped: {DEFAULT_FUSION}"
    yield "set, words, vectors, fused, fused with this set left out"
    for name, one in sets.items():
        others = [other for other in sets if family(other) != family(name)]
        row = [*one.arms, read_off(one.values, one.signals @ learnt)[0].mean()]
        if others:
            without = learn([sets[other] for other in others], [weights.get(each, 1.0) for each in others])
            row.append(read_off(one.values, one.signals @ without)[0].mean())
        yield ", ".join([name, *(f"{100 * value:.1f}" for value in row)])


def folders(directory: Path) -> list[Path]:
    """The folders below the directory that hold a set, by name."""
    marks = ("qrels.tsv", "questions.jsonl")
    return sorted(each for each in directory.iterdir() if any((each / mark).exists() for mark in marks))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--weight", action="append", default=[], metavar="NAME=NUMBER")
    arguments = parser.parse_args()
    weights = {name: float(number) for name, number in (each.split("=") for each in arguments.weight)}
    sets = {each.name: curves(asyncio.run(judged(each))) for each in folders(arguments.directory)}
    print(*report(sets, weights), sep="\n")


if __name__ == "__main__":
    main()
