"""What went wrong in a published memory for agents, one test for each: here it must not."""

import pickle
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from tests.agent_stores import contents_of, store, talk
from tests.support.embedders import StatedEmbedder

from conspectus.errors import InvalidInput
from conspectus.facades.agent import AgentContext, AgentMemory
from conspectus.sync import BlockingEngine

LATER = datetime.now(UTC)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingEngine]:
    with store(tmp_path_factory.mktemp("agent")) as opened:
        yield opened


@pytest.fixture
def context(engine: BlockingEngine, request: pytest.FixtureRequest) -> AgentContext:
    """A context of its own for each test."""
    return AgentContext(engine, user_id=request.node.name, tokenizer="chars4_floor")


def test_what_is_deleted_is_gone_from_the_short_term_too(context: AgentContext) -> None:
    memory_id = context.store("The launch code is 4711.", conversation_id="a")
    assert context.forget(memory_id) == 1
    assert context.retrieve("launch code") == [] == context.retrieve("launch", conversation_id="a")
    assert context.short_term_memory == []
    assert "4711" not in context.query_with_context("launch code", max_tokens=500)["context"]
    assert context.forget(memory_id) == 0


def test_one_item_over_the_limit_stays(engine: BlockingEngine) -> None:
    memory = AgentContext(engine, user_id="big", token_limit=10, tokenizer="chars4_floor")
    text = "A whale surfaced near the harbour wall. " * 10
    memory.store(text, conversation_id="a")
    assert [turn.content for turn in memory.short_term_memory] == [text]
    assert contents_of(memory.retrieve("whale")) == [text]
    window = memory.query_with_context("whale", conversation_id="a", max_tokens=20)
    assert 0 < window["tokens"] <= 20 and "…" in window["context"]


def test_history_is_not_cut_before_it_is_filtered(context: AgentContext) -> None:
    talk(context, "old", "The first words.")
    context.batch_store(
        [{"content": f"Noise {number}.", "conversation_id": f"new {number % 7}"} for number in range(120)]
    )
    assert contents_of(context.get_conversation_history("old", max_items=10)) == ["The first words."]
    assert contents_of(context.conversation("old", limit=5)) == ["The first words."]
    assert contents_of(context.retrieve("first words", conversation_id="old")) == ["The first words."]
    assert len(context.get_conversation_history("new 3")) == 17


@pytest.mark.parametrize("use_graph", [True, False])
def test_what_was_just_stored_is_found_by_its_words(context: AgentContext, use_graph: bool) -> None:
    context.batch_store([f"The ledger of month {number}." for number in range(30)])
    memory_id = context.store("Zanzibar exports cloves.")
    assert context.retrieve("cloves", use_graph=use_graph)[0]["id"] == memory_id
    assert context.retrieve("zanzibar exports", alpha=1.0, use_graph=use_graph)[0]["id"] == memory_id


def test_everything_is_exported(context: AgentContext, tmp_path: Path) -> None:
    context.batch_store([f"Entry {number}" for number in range(250)])
    lines = context.export()
    assert (len(lines), context.count(), len(context.list(None))) == (250, 250, 250)
    assert context.export_to(tmp_path / "all.jsonl") == 250
    assert (tmp_path / "all.jsonl").read_text("utf-8").splitlines() == lines


def test_what_is_taken_in_again_keeps_times_names_and_tags(context: AgentContext, tmp_path: Path) -> None:
    metadata = {
        "timestamp": "2020-02-02T10:00:00+02:00",
        "entities": ["Ada"],
        "metadata": {"ü": [1, {"a": None}]},
    }
    memory_id = context.store("Line\u2028break and 🎈", role="user", speaker="Ada", pinned=True, **metadata)
    context.update(memory_id, "Another text.")
    before, backup = context.versions(memory_id), context.backup(tmp_path / "copies")
    assert context.clear() == 1
    assert context.load(backup) == 1
    again = context.list()[0]
    fields = ("content", "timestamp", "metadata", "entities", "role", "speaker", "pinned")
    assert [{name: version[name] for name in fields} for version in context.versions(again["id"])] == [
        {name: version[name] for name in fields} for version in before
    ]
    assert (context.load(backup), context.count()) == (0, 1)


