"""Hostile texts as documents, titles, keys, messages, memories, tasks and nodes: stored, or refused."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.support.hostile_texts import ALPHABET, WORDS

import conspectus
from conspectus import Engine, NewDocument
from conspectus.errors import ConspectusError
from conspectus.model.channels import NewMessage
from conspectus.model.graph import NewEdge, NewNode
from conspectus.model.memory import NewMemory, Scope
from conspectus.model.tasks import Task
from conspectus.testing.embedders import HashedEmbedder

MARK = "walrus"


def generate_hostile_texts() -> Iterator[str]:
    """Yield texts with each sign of the alphabet, alone and around an apostrophe, a digit and a word."""
    for sign, word in zip(ALPHABET, WORDS * 3, strict=False):
        yield from (sign, f"{sign}'{sign}", f"{sign}5{sign}:{sign}", f"{word}{sign}{MARK} {sign}{word}")


TEXTS = tuple(dict.fromkeys(generate_hostile_texts()))


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path / "data", embedder=HashedEmbedder()) as opened:
        yield opened


async def is_accepted(write) -> bool:
    """Whether a write is accepted; else it is refused with an error of ours."""
    try:
        await write
    except ConspectusError:
        return False
    return True


async def check_answers(engine: Engine, collection: str) -> None:
    """Search, window and explanation answer in a collection for every text."""
    assert (await engine.retrieve(MARK, collection=collection)).hits
    for number, text in enumerate(TEXTS[::15]):
        if await is_accepted(engine.retrieve(text, collection=collection)):
            window = await engine.window(text, 20 + 40 * (number % 5), collection=collection)
            assert window.tokens <= 20 + 40 * (number % 5)
    [collection_status] = (await engine.maintenance.status(collection=collection)).collections
    assert (collection_status.lag, collection_status.unindexable, collection_status.fault) == (0, 0, None)


async def test_documents(engine):
    await engine.add([NewDocument(text, title=text) for text in TEXTS])
    accepted = [
        await is_accepted(engine.add(NewDocument(MARK, key=text, author=text))) for text in TEXTS[::7]
    ]
    assert sum(accepted) > 0.9 * len(accepted)
    await check_answers(engine, "default")
    [first, *_] = (await engine.retrieve(MARK)).hits
    for text in TEXTS[::40]:
        await is_accepted(engine.explain(text, 100, document=first.document.id))
    assert (await engine.maintenance.check()).clean


async def test_messages(engine):
    messages = [NewMessage(text, author=text, key=f"m{number}") for number, text in enumerate(TEXTS)]
    await engine.channels.add_messages(messages, channel="harbor", collection="chat")
    await check_answers(engine, "chat")


async def test_memories(engine):
    for text in TEXTS[::9]:
        await is_accepted(engine.memory.add(NewMemory(f"{text} {MARK}", key=text), scope=Scope(user=text)))
        await is_accepted(engine.memory.recall(text, scope=Scope(user="ann")))
    assert await is_accepted(engine.memory.add(NewMemory(MARK), scope=Scope(user="ann")))
    assert (await engine.memory.recall(MARK, scope=Scope(user="ann"))).memories


async def test_tasks(engine):
    tasks = [Task(f"t{number}", f"{text} {MARK}", description=text) for number, text in enumerate(TEXTS[::5])]
    await engine.tasks.put_many(tasks)
    for text in TEXTS[::20]:
        await is_accepted(engine.tasks.put(Task(text, text, tags=(text,))))
        await is_accepted(engine.tasks.search(text))
    assert await engine.tasks.search(MARK)


async def test_nodes(engine):
    nodes = [NewNode(f"{text}.", type=text, name=text, aliases=(text,)) for text in TEXTS[::3]]
    accepted = [node for node in nodes if await is_accepted(engine.graph.add_nodes([node]))]
    assert len(accepted) > 0.5 * len(nodes)
    for before, after in zip(accepted[::9], accepted[1::9], strict=False):
        await is_accepted(engine.graph.add_edges([NewEdge(before.id, after.id, type=after.name)]))
        await is_accepted(engine.graph.neighbors(before.id))
