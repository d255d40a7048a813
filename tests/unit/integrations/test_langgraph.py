"""The store and the checkpointer for LangGraph: its conformance kit, and its own store as the reference."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TypedDict
from uuid import uuid4

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.test_utils import (
    generate_config,
    put_test_checkpoint,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore, InvalidNamespaceError
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt
from tests.support.served import served

import conspectus
from conspectus import Settings
from conspectus.errors import InvalidInput, TooLarge
from conspectus.integrations.langgraph import ConspectusSaver, ConspectusStore
from conspectus.sync import BlockingEngine
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.app import application

SETTINGS = replace(Settings(), log_level="critical")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[BlockingEngine]:
    with conspectus.open(tmp_path, embedder=HashedEmbedder()) as opened:
        yield opened


class Steps(TypedDict):
    count: int


def test_a_thread_copied_from_another_checkpointer_goes_on(engine: BlockingEngine) -> None:
    graph = StateGraph(Steps).add_node("step", lambda state: {"count": state["count"] + 1})
    graph.add_edge(START, "step")
    before, after = InMemorySaver(), ConspectusSaver(engine)
    thread: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    graph.compile(checkpointer=before).invoke({"count": 1}, thread)
    for checkpoint in reversed(list(before.list(thread))):
        versions = checkpoint.checkpoint["channel_versions"]
        after.put(checkpoint.parent_config or thread, checkpoint.checkpoint, checkpoint.metadata, versions)
    compiled = graph.compile(checkpointer=after)
    assert compiled.get_state(thread).values == {"count": 2}
    for count in (5, 6):
        assert compiled.invoke({"count": count}, thread) == {"count": count + 1}
    assert len(list(compiled.get_state_history(thread))) == 3 * len(list(before.list(thread)))


async def test_the_conformance_kit_is_green(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, embedder=HashedEmbedder()) as engine:

        @checkpointer_test(name="ConspectusSaver")
        async def saver() -> AsyncGenerator[ConspectusSaver, None]:
            yield ConspectusSaver(engine, source=str(uuid4()))

        report = await validate(saver)
    failures = {name: result.failures for name, result in report.results.items() if not result.passed}
    assert (failures, report.conformance_level()) == ({}, "FULL")


class State(TypedDict):
    texts: Annotated[list[str], lambda old, new: old + new]


def build_graph() -> Any:
    """A graph that stores what it is told, and asks a person before it ends."""

    def note(state: State, *, store: BaseStore) -> State:
        store.put(("users", "ann"), str(len(state["texts"])), {"text": state["texts"][-1]})
        return {"texts": ["noted"]}

    def ask(state: State) -> State:
        return {"texts": [interrupt("Sure?")]}

    graph = StateGraph(State).add_node("note", note).add_node("ask", ask)
    return graph.add_edge(START, "note").add_edge("note", "ask").add_edge("ask", END)


def test_a_graph_goes_on_in_another_process(tmp_path: Path) -> None:
    config: Any = {"configurable": {"thread_id": "c"}}
    with conspectus.open(tmp_path, embedder=HashedEmbedder()) as engine:
        graph = build_graph().compile(store=ConspectusStore(engine), checkpointer=ConspectusSaver(engine))
        stopped = graph.invoke({"texts": ["Backups run at two."]}, config)
        assert [interrupt.value for interrupt in stopped["__interrupt__"]] == ["Sure?"]
    with conspectus.open(tmp_path, embedder=HashedEmbedder()) as engine:
        graph = build_graph().compile(store=ConspectusStore(engine), checkpointer=ConspectusSaver(engine))
        assert graph.get_state(config).next == ("ask",)
        assert graph.invoke(Command(resume="yes"), config)["texts"] == ["Backups run at two.", "noted", "yes"]
        assert len(list(graph.get_state_history(config))) == 4
        [match] = ConspectusStore(engine).search(("users",), query="when do backups run?")
        assert (match.namespace, match.value) == (("users", "ann"), {"text": "Backups run at two."})


async def test_a_graph_over_a_server(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as local:
        owner = await local.keys.create_first()
        assert owner is not None
        async with (
            served(application(local, SETTINGS)) as url,
            conspectus.connect(url, api_key=owner.secret, settings=SETTINGS) as remote,
        ):
            saver, store = ConspectusSaver(remote), ConspectusStore(remote)
            config = await put_test_checkpoint(saver, channel_values={"a": b"\x00", "b": "Zürich"})
            checkpoint = await saver.aget_tuple(config)
            assert checkpoint == await ConspectusSaver(local).aget_tuple(config)
            assert checkpoint is not None and checkpoint.checkpoint["channel_values"] == {
                "a": b"\x00",
                "b": "Zürich",
            }
            await store.aput(("a", "b"), "k", {"n": 1})
            assert await store.asearch(("a",), query="n 1")
            assert await store.alist_namespaces() == [("a", "b")]


def test_checkpoints_are_not_found_by_searches_and_go_with_their_thread(engine: BlockingEngine) -> None:
    saver = ConspectusSaver(engine)
    for thread in ("one", "two"):
        config = asyncio.run(put_test_checkpoint(saver, thread_id=thread, channel_values={"a": "zebra"}))
        saver.put_writes(config, [("a", "zebra")], "task")
    assert engine.retrieve("zebra", collection="langgraph-checkpoints").hits == ()
    saver.delete_thread("one")
    left = engine.documents.list(collection="langgraph-checkpoints").documents
    assert sorted(json.loads(row.key)[0] for row in left) == ["two"] * 3
    assert saver.get_tuple(generate_config("one")) is None
    with pytest.raises(InvalidInput, match="strategy"):
        saver.prune(["two"], strategy="some")


def test_a_history_that_is_needed_is_not_pruned(engine: BlockingEngine) -> None:
    saver = ConspectusSaver(engine)
    counted: Any = {
        "source": "loop",
        "step": 1,
        "parents": {},
        "counters_since_delta_snapshot": {"a": (1, 1)},
    }
    for thread, metadata in (("plain", None), ("delta", counted)):
        for _ in range(3):
            asyncio.run(put_test_checkpoint(saver, thread_id=thread, metadata=metadata))
    saver.prune(["plain", "delta"])
    assert [len(list(saver.list(generate_config(name)))) for name in ("plain", "delta")] == [1, 3]


ITEMS: list[tuple[tuple[str, ...], str, dict[str, Any]]] = [
    (("users",), "x", {"color": "red", "n": 1, "in": {"deep": [1, "ä\n"]}}),
    (("users", "ann"), "x", {"color": "blue", "n": 2.5, "none": None}),
    (("users", "ann", "v1"), "ключ", {"color": "red", "n": 3, "in": {"deep": True}}),
    (("users-2", "ann"), "", {"text": "\\u0000"}),
    (("docs", "v1"), "x", {}),
]


@pytest.fixture
def both(engine: BlockingEngine) -> tuple[BaseStore, BaseStore]:
    """Our store, and LangGraph's own as the reference, with the same items."""
    stores = ConspectusStore(engine), InMemoryStore()
    for store in stores:
        for namespace, key, value in ITEMS:
            store.put(namespace, key, {"old": True})
            store.put(namespace, key, value)
        store.put(("users",), "gone", {"color": "red"})
        store.delete(("users",), "gone")
    stores[0].delete(("nobody",), "gone")
    return stores