def test_pickles_are_never_read(context: AgentContext, tmp_path: Path) -> None:
    for name, protocol in (("a.jsonl", 0), ("b.jsonl", 2), ("c.jsonl", 5), ("d.pkl", 5)):
        (tmp_path / name).write_bytes(pickle.dumps({"text": "x"}, protocol=protocol))
        with pytest.raises(InvalidInput):
            context.import_memories(tmp_path / name)
    (tmp_path / "memory.pickle").write_text("{}")
    with pytest.raises(InvalidInput, match="pickle"):
        context.import_memories(tmp_path / "memory.pickle")
    with pytest.raises(InvalidInput, match="cannot be read"):
        context.import_memories(tmp_path / "nowhere.jsonl")
    assert context.count() == 0


def test_ids_that_are_unknown_count_nothing(context: AgentContext) -> None:
    context.store("Stays.")
    assert (context.forget("unknown"), context.batch_delete(["a", "b"]), context.batch_delete([])) == (
        0,
        0,
        0,
    )
    assert (context.get("unknown"), context.exists("unknown"), context.versions("unknown")) == (
        None,
        False,
        [],
    )
    assert context.delete_conversation("unknown") == 0
    assert context.count() == 1


def test_nothing_at_all_is_never_everything(context: AgentContext) -> None:
    context.store("Stays.", conversation_id="a")
    me = context._inner.scope.user
    for arguments in ({"memory_id": None}, {"days_old": None}, {"before": None}, {}):
        with pytest.raises(InvalidInput):
            context.forget(**arguments) if arguments else context.forget(conversation_id=None)
        if arguments:
            with pytest.raises(InvalidInput):
                context.forget(**arguments, user_id=me)
    with pytest.raises(InvalidInput):
        context.delete_conversation(None, user_id=me)
    with pytest.raises(InvalidInput):
        context.forget("")
    assert (context.forget("unknown"), context.count()) == (0, 1)


def test_age_counts_from_when_it_was_said(context: AgentContext) -> None:
    context.store("young", timestamp=LATER - timedelta(days=10))
    context.store("old", timestamp=LATER - timedelta(days=100))
    context.store("older, but pinned", timestamp=LATER - timedelta(days=200), pinned=True)
    assert context.forget(days_old=90) == 1
    assert contents_of(context.list()) == ["older, but pinned", "young"]
    assert context.forget(days_old=90, pinned=True) == 1
    for odd in (-1, -0.5):
        with pytest.raises(ValueError, match="negative"):
            context.forget(days_old=odd)
    with pytest.raises(InvalidInput):
        context.forget()
    assert context.count() == 1


def test_words_match_whole(context: AgentContext) -> None:
    context.store("Ignition at the start of the race.")
    memory_id = context.store("Modern art hangs in the hall.")
    assert context.retrieve("art")[0]["id"] == memory_id
    assert context.retrieve("art", 1)[0]["parts"]["keyword"] > 0
    other = next(memory for memory in context.retrieve("art", 5) if memory["id"] != memory_id)
    assert other["parts"]["keyword"] == 0
    context.graph.add_nodes([{"id": "start"}, {"id": "art"}])
    assert [hit["node"]["id"] for hit in context.graph.query("art")] == ["art"]


def test_near_perfect_answers_keep_their_scores(tmp_path: Path) -> None:
    with store(tmp_path, StatedEmbedder()) as engine:
        context = AgentContext(engine)
        context.store(["cosine 0.99 first", "cosine 0.98 second", "cosine 0.10 third"])
        context.flush()
        for alpha, share in ((0.0, 1.0), (0.5, 0.5)):
            first, second = (
                memory["parts"]["vector"] for memory in context.retrieve("question", 2, alpha=alpha)
            )
            assert first == pytest.approx(share * 0.99, rel=0.2)
            assert second == pytest.approx(first * 0.98 / 0.99, rel=0.05)


def test_a_floor_is_a_raw_similarity(tmp_path: Path) -> None:
    with store(tmp_path, StatedEmbedder()) as engine:
        context = AgentContext(engine)
        context.store(["cosine 0.99 first", "cosine 0.50 second"])
        context.flush()
        assert contents_of(context.retrieve("question", min_score=0.6)) == ["cosine 0.99 first"]


def test_tags_do_not_replace_what_a_memory_is(context: AgentContext) -> None:
    tags = {"id": "x", "content": "fake", "score": 9, "timestamp": "never", "kind": "note", "class": "note"}
    memory_id = context.store(
        "Decided: blue.", metadata=tags | {"pinned": True, "user": "eve", "conversation": "c"}
    )
    for memory in (context.get(memory_id), context.retrieve("Decided blue")[0], context.list()[0]):
        assert (memory["id"], memory["content"], memory["kind"]) == (memory_id, "Decided: blue.", "turn")
        assert (memory["pinned"], memory["conversation_id"], memory["metadata"]["id"]) == (False, None, "x")
    assert AgentContext(context, user_id="eve").list() == []
    with pytest.raises(InvalidInput, match="user_id"):
        context.store("For Eve.", metadata={"user_id": "eve"})


