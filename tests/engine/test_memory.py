"""Memories are stored verbatim, recalled in their scope, and known as of any time."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import conspectus
from conspectus.engine import Engine
from conspectus.errors import InvalidInput, NotFound, PreconditionFailed
from conspectus.model.filter import Eq
from conspectus.model.graph import Fact
from conspectus.model.memory import MEMORY, NewMemory, Scope
from conspectus.model.query import Budget
from conspectus.settings import Settings
from conspectus.text.times import parse_instant

ANN = Scope("ann", "helper", "monday")
TUESDAY = replace(ANN, conversation="tuesday")
BOB = replace(ANN, user="bob")
WORDS_ONLY = Settings(embedder="none")
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, settings=WORDS_ONLY) as opened:
        yield opened


def query_arguments(text: str, scope: Scope = ANN) -> dict[str, Any]:
    return {"query": text, "scope": scope, "graph": None}


async def list_texts(engine: Engine, scope: Scope) -> list[str]:
    return [memory.text for memory in (await engine.memory.list(scope=scope)).memories]


async def recall_texts(engine: Engine, question: dict[str, Any]) -> list[str]:
    return [hit.memory.text for hit in (await engine.memory.recall(**question)).memories]


async def test_what_was_just_stored_is_found_by_its_exact_words(engine: Engine) -> None:
    for number in range(30):
        await engine.memory.add(f"turn {number} about the weather", scope=ANN)
    await engine.memory.add("the code of the door is XK-42/b", scope=ANN)
    assert (await recall_texts(engine, query_arguments("XK-42/b")))[0] == "the code of the door is XK-42/b"


@pytest.mark.parametrize("text", ["Line one\n\n  two \u2028 three\t", "👩‍👩‍👧 'quote\" \\ %_", "x" * 30_000])
async def test_a_memory_is_kept_word_for_word(engine: Engine, text: str) -> None:
    done = (await engine.memory.add(text, scope=ANN))[0]
    assert (await engine.memory.get(done.id, scope=ANN)).text == text


@pytest.mark.parametrize("text", ["", "  \n "])
async def test_nothing_is_no_memory(engine: Engine, text: str) -> None:
    with pytest.raises(InvalidInput):
        await engine.memory.add(text, scope=ANN)


@pytest.mark.parametrize("names", [("",), ("a", " "), ("a\x00",), ("a", None, "x" * 301)])
async def test_a_name_that_is_none_makes_no_scope(engine: Engine, names: tuple[str | None, ...]) -> None:
    with pytest.raises(InvalidInput):
        await engine.memory.add("hello", scope=Scope(*names))
    with pytest.raises(InvalidInput):
        await engine.memory.list(scope=Scope(*names))


async def test_names_that_look_like_paths_stay_apart(engine: Engine) -> None:
    scopes = [Scope("a/b"), Scope("a", "b"), Scope("a"), Scope("a%2Fb"), Scope("a/"), Scope("A")]
    for number, scope in enumerate(scopes):
        await engine.memory.add(f"secret {number}", scope=scope)
    assert await list_texts(engine, Scope("a")) == ["secret 1", "secret 2"]
    for number in (0, 3, 4, 5):
        assert await list_texts(engine, scopes[number]) == [f"secret {number}"]


async def test_what_belongs_to_nobody_is_not_everybodys(engine: Engine) -> None:
    await engine.memory.add("of nobody", scope=Scope())
    await engine.memory.add("of ann", scope=ANN)
    assert await list_texts(engine, Scope()) == ["of nobody"]
    assert await recall_texts(engine, query_arguments("nobody ann", Scope())) == ["of nobody"]


async def test_a_memory_of_another_scope_does_not_exist(engine: Engine) -> None:
    done = (await engine.memory.add("mine alone", scope=ANN))[0]
    for scope in (BOB, TUESDAY, replace(ANN, agent="other")):
        with pytest.raises(NotFound):
            await engine.memory.get(done.id, scope=scope)
        with pytest.raises(NotFound):
            await engine.memory.list_versions(done.id, scope=scope)
        with pytest.raises(NotFound):
            await engine.memory.update(done.id, scope=scope, text="taken")
    assert await list_texts(engine, ANN) == ["mine alone"]


async def test_history_is_in_order_and_paged_behind_its_filter(engine: Engine) -> None:
    await engine.memory.add(["first", "second", "third"], scope=ANN)
    await engine.memory.add([f"other {n}" for n in range(120)], scope=TUESDAY)
    page = await engine.memory.list(scope=ANN, limit=2)
    assert [memory.text for memory in page.memories] == ["first", "second"]
    rest = await engine.memory.list(scope=ANN, limit=2, after=page.next)
    assert ([memory.text for memory in rest.memories], rest.next) == (["third"], None)
    back = await engine.memory.list(scope=ANN, newest_first=True, limit=1)
    assert [memory.text for memory in back.memories] == ["third"]


async def test_a_filter_never_empties_a_page(engine: Engine) -> None:
    memories = [NewMemory(f"turn {n}", metadata={"topic": "a" if n % 100 else "b"}) for n in range(1_201)]
    await engine.memory.add(memories, scope=ANN)
    condition = Eq(("own", "topic"), "b")
    page = await engine.memory.list(scope=ANN, filter=condition, limit=10)
    assert [memory.text for memory in page.memories] == [f"turn {n}" for n in range(0, 1_000, 100)]
    rest = await engine.memory.list(scope=ANN, filter=condition, limit=10, after=page.next)
    assert [memory.text for memory in rest.memories] == [f"turn {n}" for n in (1_000, 1_100, 1_200)]
    assert await engine.memory.count(scope=ANN, filter=condition) == 13


async def test_the_last_turns_are_first_in_first_out(engine: Engine) -> None:
    items = ["First small item", "Second small item", "Third small item"]
    await engine.memory.add(items, scope=ANN)
    last = await engine.memory.list_recent(scope=ANN, max_tokens=10, tokenizer="chars4_floor")
    assert [turn.text for turn in last] == items[1:]
    assert [turn.text for turn in await engine.memory.list_recent(scope=ANN, limit=1)] == items[2:]
    assert await engine.memory.list_recent(scope=ANN, limit=0) == []


async def test_a_turn_larger_than_the_limit_stays_cut_with_a_mark(engine: Engine) -> None:
    await engine.memory.add(["before", "A long story. " * 500], scope=ANN)
    last = await engine.memory.list_recent(scope=ANN, max_tokens=50)
    assert [turn.cut for turn in last] == [True]
    assert last[0].text.endswith("…")
    assert last[0].tokens <= 50
    assert last[0].memory.text == "A long story. " * 500


async def test_the_last_turns_are_there_after_a_restart(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=WORDS_ONLY) as engine:
        await engine.memory.add(["one", "two"], scope=ANN)
    async with conspectus.open(tmp_path, settings=WORDS_ONLY) as engine:
        assert [turn.text for turn in await engine.memory.list_recent(scope=ANN)] == ["one", "two"]


async def test_what_is_stored_last_is_recent_though_it_is_old(engine: Engine) -> None:
    await engine.memory.add("new", scope=ANN)
    await engine.memory.add(NewMemory("old", at=LONG_AGO), scope=ANN)
    assert [turn.text for turn in await engine.memory.list_recent(scope=ANN)] == ["new", "old"]
    assert await list_texts(engine, ANN) == ["old", "new"]


async def test_near_duplicates_are_linked_and_kept(engine: Engine) -> None:
    first = (await engine.memory.add("My dog is called Rex.", scope=ANN))[0]
    again = (await engine.memory.add("my dog is called rex", scope=ANN))[0]
    other = (await engine.memory.add("My dog is called Rex.", scope=BOB))[0]
    assert again.near == (first.id,)
    assert other.near == ()
    assert await list_texts(engine, ANN) == ["My dog is called Rex.", "my dog is called rex"]
    assert (await engine.memory.get(again.id, scope=ANN)).near == (first.id,)


async def test_near_duplicates_without_their_rarest_words_are_linked(engine: Engine) -> None:
    words = ["we", "walk", "home", "past", "quiet", "garden", "gate", "under", "autumn", "Xylophonist"]
    common = [f"{' '.join(words[:9])} {other}" for other in ("lamp", "hill", "road", "tower")]
    stored = await engine.memory.add(common, scope=ANN)
    again = await engine.memory.add(" ".join(words), scope=ANN)
    assert set(again[0].near) == {memory.id for memory in stored}
    long = await engine.memory.add(" ".join(words) * 2, scope=ANN)
    assert again[0].id in long[0].near


async def test_texts_that_differ_in_a_number_are_not_near(engine: Engine) -> None:
    await engine.memory.add("The rent of the flat in the old town is 900 euros a month", scope=ANN)
    done = await engine.memory.add("The rent of the flat in the old town is 950 euros a month", scope=ANN)
    assert done[0].near == ()


async def test_an_update_keeps_the_id_and_what_was_said_before(engine: Engine) -> None:
    done = (await engine.memory.add("I live in Paris", scope=ANN))[0]
    await engine.memory.update(done.id, scope=ANN, text="I live in Berlin", pinned=True)
    now = await engine.memory.get(done.id, scope=ANN)
    assert (now.id, now.text, now.pinned) == (done.id, "I live in Berlin", True)
    assert await recall_texts(engine, query_arguments("Paris")) == []
    versions = await engine.memory.list_versions(done.id, scope=ANN)
    assert [version.text for version in versions] == ["I live in Paris", "I live in Berlin"]
    assert [version.id for version in versions] == [done.id] * 2
    assert versions[0].known_until == versions[1].known_from
    assert await engine.memory.count(scope=ANN) == 1


async def test_a_version_says_from_when_on_the_next_holds(engine: Engine) -> None:
    """From when that is true, if it is told; `valid_until` stays as it was told."""
    for text, begins in (
        ("Tuesday", None),
        ("Thursday", "2030-01-02"),
        ("Monday", "2030-01-02"),
        ("Friday", None),
    ):
        new = NewMemory(f"We release on {text}", key="release", valid_from=begins)
        done = (await engine.memory.add(new, scope=ANN))[0]
    versions = await engine.memory.list_versions(done.id, scope=ANN)
    later = [version.known_from for version in versions[1:]]
    assert [version.superseded for version in versions] == [
        parse_instant("2030-01-02"),
        later[1],
        later[2],
        None,
    ]
    assert [version.valid_until for version in versions] == [None] * 4


async def test_an_update_of_what_changed_meanwhile_is_refused(engine: Engine) -> None:
    done = (await engine.memory.add("one", scope=ANN))[0]
    read = (await engine.memory.get(done.id, scope=ANN)).document.fingerprint
    await engine.memory.update(done.id, scope=ANN, text="two")
    with pytest.raises(PreconditionFailed):
        await engine.memory.update(done.id, scope=ANN, text="three", if_match=read)
    with pytest.raises(InvalidInput):
        await engine.memory.update(done.id, scope=ANN, key="x")
    assert await list_texts(engine, ANN) == ["two"]


async def test_a_key_that_is_stored_is_a_new_version(engine: Engine) -> None:
    first = (await engine.memory.add(NewMemory("tea", key="drink"), scope=ANN))[0]
    again = (await engine.memory.add(NewMemory("tea", key="drink"), scope=ANN))[0]
    other = (await engine.memory.add(NewMemory("coffee", key="drink"), scope=ANN))[0]
    assert (first.outcome, again.outcome, other.outcome) == ("added", "unchanged", "replaced")
    assert first.id == again.id == other.id
    assert [version.text for version in await engine.memory.list_versions(first.id, scope=ANN)] == [
        "tea",
        "coffee",
    ]


async def test_as_of_tells_apart_what_came_changed_and_went_since(engine: Engine) -> None:
    unchanged, changed, deleted = await engine.memory.add(
        ["Rex likes bones", "Rex is two years old", "Rex bit the postman"], scope=ANN
    )
    then = datetime.now(UTC)
    await engine.memory.update(changed.id, scope=ANN, text="Rex is three years old")
    await engine.documents.delete(deleted.id)
    await engine.memory.add("Rex likes carrots", scope=ANN)
    now = await engine.memory.recall(**query_arguments("Rex"))
    assert {hit.memory.text for hit in now.memories} == {
        "Rex likes bones",
        "Rex is three years old",
        "Rex likes carrots",
    }
    before = await engine.memory.recall(**query_arguments("Rex"), as_of=then)
    assert {hit.memory.text for hit in before.memories} == {"Rex likes bones", "Rex is two years old"}
    assert {hit.memory.id for hit in before.memories} == {unchanged.id, changed.id}
    assert before.since is not None
    assert (before.since.recorded, before.since.changed, before.since.deleted) == (1, 1, 1)
    assert (await engine.memory.recall(**query_arguments("Rex"), as_of=LONG_AGO)).memories == ()


async def test_a_deleted_memory_takes_its_versions_along(engine: Engine) -> None:
    done = (await engine.memory.add("the password is swordfish", scope=ANN))[0]
    await engine.memory.update(done.id, scope=ANN, text="the password is haddock")
    then = datetime.now(UTC)
    assert (await engine.documents.delete(done.id)).documents == 2
    assert await recall_texts(engine, query_arguments("password")) == []
    assert await recall_texts(engine, {**query_arguments("password"), "as_of": then}) == []
    assert await engine.memory.list_recent(scope=ANN) == []


async def test_versions_are_in_no_answer_that_does_not_ask_for_them(engine: Engine) -> None:
    done = (await engine.memory.add("the old address is Elm Street", scope=ANN))[0]
    await engine.memory.update(done.id, scope=ANN, text="the new address is Oak Street")
    retrieval = await engine.retrieve("Elm Street address", collection=MEMORY)
    assert [hit.chunk.text for hit in retrieval.hits] == ["the new address is Oak Street"]


async def test_as_of_needs_a_zone(engine: Engine) -> None:
    await engine.memory.add("x", scope=ANN)
    with pytest.raises(InvalidInput):
        await engine.memory.recall(**query_arguments("x"), as_of=datetime(2026, 1, 1))


async def test_notes_stand_in_every_window_within_their_share(engine: Engine) -> None:
    await engine.memory.add(NewMemory("Always answer in French.", kind="note"), scope=Scope("ann"))
    await engine.memory.add(NewMemory("Bob wants Latin.", kind="note"), scope=Scope("bob"))
    await engine.memory.add(NewMemory("On Tuesdays be brief.", kind="note"), scope=TUESDAY)
    await engine.memory.add([f"turn {n} about gardens" for n in range(60)], scope=ANN)
    window = await engine.memory.window(max_tokens=300, **query_arguments("gardens"))
    assert [note.text for note in window.notes] == ["Always answer in French."]
    assert "French" in window.text
    assert window.tokens <= 300
    none = await engine.memory.window(max_tokens=300, **query_arguments("gardens"), notes_share=0.0)
    assert none.notes == ()
    assert "French" not in none.text


@pytest.mark.parametrize("tokens", [0, 1, 7, 40, 200, 1_000])
@pytest.mark.parametrize("renderer", ["text", "xml", "json", "messages", "guarded"])
async def test_a_window_is_never_over_its_budget(engine: Engine, tokens: int, renderer: str) -> None:
    await engine.memory.add(NewMemory("Be polite. " * 20, kind="note"), scope=ANN)
    await engine.memory.add([f"turn {n}: " + "much to say " * n for n in range(20)], scope=ANN)
    budget = Budget(tokens, reserved_tokens=tokens // 10)
    window = await engine.memory.window(max_tokens=budget, **query_arguments("say"), format=renderer)
    assert window.tokens <= tokens - tokens // 10


async def test_a_window_holds_the_last_turns_and_what_was_found(engine: Engine) -> None:
    await engine.memory.add(NewMemory("The cellar key hangs behind the clock", at=LONG_AGO), scope=ANN)
    await engine.memory.add([f"small talk {n}" for n in range(40)], scope=ANN)
    window = await engine.memory.window(max_tokens=400, **query_arguments("where is the cellar key?"))
    assert "behind the clock" in window.text
    assert [turn.text for turn in window.recent][-1] == "small talk 39"
    again = await engine.memory.window(max_tokens=400, **query_arguments("where is the cellar key?"))
    assert again.text == window.text


async def test_what_is_no_longer_true_says_so(engine: Engine) -> None:
    until = datetime.now(UTC) - timedelta(days=1)
    await engine.memory.add(NewMemory("Ann works at Initech", valid_until=until), scope=ANN)
    await engine.memory.add("Ann works at Globex", scope=ANN)
    recalled = await engine.memory.recall(**query_arguments("where does Ann work? works"))
    assert [hit.memory.text for hit in recalled.memories] == ["Ann works at Globex", "Ann works at Initech"]
    assert recalled.memories[1].parts["fact_ended"] < 0
    assert any("true until" in reason for reason in recalled.memories[1].why)
    assert (
        "no longer true since"
        in (await engine.memory.window(max_tokens=300, **query_arguments("Ann works"))).text
    )


async def test_a_fact_ends_the_one_that_it_contradicts(engine: Engine) -> None:
    paris = NewMemory("I live in Paris", fact=Fact("Ann", "lives in", "Paris"), at="2024-01-01T00:00:00Z")
    berlin = NewMemory("I moved to Berlin", fact=Fact("Ann", "lives in", "Berlin"), at="2025-06-01T00:00:00Z")
    first = (await engine.memory.add(paris, scope=ANN))[0]
    second = (await engine.memory.add(berlin, scope=ANN))[0]
    assert second.closed == (first.id,)
    old, new = (await engine.memory.list(scope=ANN)).memories
    assert (old.closed_by, old.valid_until) == (second.id, datetime(2025, 6, 1, tzinfo=UTC))
    assert new.closes == (first.id,)
    why = {
        hit.memory.text: hit.why
        for hit in (await engine.memory.recall(**query_arguments("live in moved"))).memories
    }
    assert f"ended by {second.id}" in why["I live in Paris"][0]
    assert why["I moved to Berlin"] == (f"ended {first.id}",)


async def test_facts_of_different_people_and_scopes_do_not_touch(engine: Engine) -> None:
    facts = [
        Fact("Ann", "lives in", "Paris"),
        Fact("Ben", "lives in", "Rome"),
        Fact("Ann", "likes", "tea", False),
    ]
    await engine.memory.add([NewMemory(f"fact {n}", fact=fact) for n, fact in enumerate(facts)], scope=ANN)
    other = NewMemory("elsewhere", fact=Fact("Ann", "lives in", "Oslo"))
    assert (await engine.memory.add(other, scope=BOB))[0].closed == ()
    more = NewMemory("more", fact=Fact("Ann", "likes", "coffee", single=False))
    assert (await engine.memory.add(more, scope=ANN))[0].closed == ()
    assert [memory.closed_by for memory in (await engine.memory.list(scope=ANN)).memories] == [None] * 4


async def test_all_conversations_are_recalled_from_where_that_is_asked_for(engine: Engine) -> None:
    await engine.memory.add("The cat is called Mimi", scope=TUESDAY)
    await engine.memory.add("The cat is called Oskar", scope=BOB)
    await engine.memory.add("Good morning", scope=ANN)
    question = query_arguments("What is the cat called?")
    assert await recall_texts(engine, question) == []
    assert await recall_texts(engine, {**question, "all_conversations": True}) == ["The cat is called Mimi"]
    window = await engine.memory.window(max_tokens=300, **question, all_conversations=True)
    assert [turn.text for turn in window.recent] == ["Good morning"]
    assert "Mimi" in window.text
    assert "Oskar" not in window.text


async def test_a_later_statement_comes_first_and_fillers_last(tmp_path: Path) -> None:
    turns = [
        ("user", "I live in Köln, in a small flat near the river."),
        ("assistant", "Nice to meet you"),
        ("user", "I am allergic to peanuts."),
        ("assistant", "ok"),
        ("user", "I moved to Hamburg in May."),
        ("assistant", "I will."),
        ("user", "I read a long novel about whales."),
    ]
    memories = [
        NewMemory(text, role=role, at=LONG_AGO + timedelta(days=number))
        for number, (role, text) in enumerate(turns)
    ]
    async with conspectus.open(tmp_path, settings=Settings()) as engine:
        written = await engine.memory.add(memories, scope=ANN, wait=True)
        recalled = (await engine.memory.recall("Where do I live?", scope=ANN, limit=7)).memories
        past = await recall_texts(engine, query_arguments("Where did I live before?"))
    assert [hit.memory.id for hit in recalled[:2]] == [written[4].id, written[0].id]
    assert recalled[0].why == (f"said later, probably about the same, than {written[0].id}",)
    assert recalled[1].why == (f"said earlier, probably about the same, than {written[4].id}",)
    assert {hit.memory.document.role for hit in recalled[-3:]} == {"assistant"}
    assert past[0] == turns[0][1]
