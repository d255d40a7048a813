"""Learn the weights of `retrieval/confidence.py` from public sets, and check each set left out.

    python scripts/train_confidence.py DIRECTORY [--stores DIRECTORY] [--questions NUMBER]

Every folder below DIRECTORY with `corpus.jsonl`, `queries.jsonl` and `qrels.tsv` is one set, and so is every
folder with `messages.jsonl` and `questions.jsonl`. Every question is asked twice, once under a filter that
removes all its relevant documents. The label is whether one of them is among the ten hits. The weights are
those of a logistic regression on standardised signals with a small L2 penalty; sets weigh the same whatever
their size. For each set the report shows the area under the ROC curve, and the share of questions without
an answer that are answered where 95 % of the others are: of the best cosine alone, and of a model that is
learnt from the other sets. `--stores` keeps the stores for another run.

The shipped weights come from hotpotqa100, scifact (train), cosqa, cranfield, zoomcamp_faq, locomo, beam_100k,
cookbook_code, rag_blueprint, mtrag_un, and English and German xquad, with --questions 400.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from conspectus import bootstrap
from conspectus.engine import Engine
from conspectus.evals.conversation_queries import QueryBuilder
from conspectus.evals.conversation_sets import read_conversations
from conspectus.evals.datasets import read_retrieval_set
from conspectus.evals.stores import store_documents
from conspectus.model.filter import And, In, Not
from conspectus.model.query import Query
from conspectus.model.records import NewDocument

Floats = NDArray[np.float64]
Asked = Sequence[tuple[Query, frozenset[str]]]

NAMES = (
    "best_cosine",
    "bm25_reached",
    "terms_covered",
    "pairs",
    "pairs_with_one_stop_word",
    "names",
    "titles",
)
PENALTY = 1e-2
ROUNDS = 60
KEPT = 0.95


@dataclass(frozen=True)
class Examples:
    """Signals (NaN: missing), whether an answer was found, and whether there was one; a row a search."""

    signals: Floats
    found: Floats
    there: NDArray[np.bool_]


@dataclass(frozen=True)
class Model:
    """Weights of the signals above their means, and the intercept."""

    intercept: float
    weights: Floats
    means: Floats

    def odds(self, signals: Floats) -> Floats:
        odds: Floats = self.intercept + np.nan_to_num(signals - self.means) @ self.weights
        return odds


async def examples(folder: Path, store: str, number: int) -> Examples:
    """The questions of a folder, each with its answers and without."""
    async with bootstrap.open(store) as engine:
        documents, questions = await read(engine, folder)
        keys = await store_documents(engine, documents, None)
        ids: dict[str, list[str]] = {}
        for source in keys.values():
            for document, key in source.items():
                ids.setdefault(key, []).append(document)
        rows, found = [], []
        for query, relevant in questions[:: max(1, len(questions) // number)][:number]:
            gold = tuple(document for key in relevant for document in ids.get(key, ()))
            for where in (query.filter, And((query.filter, Not(In("document", gold))))):
                answer = await engine.retrieve(query, filter=where)
                rows.append([answer.signals.get(name, np.nan) for name in NAMES])
                found.append(any(hit.document.id in gold for hit in answer.hits))
    return Examples(np.array(rows), np.array(found, dtype=np.float64), np.arange(len(rows)) % 2 == 0)


async def read(engine: Engine, folder: Path) -> tuple[Mapping[str, Sequence[NewDocument]], Asked]:
    """The documents of a folder by source, and its questions with the keys of what answers them."""
    if (folder / "corpus.jsonl").exists():
        given = read_retrieval_set(folder)
        asked = [(Query(each.text, filter=each.where), frozenset(each.grades)) for each in given.queries]
        return {"corpus": given.documents}, asked
    talks = read_conversations(folder)
    queries = QueryBuilder(engine, talks)
    return talks.conversations, [(await queries.query(each), each.evidence) for each in talks.questions]


def learn(sets: Sequence[Examples]) -> Model:
    """A logistic regression by Newton's method; a missing signal counts as its mean."""
    signals = np.concatenate([one.signals for one in sets])
    found = np.concatenate([one.found for one in sets])
    share = np.concatenate([np.full(len(one.found), 1.0 / len(one.found) / len(sets)) for one in sets])
    known = ~np.isnan(signals)
    means = (share @ np.nan_to_num(signals)) / (share @ known)
    centred = np.nan_to_num(signals - means)
    spread = np.sqrt(share @ centred**2)
    rows = np.column_stack([np.ones(len(found)), centred / spread])
    ridge = PENALTY * np.diag([0.0, *np.ones(len(NAMES))])
    learnt = np.zeros(rows.shape[1])
    for _ in range(ROUNDS):
        sure = 1.0 / (1.0 + np.exp(-rows @ learnt))
        slope = rows.T @ (share * (sure - found)) + ridge @ learnt
        curve = (rows * (share * sure * (1.0 - sure))[:, None]).T @ rows + ridge
        learnt = learnt - np.linalg.solve(curve, slope)
    return Model(float(learnt[0]), learnt[1:] / spread, means)


def area(scores: Floats, there: NDArray[np.bool_]) -> float:
    """How often a question with an answer scores above one without; equal scores count half."""
    pairs = np.sign(scores[there][:, None] - scores[~there][None, :])
    return float((pairs.mean() + 1.0) / 2.0)


def false_answers(scores: Floats, there: NDArray[np.bool_]) -> float:
    """The share of questions without an answer at the threshold that keeps 95 % of the others."""
    threshold = np.sort(scores[there])[int((1.0 - KEPT) * there.sum())]
    return float((scores[~there] >= threshold).mean())


def family(name: str) -> str:
    """Translations of one set are left out together."""
    return name.split("_")[0] if name.startswith("xquad") else name


def report(sets: Mapping[str, Examples]) -> Iterator[str]:
    """The learnt table, and a row for each set."""
    whole = learn(list(sets.values()))
    yield f"INTERCEPT: Final = {whole.intercept:.3f}"
    for name, weight, mean in zip(NAMES, whole.weights, whole.means, strict=True):
        yield f'    "{name}": Weight({weight:.3f}, {mean:.3f}),'
    yield "set, best cosine, this set left out (AUROC / false answers); Brier score, half answerable"
    for name, one in sets.items():
        others = [other for each, other in sets.items() if family(each) != family(name)]
        odds = learn(others).odds(one.signals)
        brier = float(np.mean((1.0 / (1.0 + np.exp(-odds)) - one.found) ** 2))
        both = [(area(each, one.there), false_answers(each, one.there)) for each in (one.signals[:, 0], odds)]
        yield ", ".join([name, *(f"{100 * a:.1f} / {100 * f:.1f}" for a, f in both), f"{brier:.3f}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--stores", type=Path)
    parser.add_argument("--questions", type=int, default=400)
    given = parser.parse_args()
    marks = ("qrels.tsv", "questions.jsonl")
    folders = [
        one for one in sorted(given.directory.iterdir()) if any((one / mark).exists() for mark in marks)
    ]
    with tempfile.TemporaryDirectory() as fresh:
        stores = given.stores or Path(fresh)
        sets = {
            each.name: asyncio.run(examples(each, str(stores / each.name), given.questions))
            for each in folders
        }
    print(*report(sets), sep="\n")


if __name__ == "__main__":
    main()
