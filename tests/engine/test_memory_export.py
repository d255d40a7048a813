"""Memories that are carried elsewhere: all of them, all of each, and as often as one likes."""

import json
import pickle
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.memories import ANN, BOB, SETTINGS, keys, person, question, said, say, store

from conspectus import Engine
from conspectus.errors import InvalidInput, NotFound, PermissionDenied, TooLarge
from conspectus.model.access import Principal
from conspectus.model.graph import Fact
from conspectus.model.memory import Memory, MemorySelection, NewMemory, Scope

PAGES = replace(SETTINGS, max_export_lines=100)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with store(tmp_path / "here", PAGES) as opened:
        yield opened


@pytest.fixture
async def elsewhere(tmp_path: Path) -> AsyncIterator[Engine]:
    async with store(tmp_path / "there", PAGES) as opened:
        yield opened


async def export_all(engine: Engine, scope: Scope, collection: str = "memory") -> list[str]:
    """Every line of a scope, page by page."""
    lines: list[str] = []
    after: str | None = None
    while True:
        page = await engine.memory.export(scope=scope, collection=collection, after=after)
        lines += page.lines
        after = page.next
        if after is None:
            return lines


async def list_histories(engine: Engine, scope: Scope) -> list[list[Memory]]:
    """Every memory of a scope with its versions, as far as they are the same in every store."""
    histories = []
    for memory in (await engine.memory.list(scope=scope, limit=1_000)).memories:
        same = replace(memory.document, fingerprint="", updated=memory.document.recorded, metadata={})
        versions = await engine.memory.list_versions(memory.id, scope=scope)
        histories.append([replace(version, document=same) for version in versions])
    return histories


async def add_varied_memories(engine: Engine) -> None:
    """Memories of Ann with all that memories can have."""
    at = datetime(2026, 1, 5, 12, tzinfo=UTC)
    await say(
        engine, ANN,
        NewMemory("Ann lives in Wien.\u2028She said so.", at=at, fact=Fact("Ann", "lives in", "Wien")),
        NewMemory("Be brief.", "n", kind="note", pinned=True, role="user", speaker="Ann", at=at),
        NewMemory("Ann lives in Graz.", "g", at=at + timedelta(days=9), fact=Fact("Ann", "lives in", "Graz")),
        NewMemory("Ann lives in Graz", at=at + timedelta(days=10), entities=("Ann",), metadata={"a": [{}]}),
    )  # fmt: skip
    await say(engine, ANN, "Ann lives in Graz!")
    await say(engine, replace(ANN, conversation=None), NewMemory("\x85 odd \x1c lines", "g"))
    [note] = [memory for memory in (await engine.memory.list(scope=ANN)).memories if memory.kind == "note"]
    for text in ("Be short.", "Be brief."):
        await engine.memory.update(note.id, scope=ANN, text=text)


async def test_two_hundred_and_fifty_are_two_hundred_and_fifty(engine: Engine) -> None:
    await say(engine, BOB, *(said(str(number), number) for number in range(30)))
    await say(engine, ANN, *(NewMemory(f"item {number}", str(number), at=0) for number in range(250)))
    lines = await export_all(engine, ANN)
    assert [json.loads(line)["key"] for line in lines] == [str(number) for number in range(250)]
    few = await engine.memory.export(scope=ANN, limit=7)
    assert (len(few.lines), few.next is None) == (7, False)
    for limit in (0, -1, 101):
        with pytest.raises(InvalidInput):
            await engine.memory.export(scope=ANN, limit=limit)


async def test_exporting_twice_gives_the_same_bytes(engine: Engine) -> None:
    await add_varied_memories(engine)
    assert await export_all(engine, ANN) == await export_all(engine, ANN)


async def test_a_store_that_takes_all_in_is_the_same_store(engine: Engine, elsewhere: Engine) -> None:
    await add_varied_memories(engine)
    lines = await export_all(engine, Scope("ann"))
    imported = await elsewhere.memory.import_lines("\n".join(lines) + "\n")
    assert [memory.outcome for memory in imported] == ["added"] * 6
    assert await export_all(elsewhere, Scope("ann")) == lines
    assert await list_histories(elsewhere, Scope("ann")) == await list_histories(engine, Scope("ann"))
    where = {"graph": "graph/ann/bot/monday", "collection": "memory"}
    here, there = [await store.graph.snapshot(datetime.now(UTC), **where) for store in (engine, elsewhere)]
    assert [node.name for node in there.nodes] == [node.name for node in here.nodes]
    edges = [
        [(edge.id, edge.valid_from, edge.valid_until, edge.evidence) for edge in snapshot.edges]
        for snapshot in (here, there)
    ]
    assert edges[0] == edges[1]
    assert (await elsewhere.memory.recall(**question("brief", ANN))).memories[0].memory.text == "Be brief."


