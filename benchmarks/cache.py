"""Sessions whose windows begin with the previous one: python benchmarks/cache.py DIR… --max-tokens 16000.

Each set of conversations is asked in sessions of 50 turns. Half of the messages are stored before the first
turn, the others between the turns; a question is asked after its evidence was stored. Sets with few questions
put several conversations into one session, and fill it with messages, whose windows have no evidence to find.
What is measured are the bytes of a window that stand unchanged at the beginning of the next one, and the
evidence in windows that were built with and without the previous one.
"""

import argparse
import asyncio
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from conspectus import Settings
from conspectus.engine import Engine
from conspectus.evals.asked import read_conversations
from conspectus.evals.datasets import CitedQuestion, ConversationSet
from conspectus.evals.run import fresh_engine
from conspectus.model.records import NewDocument
from conspectus.model.results import ContextWindow

TURNS = 50
Key = tuple[str, str]
"""A conversation and the key of a message in it."""


@dataclass(frozen=True)
class Turn:
    """The messages that were stored before a turn, its query, and the evidence that answers it."""

    stored: Sequence[tuple[str, NewDocument]]
    query: str
    evidence: frozenset[Key] = frozenset()


@dataclass
class Figures:
    """What sessions add up to."""

    stable: int = 0
    whole: int = 0
    planned: int = 0
    breaks: int = 0
    fresh: list[float] = field(default_factory=list)
    kept: list[float] = field(default_factory=list)
    filled: list[float] = field(default_factory=list)

    def report(self) -> Mapping[str, float]:
        """Shares from 0 to 100."""
        fresh, kept = fmean(self.fresh), fmean(self.kept)
        shares = {
            "unchanged": self.stable / self.whole,
            "unchanged by plan": self.planned / self.whole,
            "evidence without": fresh,
            "evidence with": kept,
            "evidence lost": fresh - kept,
            "filled": fmean(self.filled),
        }
        counts = {"windows": len(self.filled), "questions": len(self.fresh), "breaks": self.breaks}
        return {**{name: round(100 * share, 1) for name, share in shares.items()}, **counts}


def sessions(data: ConversationSet, limit: int) -> Iterator[Sequence[Turn]]:
    """Sessions of 50 turns, over as many conversations as have enough questions."""
    pool: list[str] = []
    asked: list[CitedQuestion] = []
    made = 0
    names = list(data.conversations)
    for name in names:
        pool.append(name)
        asked += [each for each in data.questions if each.conversation == name and each.evidence]
        if len(asked) >= TURNS or name == names[-1]:
            yield session(data, pool, asked)
            made += 1
            if made == limit:
                return
            pool, asked = [], []


def session(data: ConversationSet, pool: Sequence[str], asked: Sequence[CitedQuestion]) -> Sequence[Turn]:
    """One session: questions in an order by chance, each as soon as its evidence is stored."""
    messages = [(name, each) for name in pool for each in data.conversations[name]]
    places = {
        (name, each.key): at / len(data.conversations[name])
        for name in pool
        for at, each in enumerate(data.conversations[name])
    }
    messages.sort(key=lambda pair: places[pair[0], pair[1].key])
    left = random.Random(pool[0]).sample(list(asked), len(asked))
    known: set[Key] = set()
    turns: list[Turn] = []
    done = 0
    for number in range(TURNS):
        until = len(messages) * (TURNS + number) // (2 * TURNS - 1)
        new = messages[done:until]
        known |= {(name, each.key or "") for name, each in new}
        done = until
        due = len(left) >= TURNS - number or number % max(TURNS // max(len(asked), 1), 1) == 0
        ready = [each for each in left if evidence(each) <= known] if due else []
        if ready:
            left.remove(ready[0])
        query = ready[0].text if ready else messages[until - 1][1].text
        turns.append(Turn(new, query[:1_000], evidence(ready[0]) if ready else frozenset()))
    return turns


def evidence(question: CitedQuestion) -> frozenset[Key]:
    """The messages that answer a question."""
    return frozenset((question.conversation, key) for key in question.evidence)


async def run(engine: Engine, name: str, turns: Sequence[Turn], tokens: int, figures: Figures) -> None:
    """One session in a collection of its own."""
    await engine.collections.create(name)
    keys: dict[str, Key] = {}
    before: ContextWindow | None = None
    for turn in turns:
        for source in dict.fromkeys(source for source, _ in turn.stored):
            new = [each for of, each in turn.stored if of == source]
            stored = await engine.add(new, source=source, collection=name)
            keys |= {each.id: (source, of.key or "") for each, of in zip(stored, new, strict=True)}
        await engine.documents.wait_until_embedded(collection=name)
        state = before.state if before else None
        window = await engine.window(turn.query, tokens, collection=name, previous=state)
        if before is not None and window.cache_plan is not None:
            figures.stable += size(common(before.text, window.text))
            figures.whole += size(before.text)
            figures.planned += window.cache_plan.stable_bytes
            figures.breaks += bool(window.cache_plan.breaks)
        figures.filled.append(window.tokens / tokens)
        if turn.evidence:
            fresh = await engine.window(turn.query, tokens, collection=name)
            figures.fresh.append(share(fresh, turn.evidence, keys))
            figures.kept.append(share(window, turn.evidence, keys))
        before = window


def common(first: str, second: str) -> str:
    """The text with which both begin."""
    pairs = enumerate(zip(first, second, strict=False))
    return first[: next((at for at, (one, other) in pairs if one != other), min(len(first), len(second)))]


def size(text: str) -> int:
    """The bytes of a text."""
    return len(text.encode())


def share(window: ContextWindow, wanted: frozenset[Key], keys: Mapping[str, Key]) -> float:
    """The share of the evidence that the window cites."""
    cited = {keys[each.document] for each in window.citations}
    return len(wanted & cited) / len(wanted)


async def measured(directory: Path, budgets: Sequence[int], limit: int) -> None:
    """Print the figures of a set for each budget."""
    data = read_conversations(directory)
    for tokens in budgets:
        figures = Figures()
        async with fresh_engine(Settings.from_environment()) as engine:
            for number, turns in enumerate(sessions(data, limit)):
                await run(engine, f"session-{number}", turns, tokens, figures)
        print(directory.name, tokens, json.dumps(figures.report()), flush=True)


def main() -> None:
    """Print the figures of each set as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="+", type=Path, help="directories of conversations")
    parser.add_argument("--max-tokens", nargs="+", type=int, default=[4_000, 8_000, 16_000])
    parser.add_argument("--sessions", type=int, default=0, help="sessions of each set (0: all)")
    given = parser.parse_args()
    for directory in given.sets:
        asyncio.run(measured(directory, given.max_tokens, given.sessions))


if __name__ == "__main__":
    main()
