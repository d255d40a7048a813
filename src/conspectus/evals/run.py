"""Evaluate retrieval: nDCG, recall and latency."""

import math
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import NotRequired, TypeAlias, TypedDict, cast

from conspectus import bootstrap
from conspectus.deferred import dataclass
from conspectus.engine import Engine
from conspectus.errors import InvalidInput
from conspectus.evals.asked import QueryBuilder, read_conversations
from conspectus.evals.datasets import (
    CitedQuestion,
    ConversationSet,
    RetrievalSet,
    read_retrieval_set,
)
from conspectus.model.graph import GraphExpansion
from conspectus.model.query import Budget, Query, Retriever
from conspectus.model.records import NewDocument
from conspectus.model.results import Hit
from conspectus.ports import Progress
from conspectus.retrieval.profiles import profile_by_name
from conspectus.settings import Settings

RETRIEVERS: Mapping[str, tuple[Retriever, ...]] = {
    "keyword": ("keyword",),
    "vector": ("vector",),
    "hybrid": ("keyword", "vector"),
}
WITH_GRAPH = "hybrid with graph"
Figures: TypeAlias = dict[str, dict[str, float]]
"""The measures of each question, from 0 to 1."""
RetrievalReport = TypedDict(
    "RetrievalReport",
    {
        "ndcg@10": float,
        "recall@5": NotRequired[float],
        "recall@10": float,
        "recall@100": float,
        "by_question": Figures,
    },
)
ConversationReport = TypedDict(
    "ConversationReport",
    {
        "turn_recall@10": float,
        "by_category": dict[str, float],
        "evidence_in_budget": float,
        "session_hit@1": float,
        "questions": int,
        "by_question": Figures,
    },
)


