"""Sessions whose windows begin with the previous one: python benchmarks/cache.py DIR… --max-tokens 16000.

Each conversation is a session of 50 turns. Half of its messages are stored before the first turn, the others
between the turns. A turn asks one of the questions, in an order by chance and after its evidence was stored,
or where there are too few questions, the newest message; its window has no evidence to find.
What is measured are the bytes of a window that stand unchanged at the beginning of the next one, and the
evidence in windows that were built with and without the previous one.
"""

import asyncio
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from results import Result, option_parser

from conspectus import Settings
from conspectus.engine import Engine
from conspectus.evals.conversation_sets import read_conversations
from conspectus.evals.datasets import CitedQuestion, ConversationSet
from conspectus.evals.stores import fresh_engine
from conspectus.model.records import NewDocument
from conspectus.model.results import ContextWindow

TURNS = 50


@dataclass(frozen=True)
class Turn:
    """The messages that were stored before a turn, its query, and the evidence that answers it."""

    stored: Sequence[NewDocument]
    query: str
    evidence: frozenset[str] = frozenset()


@dataclass
class Figures:
    """What sessions with windows of so many tokens add up to."""

    tokens: int
    stable: int = 0
    previous_bytes: int = 0
    fresh: list[float] = field(default_factory=list)
    stable_shares: list[float] = field(default_factory=list)

    def cells(self) -> list[str]:
        """Tokens, bytes unchanged, and the evidence without and with the previous window."""
        fresh, stable = fmean(self.fresh), fmean(self.stable_shares)
        shares = (self.stable / self.previous_bytes, fresh, stable, fresh - stable)
        return [f"{self.tokens:,}", *(f"{100 * share:.1f}" for share in shares)]


def sessions(data: ConversationSet, limit: int) -> Iterator[Sequence[Turn]]:
    """A session of 50 turns in each conversation that has questions, or in so many."""
    names = [name for name in data.conversations if questions_of(data, name)]
    for name in names[: limit or None]:
        yield session(name, data.conversations[name], questions_of(data, name))


def questions_of(data: ConversationSet, name: str) -> list[CitedQuestion]:
    """The questions of a conversation that have evidence."""
    return [question for question in data.questions if question.conversation == name and question.evidence]


def session(name: str, messages: Sequence[NewDocument], questions: Sequence[CitedQuestion]) -> Sequence[Turn]:
    """One session: questions in an order by chance, each as soon as its evidence is stored."""
    left = random.Random(name).sample(list(questions), len(questions))
    stored_keys: set[str] = set()
    turns: list[Turn] = []
    done = 0
    for number in range(TURNS):
        until = len(messages) * (TURNS + number) // (2 * TURNS - 1)
        new = messages[done:until]
        stored_keys |= {message.key or "" for message in new}
        done = until
        due = len(left) >= TURNS - number or number % (TURNS // min(len(questions), TURNS)) == 0
        ready = [question for question in left if question.evidence <= stored_keys] if due else []
        if ready:
            left.remove(ready[0])
        query = ready[0].text if ready else messages[until - 1].text
        turns.append(Turn(new, query[:1_000], ready[0].evidence if ready else frozenset()))
    return turns


async def run(engine: Engine, name: str, turns: Sequence[Turn], figures: Sequence[Figures]) -> None:
    """One session in a collection of its own, with windows of each size."""
    await engine.collections.create(name)
    keys: dict[str, str] = {}
    before: list[ContextWindow | None] = [None] * len(figures)
    for turn in turns:
        stored = await engine.add(turn.stored, collection=name) if turn.stored else []
        keys |= {document.id: of.key or "" for document, of in zip(stored, turn.stored, strict=True)}
        await engine.documents.wait_until_embedded(collection=name)
        for position, of in enumerate(figures):
            previous = before[position]
            state = previous.state if previous else None
            window = await engine.window(turn.query, of.tokens, collection=name, previous=state)
            if previous is not None:
                of.stable += size(common(previous.text, window.text))
                of.previous_bytes += size(previous.text)
            if turn.evidence:
                fresh = await engine.window(turn.query, of.tokens, collection=name)
                of.fresh.append(share(fresh, turn.evidence, keys))
                of.stable_shares.append(share(window, turn.evidence, keys))
            before[position] = window


def common(first: str, second: str) -> str:
    """The text with which both begin."""
    pairs = enumerate(zip(first, second, strict=False))
    return first[: next((at for at, (one, other) in pairs if one != other), min(len(first), len(second)))]


def size(text: str) -> int:
    """The bytes of a text."""
    return len(text.encode())


def share(window: ContextWindow, evidence: frozenset[str], keys: Mapping[str, str]) -> float:
    """The share of the evidence that the window cites."""
    cited = {keys[citation.document] for citation in window.citations}
    return len(evidence & cited) / len(evidence)


async def measured(directory: Path, budgets: Sequence[int], limit: int) -> list[list[str]]:
    """A row of a set for each budget."""
    data = read_conversations(directory)
    figures = [Figures(tokens) for tokens in budgets]
    number = 0
    async with fresh_engine(Settings.from_environment()) as engine:
        for number, turns in enumerate(sessions(data, limit), 1):
            await run(engine, f"session-{number}", turns, figures)
    return [[f"{directory.name} ({number})", *of.cells()] for of in figures]


def main() -> None:
    """Print the table of all sets."""
    parser = option_parser(__doc__)
    parser.add_argument("sets", nargs="+", type=Path, help="directories of conversations")
    parser.add_argument("--max-tokens", nargs="+", type=int, default=[4_000, 8_000, 16_000])
    parser.add_argument("--sessions", type=int, default=0, help="sessions of each set (0: all)")
    arguments = parser.parse_args()
    rows = []
    for directory in arguments.sets:
        rows += asyncio.run(measured(directory, arguments.max_tokens, arguments.sessions))
    columns = ["set (conversations)", "tokens", "unchanged", "without", "with", "lost"]
    title = "Bytes that the next window begins with, and evidence without and with the previous window, in %."
    Result.of(title, columns, rows).shown("cache", save=arguments.save)


if __name__ == "__main__":
    main()
