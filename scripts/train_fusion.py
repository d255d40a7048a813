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

MAX_RANKED_DOCUMENTS = 10
MAX_CANDIDATES = 200
MAX_QUESTIONS = 800
GRID_STEP = 0.25
GRID = np.arange(-5.0, 5.0 + GRID_STEP, GRID_STEP)
SMOOTHING_STEPS = 2.0
L2_PENALTY = 1e-3
ROUNDS = 400
LEARNING_RATE = 0.05
SIGNAL_NAMES = ("words_lead", "cosine_lead", "best_cosine", "cosine_apart", "words_apart", "terms")


@dataclass(frozen=True)
class TrainingQuestion:
    """A question's text, the filter it is asked with, and its relevant documents by source and key."""

    text: str
    filter: Filter
    source: str
    grades: Mapping[str, float]


@dataclass(frozen=True)
class QuestionCandidates:
    """The candidates of one question: raw scores, grades, the number of terms and the ideal DCG."""

    words: Floats
    cosine: Floats
    grades: Floats
    terms: int
    ideal: float

    def ndcg(self, scores: Floats) -> float:
        return discount_gains(self.grades[np.argsort(-scores, kind="stable")]) / self.ideal


@dataclass(frozen=True)
class Curves:
    """One set: nDCG@10 of each question along the grid, its signals, and the nDCG@10 of both arms."""

    values: Floats
    signals: Floats
    arms: tuple[float, float]


def discount_gains(gains: Floats) -> float:
    top_gains = gains[:MAX_RANKED_DOCUMENTS]
    return float((top_gains / np.log2(np.arange(2, len(top_gains) + 2))).sum())


