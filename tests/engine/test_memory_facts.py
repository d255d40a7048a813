"""Facts of memories: their validity, corrections and deletion, and recall as of an instant."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.memories import ANN, BOB, person, question, store

from conspectus import Engine
from conspectus.errors import InvalidInput, PermissionDenied
from conspectus.model.access import Principal
from conspectus.model.graph import Edge, Fact, GraphExpansion, Traversal
from conspectus.model.memory import MEMORY, MemorySelection, NewMemory, Scope

PARIS, ROME = "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with store(tmp_path) as opened:
        yield opened


def lives_in(city: str, at: str, **more: Any) -> NewMemory:
    return NewMemory(f"Ann lives in {city}", at=at, fact=Fact("Ann", "lives in", city), **more)


async def list_edges(engine: Engine, scope: Scope = ANN) -> list[Edge]:
    graph = f"graph/{scope.user}/{scope.agent}/{scope.conversation}"
    return list((await engine.graph.list_edges(graph=graph, collection=MEMORY)).edges)


async def read_everything(engine: Engine, scope: Scope = ANN) -> str:
    """All that is said of a scope, by everything that reads it."""
    query_arguments = question("Ann lives in cat mat", scope)
    return repr(
        [
            await engine.memory.list(scope=scope),
            await engine.memory.list_recent(scope=scope),
            (await engine.memory.recall(**query_arguments)).memories,
            (await engine.memory.window(max_tokens=500, **query_arguments)).text,
            [await engine.memory.list_versions(memory.id, scope=scope) for memory in
             (await engine.memory.list(scope=scope)).memories],
            await engine.memory.export(scope=scope),
        ]
    )  # fmt: skip


async def test_memories_of_one_time_keep_their_order(tmp_path: Path) -> None:
    """In every store with the same memories, although their ids are made by chance."""
    texts = [f"Ann saw the cat number {number}" for number in range(12)]
    windows = set()
    for name in "ab":
        async with store(tmp_path / name) as engine:
            for text in texts[:6]:
                await engine.memory.add(NewMemory(text, at=PARIS), scope=ANN)
            await engine.memory.add([NewMemory(text, at=PARIS) for text in texts[6:]], scope=ANN)
            windows.add((await engine.memory.window(max_tokens=500, **question("cat", ANN))).text)
    (window_text,) = windows
    assert [int(part.split()[0]) for part in window_text.split("cat number ")[1:]] == list(range(12))


async def test_as_of_an_instant_no_edge_is_walked_that_came_later(engine: Engine) -> None:
    await engine.memory.add("Yesterday we met Marta Keller again", scope=ANN)
    await engine.memory.add("The boat of Zoltan Nagy sank in the harbour", scope=ANN)
    await engine.graph.wait_until_extracted(collection=MEMORY)
    then = datetime.now(UTC)
    married = Fact("Marta Keller", "married to", "Zoltan Nagy", single=False)
    await engine.memory.add(NewMemory("They married", fact=married), scope=ANN)
    await engine.graph.wait_until_extracted(collection=MEMORY)
    query_arguments = {"query": "Who is close to Marta Keller?", "scope": ANN, "graph": GraphExpansion()}
    now = await engine.memory.recall(**query_arguments)
    before = await engine.memory.recall(**query_arguments, as_of=then)
    ways = [{hit.memory.text: hit.through for hit in response.memories} for response in (now, before)]
    assert ways[0]["The boat of Zoltan Nagy sank in the harbour"] == ("Marta Keller", "Zoltan Nagy")
    assert set(ways[1].values()) == {(), ("Marta Keller",)}
    assert "They married" not in ways[1]


async def test_as_of_an_instant_notes_say_what_they_said_then(engine: Engine) -> None:
    [note] = await engine.memory.add(NewMemory("Answer in French", kind="note"), scope=ANN)
    then = datetime.now(UTC)
    await engine.memory.update(note.id, scope=ANN, text="Answer in Latin")
    [late] = await engine.memory.add(NewMemory("Answer briefly", kind="note"), scope=ANN)
    query_arguments = question("weather", ANN)
    before = await engine.memory.window(max_tokens=300, **query_arguments, as_of=then)
    assert [note.text for note in before.notes] == ["Answer in French"]
    assert "Latin" not in before.text
    now = await engine.memory.window(max_tokens=300, **query_arguments)
    assert {note.text for note in now.notes} == {"Answer in Latin", "Answer briefly"}
    await engine.memory.forget(MemorySelection(ids=(note.id, late.id)), scope=ANN)
    assert (await engine.memory.window(max_tokens=300, **query_arguments, as_of=then)).notes == ()


async def test_what_is_deleted_is_named_by_nothing_that_stays(engine: Engine) -> None:
    [near] = await engine.memory.add("The cat sat on the mat in the hall", scope=ANN)
    [stays] = await engine.memory.add("The cat sat on the mat in the hall!", scope=ANN)
    assert stays.near == (near.id,)
    await engine.memory.add(lives_in("Paris", PARIS), scope=ANN)
    [rome] = await engine.memory.add(lives_in("Rome", ROME), scope=ANN)
    assert near.id in await read_everything(engine)
    assert rome.id in await read_everything(engine)
    await engine.memory.forget(MemorySelection(ids=(near.id, rome.id)), scope=ANN)
    everything = await read_everything(engine)
    assert near.id not in everything
    assert rome.id not in everything
    [paris] = [memory for memory in (await engine.memory.list(scope=ANN)).memories if memory.fact]
    assert paris.valid_until == datetime(2025, 1, 1, tzinfo=UTC)


async def test_a_fact_that_is_told_late_is_ended_by_the_later_one(engine: Engine) -> None:
    [rome] = await engine.memory.add(lives_in("Rome", ROME), scope=ANN)
    [paris] = await engine.memory.add(lives_in("Paris", PARIS), scope=ANN)
    old, new = (await engine.memory.list(scope=ANN)).memories
    assert (old.id, old.closed_by, old.valid_until) == (paris.id, rome.id, datetime(2025, 1, 1, tzinfo=UTC))
    assert (new.id, new.closes, new.valid_until) == (rome.id, (paris.id,), None)


async def test_a_fact_that_has_ended_and_is_told_again_stays_so(engine: Engine) -> None:
    await engine.memory.add(lives_in("Paris", PARIS, key="p"), scope=ANN)
    [rome] = await engine.memory.add(lives_in("Rome", ROME), scope=ANN)
    before = (await engine.memory.list(scope=ANN)).memories
    [again] = await engine.memory.add(lives_in("Paris", PARIS, key="p"), scope=ANN)
    assert again.outcome == "unchanged"
    assert (await engine.memory.list(scope=ANN)).memories == before
    await engine.memory.add(replace(lives_in("Paris", PARIS, key="p"), text="She lived in Paris"), scope=ANN)
    paris = (await engine.memory.list(scope=ANN)).memories[0]
    assert (paris.text, paris.closed_by) == ("She lived in Paris", rome.id)
    assert paris.valid_until == datetime(2025, 1, 1, tzinfo=UTC)


async def test_a_fact_that_is_corrected_does_not_stay_true(engine: Engine) -> None:
    [done] = await engine.memory.add(lives_in("Rome", ROME), scope=ANN)
    await engine.memory.update(done.id, scope=ANN, fact=Fact("Ann", "lives in", "Oslo"))
    assert [edge.target for edge in await list_edges(engine) if edge.valid_until is None] == ["oslo"]
    await engine.memory.update(done.id, scope=ANN, fact=Fact("Ann", "works in", "Oslo"))
    assert [edge.type for edge in await list_edges(engine) if edge.valid_until is None] == ["works in"]
    await engine.memory.update(done.id, scope=ANN, fact=None)
    assert [edge for edge in await list_edges(engine) if edge.valid_until is None] == []
    assert (await engine.memory.forget(MemorySelection(ids=(done.id,)), scope=ANN)).edges == 3
    assert await list_edges(engine) == []


async def test_another_fact_of_an_ended_memory_is_not_born_ended(engine: Engine) -> None:
    [paris] = await engine.memory.add(lives_in("Paris", PARIS), scope=ANN)
    await engine.memory.add(lives_in("Rome", ROME), scope=ANN)
    await engine.memory.update(paris.id, scope=ANN, fact=Fact("Ann", "visited", "Paris", single=False))
    memory = await engine.memory.get(paris.id, scope=ANN)
    assert (memory.closed_by, memory.valid_until) == (None, None)


SPELLINGS = ["Lives In", "lives_in", "LIVES_IN", "lives-in", "lives  in", " lives in.", "the lives in"]


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_spellings_of_a_relation_are_one(engine: Engine, spelling: str) -> None:
    [paris] = await engine.memory.add(lives_in("Paris", PARIS), scope=ANN)
    rome = NewMemory("In Rome", at=ROME, fact=Fact("Ann", spelling, "Rome"))
    [written] = await engine.memory.add(rome, scope=ANN)
    assert written.closed == (paris.id,)
    edges = {edge.target: edge for edge in await list_edges(engine)}
    assert (edges["paris"].closed_by, edges["rome"].type) == (edges["rome"].id, spelling)
    graph = f"graph/{ANN.user}/{ANN.agent}/{ANN.conversation}"
    for type in (spelling, "Lives_in"):
        neighbors = await engine.graph.neighbors(
            "ann", Traversal(types=(type,)), graph=graph, collection=MEMORY
        )
        assert {neighbor.node.id for neighbor in neighbors} == {"paris", "rome"}


async def test_what_a_changed_fact_had_ended_is_true_again(engine: Engine) -> None:
    [paris] = await engine.memory.add(lives_in("Paris", PARIS), scope=ANN)
    [rome] = await engine.memory.add(lives_in("Rome", ROME), scope=ANN)
    await engine.memory.update(rome.id, scope=ANN, fact=Fact("Ann", "works in", "Rome"))
    before, after = [await engine.memory.get(memory.id, scope=ANN) for memory in (paris, rome)]
    assert (before.closed_by, before.valid_until, after.closes) == (None, None, ())
    assert {edge.type: edge.target for edge in await list_edges(engine) if edge.valid_until is None} == {
        "lives in": "paris",
        "works in": "rome",
    }


async def test_what_a_changed_fact_had_ended_is_ended_by_the_next_one(engine: Engine) -> None:
    [paris] = await engine.memory.add(lives_in("Paris", PARIS), scope=ANN)
    [rome] = await engine.memory.add(lives_in("Rome", ROME), scope=ANN)
    [oslo] = await engine.memory.add(lives_in("Oslo", "2026-01-01T00:00:00Z"), scope=ANN)
    await engine.memory.update(rome.id, scope=ANN, fact=None)
    before, last = [await engine.memory.get(memory.id, scope=ANN) for memory in (paris, oslo)]
    assert (before.closed_by, before.valid_until) == (oslo.id, datetime(2026, 1, 1, tzinfo=UTC))
    assert last.closes == (paris.id,)


async def test_a_fact_that_allows_others_ends_none_any_more(engine: Engine) -> None:
    [paris] = await engine.memory.add(lives_in("Paris", PARIS), scope=ANN)
    [rome] = await engine.memory.add(lives_in("Rome", ROME), scope=ANN)
    with pytest.raises(InvalidInput, match=rome.id):
        await engine.memory.update(paris.id, scope=ANN, valid_until=None)
    await engine.memory.update(rome.id, scope=ANN, fact=Fact("Ann", "lives in", "Rome", single=False))
    assert (await engine.memory.get(paris.id, scope=ANN)).closed_by is None
    assert {edge.target for edge in await list_edges(engine) if edge.valid_until is None} == {"paris", "rome"}


async def test_an_end_that_nothing_else_set_can_be_taken_away(engine: Engine) -> None:
    [paris] = await engine.memory.add(lives_in("Paris", PARIS, valid_until=ROME), scope=ANN)
    await engine.memory.update(paris.id, scope=ANN, valid_until=None)
    assert (await engine.memory.get(paris.id, scope=ANN)).valid_until is None
    assert [edge.valid_until for edge in await list_edges(engine)] == [None]


@pytest.mark.parametrize("bad", [Fact("Ann", "\x00", "Rome"), Fact(" ", "is", "b")], ids=repr)
async def test_a_fact_that_cannot_be_stated_is_refused_with_all_others(engine: Engine, bad: Fact) -> None:
    await engine.memory.add("here", scope=ANN)
    with pytest.raises(InvalidInput):
        await engine.memory.add(["good", NewMemory("bad", fact=bad)], scope=ANN)
    assert await engine.memory.count(scope=ANN) == 1
    [memory] = (await engine.memory.list(scope=ANN)).memories
    with pytest.raises(InvalidInput):
        await engine.memory.update(memory.id, scope=ANN, fact=bad)
    assert (await engine.memory.list_versions(memory.id, scope=ANN)) == [memory]


@pytest.mark.parametrize("names", [("Ann", "x" * 1_001, "Rome"), ("A" * 1_001, "is", "b")])
def test_a_fact_of_long_names_is_refused_when_it_is_made(names: tuple[str, str, str]) -> None:
    with pytest.raises(InvalidInput, match="at most 1000 characters"):
        Fact(*names)


async def test_who_may_not_write_a_graph_states_no_fact(engine: Engine) -> None:
    await engine.keys.create_first()
    [first] = await engine.memory.add("here", scope=ANN)
    await engine.memory.add("there", scope=BOB)
    eve = await person(engine, "eve")
    user = next(user for user in await engine.people.list_users() if user.name == "eve")
    home = (await engine.documents.get(first.id)).source
    await engine.access.grant(MEMORY, Principal("user", user.id), "editor", source=home)
    await eve.memory.add("a plain word", scope=ANN)
    with pytest.raises(PermissionDenied):
        await eve.memory.add(["one", lives_in("Rome", ROME)], scope=ANN)
    assert [memory.text for memory in (await eve.memory.list(scope=ANN)).memories] == ["here", "a plain word"]
