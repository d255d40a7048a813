"""A program beside others of its kind: it speaks into one conversation, states facts, or takes them back."""

import asyncio
import sys
from dataclasses import replace

import conspectus
from conspectus.engine import Engine
from conspectus.errors import NotFound
from conspectus.model.graph import Fact
from conspectus.model.memory import MemorySelection, NewMemory, Scope
from conspectus.settings import Settings

SETTINGS = replace(Settings(), embedder="none", log_level="critical", retention_interval_minutes=0)
ANN = Scope("ann", "bot", "monday")
TASKS = 4
EACH = 12
ROUNDS = 5
NAMED = 450


async def add_turns(engine: Engine, who: str) -> None:
    """Several tasks speak into the same conversation, each of them one turn after the other."""

    async def speak(task: int) -> None:
        for number in range(EACH):
            await engine.memory.add(f"{who}-{task} says {number:03d}", scope=ANN)

    await asyncio.gather(*map(speak, range(TASKS)))


async def add_contradicting_facts(engine: Engine, who: str) -> None:
    """Where Ann lives, of which each time only one can be true."""
    for number in range(ROUNDS):
        town = f"{who}town {number}"
        memory = NewMemory(f"Ann lives in {town}", fact=Fact("Ann", "lives in", town))
        await engine.memory.add(memory, scope=ANN)


async def change_memories(engine: Engine, who: str) -> None:
    """Change what the others forget, until it is gone."""
    for number in range(ROUNDS):
        [done] = await engine.memory.add(NewMemory(f"thing {number}", key=f"k{number}"), scope=ANN)
        try:
            for turn in range(3):
                await engine.memory.update(done.id, scope=ANN, text=f"{who} {number} {turn}")
        except NotFound:
            continue
        await engine.memory.forget(MemorySelection(ids=(done.id,)), scope=ANN)


async def add_named_people(engine: Engine, who: str) -> None:
    """Say much that names are in, and begin to look for them."""
    memories = [f"{who} saw {first_name(number)} Nagy in the harbour." for number in range(NAMED)]
    await engine.memory.add(memories, scope=ANN)
    print("told", flush=True)
    await asyncio.Event().wait()


def first_name(number: int) -> str:
    """A first name of its own."""
    return "Zol" + "".join("abcdefghij"[int(digit)] for digit in f"{number:04d}")


async def main(path: str, what: str, who: str) -> None:
    async with conspectus.open(path, settings=SETTINGS) as engine:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await {
            "say": add_turns,
            "state": add_contradicting_facts,
            "change": change_memories,
            "name": add_named_people,
        }[what](engine, who)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