def sorted_triples(items: list[Any]) -> list[Any]:
    return sorted((stored.namespace, stored.key, stored.value) for stored in items)


def test_items_come_back_as_they_were_given(both: tuple[BaseStore, BaseStore]) -> None:
    for store in both:
        for namespace, key, value in ITEMS:
            item = store.get(namespace, key)
            assert item is not None
            assert (item.namespace, item.key, item.value) == (namespace, key, value)
            assert item.created_at <= item.updated_at
        assert store.get(("users",), "gone") is None
    assert both[0].get(("nobody",), "x") is None


FILTERS: list[dict[str, Any]] = [
    {},
    {"color": "red"},
    {"color": {"$ne": "red"}},
    {"n": {"$gte": 2.5}, "color": "red"},
    {"color": "red", "n": {"$lt": 3}},
    {"in": {"deep": True}},
    {"none": None},
    {"n": {"$eq": 1}},
    {"missing": "x"},
]


@pytest.mark.parametrize("condition", FILTERS, ids=str)
def test_filters_find_what_the_reference_finds(both: tuple[BaseStore, BaseStore], condition: Any) -> None:
    ours, reference = both
    prefixes: list[tuple[str, ...]] = [(), ("users",), ("users", "ann"), ("us",), ("docs",), ("users", "*")]
    for prefix in prefixes:
        if any("$gte" in str(bound) or "$lt" in str(bound) for bound in condition.values()) and prefix in (
            (),
            ("docs",),
        ):
            continue
        matches = ours.search(prefix, filter=condition)
        assert sorted_triples(matches) == sorted_triples(reference.search(prefix, filter=condition))
        pages = [ours.search(prefix, filter=condition, limit=2, offset=start) for start in (0, 2, 4)]
        assert list(chain.from_iterable(pages)) == matches
    assert ours.search((), limit=0) == []


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prefix": ("users",)},
        {"prefix": ("*", "ann")},
        {"suffix": ("v1",)},
        {"prefix": ("users",), "suffix": ("*", "v1")},
        {"max_depth": 1},
        {"max_depth": 2, "limit": 2, "offset": 1},
        {"prefix": ("a", "b", "c", "d")},
    ],
    ids=str,
)
def test_namespaces_are_those_of_the_reference(both: tuple[BaseStore, BaseStore], options: Any) -> None:
    ours, reference = both
    assert ours.list_namespaces(**options) == reference.list_namespaces(**options)


