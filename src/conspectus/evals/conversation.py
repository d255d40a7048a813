"""Evaluate retrieval and windows on conversations with cited turns."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

from conspectus.errors import InvalidInput
from conspectus.evals.conversation_queries import QueryBuilder
from conspectus.evals.conversation_sets import read_conversations
from conspectus.evals.datasets import (
    CitedQuestion,
    ConversationSet,
)
from conspectus.evals.measures import Figures, percent, recall
from conspectus.evals.stores import FilledStore, fresh_engine, store_documents, wait_for_entities
from conspectus.model.graph import GraphExpansion
from conspectus.model.query import Budget, Query
from conspectus.ports import Progress
from conspectus.retrieval.profiles import profile_by_name
from conspectus.settings import Settings

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
    settings = settings or Settings.from_environment()
    data = read_conversations(Path(directory))
    async with fresh_engine(settings) as engine:
        keys = await store_documents(engine, data.conversations, progress)
        every = {document: key for source_keys in keys.values() for document, key in source_keys.items()}
        run = FilledStore(engine, settings, every, progress)
        if graph is not None:
            await wait_for_entities(engine, progress)
        asker = QueryBuilder(engine, data, profile)
        answers = []
        for done, question in enumerate(data.questions, start=1):
            query = replace(await asker.query(question), graph=graph)
            answers.append(await _answer(run, data, question, query=query, max_tokens=max_tokens))
            run.report("asking", done, len(data.questions))
    return _summary(data.questions, answers)


async def _answer(
    run: FilledStore, data: ConversationSet, question: CitedQuestion, *, query: Query, max_tokens: int
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
        "turn_recall@10": percent([answer["turn_recall@10"] for answer in answers]),
        "by_category": {name: percent(categories[name]) for name in sorted(categories)},
        "evidence_in_budget": percent([answer["evidence_in_budget"] for answer in answers]),
        "session_hit@1": percent([answer["session_hit@1"] for answer in answers]),
        "questions": len(questions),
        "by_question": {question.id: answer for question, answer in zip(questions, answers, strict=True)},
    }
