"""Conversations: the effect of each part of a score on each set."""

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TypeAlias

from conspectus.evals.conversation_queries import QueryBuilder, profile_without
from conspectus.evals.conversation_sets import read_conversations
from conspectus.evals.datasets import CitedQuestion
from conspectus.evals.measures import percent, recall
from conspectus.evals.stores import fresh_engine, store_documents
from conspectus.model.query import Budget
from conspectus.ports import Progress
from conspectus.retrieval.profiles import part_names
from conspectus.settings import Settings

Figures: TypeAlias = tuple[float, float]
"""Recall of evidence among the ten best turns, and in the window, from 0 to 100."""

_KINDS = frozenset({"thread", "reply"})
_HITS = 120


def rankings() -> dict[str, str | None]:
    """The compared profiles, by the names of the rows; None: queries without a query context."""
    parts = part_names("default")
    others = {part: [other_part for other_part in parts if other_part != part] for part in parts}
    return {
        "without a query context": None,
        "default": "default",
        **{f"default without {part}": profile_without("default", [part]) for part in parts},
        "base (words and vectors)": profile_without("default", parts),
        **{f"base and {part}": profile_without("default", rest) for part, rest in others.items()},
        "product": "multiplicative",
        "product without its minimum": profile_without("multiplicative", ["min_similarity"]),
    }


async def compare(
    directory: str | Path,
    profiles: Mapping[str, str | None],
    *,
    maximum: int,
    budget: int = 2048,
    progress: Progress | None = None,
) -> dict[str, dict[str, Figures]]:
    """The figures of each profile by kind of question: `thread` and `reply` of chats, else `all`.

    At most `maximum` questions of each kind are asked, evenly spread over the set. Raises InvalidInput.
    """
    conversation_set = read_conversations(Path(directory))
    async with fresh_engine(Settings.from_environment()) as engine:
        keys = await store_documents(engine, conversation_set.conversations, progress)
        every = {
            document: key
            for conversation_keys in keys.values()
            for document, key in conversation_keys.items()
        }
        kinds = _by_kind(conversation_set.questions, maximum)
        figures: dict[str, dict[str, Figures]] = {kind: {} for kind in kinds}
        for done, (kind, name) in enumerate(product(kinds, profiles), start=1):
            queries = QueryBuilder(engine, conversation_set, profiles[name])
            answers = [await _answer(queries, question, every, budget=budget) for question in kinds[kind]]
            figures[kind][name] = (percent([a for a, _ in answers]), percent([b for _, b in answers]))
            if progress is not None:
                progress(f"{kind}: {name}", done, len(kinds) * len(profiles))
    return figures


async def _answer(
    queries: QueryBuilder, question: CitedQuestion, keys: Mapping[str, str], *, budget: int
) -> Figures:
    """Both shares from one window: its trace has the ranking, its citations what fits."""
    window = await queries.engine.window(await queries.query(question), Budget(budget), limit=_HITS)
    passing = [entry for entry in window.trace if entry.status != "below_min_similarity"]
    ranking = list(dict.fromkeys(keys[entry.document] for entry in passing))
    cited = [keys[citation.document] for citation in window.citations]
    return (
        recall(ranking, question.evidence, depth=10),
        recall(cited, question.evidence, depth=len(cited)),
    )


def _by_kind(questions: Sequence[CitedQuestion], maximum: int) -> dict[str, list[CitedQuestion]]:
    kinds: dict[str, list[CitedQuestion]] = {}
    for question in questions:
        kind = question.category if question.category in _KINDS else "all"
        kinds.setdefault(kind, []).append(question)
    return {kind: _spread(of_kind, maximum) for kind, of_kind in kinds.items()}


def _spread(questions: Sequence[CitedQuestion], maximum: int) -> list[CitedQuestion]:
    if len(questions) <= maximum:
        return list(questions)
    return [questions[number * len(questions) // maximum] for number in range(maximum)]


def main() -> None:
    """Ask the questions of every set with all parts, without each, with each alone, and by the product."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directories", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--questions", type=int, default=1_000, help="most of each kind in each set")
    parser.add_argument("--budget", type=int, default=2_048, help="tokens of the window")
    arguments = parser.parse_args()
    figures = ablation(arguments.directories, maximum=arguments.questions, budget=arguments.budget)
    print(json.dumps(figures, indent=2))


def ablation(
    directories: Sequence[Path], *, maximum: int, budget: int = 2_048
) -> dict[str, dict[str, Figures]]:
    """The figures of each profile by set, and by kind of question where it is not `all`."""
    by_set: dict[str, dict[str, Figures]] = {}
    for directory in directories:
        measure = compare(directory, rankings(), maximum=maximum, budget=budget, progress=_show_progress)
        for kind, figures in asyncio.run(measure).items():
            by_set[directory.name if kind == "all" else f"{directory.name}, {kind}"] = figures
    return by_set


def _show_progress(what: str, done: int, total: int) -> None:
    print(f"{what}: {done} of {total}", file=sys.stderr)


if __name__ == "__main__":
    main()