async def retrieval(
    directory: str | Path,
    *,
    graph: GraphExpansion | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> dict[str, RetrievalReport]:
    """Return nDCG@10, recall@10 and recall@100, 0 to 100, for `keyword`, `vector` and `hybrid`.

    `by_question` has the values of each question, from 0 to 1. Documents are ranked by their best chunk.
    Without an embedding model, `vector` is left out. With a `graph`, `hybrid` is compared with `hybrid with
    graph`, and recall@5 is added. Raises InvalidInput for a directory without `corpus.jsonl`, `queries.jsonl`
    and `qrels.tsv`, or if one of them is not readable.
    """
    chosen = settings or Settings.from_environment()
    data = read_retrieval_set(Path(directory))
    async with fresh_engine(chosen) as engine:
        keys = await stored(engine, {"corpus": data.documents}, progress)
        run = _Run(engine, chosen, keys["corpus"], progress)
        if graph is not None:
            await _names_known(engine, progress)
            return {
                "hybrid": await _judge(run, data, "hybrid", deep=True),
                WITH_GRAPH: await _judge(run, data, WITH_GRAPH, graph=graph, deep=True),
            }
        can_embed = (await engine.collections.get_or_create()).space is not None
        return {name: await _judge(run, data, name) for name in RETRIEVERS if can_embed or name != "vector"}


async def conversation(
    directory: str | Path,
    *,
    max_tokens: int = 2048,
    profile: str | None = None,
    graph: GraphExpansion | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> ConversationReport:
    """Return how much of the cited evidence is found, 0 to 100, each question in its own conversation.

    With a `profile`, queries have the channel and time of their question; without, no query context. With a
    `graph`, entities in turns add to the scores. `turn_recall@10` is the share of evidence among the ten best
    turns, `evidence_in_budget` the share in a window of `max_tokens` tokens of o200k_base, and
    `session_hit@1` how often the session of the best turn has evidence. All are means over questions.
    `by_question` has the value of each, from 0 to 1. Raises InvalidInput for an unknown profile, a directory
    without such a set, or if a file is not readable.
    """
    if max_tokens < 0:
        raise InvalidInput("max_tokens", "must not be negative")
    if profile is not None:
        profile_by_name(profile)
    chosen = settings or Settings.from_environment()
    data = read_conversations(Path(directory))
    async with fresh_engine(chosen) as engine:
        keys = await stored(engine, data.conversations, progress)
        every = {document: key for known in keys.values() for document, key in known.items()}
        run = _Run(engine, chosen, every, progress)
        if graph is not None:
            await _names_known(engine, progress)
        queries = QueryBuilder(engine, data, profile)
        answers = []
        for done, question in enumerate(data.questions, start=1):
            query = replace(await queries.query(question), graph=graph)
            answers.append(await _answer(run, data, question, query=query, max_tokens=max_tokens))
            run.report("asking", done, len(data.questions))
    return _summary(data.questions, answers)


@dataclass(frozen=True, slots=True)
class _Run:
    """A filled engine. `keys` maps stored documents to the keys of the set."""

    engine: Engine
    settings: Settings
    keys: Mapping[str, str]
    progress: Progress | None

    def report(self, what: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(what, done, total)

    async def hits(self, query: Query, *, depth: int) -> Sequence[Hit]:
        """Return the best hit of each of the best `depth` documents, or of all if there are fewer."""
        best: dict[str, Hit] = {}
        for limit in (2 * depth, self.settings.max_limit):
            asked = replace(query, limit=min(limit, self.settings.max_limit))
            hits = (await self.engine.retrieve(asked)).hits
            best = {}
            for hit in hits:
                best.setdefault(hit.document.id, hit)
            if len(best) >= depth or len(hits) < asked.limit:
                break
        return list(best.values())[:depth]


def fresh_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder for a store that is deleted afterwards."""
    return tempfile.TemporaryDirectory(prefix="conspectus-eval-")


@asynccontextmanager
async def fresh_engine(settings: Settings) -> AsyncIterator[Engine]:
    """Open an engine on an empty store that is deleted afterwards."""
    with fresh_folder() as folder:
        async with bootstrap.open(folder, settings=settings) as engine:
            yield engine


async def stored(
    engine: Engine, sources: Mapping[str, Sequence[NewDocument]], progress: Progress | None
) -> dict[str, dict[str, str]]:
    """Add and embed all documents. Returns the keys by stored id, for documents by source."""
    keys: dict[str, dict[str, str]] = {}
    for source, documents in sources.items():
        written = await engine.add(documents, source=source, progress=progress)
        pairs = zip(written, documents, strict=True)
        keys[source] = {stored.id: document.key or "" for stored, document in pairs}
    await engine.documents.wait_until_embedded(progress=progress)
    return keys


async def _names_known(engine: Engine, progress: Progress | None) -> None:
    await engine.graph.set_entity_extraction()
    await engine.graph.wait_until_extracted(progress=progress)


async def _judge(
    run: _Run, data: RetrievalSet, name: str, *, graph: GraphExpansion | None = None, deep: bool = False
) -> RetrievalReport:
    by_question: Figures = {}
    for done, judged in enumerate(data.queries, start=1):
        asked = Query(
            judged.text,
            filter=judged.where,
            retrievers=RETRIEVERS.get(name, RETRIEVERS["hybrid"]),
            graph=graph,
        )
        ranking = [run.keys[hit.document.id] for hit in await run.hits(asked, depth=100)]
        by_question[judged.id] = {
            "ndcg@10": ndcg(ranking, judged.grades, depth=10),
            **{
                f"recall@{depth}": recall(ranking, judged.grades.keys(), depth=depth)
                for depth in ((5, 10, 100) if deep else (10, 100))
            },
        }
        run.report(f"asking by {name}", done, len(data.queries))
    means = {
        name: percent([each[name] for each in by_question.values()])
        for name in next(iter(by_question.values()))
    }
    return cast(RetrievalReport, {**means, "by_question": by_question})


async def _answer(
    run: _Run, data: ConversationSet, question: CitedQuestion, *, query: Query, max_tokens: int
) -> dict[str, float]:
    hits = await run.hits(query, depth=10)
    window = await run.engine.window(query, Budget(max_tokens, tokenizer="o200k_base"))
    cited = [run.keys[citation.document] for citation in window.citations]
    turns = data.conversations[question.conversation]
    sessions = {turn.thread for turn in turns if turn.key in question.evidence}
    return {
        "turn_recall@10": recall([run.keys[hit.document.id] for hit in hits], question.evidence, depth=10),
        "evidence_in_budget": recall(cited, question.evidence, depth=len(cited)),
        "session_hit@1": float(bool(hits) and hits[0].document.thread in sessions),
    }


def _summary(questions: Sequence[CitedQuestion], answers: Sequence[dict[str, float]]) -> ConversationReport:
    categories: dict[str, list[float]] = defaultdict(list)
    for question, answer in zip(questions, answers, strict=True):
        categories[question.category].append(answer["turn_recall@10"])
    return {
        "turn_recall@10": percent([each["turn_recall@10"] for each in answers]),
        "by_category": {name: percent(categories[name]) for name in sorted(categories)},
        "evidence_in_budget": percent([each["evidence_in_budget"] for each in answers]),
        "session_hit@1": percent([each["session_hit@1"] for each in answers]),
        "questions": len(questions),
        "by_question": {question.id: answer for question, answer in zip(questions, answers, strict=True)},
    }


def ndcg(ranking: Sequence[str], grades: Mapping[str, float], *, depth: int) -> float:
    """Return the normalized discounted cumulative gain of the first `depth` distinct documents, 0 to 1.

    The gain of a document is its grade, discounted by log2(rank + 1) with ranks from 1 (Järvelin and
    Kekäläinen 2002, with the linear gain of trec_eval). `grades` has at least one positive grade.
    """
    ideal = _discounted(sorted(grades.values(), reverse=True)[:depth])
    return _discounted([grades.get(document, 0.0) for document in ranking[:depth]]) / ideal


def recall(ranking: Sequence[str], relevant: Set[str], *, depth: int) -> float:
    """Return the share of relevant documents (not empty) among the first `depth`, from 0 to 1."""
    return len(relevant & set(ranking[:depth])) / len(relevant)


def percent(values: Sequence[float]) -> float:
    """Return the mean of values from 0 to 1 as a percentage with two decimals; 0 without values."""
    return round(100 * math.fsum(values) / len(values), 2) if values else 0.0


def _discounted(gains: Sequence[float]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))