async def test_taking_in_again_changes_nothing(engine: Engine, elsewhere: Engine) -> None:
    await add_varied_memories(engine)
    lines = await export_all(engine, Scope("ann"))
    for target, first in ((engine, "unchanged"), (elsewhere, "added"), (elsewhere, "unchanged")):
        imported = await target.memory.import_lines(lines)
        assert {memory.outcome for memory in imported} == {first}
        assert await export_all(target, Scope("ann")) == lines
        graphs = await target.graph.list(collection="memory")
        assert [(graph.nodes, graph.edges) for graph in graphs] == [(3, 2)]


async def test_what_was_known_when_is_known_there_too(engine: Engine, elsewhere: Engine) -> None:
    [memory] = await say(engine, ANN, NewMemory("the fox is red", "k"))
    before = datetime.now(UTC)
    await engine.memory.update(memory.id, scope=ANN, text="the fox is grey")
    await elsewhere.memory.import_lines(await export_all(engine, ANN))
    for as_of, text in ((None, "the fox is grey"), (before, "the fox is red")):
        recall = await elsewhere.memory.recall(**question("fox", ANN, as_of=as_of))
        assert [hit.memory.text for hit in recall.memories] == [text]
    assert not (
        await elsewhere.memory.recall(**question("fox", ANN, as_of=before - timedelta(days=1)))
    ).memories


async def test_what_was_changed_on_both_sides_is_all_there(engine: Engine, elsewhere: Engine) -> None:
    [memory] = await say(engine, ANN, NewMemory("one", "k"))
    await elsewhere.memory.import_lines(await export_all(engine, ANN))
    await engine.memory.update(memory.id, scope=ANN, text="two")
    await elsewhere.memory.update(memory.id, scope=ANN, text="three")
    for source, target in ((engine, elsewhere), (elsewhere, engine), (engine, elsewhere)):
        await target.memory.import_lines(await export_all(source, ANN))
    for side in (engine, elsewhere):
        versions = await side.memory.list_versions(memory.id, scope=ANN)
        assert [version.text for version in versions] == ["one", "two", "three"]
        assert [version.known_until for version in versions[:-1]] == [
            version.known_from for version in versions[1:]
        ]
    assert await export_all(engine, ANN) == await export_all(elsewhere, ANN)


async def test_an_older_export_takes_nothing_back(engine: Engine) -> None:
    [memory] = await say(engine, ANN, NewMemory("one", "k"))
    lines = await export_all(engine, ANN)
    await engine.memory.update(memory.id, scope=ANN, text="two")
    [imported] = await engine.memory.import_lines(lines)
    assert imported.outcome == "unchanged"
    assert (await engine.memory.get(memory.id, scope=ANN)).text == "two"


async def test_what_was_forgotten_comes_back_when_it_is_taken_in(engine: Engine) -> None:
    [memory] = await say(engine, ANN, NewMemory("one", "k"))
    lines = await export_all(engine, ANN)
    for _ in range(2):
        assert (await engine.memory.forget(MemorySelection((memory.id,)), scope=ANN)).memories == 1
        [imported] = await engine.memory.import_lines(lines)
        assert (imported.id, imported.outcome) == (memory.id, "added")
    assert await export_all(engine, ANN) == lines


async def test_into_another_scope_and_collection(engine: Engine) -> None:
    await add_varied_memories(engine)
    lines = await export_all(engine, ANN)
    await engine.memory.import_lines(lines, scope=Scope("eve"), collection="other")
    there = await export_all(engine, Scope("eve", "bot", "monday"), "other")
    assert [json.loads(line) | {"user": "ann"} for line in there] == [json.loads(line) for line in lines]
    await engine.memory.import_lines(lines, scope=Scope("eve", "crow", "tuesday"))
    assert len(await keys(engine, Scope("eve", "crow", "tuesday"))) == 5
    assert await export_all(engine, ANN) == lines
    with pytest.raises(InvalidInput, match="line 2: has the key of line 1"):
        both = [line for line in await export_all(engine, Scope("ann")) if json.loads(line)["key"] == "g"]
        await engine.memory.import_lines(both, scope=Scope("eve", "crow", "both"))


