"""The data structures and the constructor of the document that describes an agent's context."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from conspectus.facades import agent
from conspectus.facades.agent import AgentContext, AgentMemory, ContextGraph, ContextRetriever

GRAPH_NODE = {
    "id": "node_unique_id",
    "type": "concept",
    "properties": {"content": "Description of the node", "weight": 1.0},
}
GRAPH_EDGE = {
    "source_id": "origin_node",
    "target_id": "destination_node",
    "type": "related_to",
    "weight": 0.8,
}


@dataclass
class MemoryItem:
    """The item of the document."""

    content: str
    timestamp: datetime
    metadata: dict
    embedding: list[float]
    entities: list[dict]


@pytest.fixture
def context(tmp_path: Path) -> Iterator[AgentContext]:
    with AgentContext(
        vector_store=tmp_path / "store",
        knowledge_graph=ContextGraph(),
        token_limit=2000,
        short_term_limit=10,
        hybrid_alpha=0.5,
        use_graph_expansion=True,
        max_expansion_hops=2,
    ) as context:
        yield context


def test_an_item_of_the_document_becomes_ours(context: AgentContext) -> None:
    theirs = MemoryItem(
        "Ann moved to Oslo",
        datetime(2026, 3, 2, 12),
        {"user_id": "ann", "source": "chat"},
        [],
        [{"name": "Oslo"}],
    )
    ours = agent.MemoryItem(*vars(theirs).values())
    memory_id = context.store(ours)
    stored = context.get(memory_id)
    assert (stored["content"], stored["metadata"]) == (theirs.content, theirs.metadata)
    assert stored["entities"] == [{"name": "Oslo"}]
    assert [item.content for item in context.short_term_memory] == [theirs.content]
    for field in MemoryItem.__dataclass_fields__:
        assert hasattr(context.short_term_memory[0], field)


def test_nodes_and_edges_are_dictionaries(context: AgentContext) -> None:
    graph = context.graph
    assert graph.add_edges([GRAPH_EDGE]) == 1
    assert graph.add_nodes([GRAPH_NODE, {"id": "origin_node", "type": "concept"}]) == 2
    assert graph.get_node("node_unique_id")["properties"] == GRAPH_NODE["properties"]
    [neighbor] = graph.get_neighbors("origin_node", hops=1)
    assert (neighbor["id"], neighbor["relationship"], neighbor["weight"]) == (
        "destination_node",
        "related_to",
        0.8,
    )
    assert graph.query("description")[0]["node"]["id"] == "node_unique_id"


def test_store_tells_a_text_from_a_list_of_documents(context: AgentContext) -> None:
    assert isinstance(context.store("Python is used for the backend"), str)
    stored = context.store(["Django is a framework", {"content": "Redis is a cache", "metadata": {"n": 1}}])
    assert (stored["stored"], len(stored["ids"])) == (2, 2)
    assert context.retrieve("which framework?")[0]["content"] == "Django is a framework"


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_the_score_is_that_of_the_formula(tmp_path: Path, alpha: float) -> None:
    """Final_Score = (Vector_Score * (1 - alpha)) + (Graph_Score * alpha)."""
    with AgentContext(tmp_path / "store", ContextGraph(), hybrid_alpha=alpha) as context:
        context.build_graph(
            entities=[{"id": "coding", "name": "Coding"}, {"id": "python", "name": "Python"}],
            relationships=[{"source_id": "coding", "target_id": "python", "type": "uses"}],
        )
        context.store("We write Python every day", entities=["Python"])
        context.store("The garden needs water")
        context.flush()
        records = {record["content"]: record for record in context.retrieve("Coding")}
    connected = records["We write Python every day"]
    graph = connected["parts"].get("graph", 0.0)
    assert connected["score"] == pytest.approx(sum(connected["parts"].values()))
    assert (graph > 0.0) is (alpha > 0.0)
    if alpha == 1.0:
        assert connected["score"] == pytest.approx(graph)
        assert max(record["score"] for record in records.values()) == connected["score"]


def test_the_short_term_is_pruned_first_in_first_out(tmp_path: Path) -> None:
    with AgentMemory(tmp_path / "store", short_term_limit=2, token_limit=2000) as memory:
        for number in range(4):
            memory.store(f"message {number}", conversation_id="c")
        assert [item.content for item in memory.short_term(conversation_id="c")] == ["message 2", "message 3"]
        history = memory.get_conversation_history("c")
        assert [record["content"] for record in history] == [f"message {number}" for number in range(4)]
        assert memory._prune_short_term_memory(conversation_id="c") == 2


def test_retention_by_days_and_by_number(tmp_path: Path) -> None:
    with AgentMemory(tmp_path / "store", retention_days=30, max_memories=2) as memory:
        for number in range(4):
            memory.store(f"message {number}")
        assert memory.count() == 2


def test_a_retriever_has_the_parts_of_a_context(context: AgentContext) -> None:
    context.store("Python is used for the backend")
    retriever = ContextRetriever(context, context.graph, hybrid_alpha=0.0)
    assert retriever.retrieve("backend")[0]["content"] == "Python is used for the backend"
