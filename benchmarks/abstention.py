"""Whether the confidence of a search tells right answers from none: python benchmarks/abstention.py.

Every question of `SETS` is asked with the documents that answer it, and under a filter that removes them; of
half of the questions both again among 20 documents. Questions that a set itself calls unanswerable are asked
once. A search is right if a document that answers the question is among its ten hits. `--searches FILE` keeps
one line for each search, which `scripts/train_confidence.py` learns from; a file that exists is read instead
of searching.
"""

import argparse
import asyncio
import json
import os
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from conspectus import bootstrap
from conspectus.engine import Engine
from conspectus.evals.conversation_queries import QueryBuilder
from conspectus.evals.conversation_sets import read_conversations
from conspectus.evals.datasets import CitedQuestion, read_retrieval_set, rows, spread
from conspectus.evals.stores import store_documents
from conspectus.model.filter import And, In, Not
from conspectus.model.query import Query
from conspectus.model.records import NewDocument
from conspectus.retrieval.confidence import confidence_of
from conspectus.text.analyzer import STOP_WORDS

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

FOLDER = Path(os.environ.get("CONSPECTUS_EVAL", "../shared/eval"))
SETS: Mapping[str, str] = {
    "locomo": "conversations",
    "beam_100k": "conversations",
    "longmemeval_sample": "conversations",
    "qmsum": "conversations",
    "qmsum_said": "conversations",
    "locomo_memories": "memories",
    "cosqa": "lists",
    "zoomcamp_faq": "lists",
    "cookbook_code": "lists",
    "hotpotqa100": "documents",
    "cranfield": "documents",
    "scifact": "documents",
    "mtrag_un": "documents",
    "rag_blueprint": "documents",
    "xquad_en": "documents",
    "xquad_de": "documents",
}
"""Sets and the kind of each.

`locomo_memories` are the facts that people noted of the turns of locomo. `qmsum_said` asks what somebody said
about three words of a turn; nothing answers the same question about somebody else.
"""
FEW = 20
AMONG_FEW = f", {FEW} documents"
"""The end of the name of a set whose questions are asked among few documents."""
FEW_KIND = f"any, {FEW} documents"
SAID_OF_MEETING = 8
MIN_WORD_LENGTH = 4
MIN_WORDS = 6
MIN_TURNS = 5
"""A turn that is asked about has so many words, and a person that is named has so many turns."""
UNANSWERABLE = frozenset({"adversarial", "abstention", "UNANSWERABLE"})
"""Categories of questions that nothing in their set answers."""
CORPUS = "corpus"
"""Source of the documents of a set that has no conversations."""
STORED, REMOVED, NONE = "stored", "removed", "none"
"""Where the answers of a search are."""
KEPT = 0.95
"""Share of the answerable questions that are kept where false answers are counted."""
BINS = 10
MIN_IN_BIN = 50
COLUMNS = (
    "kind",
    "set",
    "answers",
    "searches without",
    "AUROC, cosine",
    "AUROC, confidence",
    "false answers, cosine",
    "false answers, confidence",
)
"""Of the table; false answers are percentages, where 95 % of the searches with an answer are kept."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query, the source and the keys of what answers it, and whether the set calls it unanswerable."""

    query: Query
    source: str
    evidence: frozenset[str]
    is_unanswerable: bool = False


@dataclass(frozen=True, slots=True)
class Search:
    """A search of a set; `answers` are `stored`, `removed`, or there are `none`."""

    set: str
    answers: str
    is_right: bool
    signals: Mapping[str, float]

    @property
    def kind(self) -> str:
        return SETS.get(self.set, FEW_KIND)

    @property
    def confidence(self) -> float:
        """The confidence as it is learned today."""
        return confidence_of(self.signals) if self.signals else 0.0


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """Searches with a confidence in [start, start + .1): their number, mean, and share of right ones."""

    start: float
    searches: int
    confidence: float
    right: float


