"""What windows lose of the evidence among the ten best, by cause: python benchmarks/window_losses.py DIR DIR.

Each question of a conversation set is asked once, and a window of each budget is built. Of the turns of
evidence that are among the ten best, those that the window does not cite are counted, each by one cause:

- `too long`: its text alone is longer than the window.
- `duplicate`: the window has the same text elsewhere.
- `better texts`: the texts of better hits and its own, without any header, are longer than the window.
- `headers`: the texts would fit, if numbers, times, names and marks took no room.

`lower` counts those in whose place hits of a lower rank are shown, of any cause. All figures are percent of
the evidence, as means over questions.
"""

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from results import Result, option_parser

import conspectus
from conspectus import Budget, Settings
from conspectus.engine import Engine
from conspectus.evals.conversation_queries import QueryBuilder
from conspectus.evals.conversation_sets import read_conversations
from conspectus.evals.datasets import ConversationSet, spread
from conspectus.evals.stores import fresh_engine, store_documents
from conspectus.model.results import ContextWindow, Hit
from conspectus.providers.tokenizers import counter
from conspectus.window.build import build_window
from conspectus.window.render import renderer_by_name

BUDGETS = (256, 512, 1024, 2048)
TOKENIZER = "o200k_base"
COUNT = counter(TOKENIZER)
CANDIDATES = 50
DEPTH = 10
CAUSES = ("too long", "duplicate", "better texts", "headers", "lower")


def count_losses(
    hits: Sequence[Hit], window: ContextWindow, keys: Mapping[str, str], evidence: frozenset[str]
) -> Counter[str]:
    """The number of turns among the ten best that the window lacks, by cause."""
    turns = list(dict.fromkeys(keys[hit.document.id] for hit in hits))[:DEPTH]
    cited = {keys[citation.document] for citation in window.citations}
    entries = {entry.chunk: entry for entry in window.trace}
    shown_ranks = [entry.rank for entry in window.trace if entry.status in {"included", "truncated"}]
    tokens = [COUNT(hit.chunk.text) for hit in hits]
    losses: Counter[str] = Counter()
    for turn in evidence.intersection(turns) - cited:
        position = next(number for number, hit in enumerate(hits) if keys[hit.document.id] == turn)
        entry = entries[hits[position].chunk.id]
        if entry.status in {"duplicate", "near_duplicate"}:
            losses["duplicate"] += 1
        elif tokens[position] > window.max_tokens:
            losses["too long"] += 1
        elif sum(tokens[: position + 1]) > window.max_tokens:
            losses["better texts"] += 1
        else:
            losses["headers"] += 1
        losses["lower"] += max(shown_ranks, default=0) > entry.rank
    return losses


async def measure(
    engine: Engine, conversation_set: ConversationSet, keys: Mapping[str, str], *, limit: int, name: str
) -> list[list[str]]:
    """The rows of a set: one for each budget."""
    queries = QueryBuilder(engine, conversation_set)
    questions = spread(conversation_set.questions, limit or None)
    recalls: list[float] = []
    cited: dict[int, list[float]] = {budget: [] for budget in BUDGETS}
    lost: dict[int, list[dict[str, float]]] = {budget: [] for budget in BUDGETS}
    for question in questions:
        query = replace(await queries.query(question), limit=CANDIDATES)
        retrieval = await engine.retrieve(query)
        turns = list(dict.fromkeys(keys[hit.document.id] for hit in retrieval.hits))[:DEPTH]
        recalls.append(len(question.evidence.intersection(turns)) / len(question.evidence))
        for budget in BUDGETS:
            window = build_window(retrieval, Budget(budget, TOKENIZER), renderer_by_name("text"), COUNT)
            cited_turns = {keys[citation.document] for citation in window.citations}
            cited[budget].append(len(question.evidence & cited_turns) / len(question.evidence))
            losses = count_losses(retrieval.hits, window, keys, question.evidence)
            lost[budget].append({cause: losses[cause] / len(question.evidence) for cause in CAUSES})
    return [
        [
            f"{name}, {budget:,}",
            str(len(questions)),
            f"{100 * fmean(recalls):.1f}",
            f"{100 * fmean(cited[budget]):.1f}",
            *(f"{100 * fmean(losses[cause] for losses in lost[budget]):.1f}" for cause in CAUSES),
        ]
        for budget in BUDGETS
    ]


async def measure_set(directory: Path, limit: int, stores: Path | None) -> list[list[str]]:
    """The rows of a set, which is stored anew, or is in a store that holds it with its keys beside it."""
    settings = replace(Settings.from_environment(), log_level="critical")
    conversation_set = read_conversations(directory)
    if stores is not None:
        store = stores / directory.name
        keys = json.loads(store.with_suffix(".json").read_text(encoding="utf-8"))
        async with conspectus.open(str(store), settings=settings) as engine:
            return await measure(engine, conversation_set, keys, limit=limit, name=directory.name)
    async with fresh_engine(settings) as engine:
        keys_by_source = await store_documents(engine, conversation_set.conversations, None)
        keys = {document: key for some in keys_by_source.values() for document, key in some.items()}
        return await measure(engine, conversation_set, keys, limit=limit, name=directory.name)


def measure_losses(directories: Sequence[Path], limit: int, stores: Path | None = None) -> Result:
    """Return the table of sets."""
    rows: list[list[str]] = []
    for directory in directories:
        rows += asyncio.run(measure_set(directory, limit, stores))
    title = "Percent of the evidence: among the ten best, in windows, and what windows lack of the ten best."
    columns = ["set, tokens", "questions", "ten best", "in windows", *CAUSES]
    return Result.of(title, columns, rows)


def arguments_of(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The arguments of the command line."""
    parser.add_argument("sets", nargs="+", type=Path, help="directories of conversation sets")
    parser.add_argument("--limit", type=int, default=0, help="questions of each set (0: all)")
    parser.add_argument("--stores", type=Path, help="folder of stores that hold the sets, by name")
    return parser.parse_args()


def main() -> None:
    """Print the table of all sets."""
    arguments = arguments_of(option_parser(__doc__))
    table = measure_losses(arguments.sets, arguments.limit, arguments.stores)
    table.shown("windows", save=arguments.save)


if __name__ == "__main__":
    main()