async def test_nothing_of_a_batch_is_written_that_has_a_fault(engine: Engine, elsewhere: Engine) -> None:
    await say(engine, ANN, *(NewMemory(str(number), str(number)) for number in range(3)))
    lines = await export_all(engine, ANN)
    long = json.loads(lines[1]) | {"metadata": {"a": "x" * 70_000}}
    empty = json.loads(lines[1]) | {"text": "  "}
    for bad in ("{", json.dumps(long), json.dumps(empty), pickle.dumps({}).decode("latin-1")):
        with pytest.raises(InvalidInput, match=r"^line 2"):
            await elsewhere.memory.import_lines([lines[0], bad, lines[2]])
    assert await elsewhere.collections.list() == []


async def test_a_line_has_a_longest(tmp_path: Path) -> None:
    async with store(tmp_path, replace(SETTINGS, max_request_bytes=300)) as engine:
        await say(engine, ANN, NewMemory("short", "k"), NewMemory("x" * 400, "l"))
        with pytest.raises(TooLarge, match="line 2"):
            await engine.memory.import_lines(await export_all(engine, ANN))


async def test_only_who_may_write_there_takes_in(engine: Engine) -> None:
    await add_varied_memories(engine)
    lines = await export_all(engine, ANN)
    ann = await person(engine, "ann")
    with pytest.raises(NotFound):
        await ann.memory.export(scope=ANN)
    home = await engine.collections.get_source("memory/ann/bot/monday", collection="memory")
    await engine.access.grant("memory", Principal("user", "ann"), "viewer", source=home.id)
    assert (await ann.memory.export(scope=Scope("ann"))).lines == tuple(lines)
    for scope in (None, Scope("carl")):
        with pytest.raises(PermissionDenied):
            await ann.memory.import_lines(lines, collection=home.collection, scope=scope)
    assert await export_all(engine, Scope("carl")) == []


async def test_many_stores_at_once_take_in_the_same(engine: Engine, tmp_path: Path) -> None:
    await say(engine, ANN, *(said(str(number), number) for number in range(40)))
    lines = await export_all(engine, ANN)
    async with AsyncExitStack() as stack:
        targets = [await stack.enter_async_context(store(tmp_path / "one", PAGES)) for _ in range(3)]
        for target in targets:
            await target.collections.get_or_create("memory")
        for _ in range(2):
            for target in targets:
                await target.memory.import_lines(lines)
        for target in targets:
            assert await export_all(target, ANN) == lines


async def test_given_vectors_are_exported_and_make_the_same_store(tmp_path: Path) -> None:
    settings = replace(SETTINGS, embedder="vectors:2")
    memories = [
        NewMemory("Ann likes tea.", key="tea", vector=(0.25, -1.5)),
        NewMemory("Ann rides a bike.", key="bike", vector=(1.0, 0.1)),
        NewMemory("Ann has no vector here.", key="none"),
    ]
    async with store(tmp_path / "first", settings) as first, store(tmp_path / "second", settings) as second:
        await first.memory.add(memories, scope=ANN, wait=True)
        lines = await export_all(first, ANN)
        assert [json.loads(line).get("vector_space") for line in lines].count("vectors/2/1") == 2
        assert {written.outcome for written in await second.memory.import_lines(lines)} == {"added"}
        assert await export_all(second, ANN) == lines
        assert {written.outcome for written in await second.memory.import_lines(lines)} == {"unchanged"}
        hits = [await engine.retrieve("?", collection="memory") for engine in (first, second)]
        assert hits[0].hits == hits[1].hits
    async with store(tmp_path / "third", replace(SETTINGS, embedder="minilm")) as third:
        assert {written.outcome for written in await third.memory.import_lines(lines)} == {"added"}
        await third.documents.wait_until_embedded(collection="memory")
        assert not any("vector" in json.loads(line) for line in await export_all(third, ANN))
