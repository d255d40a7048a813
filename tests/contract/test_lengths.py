"""What something is looked up by has one longest size, whatever the store: it is taken, or refused alike."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.stores import SETTINGS

import conspectus
from conspectus import Engine, NewDocument
from conspectus.errors import InvalidInput
from conspectus.model.alerts import NewAlert
from conspectus.model.captions import NewCaption
from conspectus.model.graph import NewEdge, NewNode
from conspectus.model.memory import NewMemory, Scope
from conspectus.model.stream_events import NewEvent
from conspectus.testing.embedders import HashedEmbedder
from conspectus.text.hashing import KEY_BYTES, NAME_BYTES

Use = Callable[[Engine, str], Awaitable[object]]

NAMES: dict[str, Use] = {
    "collection": lambda engine, name: engine.collections.create(name),
    "source": lambda engine, name: engine.add("x", source=name),
    "stream": lambda engine, name: engine.streams.put(name[::-1]),
    "graph": lambda engine, name: engine.graph.add_nodes([NewNode("a")], graph=f"graph/{name[2:]}"),
    "node": lambda engine, name: engine.graph.add_nodes([NewNode(name, name, name, (f"{name[1:]}.",))]),
    "alert": lambda engine, name: engine.alerts.put(NewAlert(name, "fox")),
}
KEYS: dict[str, Use] = {
    "key": lambda engine, key: engine.add(NewDocument("x", key=key)),
    "thread": lambda engine, thread: engine.add(NewDocument("x", thread=thread)),
    "caption": lambda engine, key: engine.streams.add_captions([NewCaption("x", key=key)], stream="s"),
    "event": lambda engine, key: engine.events.add([NewEvent("t", 0, key=key[2:])], stream="s"),
    "memory": lambda engine, key: engine.memory.add(NewMemory("x", key=key), scope=Scope("ada")),
}


def text_of(size: int) -> str:
    """So many bytes that no database can pack into fewer."""
    signs = "".join(chr(0x4E00 + number * number * 7919 % 20_000) for number in range(size // 3))
    return signs + "x" * (size % 3)


@pytest.fixture(params=["segments", "pgvector"])
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> AbstractAsyncContextManager[Engine]:
    index = request.param
    address = tmp_path if index == "segments" else request.getfixturevalue("emptied_url")
    settings = replace(SETTINGS, index=index, cache=str(tmp_path / "cache"))
    return conspectus.open(address, settings=settings, embedder=HashedEmbedder())


@pytest.fixture
async def engine(opening: AbstractAsyncContextManager[Engine]) -> AsyncIterator[Engine]:
    async with opening as opened:
        await opened.streams.put("s")
        yield opened


@pytest.mark.parametrize(("maximum", "uses"), [(NAME_BYTES, NAMES), (KEY_BYTES, KEYS)], ids=["names", "keys"])
async def test_what_is_looked_up_is_taken_up_to_its_limit_and_refused_beyond(
    engine: Engine, maximum: int, uses: dict[str, Use]
) -> None:
    for use in uses.values():
        await use(engine, text_of(maximum))
        for size in (maximum + 1, 3 * maximum, 100 * maximum):
            with pytest.raises(
                InvalidInput, match=f"more than {maximum} bytes| {maximum} characters"
            ) as refused:
                await use(engine, text_of(size))
            assert len(str(refused.value)) < 200


async def test_a_long_address_is_a_key_and_a_thread(engine: Engine) -> None:
    address = f"https://example.org/{'a' * 2_000}"
    await engine.add(NewDocument("x", key=address, thread=address), source="pages")
    stored = await engine.documents.get_by_key(address, source="pages")
    assert (stored.key, stored.thread) == (address, address)


async def test_the_longest_names_meet_in_one_edge(engine: Engine) -> None:
    here, there = (text_of(NAME_BYTES - 1) + sign for sign in "ab")
    await engine.graph.add_nodes([NewNode(here), NewNode(there)])
    await engine.graph.add_edges([NewEdge(here, there, text_of(NAME_BYTES))])
    with pytest.raises(InvalidInput, match=f"type: .*more than {NAME_BYTES} bytes"):
        await engine.graph.add_edges([NewEdge(here, there, text_of(NAME_BYTES + 1))])
    assert [node.id for node in (await engine.graph.list_nodes()).nodes] == [here, there]