async def judge_questions(folder: Path) -> list[QuestionCandidates]:
    """Ask all questions of a folder in a fresh store; return those that have a candidate."""
    documents, questions = read_folder(folder)
    analyse = Analyzer().terms
    questions_with_candidates = []
    with tempfile.TemporaryDirectory() as store:
        async with bootstrap.open(store) as engine:
            keys: dict[str, str] = {}
            for source, new_documents in documents.items():
                written = await engine.add(new_documents, source=source)
                keys |= {
                    stored_document.id: new_document.key or ""
                    for stored_document, new_document in zip(written, new_documents, strict=True)
                }
            await engine.documents.wait_until_embedded()
            for question in questions[:: max(1, len(questions) // MAX_QUESTIONS)]:
                terms = len(set(analyse(question.text)))
                questions_with_candidates.append(await score_candidates(engine, question, keys, terms))
    return [question for question in questions_with_candidates if len(question.words)]


def read_folder(folder: Path) -> tuple[Mapping[str, Sequence[NewDocument]], list[TrainingQuestion]]:
    """Return the documents of a folder by source, and its questions."""
    if (folder / "corpus.jsonl").exists():
        retrieval_set = read_retrieval_set(folder)
        return {"corpus": retrieval_set.documents}, [
            TrainingQuestion(query.text, query.where, "corpus", query.grades)
            for query in retrieval_set.queries
        ]
    conversation_set = read_conversation_set(folder)
    return conversation_set.conversations, [
        TrainingQuestion(question.text, And(()), question.conversation, dict.fromkeys(question.evidence, 1.0))
        for question in conversation_set.questions
    ]


async def score_candidates(
    engine: Engine, question: TrainingQuestion, keys: Mapping[str, str], terms: int
) -> QuestionCandidates:
    """Return the raw scores of the question's candidates, the best of each document."""
    source = await engine.collections.get_or_create_source(question.source)
    source_filter = And((question.filter, Eq("source", source.id)))
    hits = (await engine.retrieve(Query(question.text, filter=source_filter, limit=MAX_CANDIDATES))).hits
    best: dict[str, tuple[float, float]] = {}
    for hit in hits:
        words, cosine = best.get(keys[hit.document.id], (0.0, -1.0))
        scores = max(words, hit.bm25 or 0.0), max(cosine, hit.similarity or 0.0)
        best[keys[hit.document.id]] = scores
    ideal = discount_gains(np.sort(np.array(list(question.grades.values())))[::-1])
    best_scores = np.array(list(best.values())).reshape(-1, 2)
    grades = np.array([question.grades.get(key, 0.0) for key in best])
    return QuestionCandidates(best_scores[:, 0], best_scores[:, 1], grades, terms, ideal)


def measure_curves(questions: Sequence[QuestionCandidates]) -> Curves:
    """Return the nDCG of every question at every weight of words."""
    values, rows = [], []
    for question in questions:
        profiles = (FusionProfile(*(float(odds), 0, 0, 0, 0, 0, 0)) for odds in GRID)
        hybrid_scores = (
            fuse(question.words, question.cosine, terms=question.terms, profile=profile).score
            for profile in profiles
        )
        values.append([question.ndcg(scores) for scores in hybrid_scores])
        signals = fusion_signals(question.words, question.cosine, terms=question.terms)
        rows.append(
            [
                1.0,
                *(float(getattr(signals, name)) for name in SIGNAL_NAMES[:-1]),
                math.log(max(signals.terms, 1)),
            ]
        )
    arms = [
        float(np.mean([question.ndcg(arm(question)) for question in questions])) for arm in (_words, _cosine)
    ]
    return Curves(np.array(values), np.array(rows), (arms[0], arms[1]))


def _words(question: QuestionCandidates) -> Floats:
    return question.words


def _cosine(question: QuestionCandidates) -> Floats:
    return question.cosine


def smooth_curves(values: Floats) -> Floats:
    """Return the curves, averaged over neighbouring points of the grid with Gaussian weights."""
    offsets = np.arange(-4, 5)
    kernel = np.exp(-0.5 * (offsets / SMOOTHING_STEPS) ** 2)
    padded = np.pad(values, ((0, 0), (4, 4)), mode="edge")
    shifted = [
        weight * padded[:, start : start + len(GRID)] for start, weight in enumerate(kernel / kernel.sum())
    ]
    averages: Floats = np.sum(shifted, axis=0)
    return averages


def interpolate_curves(values: Floats, odds: Floats) -> tuple[Floats, Floats]:
    """Return the curves at these log odds, and their slopes there."""
    position = np.clip((odds - GRID[0]) / GRID_STEP, 0.0, len(GRID) - 1.001)
    left = position.astype(np.int64)
    rows = np.arange(len(values))
    lower, upper = values[rows, left], values[rows, left + 1]
    inside = (odds > GRID[0]) & (odds < GRID[-1])
    return lower + (upper - lower) * (position - left), (upper - lower) / GRID_STEP * inside


def learn_weights(sets: Sequence[Curves], weights: Sequence[float]) -> Floats:
    """Return the intercept and the weights of the signals, by gradient ascent with Adam."""
    values, rows = (
        smooth_curves(np.concatenate([set_curves.values for set_curves in sets])),
        np.concatenate([set_curves.signals for set_curves in sets]),
    )
    shares = np.concatenate(
        [
            np.full(len(set_curves.values), weight / len(set_curves.values))
            for set_curves, weight in zip(sets, weights, strict=True)
        ]
    )
    shares /= shares.sum()
    mean = shares @ rows
    spread = np.sqrt(shares @ (rows - mean) ** 2)
    mean[0], spread[0] = 0.0, 1.0
    rows = (rows - mean) / np.maximum(spread, 1e-9)
    learned = np.zeros(rows.shape[1])
    learned[0] = GRID[np.argmax(shares @ values)]
    first_moment, second_moment = np.zeros_like(learned), np.zeros_like(learned)
    for step in range(1, ROUNDS + 1):
        _, slopes = interpolate_curves(values, rows @ learned)
        slope = (shares * slopes) @ rows - 2 * L2_PENALTY * np.concatenate([[0.0], learned[1:]])
        first_moment, second_moment = 0.9 * first_moment + 0.1 * slope, 0.99 * second_moment + 0.01 * slope**2
        update = (first_moment / (1 - 0.9**step)) / (np.sqrt(second_moment / (1 - 0.99**step)) + 1e-8)
        learned = learned + LEARNING_RATE * (1 - step / ROUNDS) * update
    unscaled = learned / np.maximum(spread, 1e-9)
    unscaled[0] = learned[0] - float((unscaled * mean)[1:].sum())
    profile: Floats = unscaled
    return profile


def family(name: str) -> str:
    """Return what translations of one set share; they are left out together."""
    return name.split("_")[0] if name.startswith("xquad") else name


def report(sets: Mapping[str, Curves], weights: Mapping[str, float]) -> Iterator[str]:
    """Yield the profile and a row for each set: both arms, all sets learned from, this one left out."""
    learned = learn_weights(list(sets.values()), [weights.get(name, 1.0) for name in sets])
    yield f"learnt: {dict(zip(('intercept', *SIGNAL_NAMES), learned.round(2).tolist(), strict=True))}"
    yield f"shipped: {DEFAULT_FUSION}"
    yield "set, words, vectors, fused, fused with this set left out"
    for name, set_curves in sets.items():
        others = [other for other in sets if family(other) != family(name)]
        row = [
            *set_curves.arms,
            interpolate_curves(set_curves.values, set_curves.signals @ learned)[0].mean(),
        ]
        if others:
            without = learn_weights(
                [sets[other] for other in others], [weights.get(other, 1.0) for other in others]
            )
            row.append(interpolate_curves(set_curves.values, set_curves.signals @ without)[0].mean())
        yield ", ".join([name, *(f"{100 * ndcg:.1f}" for ndcg in row)])


def list_sets(directory: Path) -> list[Path]:
    """Return the folders below the directory that hold a set, by name."""
    file_names = ("qrels.tsv", "questions.jsonl")
    return sorted(
        folder
        for folder in directory.iterdir()
        if any((folder / file_name).exists() for file_name in file_names)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--weight", action="append", default=[], metavar="NAME=NUMBER")
    arguments = parser.parse_args()
    weights = {name: float(number) for name, number in (option.split("=") for option in arguments.weight)}
    sets = {
        folder.name: measure_curves(asyncio.run(judge_questions(folder)))
        for folder in list_sets(arguments.directory)
    }
    print(*report(sets, weights), sep="\n")


if __name__ == "__main__":
    main()
