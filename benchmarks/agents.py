"""Many agents on one store at once, for as long as asked: python benchmarks/agents.py --minutes 10.

Five agents work in threads of one process, five more over HTTP on a server of another, all on one folder.
Each is another user with two conversations; it stores, changes, forgets, states facts, asks, and reads back,
as fast as it can. Every text names its owner. At the end each agent's memories must be exactly those that
were acknowledged and not forgotten, word for word, in the order in which they were stored; nobody may ever
have been shown a word of anybody else's, in answers, windows, graphs or lists; and the store must find
nothing wrong with itself.
"""

import argparse
import asyncio
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

import conspectus
from conspectus.errors import NotFound
from conspectus.memory.scopes import graph_name
from conspectus.model.graph import Fact
from conspectus.model.memory import MEMORY, MemorySelection, NewMemory, Scope
from conspectus.text.name_keys import key_of

THREADS = 5
SERVED = 5
PORT = 8_654
SERVE = [sys.executable, "-c", "from conspectus.cli.entry import main; main()", "serve", "--port", str(PORT)]
PLACES = ("Paris", "Oslo", "Lima", "Kyoto", "Accra", "Quito", "Perth", "Turin", "Delhi", "Cairo")
WORDS = (
    "garden",
    "server",
    "invoice",
    "recipe",
    "train",
    "painting",
    "budget",
    "concert",
    "lecture",
    "harbour",
)
CONSOLE = Console(stderr=True)
Engine = conspectus.Engine | conspectus.RemoteEngine


