"""Later statements before earlier ones in memories: python benchmarks/statements.py --embedder multilingual.

Scenes of `statement_scenes.py` are stored as memories, and each is asked for with three results. Counted are
questions whose current statement is first, those whose outdated one comes before it or alone, and fillers
among the three. Half of the questions are about statements that nothing updates. With `--sets`, conversations
of evaluation sets are stored as memories too: recall among ten, and of knowledge updates, how often the
updated turn comes before the original one.
"""

import asyncio
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from results import Result, option_parser
from statement_scenes import Scene, read_templates, scenes, small_scenes

import conspectus
from conspectus import Engine, NewMemory, Scope
from conspectus.evals.conversation_sets import read_conversations
from conspectus.evals.datasets import CitedQuestion
from conspectus.evals.measures import recall
from conspectus.model.records import NewDocument, Period
from conspectus.settings import Settings

SETS: Final = Path(os.environ.get("CONSPECTUS_EVAL", "../shared/eval"))
LIMIT: Final = 3
DEPTH: Final = 10


async def ask_scene(engine: Engine, scene: Scene, scope: Scope) -> Counter[str]:
    """Store a scene, ask its questions, and count what comes where."""
    await engine.memory.add(scene.memories, scope=scope, wait=True)
    counts: Counter[str] = Counter()
    for question in scene.questions:
        hits = (await engine.memory.recall(question.text, scope=scope, limit=LIMIT)).memories
        texts = [hit.memory.text for hit in hits]
        rank = texts.index(question.answer) if question.answer in texts else LIMIT
        kind = "updated" if question.outdated else "kept"
        counts[f"{kind}: questions"] += 1
        counts[f"{kind}: first"] += rank == 0
        counts[f"{kind}: in three"] += rank < LIMIT
        counts[f"{kind}: filler"] += not scene.fillers.isdisjoint(texts)
        if question.outdated:
            counts["updated: outdated before"] += question.outdated in texts[:rank]
            counts["updated: both"] += rank < LIMIT and question.outdated in texts
    return counts


async def ask_scenes(engine: Engine, language: str, all_scenes: Iterable[Scene]) -> Counter[str]:
    """Return the counts of all scenes of a language."""
    total: Counter[str] = Counter()
    for number, scene in enumerate(all_scenes):
        total += await ask_scene(engine, scene, Scope(user=f"{language}-{number}", conversation="scene"))
    return total


async def measure_scenes(
    embedder: str, languages: Sequence[str], rounds: int, *, small: bool
) -> dict[str, dict[str, int]]:
    """Return the counts of each language."""
    settings = replace(Settings(), log_level="critical", embedder=embedder)
    templates = read_templates()
    make_scenes = small_scenes if small else scenes
    with tempfile.TemporaryDirectory() as folder:
        async with conspectus.open(folder, settings=settings) as engine:
            return {
                language: dict(
                    await ask_scenes(engine, language, make_scenes(templates[language], language, rounds))
                )
                for language in languages or templates
            }


def to_memory(turn: NewDocument) -> NewMemory:
    """Return a turn of a conversation as a memory."""
    moment = turn.occurred.start if isinstance(turn.occurred, Period) else turn.occurred
    return NewMemory(turn.text, key=turn.key, role=turn.role, speaker=turn.author, at=moment)


def read_updates(name: str) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """Return the original and the updated turns of questions about knowledge updates, by question."""
    updates = {}
    for line in (SETS / name / "questions.jsonl").read_text(encoding="utf-8").split("\n"):
        question = json.loads(line) if line else {}
        groups = question.get("evidence_groups")
        if question.get("category") == "knowledge_update" and groups:
            original, updated = groups["original_info"], groups["updated_info"]
            updates[question["qid"]] = (frozenset(map(str, original)), frozenset(map(str, updated)))
    return updates


