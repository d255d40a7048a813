"""What the agent API takes and gives is JSON: times, NumPy scalars, empty vectors."""

import json

import numpy as np
import pytest

from conspectus.errors import InvalidInput
from conspectus.facades.agent import AgentContext, AgentMemory, MemoryItem
from conspectus.facades.agent.json_values import plain_value


def test_all_dictionaries_are_json() -> None:
    with AgentContext(user_id="ann", conversation_id="c") as context:
        context.build_graph(
            entities=[{"id": "tea", "type": "drink", "valid_from": "2026-01-01"}, {"id": "cup"}],
            relationships=[{"source_id": "tea", "target_id": "cup", "valid_from": "2026-01-01"}],
        )
        memory = context.store("Ann likes tea", entities=["tea"], fact=("Ann", "likes", "tea"))
        answers = [
            context.retrieve("tea"),
            context.query_with_context("tea"),
            context.get_conversation_history(),
            context.get(memory),
            context.versions(memory),
            context.list_conversations(),
            context.conversation_summary("c"),
            context.stats(),
            context.health(),
            context.get_neighbors("tea"),
            context.link("tea"),
        ]
    for answer in answers:
        assert answer
        assert json.loads(json.dumps(answer)) is not None
    assert answers[0][0]["timestamp"].startswith("20")


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (np.array([1, 2]), [1, 2]),
        ({"a": [np.int8(1), {"b": np.float64(2.0)}]}, {"a": [1, {"b": 2.0}]}),
        ("text", "text"),
    ],
)
def test_numpy_values_become_plain(value: object, plain: object) -> None:
    assert plain_value(value) == plain
    assert json.dumps(plain_value(value)) == json.dumps(plain)


def test_numpy_values_are_taken_as_metadata() -> None:
    with AgentContext(user_id="ann") as context:
        context.store("likes tea", metadata={"weight": np.float32(0.5), "count": np.int64(3)})
        assert context.list()[0]["metadata"] == {"weight": 0.5, "count": 3}
        context.build_graph(entities=[{"id": "tea", "properties": {"weight": np.float32(0.5)}}])


def test_an_empty_vector_is_none() -> None:
    with AgentMemory(user_id="ann") as memory:
        assert memory.store("likes tea", embedding=[])
        assert memory.store_vectors([MemoryItem("likes cake", embedding=[])])


def test_a_tag_of_the_owner_is_refused_only_beside_another_owner() -> None:
    with AgentMemory() as memory:
        memory.store("likes tea", metadata={"user_id": "ann", "source": "chat"})
        assert memory.list()[0]["metadata"] == {"user_id": "ann", "source": "chat"}
    with AgentMemory(user_id="ann") as memory:
        memory.store("likes tea", metadata={"user_id": "ann"})
        with pytest.raises(InvalidInput, match="user_id"):
            memory.store("likes tea", metadata={"user_id": "ben"})
