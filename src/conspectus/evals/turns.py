"""Questions in conversations: what is found by the last turn alone, with earlier ones, and rewritten."""

import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypedDict

from conspectus import bootstrap
from conspectus.chat.rewrite import standalone
from conspectus.engine import Engine
from conspectus.evals.datasets import JudgedQuery, RetrievalSet, read_retrieval_set
from conspectus.evals.metrics import ndcg, percent, recall
from conspectus.evals.rows import Row, rows
from conspectus.model.query import Query
from conspectus.model.results import Message
from conspectus.ports import Progress
from conspectus.settings import Settings

DEPTH = 10
CHUNKS = 60
"""Chunks that are asked for, so that they are of ten documents."""
FIRST = "first"
"""The kind of questions without a turn before them."""

TurnsReport = TypedDict(
    "TurnsReport", {"ndcg@10": float, "recall@5": float, "recall@10": float, "questions": int}
)
Rewrite: TypeAlias = Callable[[str, Sequence[Message]], str]


def alone(message: str, history: Sequence[Message]) -> str:
    """The last turn."""
    return message


def with_previous(message: str, history: Sequence[Message]) -> str:
    """The user's turn before it, then the last one."""
    return " ".join([*_asked(history)[-1:], message])


def with_all(message: str, history: Sequence[Message]) -> str:
    """All turns of the user's."""
    return " ".join([*_asked(history), message])


WAYS: Mapping[str, Rewrite] = {
    "last": alone,
    "previous": with_previous,
    "all": with_all,
    "standalone": standalone,
}


@dataclass(frozen=True, slots=True)
class _Told:
    """What is known of a question besides its text: the turns before it, and how it goes on with them."""

    history: tuple[Message, ...]
    kind: str


async def turns(
    directory: str | Path, *, settings: Settings | None = None, progress: Progress | None = None
) -> dict[str, dict[str, TurnsReport]]:
    """nDCG@10, recall@5 and recall@10 from 0 to 100, by way of asking, for all questions and each kind.

    A way is `last` (the turn alone), `previous` and `all` (with the user's turns before it) or `standalone`.
    The kinds are the first names of `multi_turn` in `queries.jsonl`, and `first` without `history`. Only
    questions with a relevant document are asked. Raises InvalidInput as the evaluation of retrieval does.
    """
    folder = Path(directory)
    given = read_retrieval_set(folder)
    told = {row.id("id"): _told(row) for row in rows(folder / "queries.jsonl")}
    async with _filled(given, settings or Settings.from_environment(), progress) as engine:
        return {name: await _measured(engine, given, told, (name, way)) for name, way in WAYS.items()}


@asynccontextmanager
async def _filled(
    given: RetrievalSet, settings: Settings, progress: Progress | None
) -> AsyncIterator[Engine]:
    with tempfile.TemporaryDirectory(prefix="conspectus-eval-") as folder:
        async with bootstrap.open(folder, settings=settings) as engine:
            await engine.add(given.documents, source="corpus", progress=progress)
            await engine.settle(progress=progress)
            yield engine


def _told(row: Row) -> _Told:
    history = tuple(_turn(row, each) for each in row.items("history"))
    kinds = row.items("multi_turn")
    return _Told(history, str(kinds[0]) if history and kinds else FIRST if not history else "other")


def _turn(row: Row, turn: object) -> Message:
    said = Row(row.place, turn if isinstance(turn, dict) else {})
    return Message("user" if said.text("role") == "user" else "assistant", said.text("text"))


async def _measured(
    engine: Engine, given: RetrievalSet, told: Mapping[str, _Told], way: tuple[str, Rewrite]
) -> dict[str, TurnsReport]:
    judged: dict[str, list[tuple[JudgedQuery, list[str]]]] = defaultdict(list)
    for each in given.queries:
        known = told[each.id]
        ranking = await _ranking(engine, way[1](each.text, known.history), each)
        judged["all"].append((each, ranking))
        judged[known.kind].append((each, ranking))
    return {kind: _report(judged[kind]) for kind in sorted(judged)}


async def _ranking(engine: Engine, text: str, judged: JudgedQuery) -> list[str]:
    hits = (await engine.retrieve(Query(text, where=judged.where, limit=CHUNKS))).hits
    return list(dict.fromkeys(hit.document.key for hit in hits))


def _report(judged: Sequence[tuple[JudgedQuery, list[str]]]) -> TurnsReport:
    return {
        "ndcg@10": percent([ndcg(ranking, each.grades, depth=DEPTH) for each, ranking in judged]),
        "recall@5": percent([recall(ranking, each.grades.keys(), depth=5) for each, ranking in judged]),
        "recall@10": percent([recall(ranking, each.grades.keys(), depth=DEPTH) for each, ranking in judged]),
        "questions": len(judged),
    }


def _asked(history: Sequence[Message]) -> list[str]:
    return [turn.content for turn in history if turn.role == "user"]
