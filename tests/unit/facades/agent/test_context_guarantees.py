"""What an agent's context promises: graphs of their own, fair scores, and finding what was just stored."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.agent_stores import SETTINGS, contents_of
from tests.support.embedders import LockedEmbedder

import conspectus
from conspectus.errors import InvalidInput
from conspectus.facades.agent import AgentContext, AgentMemory, ContextGraph
from conspectus.ports import Vectors
from conspectus.sync import BlockingEngine
from conspectus.testing.embedders import HashedEmbedder


class SlowEmbedder(HashedEmbedder):
    """Takes so long that a question would come first."""

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        await asyncio.sleep(0.3)
        return await super().embed_documents(texts)


def build_graph(node: str, store: object = None, **named: str) -> ContextGraph:
    graph = ContextGraph(store, **named)
    graph.add_nodes([{"id": node, "type": "place"}])
    return graph


def test_graphs_without_a_name_are_different_graphs(tmp_path: Path) -> None:
    with build_graph("a") as first, build_graph("b") as second, build_graph("c") as third:
        names = {part.name for part in (first, second, third)}
        assert len(names) == 3
        links = [first.link_graph(second, "a", "b"), first.link_graph(third, "a", "c")]
        assert first.navigate_to(links[0]) == (second, "b")
        assert first.navigate_to(links[1]) == (third, "c")
        for graph in (first, second, third):
            graph.save(tmp_path / f"{graph.get_nodes()[0]['id']}.json")
    with ContextGraph() as again, ContextGraph() as other, ContextGraph() as last:
        for graph, node in ((again, "a"), (other, "b"), (last, "c")):
            graph.load(tmp_path / f"{node}.json")
        assert again.resolve_links([last, other]) == 2
        assert again.navigate_to(links[0]) == (other, "b")
        assert again.navigate_to(links[1]) == (last, "c")


def test_a_graph_without_a_name_is_the_same_again_in_a_store_that_stays(tmp_path: Path) -> None:
    for number in range(2):
        with AgentContext(tmp_path / "data", knowledge_graph=ContextGraph()) as context:
            assert context.graph.add_nodes([{"id": "a", "type": "place"}]) == (not number)
            assert context.graph.name == "knowledge"


def test_linked_graphs_keep_their_names_when_they_move(tmp_path: Path) -> None:
    first, second = build_graph("a"), build_graph("b")
    link = first.link_graph(second, "a", "b")
    with AgentContext(tmp_path / "one", knowledge_graph=first), AgentContext(None, knowledge_graph=second):
        assert first.navigate_to(link)[1] == "b"
        assert first.navigate_to(link)[0].get_node("b") is not None


def test_two_graphs_of_one_name_in_two_stores_are_not_linked(tmp_path: Path) -> None:
    first, second = build_graph("a", tmp_path / "one"), build_graph("b", tmp_path / "two")
    with first, second, pytest.raises(InvalidInput, match="name"):
        first.link_graph(second, "a", "b")


@pytest.mark.parametrize("alpha", [0.0, 0.25, 1.0])
def test_an_empty_graph_has_no_part_of_a_score(alpha: float) -> None:
    with AgentContext(user_id="ada", knowledge_graph=ContextGraph()) as context:
        context.store("the heron stands in the reeds")
        [plain] = context.retrieve("heron in the reeds", alpha=0.0)
        [memories] = context.retrieve("heron in the reeds", alpha=alpha)
        assert memories["parts"].get("graph", 0.0) == 0.0
        assert memories["score"] == pytest.approx((1 - alpha) * plain["score"])


@pytest.mark.parametrize("kind", [AgentContext, AgentMemory])
def test_what_was_just_stored_is_found_by_its_meaning(tmp_path: Path, kind: type[AgentMemory]) -> None:
    with conspectus.open(tmp_path, settings=SETTINGS, embedder=SlowEmbedder()) as engine:
        memory = kind(engine, user_id="ada")
        for text in ("a heron in the reeds", "the deploy failed", "soup for lunch"):
            memory.store(text)
            [memories] = memory.retrieve(text, 1)
            assert memories["content"] == text and memories["similarity"] == pytest.approx(1.0, abs=1e-3)
        memory_id = memory.store("before", key="k")
        memory.update(memory_id, "a stork on the roof")
        assert memory.retrieve("stork on the roof", 1)[0]["similarity"] is not None


def test_without_an_embedder_that_answers_words_are_enough(tmp_path: Path) -> None:
    with conspectus.open(tmp_path, settings=SETTINGS, embedder=LockedEmbedder()) as engine:
        memory = AgentMemory(engine, user_id="ada")
        memory.store("a heron in the reeds")
        assert contents_of(memory.retrieve("heron")) == ["a heron in the reeds"]


@pytest.fixture
def small(tmp_path: Path):
    with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        context = AgentContext(engine, token_limit=20, tokenizer="chars4_floor", user_id="ada")
        context.store([f"heron number {number} stands in the reeds" for number in range(6)])
        yield engine, context


def test_answers_cost_no_more_than_the_token_limit(small: tuple[BlockingEngine, AgentContext]) -> None:
    _, context = small
    memories = context.retrieve("heron in the reeds", 6)
    assert len(memories) >= 1 and sum(len(memory["content"]) // 4 for memory in memories) <= 20
    assert len(context.retrieve("heron in the reeds", 6, max_tokens=None)) == 6
    assert context.retrieve("heron in the reeds", 6, max_tokens=5) == []


def test_a_memory_larger_than_the_limit_is_still_found(small: tuple[BlockingEngine, AgentContext]) -> None:
    engine, _ = small
    memory = AgentMemory(engine, token_limit=5, user_id="bo")
    memory.store("a stork on the roof of the house behind the church near the river")
    assert len(memory.retrieve("stork")) == 1