def test_same_beginnings_are_different_texts(context: AgentContext) -> None:
    head = "Confidential report of the quarter, for the board only. " * 3
    memory_ids = context.store([f"{head}Sales rose in {town}." for town in ("Oslo", "Lima")])["ids"]
    memories = context.retrieve("How did sales go?", 10)
    assert {memory["id"] for memory in memories} == set(memory_ids) and len(set(memory_ids)) == 2


def test_lists_that_are_stored_twice_overwrite_nothing(context: AgentContext) -> None:
    first = context.store(["one", "two"])["ids"]
    second = context.store(["three", "four"])["ids"]
    assert len({*first, *second}) == 4
    assert contents_of(context.list()) == ["one", "two", "three", "four"]


def test_a_key_of_ones_own_makes_storing_twice_harmless(context: AgentContext) -> None:
    first = context.store("one", key="doc_0")
    again = context.store([{"id": "doc_0", "content": "one"}])
    assert (again["ids"], again["stored"], context.count()) == ([first], 0, 1)


def test_numbers_and_ages_of_memories_are_kept_to(engine: BlockingEngine) -> None:
    context = AgentContext(engine, user_id="kept", max_memories=3, retention_days=30)
    context.store("pinned", pinned=True, timestamp=LATER - timedelta(days=99))
    context.store("a note", kind="note")
    for number in range(10):
        context.store(f"turn {number}", conversation_id=f"c{number % 2}")
    context.store("too old", timestamp=LATER - timedelta(days=31))
    remaining = ["pinned", "a note", "turn 7", "turn 8", "turn 9"]
    assert contents_of(context.list()) == remaining
    assert [turn.content for turn in context.short_term_memory] == ["pinned", *remaining[2:]]


def test_a_retention_is_shown_before_it_deletes(engine: BlockingEngine) -> None:
    context = AgentMemory(engine, user_id="shown")
    memory_ids = context.batch_store(["one", "two", "three"])
    strict = AgentMemory(context, user_id="shown", max_memories=1)
    preview = strict.apply_retention(preview=True)
    assert (preview["ids"], preview["deleted"], context.count()) == (memory_ids[:2], 0, 3)
    assert strict.apply_retention()["deleted"] == 2
    strict.retain()
    with pytest.raises(InvalidInput):
        AgentMemory(engine, retention_days=-1)


def test_times_without_a_zone_are_in_utc(context: AgentContext) -> None:
    naive = datetime(2026, 1, 1, 12, 0)
    context.store("naive", timestamp=naive)
    context.store("aware", timestamp=naive.replace(tzinfo=UTC) + timedelta(hours=1))
    context.store("text", timestamp="2026-01-01T14:00:00")
    assert contents_of(context.list()) == ["naive", "aware", "text"]
    assert {datetime.fromisoformat(memory["timestamp"]).tzinfo for memory in context.list()} == {UTC}
    assert len(context.get_by_date(naive, naive + timedelta(hours=2))) == 2
    assert context.retrieve("naive", as_of=naive) == []


def test_misspelt_words_are_no_wider_questions(context: AgentContext) -> None:
    context.store("Mine.")
    for wrong in ({"user": "x"}, {"conversation": "x"}, {"userid": "x"}):
        with pytest.raises(TypeError):
            context.retrieve("Mine", **wrong)
        with pytest.raises(TypeError):
            context.clear(**wrong)
        with pytest.raises(TypeError):
            context.store("Theirs.", **wrong)
    with pytest.raises(TypeError):
        AgentContext(context, user="x")
    assert context.count() == 1


def test_hops_of_a_question_are_used(context: AgentContext) -> None:
    context.graph.add_nodes(
        [{"id": node, "content": f"About {node}."} for node in ("alpha", "beta", "gamma", "delta")]
    )
    names = ("alpha", "beta", "gamma", "delta")
    context.graph.add_edges({"source_id": a, "target_id": b} for a, b in pairwise(names))
    for hops in range(4):
        ids = [memory["id"] for memory in context.retrieve("alpha", 10, max_hops=hops)]
        assert ids == list(names[: hops + 1])
    assert context.retrieve("alpha", use_graph=False) == [] == context.retrieve("alpha", alpha=0.0)
    for odd in ({"alpha": 1.5}, {"max_hops": 99}):
        with pytest.raises(InvalidInput):
            context.store("Something to ask.") and context.retrieve("alpha", **odd)
