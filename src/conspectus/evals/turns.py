"""Evaluate queries with a chat history."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeAlias, TypedDict

from conspectus.chat.query_rewriting import standalone
from conspectus.deferred import dataclass
from conspectus.engine import Engine
from conspectus.evals.datasets import JudgedQuery, Row, read_retrieval_set, rows
from conspectus.evals.measures import ndcg, percent, recall
from conspectus.evals.stores import fresh_engine, store_documents
from conspectus.model.query import Query
from conspectus.model.results import Message
from conspectus.ports import Progress
from conspectus.settings import Settings

DEPTH = 10
CHUNKS = 60
"""Number of chunks to request, enough for ten documents."""
FIRST = "first"
SWITCHED = "switched"
"""The kinds of questions without history, and of the same questions after another conversation."""
TurnsReport = TypedDict(
    "TurnsReport", {"ndcg@10": float, "recall@5": float, "recall@10": float, "questions": int}
)
Rewrite: TypeAlias = Callable[[str, Sequence[Message]], str]
WAYS: Mapping[str, Rewrite] = {
    "last": lambda message, _: message,
    "previous": lambda message, history: " ".join([*_users(history)[-1:], message]),
    "every": lambda message, history: " ".join([*_users(history), message]),
    "standalone": standalone,
}


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question with its history and its kind."""

    judged: JudgedQuery
    history: tuple[Message, ...]
    kind: str


async def turns(
    directory: str | Path, *, settings: Settings | None = None, progress: Progress | None = None
) -> dict[str, dict[str, TurnsReport]]:
    """Return nDCG@10, recall@5 and recall@10, 0 to 100, by query method, for `all` and each kind.

    The methods are `last` (the last turn), `previous` and `every` (with one or all earlier user turns), and
    `standalone`. The kinds are the first entries of `multi_turn` in `queries.jsonl`, `first` without
    `history`, and `switched`: `first` questions after the turns of another conversation, which `all` does not
    include. Only questions with a relevant document are used. Raises InvalidInput as the evaluation of
    retrieval does.
    """
    folder = Path(directory)
    retrieval_set = read_retrieval_set(folder)
    judged = {query.id: query for query in retrieval_set.queries}
    judged_rows = [row for row in rows(folder / "queries.jsonl") if row.id("id") in judged]
    questions = [_read_question(row, judged[row.id("id")]) for row in judged_rows]
    questions += _switch_histories(questions)
    async with fresh_engine(settings or Settings.from_environment()) as engine:
        await store_documents(engine, {"corpus": retrieval_set.documents}, progress)
        return {name: await _measure(engine, questions, way) for name, way in WAYS.items()}


def _read_question(row: Row, judged: JudgedQuery) -> _Asked:
    history = tuple(_read_turn(row, turn) for turn in row.items("history"))
    kinds = [str(kind) for kind in row.items("multi_turn")] or ["other"]
    return _Asked(judged, history, kinds[0] if history else FIRST)


def _read_turn(row: Row, turn: object) -> Message:
    turn_row = Row(row.position, turn if isinstance(turn, dict) else {})
    return Message("user" if turn_row.text("role") == "user" else "assistant", turn_row.text("text"))


def _switch_histories(questions: Sequence[_Asked]) -> list[_Asked]:
    """Return each `first` question with the history of the next question of another conversation."""
    switched = []
    for number, question in enumerate(questions):
        others = (other.history for other in chain(questions[number:], questions[:number]) if other.history)
        history = next((turns for turns in others if turns[0].content != question.judged.text), ())
        if history and not question.history:
            switched.append(_Asked(question.judged, history, SWITCHED))
    return switched


async def _measure(engine: Engine, questions: Sequence[_Asked], way: Rewrite) -> dict[str, TurnsReport]:
    rankings: dict[str, list[tuple[JudgedQuery, list[str]]]] = defaultdict(list)
    for question in questions:
        ranking = await _rank_documents(engine, way(question.judged.text, question.history), question.judged)
        rankings[question.kind].append((question.judged, ranking))
        if question.kind != SWITCHED:
            rankings["all"].append((question.judged, ranking))
    return {kind: _report(rankings[kind]) for kind in sorted(rankings)}


async def _rank_documents(engine: Engine, text: str, judged: JudgedQuery) -> list[str]:
    hits = (await engine.retrieve(Query(text, filter=judged.where, limit=CHUNKS))).hits
    return list(dict.fromkeys(hit.document.key for hit in hits))


def _report(judged: Sequence[tuple[JudgedQuery, list[str]]]) -> TurnsReport:
    return {
        "ndcg@10": percent([ndcg(ranking, query.grades, depth=DEPTH) for query, ranking in judged]),
        "recall@5": percent([recall(ranking, query.grades.keys(), depth=5) for query, ranking in judged]),
        "recall@10": percent(
            [recall(ranking, query.grades.keys(), depth=DEPTH) for query, ranking in judged]
        ),
        "questions": len(judged),
    }


def _users(history: Sequence[Message]) -> list[str]:
    return [turn.content for turn in history if turn.role == "user"]