def test_search_finds_the_fields_that_are_indexed(engine: BlockingEngine) -> None:
    store = ConspectusStore(engine, fields=["text", "notes[*]"])
    store.put(("a",), "one", {"text": "Backups run at two.", "hidden": "zebra"})
    store.put(("a",), "two", {"text": "The meeting is on Thursday.", "notes": ["in room 7", "with tea"]})
    store.put(("a",), "none", {"text": "A secret of backups."}, index=False)
    store.put(("b",), "other", {"text": "Backups are verified.", "x": "giraffe"}, index=["x"])
    [best, *_] = store.search(("a",), query="when do backups run?")
    assert best.key == "one" and best.score is not None
    assert [match.key for match in store.search((), query="tea in room 7", limit=1)] == ["two"]
    assert [match.key for match in store.search((), query="giraffe", limit=1)] == ["other"]
    assert "none" not in [match.key for match in store.search((), query="secret of backups")]
    assert [match.key for match in store.search((), query="backups", filter={"hidden": "zebra"})] == ["one"]
    assert sorted_triples(store.search(("a",)))[0][1] == "none"


def test_what_cannot_be_kept_is_refused(engine: BlockingEngine) -> None:
    store = ConspectusStore(engine)
    for value in ({"a": "\x00"}, {"a": "\ud800"}, {"a": float("nan")}, {"a": object()}):
        with pytest.raises((InvalidInput, TypeError), match=r"metadata|JSON"):
            store.put(("a",), "k", value)
    with pytest.raises(TooLarge):
        store.put(("a",), "k", {"a": "x" * 70_000})
    with pytest.raises(InvalidInput, match="filter"):
        store.search((), filter={"a": {"$near": 1}})
    with pytest.raises(InvalidNamespaceError):
        store.put(("a.b",), "k", {})
    with pytest.raises(NotImplementedError):
        store.put(("a",), "k", {}, ttl=1)
    assert store.search(()) == []


async def test_a_batch_reads_what_was_stored_before(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, embedder=HashedEmbedder()) as engine:
        store = ConspectusStore(engine)
        await asyncio.gather(*(store.aput(("a",), str(number), {"n": number}) for number in range(20)))
        assert len(await store.asearch(("a",), limit=50)) == 20
        with pytest.raises(InvalidInput, match="asynchronous"):
            store.get(("a",), "1")
        assert (await asyncio.to_thread(store.get, ("a",), "1")) is not None
