"""Typed edges from plain sentences, and sentences that give none."""

from collections.abc import Iterator

import pytest
from tests.agent_stores import store

from conspectus.errors import InvalidInput
from conspectus.facades.agent import AgentContext, AgentMemory
from conspectus.sync import BlockingEngine


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingEngine]:
    with store(tmp_path_factory.mktemp("agent")) as opened:
        yield opened


def list_edges(engine: BlockingEngine, text: str) -> set[tuple[str, str, str]]:
    """Subject, relation and object of all edges that a memory brings."""
    context = AgentContext(engine, user_id=text[-80:])
    context.store(text, extract_entities=True)
    return {(edge["source_id"], edge["type"], edge["target_id"]) for edge in context.graph.get_edges()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Alice founded Acme", ("alice", "founded", "acme")),
        ("Alice also co-founded the Acme", ("alice", "founded", "acme")),
        ("Acme was founded by Alice.", ("alice", "founded", "acme")),
        ("In spring it rained, and Alice founded Acme.", ("alice", "founded", "acme")),
        ("It rained. Bob Miller works at Acme Corp. now", ("bob miller", "works_for", "acme corp")),
        ("Google acquired YouTube.", ("google", "acquired", "youtube")),
    ],
)
def test_a_plain_sentence_gives_a_typed_edge_alone(
    engine: BlockingEngine, text: str, expected: tuple[str, str, str]
) -> None:
    assert list_edges(engine, text) == {expected}


@pytest.mark.parametrize(
    "text",
    [
        "Alice never founded Acme.",
        "Alice founded Acme?",
        "If Alice founded Acme, we would know.",
        "It is not so that, as said, Alice founded Acme.",
        "Somebody like Alice founded Acme.",
        "Alice and Acme founded nothing.",
        "Alice thinks of Acme.",
    ],
)
def test_what_is_not_stated_plainly_stands_together_only(engine: BlockingEngine, text: str) -> None:
    assert {relation for _, relation, _ in list_edges(engine, text)} <= {"mentioned_with"}


def test_each_sentence_states_its_own(engine: BlockingEngine) -> None:
    edges = list_edges(engine, "Alice founded Acme. Bob Miller knows Alice.\nDoes Bob Miller own Acme?")
    typed = {edge for edge in edges if edge[1] != "mentioned_with"}
    assert typed == {("alice", "founded", "acme"), ("bob miller", "knows", "alice")}


def test_a_relation_goes_with_the_memory_that_states_it(engine: BlockingEngine) -> None:
    context = AgentContext(engine, user_id="forgetful")
    memory_id = context.store("Alice founded Acme", extract_entities=True)
    assert [neighbor["relationship"] for neighbor in context.get_neighbors("alice")] == ["founded"]
    assert context.forget(memory_id) == 1
    assert context.graph.get_edges() == [] and context.graph.get_nodes() == []


def test_relations_in_the_last_part_of_a_long_text_are_found(engine: BlockingEngine) -> None:
    text = f"{'It rained all day. ' * 1_000}Alice founded Acme."
    assert list_edges(engine, text) == {("alice", "founded", "acme")}


def test_documents_may_have_relationships() -> None:
    with AgentContext(user_id="ann") as context:
        stored = context.store(
            [
                {
                    "content": "Ann works at Rede",
                    "entities": [{"name": "Ann", "type": "person"}, {"id": "rede", "type": "company"}],
                    "relationships": [{"source_id": "Ann", "target_id": "rede", "type": "works_at"}],
                },
                {
                    "content": "Rede is in Oslo",
                    "relationships": [{"source": "rede", "target": "oslo", "type": "is_in"}],
                },
            ]
        )
        neighbors = context.get_neighbors("rede")
        assert {(neighbor["id"], neighbor["type"], neighbor["relationship"]) for neighbor in neighbors} == {
            ("ann", "person", "works_at"),
            ("oslo", "entity", "is_in"),
        }
        assert stored["stored"] == 2
    with AgentMemory() as memory, pytest.raises(InvalidInput, match="AgentContext"):
        memory.store("x", relationships=[{"source": "a", "target": "b"}])