def area(scores: Floats, is_answerable: Bools) -> float:
    """Return how often an answerable search scores above another one; equal scores count half."""
    pairs = np.sign(scores[is_answerable][:, None] - scores[~is_answerable][None, :])
    return float((pairs.mean() + 1.0) / 2.0)


def false_answers(scores: Floats, is_answerable: Bools) -> float:
    """Return the share of searches without an answer that a threshold keeps with 95 % of the others."""
    threshold = np.sort(scores[is_answerable])[int((1.0 - KEPT) * is_answerable.sum())]
    return float((scores[~is_answerable] >= threshold).mean())


def calibration(confidence: Floats, is_right: Bools) -> list[CalibrationBin]:
    """Return the bins of a tenth that hold at least `MIN_IN_BIN` searches."""
    bins = []
    numbers = np.minimum((confidence * BINS).astype(int), BINS - 1)
    for number in range(BINS):
        inside = numbers == number
        if inside.sum() >= MIN_IN_BIN:
            mean, right = float(confidence[inside].mean()), float(is_right[inside].mean())
            bins.append(CalibrationBin(number / BINS, int(inside.sum()), mean, right))
    return bins


async def search_set(folder: Path, name: str, store: str, limit: int) -> list[Search]:
    """Ask at most `limit` answerable questions of a set with and without their answers, and the others."""
    async with bootstrap.open(store) as engine:
        documents, questions = await read_questions(engine, folder, name)
        keys = await store_documents(engine, documents, None)
        answerable = spread([question for question in questions if not question.is_unanswerable], limit)
        unanswerable = [question for question in questions if question.is_unanswerable]
        searches = []
        for question in (*answerable, *spread(unanswerable, limit)):
            stored = keys[question.source].items()
            gold = [document for document, key in stored if key in question.evidence]
            for set, answers, query in queries_of(question, name, list(keys[question.source]), gold):
                retrieval = await engine.retrieve(query)
                is_right = answers == STORED and any(hit.document.id in gold for hit in retrieval.hits)
                searches.append(Search(set, answers, is_right, retrieval.signals))
    return searches


