"""Names and facts in memories: in the graph, found through it, contradicted, and gone with the memories."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.agent_stores import contents_of, store
from tests.support.embedders import StatedEmbedder

from conspectus.errors import InvalidInput
from conspectus.facades.agent import AgentContext, ContextGraph, EntityLinker
from conspectus.sync import BlockingEngine

TEXT = "Ada Lovelace met Charles Babbage in London."


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingEngine]:
    with store(tmp_path_factory.mktemp("agent")) as opened:
        yield opened


@pytest.fixture
def unlike(tmp_path: Path) -> Iterator[BlockingEngine]:
    """An engine to which no two texts are alike, so that only words and the graph lead anywhere."""
    with store(tmp_path, StatedEmbedder()) as opened:
        yield opened


@pytest.fixture
def context(engine: BlockingEngine, request: pytest.FixtureRequest) -> AgentContext:
    """A context of its own for each test."""
    return AgentContext(engine, user_id=request.node.name)


def list_names(graph: ContextGraph) -> set[str]:
    return {node["name"] for node in graph.get_nodes()}


def test_names_go_into_the_graph_if_that_is_asked(context: AgentContext) -> None:
    context.store("Grace Hopper wrote a compiler.")
    assert context.graph.get_nodes() == []
    memory_id = context.store(TEXT, extract_entities=True)
    assert {"Ada Lovelace", "Charles Babbage", "London"} <= list_names(context.graph)
    assert {edge["evidence"] for edge in context.graph.get_edges()} == {memory_id}
    beside = {neighbor["name"] for neighbor in context.get_neighbors("ada lovelace")}
    assert beside == {"Charles Babbage", "London"}
    assert contents_of(context.find_by_entity("ADA LOVELACE")) == [TEXT]
    assert context.get(memory_id)["metadata"] == {}


def test_names_of_different_sentences_do_not_stand_together(context: AgentContext) -> None:
    context.store(
        "Ada Lovelace wrote to Mary Somerville. Alan Turing lived in Wilmslow.", extract_entities=True
    )
    assert {neighbor["name"] for neighbor in context.get_neighbors("ada lovelace")} == {"Mary Somerville"}
    context.store("Grace Hopper came.", extract_entities=True, extract_relationships=False)
    assert "Grace Hopper" in list_names(context.graph) and context.get_neighbors("grace hopper") == []


def test_a_list_of_documents_becomes_one_graph(context: AgentContext) -> None:
    texts = [TEXT, "Charles Babbage designed the Analytical Engine.", "Nothing here."]
    assert context.store(texts, extract_entities=True)["stored"] == 3
    reached = {neighbor["name"]: neighbor["hop"] for neighbor in context.get_neighbors("london", 2)}
    assert (reached["Charles Babbage"], reached["Analytical Engine"]) == (1, 2)


def test_long_documents_are_looked_through_to_their_end(context: AgentContext) -> None:
    for filler in ("It rained all day. ", "rain ", "ä"):
        text = f"Ada Lovelace arrived. {filler * (30_000 // len(filler))} Then Charles Babbage left."
        memory_id = context.store(text, extract_entities=True)
        assert {"Ada Lovelace", "Charles Babbage"} <= list_names(context.graph)
        assert context.get(memory_id)["content"] == text
        assert context.get_neighbors("ada lovelace") == []
        context.clear()


def test_names_leave_with_the_last_memory_that_mentions_them(context: AgentContext) -> None:
    first = context.store(TEXT, extract_entities=True)
    context.store("Charles Babbage slept.", extract_entities=True)
    context.graph.add_nodes([{"id": "mine", "name": "Mine"}])
    assert context.forget(first) == 1
    assert list_names(context.graph) == {"Charles Babbage", "Mine"}
    assert context.graph.get_edges() == []
    assert context.clear() == 1
    assert list_names(context.graph) == {"Mine"}


def test_names_of_another_users_memory_stay_out_of_the_shared_graph(engine: BlockingEngine) -> None:
    shared = ContextGraph(engine, name="shared by all")
    context = AgentContext(engine, shared, user_id="host")
    context.store("Marie Curie came.", extract_entities=True)
    context.store(TEXT, user_id="guest", extract_entities=True)
    assert list_names(shared) == {"Marie Curie"}
    guest = AgentContext(engine, user_id="guest")
    assert "Ada Lovelace" in list_names(guest.graph) and "Marie Curie" not in list_names(guest.graph)
    assert guest.forget(user_id="guest") == 1
    assert list_names(guest.graph) == set()


def test_the_names_of_what_is_stored_already_can_be_added(context: AgentContext) -> None:
    context.store([TEXT, "Charles Babbage slept."])
    counts = context.build_graph()
    assert counts["nodes"] >= 3 and counts["edges"] >= 3
    assert context.build_graph() == {"nodes": 0, "edges": 0}
    context.store("Grace Hopper met Alan Turing.", extract_entities=True)
    context.store("Grace Hopper met Alan Turing.", key="k", extract_entities=True)
    edges = len(context.graph.get_edges())
    context.store("Grace Hopper met Alan Turing.", key="k", extract_entities=True)
    assert context.build_graph() == {"nodes": 0, "edges": 0}
    assert len(context.graph.get_edges()) == edges


def test_what_shares_a_name_is_found_through_it(unlike: BlockingEngine) -> None:
    context = AgentContext(unlike, user_id="reader")
    context.store("Django was written in Python by Adrian Holovaty.")
    memory_id = context.store("Adrian Holovaty plays the guitar.")
    context.store("The weather was fine.")
    unlike.graph.wait_until_extracted(collection="memory")
    memories = context.retrieve("Who knows Django?", 3, alpha=0.7)
    other = next(memory for memory in memories if memory["id"] == memory_id)
    assert other["through"] and other["parts"]["graph"] > 0
    assert any("Adrian Holovaty" in reason for reason in other["why"])


def test_edges_lead_to_memories_that_share_no_word(unlike: BlockingEngine) -> None:
    context = AgentContext(unlike, ContextGraph(unlike, name="languages"), user_id="coder")
    context.graph.add_nodes([{"id": "Coding"}, {"id": "Python"}])
    context.graph.add_edges([{"source_id": "Coding", "target_id": "Python", "type": "uses", "weight": 0.9}])
    memory_id = context.store("Every morning I read some Python.")
    context.store("It rained.")
    unlike.graph.wait_until_extracted(collection="memory")
    for alpha in (0.3, 1.0):
        best = context.retrieve("Coding", 1, alpha=alpha)[0]
        assert (best["id"], best["through"]) == (memory_id, ["Coding", "Python"])
        assert best["score"] > 0
    assert all(not memory["through"] for memory in context.retrieve("Coding", use_graph=False))


def describe_fact(memory: dict[str, Any]) -> tuple[Any, ...]:
    return (memory["fact"][2], memory["valid_until"] is not None, memory["closed_by"], memory["closes"])


def test_a_later_fact_ends_an_earlier_one(context: AgentContext) -> None:
    lived = {"fact": ("Ada", "lives in", "Rome"), "valid_from": "2020-01-01"}
    first = context.store("Ada lives in Rome.", **lived)
    then = datetime.now(UTC)
    moved = {"predicate": "lives in", "subject": "Ada", "object": "Milan"}
    second = context.store("Ada moved to Milan.", fact=moved, valid_from="2024-01-01")
    assert describe_fact(context.get(first)) == ("Rome", True, second, [])
    assert describe_fact(context.get(second)) == ("Milan", False, None, [first])
    memories = {memory["id"]: memory for memory in context.retrieve("Where does Ada live?")}
    assert any("ended by" in reason for reason in memories[first]["why"])
    earlier = context.retrieve("Where does Ada live?", as_of=then)
    assert [describe_fact(memory) for memory in earlier] == [("Rome", False, None, [])]
    edges = context.graph.state_at("2022-01-01")["edges"]
    assert [edge["target_id"] for edge in edges] == ["rome"]
    for odd in (("Ada", "lives"), "Ada", {"subject": "Ada"}):
        with pytest.raises(InvalidInput):
            context.store("x", fact=odd)


def test_nodes_are_merged_and_split_by_hand(context: AgentContext) -> None:
    context.graph.add_nodes(
        [
            {"id": "1", "name": "Robert Smith", "type": "person"},
            {"id": "2", "name": "Bob Smith", "type": "person"},
        ]
    )
    linker = EntityLinker(context)
    meant = {link["text"]: link["node"] for link in linker.link("Robert Smith called. Rob waited.")}
    assert meant["Robert Smith"]["id"] == "1" and meant.get("Rob") is None
    assert linker.merge("1", ["2"], reason="the same person")["aliases"] == ["Bob Smith"]
    assert linker.link("Bob Smith called.")[0]["node"]["id"] == "1"
    [event] = linker.history()
    assert (event["kind"], event["before"], event["reason"]) == ("merge", ("1", "2"), "the same person")
    assert {node["id"] for node in linker.split(event["number"])} == {"1", "2"}
    assert context.link("Bob Smith called.")[0]["node"]["id"] == "2"
    best = linker.find_similar("Bob Smith")[0]
    assert (best["node"]["id"], best["score"] >= 0.8) == ("2", True)
