"""What an agent's context does: storing, finding, reading in order, changing, forgetting."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from tests.agent_stores import contents_of, store, talk

from conspectus.errors import InvalidInput
from conspectus.facades.agent import AgentContext, AgentMemory, MemoryItem
from conspectus.settings import context_token_limit
from conspectus.sync import BlockingEngine

MARCH = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingEngine]:
    with store(tmp_path_factory.mktemp("agent")) as opened:
        yield opened


@pytest.fixture
def context(engine: BlockingEngine, request: pytest.FixtureRequest) -> AgentContext:
    """A context of its own for each test."""
    return AgentContext(engine, user_id=request.node.name, tokenizer="chars4_floor")


def test_one_text_gives_an_id_and_many_a_report(context: AgentContext) -> None:
    one = context.store("Ada likes tea.")
    many = context.store(["Bob likes coffee.", {"content": "Cyd likes milk.", "metadata": {"page": 3}}])
    assert context.get(one)["content"] == "Ada likes tea."
    assert (many["stored"], len(many["ids"])) == (2, 2)
    assert context.get(many["ids"][1])["metadata"] == {"page": 3}
    assert context.get(context.store({"text": "Dan likes rain."}))["content"] == "Dan likes rain."


def test_items_without_words_are_refused_before_anything_is_stored(context: AgentContext) -> None:
    for odd in ({"metadata": {}}, {"content": 3}, {"content": "x", "colour": "red"}, 7, None):
        with pytest.raises((InvalidInput, TypeError)):
            context.store(["Fine.", odd])
    with pytest.raises(InvalidInput):
        context.store("   ")
    assert context.count() == 0


@pytest.mark.parametrize("content", [None, 5, [None]])
def test_what_is_neither_a_text_nor_a_list_is_refused(context: AgentContext, content: object) -> None:
    with pytest.raises(InvalidInput, match="content"):
        context.store(cast(Any, content))
    assert context.count() == 0


@pytest.mark.parametrize("odd", [{"alpha": "x"}, {"alpha": None}, {"alpha": 1.5}, {"max_hops": "far"}])
def test_a_weight_or_a_distance_that_is_none_is_refused(context: AgentContext, odd: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(odd))):
        context.retrieve("tea", **odd)
    usual = {"alpha": "hybrid_alpha", "max_hops": "max_expansion_hops"}
    with pytest.raises(InvalidInput):
        AgentContext(context, **{usual[name]: setting for name, setting in odd.items()})


def test_a_list_of_nothing_is_nothing(context: AgentContext) -> None:
    assert context.store([]) == {"stored": 0, "ids": []}
    assert context.retrieve("anything") == []
    assert (context.short_term_memory, context.list(), context.stats()["memories"]) == ([], [], 0)


def test_answers_name_their_score_source_and_reasons(context: AgentContext) -> None:
    memory_id = context.store(
        "The red kettle whistles.", role="user", speaker="Ada", metadata={"room": "kitchen"}
    )
    context.store("Snow fell on the hills.")
    best = context.retrieve("red kettle", max_results=1)[0]
    assert (best["id"], best["content"], best["role"]) == (memory_id, "The red kettle whistles.", "user")
    assert (best["speaker"], best["metadata"], best["source"]) == ("Ada", {"room": "kitchen"}, "short_term")
    assert best["score"] == pytest.approx(sum(best["parts"].values()))
    assert datetime.fromisoformat(best["timestamp"]).tzinfo is not None


def test_the_short_term_is_the_last_turns_by_tokens(engine: BlockingEngine) -> None:
    memory = AgentMemory(engine, user_id="tokens", token_limit=10, tokenizer="chars4_floor")
    for text in ("First small item", "Second small item", "Third small item"):
        memory.store(text)
    assert [turn.content for turn in memory.short_term_memory] == ["Second small item", "Third small item"]
    assert memory._prune_short_term_memory() == 1
    assert memory.count() == 3


def test_the_short_term_is_the_last_turns_by_number(engine: BlockingEngine) -> None:
    memory = AgentMemory(engine, user_id="number", short_term_limit=2)
    memory.batch_store([f"Turn {number}" for number in range(5)])
    assert [turn.content for turn in memory.short_term_memory] == ["Turn 3", "Turn 4"]
    assert contents_of(memory.retrieve("Turn 0", 5))[0] == "Turn 0"


def test_the_environment_sets_the_token_limit(
    engine: BlockingEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert AgentContext(engine).stats()["token_limit"] == 2_000
    monkeypatch.setenv("CONTEXT_TOKEN_LIMIT", "77")
    assert AgentContext(engine).stats()["token_limit"] == 77
    assert AgentContext(engine, token_limit=5).stats()["token_limit"] == 5
    assert context_token_limit({}) is None
    with pytest.raises(InvalidInput, match="CONTEXT_TOKEN_LIMIT"):
        context_token_limit({"CONTEXT_TOKEN_LIMIT": "many"})


def test_history_is_in_order_and_can_be_taken_in_parts(context: AgentContext) -> None:
    talk(context, "a", "one", "two", "three")
    talk(context, "b", "other")
    assert contents_of(context.get_conversation_history("a")) == ["one", "two", "three"]
    assert contents_of(context.get_conversation_history("a", max_items=2)) == ["two", "three"]
    assert contents_of(context.conversation("a", reverse=True, limit=1, offset=1)) == ["two"]
    assert contents_of(context.conversation("nowhere")) == []
    assert "metadata" not in context.conversation("a", include_metadata=False)[0]
    for odd in ({"limit": -1}, {"offset": -1}):
        with pytest.raises(InvalidInput):
            context.conversation("a", **odd)


def test_conversations_are_listed_and_summed_up(context: AgentContext) -> None:
    talk(context, "a", "one", "two")
    context.store("three", conversation_id="b", speaker="Ada")
    listed = {
        conversation["conversation_id"]: conversation["count"]
        for conversation in context.list_conversations()
    }
    assert listed == {"a": 2, "b": 1}
    summary = context.conversation_summary("b")
    assert (summary["memories"], summary["speakers"]) == (1, {"Ada": 1})


def test_a_change_keeps_the_id_and_what_was(context: AgentContext) -> None:
    memory_id = context.store("The meeting is on Monday.", metadata={"a": 1, "b": 2})
    assert context.update(memory_id, "The meeting is on Tuesday.", metadata={"a": 3, "b": None})
    now = context.get(memory_id)
    assert (now["content"], now["metadata"]) == ("The meeting is on Tuesday.", {"a": 3})
    assert contents_of(context.versions(memory_id)) == [
        "The meeting is on Monday.",
        "The meeting is on Tuesday.",
    ]
    assert context.update("nothing", "x") is False
    assert context.batch_update([{"id": memory_id, "pinned": True}, {"id": "nothing", "content": "x"}]) == 1
    assert context.get(memory_id)["pinned"]
    for odd in ({"key": "k"}, {"extract_entities": True}):
        with pytest.raises(InvalidInput):
            context.update(memory_id, **odd)


def test_what_was_known_then_is_not_what_is_known_now(context: AgentContext) -> None:
    memory_id = context.store("Ada lives in Rome.")
    then = datetime.now(UTC)
    context.update(memory_id, "Ada lives in Milan.")
    assert contents_of(context.retrieve("Where does Ada live?")) == ["Ada lives in Milan."]
    assert contents_of(context.retrieve("Where does Ada live?", as_of=then)) == ["Ada lives in Rome."]
    assert context.retrieve("Where does Ada live?", as_of=then - timedelta(days=1)) == []


def test_lists_and_counts_look_for_metadata(context: AgentContext) -> None:
    for number in range(6):
        context.store(f"Item {number}", metadata={"even": number % 2 == 0, "number": number})
    assert contents_of(context.list(metadata={"even": True}, limit=2, offset=1)) == ["Item 2", "Item 4"]
    assert (context.count(metadata={"even": False}), context.count()) == (3, 6)
    assert contents_of(context.list(2, newest_first=True)) == ["Item 5", "Item 4"]
    assert contents_of(context.get_recent(1)) == ["Item 5"]
    assert context.count(metadata={"missing": None}) == 6
    with pytest.raises(InvalidInput):
        context.list(metadata={"a": [1]})


def test_dates_bound_what_is_read(context: AgentContext) -> None:
    for day in range(4):
        context.store(f"Day {day}", timestamp=MARCH + timedelta(days=day))
    assert contents_of(context.get_by_date(datetime(2026, 3, 2), "2026-03-04")) == ["Day 1", "Day 2"]
    assert contents_of(context.get_by_date(end="2026-03-02T00:00:00+00:00")) == ["Day 0"]
    with pytest.raises(InvalidInput):
        context.get_by_date("2026-03-02", "2026-03-01")


def test_names_lead_to_the_memories_that_mention_them(context: AgentContext) -> None:
    context.store("We met at the café.", entities=[{"name": "Café Zoë"}, "Ada"])
    context.store("Nothing.")
    assert contents_of(context.find_by_entity("cafe zoe")) == ["We met at the café."]
    memory = context.find_by_entity("ADA")[0]
    assert [entity["name"] for entity in memory["entities"]] == ["Café Zoë", "Ada"]
    assert context.find_by_entity("Caf") == []


def test_what_is_alike_is_found_without_itself(context: AgentContext) -> None:
    memory_id = context.store("The ferry leaves at noon.")
    context.store("The ferry leaves at midnight.")
    assert contents_of(context.find_similar(memory_id, 1)) == ["The ferry leaves at midnight."]
    assert memory_id in {memory["id"] for memory in context.find_similar("The ferry leaves at noon.", 2)}


def test_answers_keep_to_a_number_of_tokens(context: AgentContext) -> None:
    talk(context, "a", "ship " * 40, "ship ahoy", "ship again")
    texts = contents_of(context.retrieve("ship", max_tokens=6))
    assert sorted(texts) == ["ship again", "ship ahoy"]
    assert context.retrieve("ship", max_tokens=0) == [] == context.retrieve("ship", 0)
    with pytest.raises(InvalidInput):
        context.retrieve("ship", max_tokens=-1)


def test_context_for_a_model_is_never_over_its_tokens(context: AgentContext) -> None:
    context.store("Always answer in French.", kind="note")
    talk(context, "a", "My sister is called Mona.", "What a day.")
    window = context.query_with_context("What is my sister called?", conversation_id="a", max_tokens=60)
    assert 0 < window["tokens"] <= 60
    assert "Mona" in window["context"] and "French" in window["context"]
    assert (len(window["notes"]), len(window["recent"])) == (1, 2)
    assert context.query_with_context("sister", max_tokens=0)["context"] == ""


def test_items_are_dataclasses_and_dictionaries() -> None:
    item = MemoryItem("text", metadata={"a": 1})
    assert (item["content"], dict(item)["metadata"], item.timestamp.tzinfo) == ("text", {"a": 1}, UTC)
    with pytest.raises(KeyError):
        item["colour"]


def test_vectors_may_be_brought_along(context: AgentContext) -> None:
    vector = [1.0] + [0.0] * 63
    memory_ids = context.store_vectors([MemoryItem("An arrow.", embedding=vector), MemoryItem("A bow.")])
    assert contents_of([context.get(memory_id) for memory_id in memory_ids]) == ["An arrow.", "A bow."]
    with pytest.raises(InvalidInput):
        context.store_vectors([MemoryItem("Short.", embedding=[1.0, 2.0])])


def test_recent_items_have_their_vectors_once_they_are_embedded(engine: BlockingEngine) -> None:
    memory = AgentMemory(engine, user_id="archer", conversation_id="a")
    memory.batch_store(["An arrow flies.", "A bow bends."])
    memory.flush()
    turns = memory.short_term_memory
    vectors = [turn.embedding for turn in turns]
    assert [turn.content for turn in turns] == ["An arrow flies.", "A bow bends."]
    assert all(vector is not None and len(vector) == 64 for vector in vectors) and vectors[0] != vectors[1]
    assert "embedding" not in memory.list()[0]


def test_a_vector_that_was_read_is_not_that_of_another_text(engine: BlockingEngine) -> None:
    memory = AgentMemory(engine, user_id="hunter", conversation_id="a")
    memory.store("An arrow flies.")
    memory.flush()
    [turn] = memory.short_term_memory
    stored = turn.embedding
    turn.content = "A walrus sleeps."
    memory.batch_store([turn])
    memory.flush()
    changed = {turn.content: turn.embedding for turn in memory.short_term_memory}
    assert changed["A walrus sleeps."] not in (None, stored)


def test_health_and_numbers(context: AgentContext) -> None:
    talk(context, "a", "one", "two")
    assert context.flush() >= 0
    assert context.health() == {"status": "ok", "memories": 2, "pending": 0}
    numbers = context.stats()
    assert (numbers["memories"], numbers["conversations"], numbers["short_term"]) == (2, 1, 2)