def queries_of(
    question: Question, name: str, documents: Sequence[str], gold: Sequence[str]
) -> Iterator[tuple[str, str, Query]]:
    """Return the queries for a question, each with the name of its set and where its answers are."""
    query = question.query
    if question.is_unanswerable:
        yield name, NONE, query
        return
    yield name, STORED, query
    yield name, REMOVED, replace(query, filter=And((query.filter, Not(In("document", tuple(gold))))))
    chance = random.Random(query.query)
    if chance.random() < 0.5:
        others = [document for document in documents if document not in gold]
        few = chance.sample(others, min(FEW, len(others)))
        some_gold = gold[: FEW // 2]
        with_gold = (*few[: FEW - len(some_gold)], *some_gold)
        stored, removed = (And((query.filter, In("document", ids))) for ids in (with_gold, tuple(few)))
        yield name + AMONG_FEW, STORED, replace(query, filter=stored)
        yield name + AMONG_FEW, REMOVED, replace(query, filter=removed)


async def read_questions(
    engine: Engine, folder: Path, name: str
) -> tuple[Mapping[str, Sequence[NewDocument]], Sequence[Question]]:
    """Return the documents of a set by source, and its questions."""
    if name == "locomo_memories":
        return await read_memories(engine, folder / "locomo")
    if name == "qmsum_said":
        return await read_said(engine, folder / "qmsum")
    if name.startswith("xquad_"):
        return read_documents(folder / "xquad", prefix=f"{name.removeprefix('xquad_')}-")
    if (folder / name / "qrels.tsv").exists() and not (folder / name / "meetings.jsonl").exists():
        return read_documents(folder / name)
    talks = read_conversations(folder / name)
    queries = QueryBuilder(engine, talks)
    questions = [
        Question(
            await queries.query(question),
            question.conversation,
            question.evidence,
            question.category in UNANSWERABLE,
        )
        for question in talks.questions
    ]
    if not any(question.is_unanswerable for question in questions):
        questions += await read_without_evidence(folder / name, queries)
    return talks.conversations, questions


async def read_without_evidence(folder: Path, queries: QueryBuilder) -> list[Question]:
    """Return the questions that cite nothing since nothing answers them."""
    if not (folder / "questions.jsonl").exists():
        return []
    questions = [
        CitedQuestion(row.id("qid"), row.id("conv"), row.text("question"), "", frozenset())
        for row in rows(folder / "questions.jsonl")
        if row.optional("category") in UNANSWERABLE and not row.ids("evidence")
    ]
    return [
        Question(await queries.query(question), question.conversation, question.evidence, True)
        for question in questions
    ]


def read_documents(
    folder: Path, prefix: str = ""
) -> tuple[Mapping[str, Sequence[NewDocument]], Sequence[Question]]:
    """Return documents and questions whose keys start with a prefix."""
    judged = read_retrieval_set(folder)
    documents = [document for document in judged.documents if (document.key or "").startswith(prefix)]
    questions = [
        Question(Query(query.text, filter=query.where), CORPUS, frozenset(query.grades))
        for query in judged.queries
        if query.id.startswith(prefix)
    ]
    questions += [
        Question(Query(row.text("text")), CORPUS, frozenset(), True)
        for row in rows(folder / "queries.jsonl")
        if row.optional("answerability") in UNANSWERABLE
    ]
    return {CORPUS: documents}, questions


async def read_memories(
    engine: Engine, folder: Path
) -> tuple[Mapping[str, Sequence[NewDocument]], Sequence[Question]]:
    """Return the facts noted of each conversation as memories, and the questions that they answer."""
    talks = read_conversations(folder)
    memories: dict[str, list[NewDocument]] = {name: [] for name in talks.conversations}
    memories_by_turn: dict[tuple[str, str], set[str]] = {}
    for number, row in enumerate(rows(folder / "observations.jsonl")):
        key = str(number)
        memory = NewDocument(row.text("fact"), key=key, kind="memory", author=row.optional("speaker"))
        memories[row.id("conv")].append(memory)
        cited = row.items("evidence") if isinstance(row.values["evidence"], list) else [row.id("evidence")]
        for turn in cited:
            memories_by_turn.setdefault((row.id("conv"), str(turn)), set()).add(key)
    queries = QueryBuilder(engine, talks)
    questions = []
    for question in talks.questions:
        noted = (memories_by_turn.get((question.conversation, turn), set()) for turn in question.evidence)
        evidence = frozenset[str]().union(*noted)
        if evidence:
            query = await queries.query(question)
            is_unanswerable = question.category in UNANSWERABLE
            questions.append(Question(query, question.conversation, evidence, is_unanswerable))
    return memories, questions


async def read_said(
    engine: Engine, folder: Path
) -> tuple[Mapping[str, Sequence[NewDocument]], Sequence[Question]]:
    """Return meetings, and questions about what somebody said, each once about somebody else."""
    talks = read_conversations(folder)
    queries = QueryBuilder(engine, talks)
    questions = []
    for meeting, turns in talks.conversations.items():
        chance = random.Random(meeting)
        speakers = Counter(turn.author for turn in turns if turn.author)
        regular = sorted(speaker for speaker, number in speakers.items() if number > MIN_TURNS)
        long = [turn for turn in turns if turn.author in regular and len(content_words(turn)) >= MIN_WORDS]
        for turn in chance.sample(long, min(SAID_OF_MEETING, len(long))):
            first, second, third = sorted(chance.sample(content_words(turn), 3))
            somebody_else = chance.choice([speaker for speaker in regular if speaker != turn.author])
            for speaker in (turn.author, somebody_else):
                text = f"What did {speaker} say about {first}, {second} and {third}?"
                cited = CitedQuestion(text, meeting, text, "", frozenset({turn.key or ""}))
                query = await queries.query(cited)
                questions.append(Question(query, meeting, cited.evidence, speaker != turn.author))
    return talks.conversations, questions


def content_words(turn: NewDocument) -> list[str]:
    """Return the distinct longer words of a turn, in order, without stop words and its author's name."""
    words = (word for word in re.findall(r"[A-Za-z]+", turn.text) if len(word) >= MIN_WORD_LENGTH)
    name = (turn.author or "").casefold()
    return [
        word
        for word in dict.fromkeys(words)
        if word.casefold() not in name and word.casefold() not in STOP_WORDS["english"]
    ]


def discrimination_row(name: str, searches: Sequence[Search], lacking: str) -> list[str]:
    """Return how well the best cosine and the confidence tell searches with an answer from those without."""
    compared = [search for search in searches if search.answers in (STORED, lacking)]
    is_answerable = np.array([search.answers == STORED for search in compared])
    cosine = np.array([search.signals.get("best_cosine", -1.0) for search in compared])
    confidence = np.array([search.confidence for search in compared])
    areas = [f"{100 * area(scores, is_answerable):.1f}" for scores in (cosine, confidence)]
    shares = [f"{100 * false_answers(scores, is_answerable):.0f}" for scores in (cosine, confidence)]
    return [searches[0].kind, name, lacking, f"{(~is_answerable).sum()}", *areas, *shares]


def calibration_lines(name: str, searches: Sequence[Search]) -> Iterator[str]:
    """Return a line for a kind of set or a set: confidence and share of right answers in each bin."""
    paired = [search for search in searches if search.answers != NONE]
    confidence = np.array([search.confidence for search in paired])
    bins = calibration(confidence, np.array([search.is_right for search in paired]))
    if bins:
        farthest = max(abs(part.confidence - part.right) for part in bins)
        cells = (f"{100 * part.confidence:.0f} → {100 * part.right:.0f} ({part.searches})" for part in bins)
        yield f"- {name}: {', '.join(cells)}; at most {100 * farthest:.0f} points apart."


def report(searches: Sequence[Search]) -> Iterator[str]:
    """Return the table of all sets, and the calibration of each kind of set and of each set below it."""
    by_set: dict[str, list[Search]] = {}
    for search in sorted(searches, key=lambda search: search.set.endswith(AMONG_FEW)):
        by_set.setdefault(search.set, []).append(search)
    yield f"| {' | '.join(COLUMNS)} |"
    yield "| --- " * len(COLUMNS) + "|"
    for name, of_set in by_set.items():
        for lacking in (REMOVED, NONE):
            if any(search.answers == lacking for search in of_set):
                yield f"| {' | '.join(discrimination_row(name, of_set, lacking))} |"
    yield from ("", f"Confidence → share of right answers (searches), in bins of at least {MIN_IN_BIN}:", "")
    for name in dict.fromkeys((*SETS.values(), FEW_KIND, *by_set)):
        yield from calibration_lines(
            name, [search for search in searches if name in (search.set, search.kind)]
        )


def read_searches(path: Path) -> list[Search]:
    """Return the searches that a run kept."""
    return [Search(**row.values) for row in rows(path)]  # type: ignore[arg-type]


def measure(sets: Sequence[str], stores: Path, limit: int) -> list[Search]:
    """Return all searches of these sets."""
    searches: list[Search] = []
    for name in sets:
        print(name, flush=True)
        store = stores / name.removesuffix("_said")
        searches += asyncio.run(search_set(FOLDER, name, str(store), limit))
    return searches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--questions", type=int, default=400, help="most questions of a set")
    parser.add_argument("--stores", type=Path, help="keep the stores here for another run")
    parser.add_argument("--searches", type=Path, help="file with the searches")
    options = parser.parse_args()
    if options.searches and options.searches.exists():
        searches = read_searches(options.searches)
    else:
        with tempfile.TemporaryDirectory() as folder:
            searches = measure(options.only, options.stores or Path(folder), options.questions)
        if options.searches:
            lines = [json.dumps(asdict(search), ensure_ascii=False) for search in searches]
            options.searches.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(*report(searches), sep="\n")


if __name__ == "__main__":
    main()