@dataclass
class Agent:
    """One agent with the memories that it expects, by conversation, in order."""

    name: str
    engine: Engine
    chance: random.Random
    texts: dict[str, dict[str, str]] = field(default_factory=lambda: {"morning": {}, "evening": {}})
    took: dict[str, list[float]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    turn: int = 0

    def scope(self, conversation: str | None = None) -> Scope:
        """All of this agent's, or one conversation."""
        return Scope(self.name, "bench", conversation)

    async def work(self, until: float) -> None:
        """Run random operations one after the other until the time is over."""
        acts = (
            [self.store] * 5 + [self.ask] * 3 + [self.change, self.forget, self.window, self.walk, self.read]
        )
        while time.monotonic() < until:
            await self.timed(self.chance.choice(acts))

    async def timed(self, act: Callable[[str], Awaitable[None]]) -> None:
        """Do it, and note how long it took."""
        start = time.perf_counter()
        await act(self.chance.choice(list(self.texts)))
        self.took.setdefault(act.__name__, []).append((time.perf_counter() - start) * 1_000)

    async def store(self, conversation: str) -> None:
        """Store a unique turn; some also state where the agent lives."""
        self.turn += 1
        text = f"{self.name} says {self.turn}: {self.chance.choice(WORDS)} and {self.chance.choice(WORDS)}"
        home = self.chance.choice(PLACES)
        fact = Fact(self.name, "lives in", f"{home} of {self.name}") if self.chance.random() < 0.1 else None
        done = await self.engine.memory.add(NewMemory(text, fact=fact), scope=self.scope(conversation))
        self.texts[conversation][done[0].id] = text
        last = await self.engine.memory.list_recent(scope=self.scope(conversation), limit=1)
        if [memory.text for memory in last] != [text]:
            self.wrong.append(f"{self.name} stored {text!r}, and last was {[memory.text for memory in last]}")

    async def ask(self, conversation: str) -> None:
        """Check that a stored memory is found by its own words, among the agent's own."""
        if not self.texts[conversation]:
            return
        stored_text = self.chance.choice(list(self.texts[conversation].values()))
        recalled = await self.engine.memory.recall(stored_text, scope=self.scope(conversation))
        texts = [hit.memory.text for hit in recalled.memories]
        self.mine("\n".join((*texts, *(name for hit in recalled.memories for name in hit.through))))
        if stored_text not in texts:
            self.wrong.append(f"{self.name} asked for {stored_text!r} and was given {texts}")

    async def window(self, conversation: str) -> None:
        """Check that a window is within the budget and has no text of other agents."""
        window = await self.engine.memory.window(
            self.chance.choice(WORDS), scope=self.scope(conversation), max_tokens=400
        )
        self.mine(window.text)
        if window.tokens > 400:
            self.wrong.append(f"{window.tokens} tokens of 400")

    async def change(self, conversation: str) -> None:
        """The id stays, the place in the order too."""
        if not self.texts[conversation]:
            return
        memory_id = self.chance.choice(list(self.texts[conversation]))
        text = f"{self.texts[conversation][memory_id]}, changed"
        await self.engine.memory.update(memory_id, scope=self.scope(conversation), text=text)
        self.texts[conversation][memory_id] = text

    async def forget(self, conversation: str) -> None:
        """Gone at once, from where it is; not from where it is not."""
        if len(self.texts[conversation]) < 10:
            return
        memory_id = self.chance.choice(list(self.texts[conversation]))
        other = next(name for name in self.texts if name != conversation)
        what = MemorySelection(ids=(memory_id,))
        if (await self.engine.memory.forget(what, scope=self.scope(other))).memories:
            self.wrong.append(f"{self.name} forgot {memory_id} of another conversation")
        if (await self.engine.memory.forget(what, scope=self.scope(conversation))).memories != 1:
            self.wrong.append(f"{self.name} could not forget {memory_id}")
        gone = self.texts[conversation].pop(memory_id)
        recalled = await self.engine.memory.recall(gone, scope=self.scope(conversation))
        if memory_id in {hit.memory.id for hit in recalled.memories}:
            self.wrong.append(f"{self.name} was given {gone!r}, which was forgotten")

    async def walk(self, conversation: str) -> None:
        """The graph of the conversation holds the agent's own places."""
        graph = graph_name(self.scope(conversation))
        try:
            near = await self.engine.graph.neighbors(key_of(self.name), graph=graph, collection=MEMORY)
        except NotFound:
            return
        self.mine(" ".join(neighbor.node.name for neighbor in near))

    async def read(self, conversation: str) -> None:
        """A page of the history, and the count of it."""
        page = await self.engine.memory.list(scope=self.scope(conversation), limit=50)
        self.mine("\n".join(memory.text for memory in page.memories))
        count = await self.engine.memory.count(scope=self.scope(conversation))
        if count != len(self.texts[conversation]):
            self.wrong.append(f"{self.name} has {len(self.texts[conversation])}, and {count} were counted")

    def mine(self, text: str) -> None:
        """Check that a text has nothing of other agents."""
        if others := set(re.findall(r"user\d+x", text)) - {self.name}:
            self.wrong.append(f"{self.name} was shown words of {others}: {text[:200]!r}")

    async def checked(self) -> None:
        """Everything that was acknowledged, and nothing else, word for word and in order."""
        for conversation, texts in self.texts.items():
            listed: list[tuple[str, str]] = []
            after: str | None = None
            while True:
                page = await self.engine.memory.list(scope=self.scope(conversation), after=after, limit=1_000)
                listed += [(memory.id, memory.text) for memory in page.memories]
                after = page.next
                if after is None:
                    break
            if listed != list(texts.items()):
                lost, more = set(texts.items()) - set(listed), set(listed) - set(texts.items())
                self.wrong.append(
                    f"{self.name}/{conversation}: {len(lost)} lost, {len(more)} too many, or out of order"
                )


def in_thread(folder: Path, agent: Agent, until: float) -> threading.Thread:
    """An agent with an event loop of its own, on the engine that its process shares."""

    def run() -> None:
        async def alone() -> None:
            async with conspectus.open(folder) as engine:
                agent.engine = engine
                await agent.work(until)
                await agent.checked()

        try:
            asyncio.run(alone())
        except Exception as fault:  # noqa: BLE001 - any error is a result
            agent.wrong.append(f"{agent.name} ended with {fault!r}")

    thread = threading.Thread(target=run, name=agent.name)
    thread.start()
    return thread


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A server on the folder, in a process of its own."""
    environment = os.environ | {"CONSPECTUS_PATH": str(folder), "CONSPECTUS_LOG_LEVEL": "error"}
    with subprocess.Popen(SERVE, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            if not process.stderr.readline().startswith("listening on"):
                raise SystemExit("the server did not start")
            yield f"http://127.0.0.1:{PORT}"
        finally:
            process.terminate()


async def run(folder: Path, minutes: float) -> list[Agent]:
    """All agents at once."""
    async with conspectus.open(folder) as engine:
        owner = await engine.keys.create_first()
        await engine.memory.add("the store begins", scope=Scope("nobody"))
    assert owner is not None
    with server(folder) as url:
        async with conspectus.connect(url, api_key=owner.secret) as remote:
            names = [f"user{number}x" for number in range(THREADS + SERVED)]
            agents = [Agent(name, remote, random.Random(name)) for name in names]
            await all_at_work(folder, agents, time.monotonic() + minutes * 60)
    return agents


async def all_at_work(folder: Path, agents: list[Agent], until: float) -> None:
    """Run until the time is over, and then until every agent has checked its memories."""
    threads = [in_thread(folder, agent, until) for agent in agents[:THREADS]]
    work = [asyncio.create_task(agent.work(until)) for agent in agents[THREADS:]]
    while any(not task.done() for task in work):
        await asyncio.wait(work, timeout=30)
        CONSOLE.log(f"{sum(agent.turn for agent in agents):,} stored, {wrongs(agents)} wrong")
    await asyncio.gather(*work)
    for thread in threads:
        await asyncio.to_thread(thread.join)
    await asyncio.gather(*(agent.checked() for agent in agents[THREADS:]))


def wrongs(agents: list[Agent]) -> int:
    """How much went wrong so far."""
    return sum(len(agent.wrong) for agent in agents)


def report(agents: list[Agent], minutes: float, problems: list[str]) -> None:
    """How often each thing was done and how long it took, by way."""
    table = Table(title=f"{len(agents)} agents for {minutes:g} minutes")
    for name in ("what", "threads: times", "p50 ms", "p95 ms", "HTTP: times", "p50 ms", "p95 ms"):
        table.add_column(name, justify="left" if name == "what" else "right")
    for act in sorted({name for agent in agents for name in agent.took}):
        cells: list[str] = []
        for group in (agents[:THREADS], agents[THREADS:]):
            took = sorted(time for agent in group for time in agent.took.get(act, []))
            if not took:
                cells += ["0", "", ""]
                continue
            cells += [f"{len(took):,}", f"{took[len(took) // 2]:.1f}", f"{took[int(len(took) * 0.95)]:.1f}"]
        table.add_row(act, *cells)
    Console().print(table)
    counts = Counter({"stored": sum(agent.turn for agent in agents), "wrong": wrongs(agents) + len(problems)})
    print(f"{counts['stored']:,} stored, {counts['wrong']} wrong")
    for line in [line for agent in agents for line in agent.wrong][:20] + problems:
        print(f"  {line}")


async def main() -> int:
    """The whole time, then the store looks at itself."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10)
    minutes = parser.parse_args().minutes
    with TemporaryDirectory() as folder:
        agents = await run(Path(folder), minutes)
        async with conspectus.open(folder) as engine:
            check = await engine.maintenance.check()
        problems = [
            *check.records,
            *(f"{name}: {problem}" for name, rows in check.index.items() for problem in rows),
        ]
        report(agents, minutes, problems)
        return 1 if problems or wrongs(agents) else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
