"""Where an agent's context may be kept, from where it may be used, and what is left of it."""

import asyncio
import gc
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.agent_stores import SETTINGS, contents_of, store
from tests.support.served import served

import conspectus
from conspectus.errors import ConspectusError, InvalidInput, StoreClosed
from conspectus.facades.agent import (
    AgentContext,
    AgentMemory,
    AsyncAgentContext,
    AsyncContextGraph,
    ContextGraph,
    ContextRetriever,
    EntityLinker,
)
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.app import application

PROGRAM = """
import sys
from conspectus.facades.agent import AgentContext, ContextGraph

context = AgentContext(knowledge_graph=ContextGraph(), user_id="ada")
if len(sys.argv) > 1:
    context.store("The kettle is red.")
    context.graph.add_nodes([{"id": "kettle"}])
    print([each["content"] for each in context.retrieve("kettle")])
"""


@pytest.fixture(autouse=True)
def words_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model for stores that are opened by themselves."""
    monkeypatch.setenv("CONSPECTUS_EMBEDDER", "none")


def test_a_path_keeps_what_is_remembered(tmp_path: Path) -> None:
    with AgentContext(tmp_path / "kept", user_id="ada") as context:
        memory_id = context.store("The kettle is red.", conversation_id="a")
        context.graph.add_nodes([{"id": "kettle", "content": "It whistles."}])
    with AgentContext(str(tmp_path / "kept"), user_id="ada") as again:
        assert [turn.id for turn in again.short_term_memory] == [memory_id]
        assert set(contents_of(again.retrieve("kettle"))) == {"The kettle is red.", "It whistles."}
    again.close()
    with pytest.raises(StoreClosed, match="closed"):
        again.count()


def test_without_a_store_everything_is_gone_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with AgentContext() as context:
        context.store("A passing thought.")
        assert contents_of(context.retrieve("thought")) == ["A passing thought."]
    context = AgentContext()
    context.store("Another.")
    del context
    gc.collect()
    for thread in [thread for thread in threading.enumerate() if thread.name.startswith("conspectus")]:
        thread.join(30)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("conspectus")]


@pytest.mark.parametrize("used", [True, False])
def test_nothing_is_left_of_a_program_that_closes_nothing(tmp_path: Path, used: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, *(["use"] if used else [])],
        env={"TMPDIR": str(tmp_path), "PATH": "", "CONSPECTUS_EMBEDDER": "none"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ("['The kettle is red.']\n" if used else "")
    assert (done.stderr, list(tmp_path.iterdir())) == ("", [])


@pytest.mark.parametrize("odd", [3, object(), {"vectors": []}, [], b"path"])
def test_other_stores_are_refused(odd: object) -> None:
    for kind in (AgentContext, AgentMemory, ContextGraph, AsyncAgentContext, EntityLinker):
        with pytest.raises(InvalidInput, match="vector_store"):
            kind(odd)


def test_parts_of_one_context_share_its_store(tmp_path: Path) -> None:
    with store(tmp_path) as engine:
        context = AgentContext(engine, user_id="ada")
        AgentMemory(context, user_id="ada").store("Tea at four.")
        assert contents_of(ContextRetriever(context, context.graph).retrieve("tea")) == ["Tea at four."]
        assert contents_of(context.retriever.retrieve("tea")) == ["Tea at four."]
        EntityLinker(context).assign_uri("tea", "Tea", "drink")
        assert context.graph.get_node("tea")["type"] == "drink"
        assert ContextGraph(context, name=context.graph.name).get_node("tea") is not None
        assert context.count() == 1


def test_a_part_leaves_the_store_of_the_whole_open() -> None:
    with AgentContext(knowledge_graph=ContextGraph()) as context:
        with AgentMemory(context) as memory, context.graph, context.linker, ContextRetriever(context):
            memory.store("Still here.")
        assert context.count() == 1
    with pytest.raises(StoreClosed, match="closed"):
        context.graph.get_nodes()


async def test_asynchronous_parts_close_what_they_opened() -> None:
    async with AsyncAgentContext() as context:
        async with AsyncContextGraph(context) as graph:
            assert await graph.add_nodes([{"id": "a"}]) == 1
        assert await context.store("Open.") and await context.count() == 1
    async with AsyncContextGraph() as alone:
        assert await alone.get_nodes() == []
    with pytest.raises(StoreClosed, match="closed"):
        await alone.get_nodes()


def test_each_part_works_alone() -> None:
    with ContextGraph() as graph, AgentMemory() as memory, ContextRetriever(memory) as retriever:
        assert graph.add_nodes([{"id": "a"}]) == 1
        memory.store("Alone.")
        assert contents_of(retriever.retrieve("alone")) == ["Alone."]
    with EntityLinker() as linker:
        assert linker.assign_uri("a").endswith("a#entity")


def test_a_graph_moves_into_the_store_of_a_context(tmp_path: Path) -> None:
    graph = ContextGraph(name="world")
    graph.add_nodes([{"id": "tea", "content": "Tea is brewed."}, {"id": "cup"}])
    graph.add_edges([{"source_id": "tea", "target_id": "cup"}])
    with AgentContext(tmp_path / "kept", graph, user_id="ada") as context:
        assert context.graph is graph
        assert [neighbor["id"] for neighbor in graph.get_neighbors("tea")] == ["cup"]
        assert graph.add_nodes([{"id": "pot"}]) == 1
        assert contents_of(context.retrieve("tea", user_id="bob")) == ["Tea is brewed."]
    with ContextGraph(tmp_path / "kept", name="world") as again:
        assert len(again.get_nodes()) == 3
        with pytest.raises(InvalidInput, match="another store"):
            AgentContext(tmp_path / "other", again)


def test_a_context_may_be_kept_where_its_graph_is() -> None:
    with AgentContext(knowledge_graph=ContextGraph()) as context:
        context.graph.add_nodes([{"id": "a"}])
        context.store("b")
        assert (context.count(), len(context.graph.get_nodes())) == (1, 1)


async def exercise(context: AsyncAgentContext) -> list[object]:
    """Everything that matters, once."""
    memory_ids = await context.store(["The red door.", "A dog barks."], conversation_id="a")
    await context.store("Keep it short.", kind="note")
    await context.graph.add_nodes([{"id": "door", "content": "Doors open."}, {"id": "key"}])
    await context.graph.add_edges([{"source_id": "door", "target_id": "key", "weight": 0.5}])
    await context.update(memory_ids["ids"][0], "The blue door.")
    window = await context.query_with_context("door", conversation_id="a", max_tokens=100)
    return [
        sorted(contents_of(await context.retrieve("door", 2))),
        contents_of(await context.conversation("a")),
        [turn.content for turn in await context.short_term()],
        [(neighbor["id"], neighbor["decay"]) for neighbor in await context.get_neighbors("door")],
        "Keep it short." in window["context"],
        len(await context.export()),
        await context.count(user_id="nobody"),
        await context.forget(memory_ids["ids"][1]),
        await context.clear(),
    ]


async def test_here_on_a_server_and_in_a_thread_it_is_the_same(tmp_path: Path) -> None:
    expected = [
        ["Doors open.", "The blue door."],
        ["The blue door.", "A dog barks."],
        ["The blue door.", "A dog barks."],
        [("key", 0.5)],
        *(True, 3, 0, 1, 2),
    ]
    embedder = HashedEmbedder()
    async with conspectus.open(tmp_path / "here", settings=SETTINGS, embedder=embedder) as engine:
        assert await exercise(AsyncAgentContext(engine, user_id="here")) == expected
        async with (
            served(application(engine, SETTINGS)) as url,
            conspectus.connect(url, settings=SETTINGS) as remote,
        ):
            assert await exercise(AsyncAgentContext(remote, user_id="there")) == expected
        blocking = AgentContext(engine, user_id="thread")
        assert await asyncio.to_thread(lambda: blocking.store("From a thread.")) is not None
        with pytest.raises(InvalidInput, match="loop"):
            blocking.count()
        assert await asyncio.to_thread(blocking.count) == 1
    async with AsyncAgentContext(user_id="own") as private:
        assert await exercise(private) == expected


async def test_a_blocking_engine_serves_tasks(tmp_path: Path) -> None:
    with store(tmp_path) as engine:
        context = AsyncAgentContext(engine, AsyncContextGraph(engine), user_id="ada")
        ids = await asyncio.gather(*(context.store(f"Task {number}.") for number in range(20)))
        assert (len(set(ids)), await context.count()) == (20, 20)


def test_many_threads_lose_and_cross_nothing(tmp_path: Path) -> None:
    with store(tmp_path) as engine:
        context = AgentContext(engine)

        def work(number: int) -> int:
            user = f"user {number % 5}"
            context.store(f"Thought {number} of {user}.", user_id=user, extract_entities=number % 3 == 0)
            texts = contents_of(context.retrieve(f"Thought {number}", 50, user_id=user))
            assert (
                all(text.endswith(f"{user}.") for text in texts) and f"Thought {number} of {user}." in texts
            )
            return number

        with ThreadPoolExecutor(8) as pool:
            assert sorted(pool.map(work, range(40))) == list(range(40))
        assert [context.count(user_id=f"user {number}") for number in range(5)] == [8] * 5


def test_a_store_that_cannot_be_opened_says_so_each_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with AgentContext(tmp_path / "file" / "below") as context:
        for _ in range(2):
            with pytest.raises(ConspectusError):
                context.store("x")