async def measure_set(name: str, *, questions: int) -> dict[str, float]:
    """Return recall among ten of a set of conversations that are stored as memories."""
    conversations = read_conversations(SETS / name)
    selected = conversations.questions[:: max(1, len(conversations.questions) // questions)]
    updates = read_updates(name)
    about_updates = [question for question in conversations.questions if question.id in updates]
    all_questions = [*selected, *about_updates]
    settings = replace(Settings(), log_level="critical")
    with tempfile.TemporaryDirectory() as folder:
        async with conspectus.open(folder, settings=settings) as engine:
            for conversation in sorted({question.conversation for question in all_questions}):
                turns = map(to_memory, conversations.conversations[conversation])
                await engine.memory.add(list(turns), user=conversation, conversation="chat", wait=True)
            started = time.process_time()
            keys = [await recall_keys(engine, question) for question in all_questions]
            spent = time.process_time() - started
    pairs = zip(keys, selected, strict=False)
    recalls = [recall(turns, question.evidence, depth=DEPTH) for turns, question in pairs]
    pairs = zip(keys[len(selected) :], about_updates, strict=True)
    orders = [_rank_order(turns, *updates[question.id]) for turns, question in pairs]
    return {
        "recall@10": round(100 * fmean(recalls), 2),
        "questions": len(recalls),
        "updates": len(orders),
        "updated before original": orders.count("updated"),
        "original before updated": orders.count("original"),
        "milliseconds of processor time": round(1_000 * spent / len(all_questions), 2),
    }


async def recall_keys(engine: Engine, question: CitedQuestion) -> list[str]:
    """Return the keys of the best turns of a question's conversation."""
    scope = Scope(user=question.conversation, conversation="chat")
    hits = (await engine.memory.recall(question.text, scope=scope, limit=DEPTH)).memories
    return [hit.memory.document.key or "" for hit in hits]


def _rank_order(keys: Sequence[str], original: frozenset[str], updated: frozenset[str]) -> str:
    """Return which of two groups of turns comes first."""
    for key in keys:
        if _turn_number(key) in updated:
            return "updated"
        if _turn_number(key) in original:
            return "original"
    return "neither"


def _turn_number(key: str) -> str:
    return key.rpartition("/")[2].rpartition(":")[2]


def to_rows(counts: dict[str, dict[str, int]]) -> Iterator[list[str]]:
    """Yield a row for each language: shares in percent."""
    for language, count in counts.items():
        updated, unchanged = count["updated: questions"], count["kept: questions"]
        names = ("first", "in three", "outdated before", "both", "filler")
        cells = [f"{100 * count.get(f'updated: {name}', 0) / updated:.0f}" for name in names]
        for name in ("first", "in three", "filler"):
            cells.append(f"{100 * count.get(f'kept: {name}', 0) / unchanged:.0f}")
        yield [language, *cells]


def main() -> None:
    """Measure, print, and keep the figures on request."""
    parser = option_parser(__doc__)
    parser.add_argument("--embedder", default="multilingual", help="minilm or multilingual")
    parser.add_argument("--languages", nargs="*", default=[], help="all by default")
    parser.add_argument("--rounds", type=int, default=8, help="scenes of each language")
    parser.add_argument("--small", action="store_true", help="stores of one to four statements")
    parser.add_argument("--sets", nargs="*", default=[], help="evaluation sets to store as memories")
    parser.add_argument("--questions", type=int, default=200, help="of each set, at most")
    arguments = parser.parse_args()
    figures: dict[str, Any] = {}
    for name in arguments.sets:
        figures[name] = asyncio.run(measure_set(name, questions=arguments.questions))
        print(name, json.dumps(figures[name], indent=2))
    counts = asyncio.run(
        measure_scenes(arguments.embedder, arguments.languages, arguments.rounds, small=arguments.small)
    )
    columns = ["", "current first", "in three", "outdated before it", "both", "a filler in three"]
    columns += ["not updated: first", "in three", "a filler in three"]
    title = f"Statements that later ones update, {LIMIT} results, percent of questions, {arguments.embedder}."
    result = Result.of(title, columns, list(to_rows(counts)), figures={**figures, "scenes": counts})
    name = f"statements-small-{arguments.embedder}" if arguments.small else f"statements-{arguments.embedder}"
    result.shown(name, save=arguments.save)


if __name__ == "__main__":
    main()
