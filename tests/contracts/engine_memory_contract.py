"""What every engine must do with memories: the same, whoever is asked."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from conspectus.errors import InvalidInput, NotFound, PreconditionFailed, TooLarge, UnknownTokenizer
from conspectus.model.filter import Eq
from conspectus.model.graph import Fact, GraphExpansion
from conspectus.model.memory import (
    MEMORY,
    Memory,
    MemoryRetrieval,
    MemorySelection,
    MemoryWindow,
    NewMemory,
    Scope,
)
from conspectus.model.query import Budget
from conspectus.text.times import parse_instant
from tests.support.engine_samples import AnyEngine

ANN = Scope("ann lee/1", "böt", "c%1")
SAID = [
    NewMemory("I like green tea.", key="1", role="user", speaker="Ann", at="2026-03-02T08:00:00.123456Z"),
    NewMemory("Noted: green tea.", key="2", role="assistant", at=1_772_438_460.5),
    NewMemory("Always answer in short sentences.", key="n", kind="note", pinned=True),
    NewMemory(
        "I live in Köln 🎉.",
        key="4",
        fact=Fact("Ann", "lives in", "Köln"),
        valid_from="2020-01-01T00:00:00Z",
        entities=("Ann", "Köln"),
        metadata={"mood": "glad", "n": [1, {"a": None}]},
    ),
]
EVERYONE = (
    Scope(),
    Scope("ann"),
    Scope("ann", "bot"),
    Scope("ann", "bot", "one"),
    Scope("ann", "bot", "two"),
    Scope("ann", None, "one"),
    Scope("ann/bot", None, "one"),
    Scope("an"),
    Scope("bob", "bot", "one"),
)


def unclocked(retrieval: MemoryRetrieval) -> MemoryRetrieval:
    """What was recalled, without what differs from call to call."""
    return replace(retrieval, timings={})


def unclocked_window(window: MemoryWindow) -> MemoryWindow:
    """A window, without what differs from call to call."""
    return replace(window, window=replace(window.window, timings={}))


class MemoryContract:
    """Storing, recalling, showing and changing."""

    async def conversation(self, engine: AnyEngine) -> list[Memory]:
        """Memories of one conversation, in the order in which they were said."""
        await engine.memory.add(SAID, scope=ANN, wait=True)
        return [*(await engine.memory.list(scope=ANN)).memories]

    async def test_memories_keep_what_was_said_of_them(self, engine: AnyEngine, local: AnyEngine) -> None:
        """Word for word, with exact times, facts and metadata."""
        before, after, *_, fact = await self.conversation(engine)
        assert before.document.occurred is not None
        assert before.document.occurred.start == parse_instant("2026-03-02T08:00:00.123456Z")
        assert (before.document.role, before.document.author, before.scope) == ("user", "Ann", ANN)
        assert after.document.occurred is not None
        assert after.document.occurred.start == parse_instant(1_772_438_460.5)
        assert (fact.fact, fact.entities) == (SAID[3].fact, ("Ann", "Köln"))
        assert fact.valid_from == parse_instant("2020-01-01T00:00:00Z")
        assert (fact.metadata, fact.text) == (SAID[3].metadata, SAID[3].text)
        for memory in (before, after, fact):
            assert (
                await engine.memory.get(memory.id, scope=ANN)
                == await local.memory.get(memory.id, scope=ANN)
                == memory
            )

    async def test_the_same_again_is_unchanged_and_else_a_version(self, engine: AnyEngine) -> None:
        """Under one key there is one memory, with one id."""
        first = await engine.memory.add(SAID, scope=ANN)
        again = await engine.memory.add(SAID, scope=ANN)
        assert [written.outcome for written in again] == ["unchanged"] * len(SAID)
        assert [written.id for written in again] == [written.id for written in first]
        [done] = await engine.memory.add(replace(SAID[0], text="I like black tea."), scope=ANN)
        assert (done.id, done.outcome) == (first[0].id, "replaced")
        versions = await engine.memory.list_versions(done.id, scope=ANN)
        assert [version.text for version in versions] == ["I like green tea.", "I like black tea."]
        assert versions[0].known_until is not None
        assert versions[0].known_until <= versions[1].known_from
        assert [version.superseded for version in versions] == [versions[1].known_from, None]

    async def test_what_was_just_stored_is_found_at_once(self, engine: AnyEngine) -> None:
        """By its words, and among the last turns; one alone or a text alone will do."""
        [done] = await engine.memory.add("The code word is xyzzy-42.", scope=ANN)
        recall = await engine.memory.recall("xyzzy-42", scope=ANN)
        assert [hit.memory.id for hit in recall.memories] == [done.id]
        [last] = await engine.memory.list_recent(scope=ANN)
        assert (last.memory.id, last.cut) == (done.id, False)
        assert await engine.memory.add([], scope=ANN) == []

    async def test_memories_below_the_minimum_confidence_are_not_found(self, engine: AnyEngine) -> None:
        """And says so; the window has the last turns all the same."""
        await engine.memory.add("The code word is xyzzy-42.", scope=ANN, wait=True)
        recall = await engine.memory.recall("who won the cup?", scope=ANN, min_confidence=0.99)
        assert (recall.outcome, recall.memories) == ("no_match", ())
        assert f"confidence {recall.confidence:.2f} is below the minimum 0.99" in recall.notices[-1]
        assert (
            await engine.memory.recall("what is the code word?", scope=ANN)
        ).confidence > recall.confidence
        window = await engine.memory.window("who won?", 500, scope=ANN, min_confidence=0.99)
        assert "xyzzy-42" in window.text
        with pytest.raises(InvalidInput, match="min_confidence"):
            await engine.memory.recall("who?", scope=ANN, min_confidence=1.5)

    async def test_nothing_is_found_outside_of_its_scope(self, engine: AnyEngine) -> None:
        """In any way of reading, for scopes that differ in one name, or in where a name ends."""
        ids = {}
        for number, scope in enumerate(EVERYONE):
            [done] = await engine.memory.add(NewMemory(f"secret {number}", key="k"), scope=scope)
            ids[done.id] = scope
        assert len(ids) == len(EVERYONE)
        for visible_scope in EVERYONE:
            mine = {name for name, scope in ids.items() if _holds(visible_scope, scope)}
            listed = (await engine.memory.list(scope=visible_scope)).memories
            assert {memory.id for memory in listed} == mine
            assert await engine.memory.count(scope=visible_scope) == len(mine)
            hits = (await engine.memory.recall("secret", scope=visible_scope, limit=50, graph=None)).memories
            assert {hit.memory.id for hit in hits} == mine
            for name in ids.keys() - mine:
                await self.missing(engine, name, visible_scope)

    async def missing(self, engine: AnyEngine, memory: str, scope: Scope) -> None:
        """A memory of another scope is not there, whatever is done with it."""
        for work in (
            engine.memory.get(memory, scope=scope),
            engine.memory.list_versions(memory, scope=scope),
            engine.memory.update(memory, scope=scope, text="x"),
        ):
            with pytest.raises(NotFound):
                await work

    async def test_recall_is_the_same_through_every_engine(self, engine: AnyEngine, local: AnyEngine) -> None:
        """Recollections and windows, with all that a question may say."""
        await self.conversation(engine)
        now = parse_instant("2026-03-02T09:00:00Z")
        question: dict[str, Any] = {"query": "what does Ann like?", "scope": ANN}
        for fields in (
            question,
            {**question, "limit": 1, "min_similarity": 0.1},
            {**question, "min_confidence": 0.99},
            {**question, "graph": None, "recent": 1, "recent_tokens": 20},
            {**question, "graph": GraphExpansion(1.0, 1, ()), "notes_share": 0.0},
            {**question, "all_conversations": True},
            {**question, "as_of": now},
            {**question, "scope": Scope("nobody")},
        ):
            there, here = [await one.memory.recall(**fields) for one in (engine, local)]
            assert unclocked(there) == unclocked(here)
            for budget in (0, 60, Budget(200, "chars4_ceil", reserved_tokens=10)):
                windows = [
                    await one.memory.window(max_tokens=budget, **fields, format="xml")
                    for one in (engine, local)
                ]
                assert unclocked_window(windows[0]) == unclocked_window(windows[1])

    async def test_a_memory_window_begins_with_the_previous_one(
        self, engine: AnyEngine, local: AnyEngine
    ) -> None:
        """New memories are appended; one that was changed or forgotten goes at once, and no other scope's."""
        [cat] = await engine.memory.add(NewMemory("My cat is called Tom.", key="cat"), scope=ANN)
        [dog] = await engine.memory.add(NewMemory("My dog is called Rex.", key="dog"), scope=ANN)
        fields: dict[str, Any] = {"query": "what is the name?", "scope": ANN, "max_tokens": 300}
        first = (await engine.memory.window(**fields)).window
        await engine.memory.add("The parrot is called Polly.", scope=ANN)
        there, here = [
            (await one.memory.window(**fields, previous=first.state)).window for one in (engine, local)
        ]
        assert (there.text, there.cache_plan) == (here.text, here.cache_plan)
        assert there.text.startswith(first.text)
        assert "Polly" in there.text.removeprefix(first.text)
        await engine.memory.update(cat.id, scope=ANN, text="My cat is called Tim.")
        await engine.memory.forget(MemorySelection(ids=(dog.id,)), scope=ANN)
        last = (await engine.memory.window(**fields, previous=there.state)).window
        assert ("Tom" in last.text, "Tim" in last.text, "Rex" in last.text) == (False, True, False)
        assert last.cache_plan is not None
        assert {cache_break.reason for cache_break in last.cache_plan.breaks} >= {"not_found"}
        other = await engine.memory.window("name", 300, scope=Scope("nobody"), previous=there.state)
        assert other.text == ""

    async def test_an_instant_shows_what_was_known_then(self, engine: AnyEngine) -> None:
        """Without what was recorded since, and with what was changed since as it was."""
        [done] = await engine.memory.add(NewMemory("My cat is called Tom.", key="cat"), scope=ANN)
        then = (await engine.memory.get(done.id, scope=ANN)).known_from
        await engine.memory.update(done.id, scope=ANN, text="My cat is called Tim.")
        await engine.memory.add("My cat is grey.", scope=ANN)
        fields: dict[str, Any] = {"query": "cat called", "scope": ANN, "as_of": then, "graph": None}
        recall = await engine.memory.recall(**fields)
        assert [hit.memory.text for hit in recall.memories] == ["My cat is called Tom."]
        assert recall.since is not None
        assert (recall.since.recorded, recall.since.changed) == (1, 1)
        earlier = await engine.memory.recall(**{**fields, "as_of": then - timedelta(days=1)})
        assert (earlier.outcome, earlier.memories) == ("no_match", ())

    async def test_pages_filters_and_orders(self, engine: AnyEngine) -> None:
        """Hold every memory once, and are filtered before they are cut."""
        stored = await self.conversation(engine)
        for backwards in (False, True):
            memories: list[Memory] = []
            after: str | None = None
            while True:
                page = await engine.memory.list(scope=ANN, after=after, limit=1, newest_first=backwards)
                memories += page.memories
                after = page.next
                if after is None:
                    break
            assert memories == (stored[::-1] if backwards else stored)
        notes = (await engine.memory.list(scope=ANN, kind="note")).memories
        assert [memory.document.key for memory in notes] == ["n"]
        named = (await engine.memory.list(scope=ANN, entity="Köln", limit=1)).memories
        assert [memory.document.key for memory in named] == ["4"]
        where = Eq("role", "user")
        assert [
            memory.document.key for memory in (await engine.memory.list(scope=ANN, filter=where)).memories
        ] == ["1"]
        assert await engine.memory.count(scope=ANN, filter=where) == 1

    async def test_the_names_of_a_scope_stand_for_it(self, engine: AnyEngine) -> None:
        memory = engine.memory
        [written] = await memory.add("Prefers tea.", user="ann", wait=True)
        assert await memory.count(scope=Scope("ann")) == await memory.count(user="ann") == 1
        assert (await memory.get(written.id, user="ann")).scope == Scope("ann")
        assert [hit.memory.id for hit in (await memory.recall("tea", user="ann")).memories] == [written.id]
        assert "tea" in (await memory.window("tea", user="ann")).text
        assert len((await memory.list(user="ann", limit=5)).memories) == 1
        await memory.update(written.id, user="ann", text="Prefers coffee.")
        assert len(await memory.list_versions(written.id, user="ann")) == 2
        await memory.add("Likes maps.", user="ann", agent="guide", conversation="c1")
        assert await memory.count(user="ann", agent="guide", conversation="c1") == 1
        with pytest.raises(InvalidInput, match=r"^scope: is missing"):
            await memory.count()
        with pytest.raises(InvalidInput, match=r"^scope: is given besides user"):
            await memory.count(scope=Scope("ann"), user="ann")

    async def test_changes_keep_the_id_and_what_was_before(self, engine: AnyEngine) -> None:
        """Any field but the key; with a fingerprint, only of what was read."""
        [first, *_] = await self.conversation(engine)
        fingerprint = first.document.fingerprint
        written = await engine.memory.update(
            first.id, scope=ANN, if_match=fingerprint, pinned=True, metadata={"a": [1]}, speaker=None
        )
        assert (written.id, written.outcome) == (first.id, "updated")
        await engine.documents.wait_until_embedded(collection=MEMORY)
        now = await engine.memory.get(first.id, scope=ANN)
        assert (now.pinned, now.metadata, now.text, now.document.author) == (
            True,
            {"a": [1]},
            first.text,
            None,
        )
        with pytest.raises(PreconditionFailed):
            await engine.memory.update(first.id, scope=ANN, if_match=fingerprint, text="x")
        for wrong in ({"key": "x"}, {"colour": "red"}, {"vector": (1.0,)}, {"text": " "}, {"kind": "odd"}):
            with pytest.raises(InvalidInput):
                await engine.memory.update(first.id, scope=ANN, **wrong)
        assert await engine.memory.get(first.id, scope=ANN) == now

    async def test_the_last_turns_fit(self, engine: AnyEngine, local: AnyEngine) -> None:
        """First in, first out, by number and by tokens; one that is too large is cut and marked."""
        await engine.memory.add([f"turn number {number}" for number in range(5)], scope=ANN)
        last = await engine.memory.list_recent(scope=ANN, limit=2)
        assert [memory.text[-1] for memory in last] == ["3", "4"]
        assert await engine.memory.list_recent(scope=ANN, limit=0) == []
        await engine.memory.add("word " * 500, scope=ANN, wait=True)
        [cut] = await engine.memory.list_recent(scope=ANN, limit=3, max_tokens=20, tokenizer="chars4_ceil")
        assert (cut.cut, cut.tokens <= 20) == (True, True)
        assert [cut] == await local.memory.list_recent(
            scope=ANN, limit=3, max_tokens=20, tokenizer="chars4_ceil"
        )
        with pytest.raises(UnknownTokenizer):
            await engine.memory.list_recent(scope=ANN, tokenizer="abacus")

    async def test_a_newer_fact_ends_the_older_one(self, engine: AnyEngine) -> None:
        """And both say so."""
        old = NewMemory("I live in Bonn.", fact=Fact("Ann", "lives in", "Bonn"), valid_from="2019-01-01")
        [first] = await engine.memory.add(old, scope=ANN)
        [second] = await engine.memory.add(SAID[3], scope=ANN)
        assert second.closed == (first.id,)
        before, after = [await engine.memory.get(written.id, scope=ANN) for written in (first, second)]
        assert (before.closed_by, after.closes) == (after.id, (before.id,))
        assert before.valid_until == after.valid_from

    async def test_invalid_scopes_memories_and_limits_are_refused(self, engine: AnyEngine) -> None:
        """With what is wrong about it, and nothing is stored."""
        for names in (("",), ("a\x00b",), ("ann", " "), ("x" * 2_000,)):
            with pytest.raises(InvalidInput):
                await engine.memory.add("x", scope=Scope(*names))
        for memory in ("", NewMemory("x", at="noon"), NewMemory("x", metadata={"a": {1, 2}})):
            with pytest.raises(InvalidInput):
                await engine.memory.add(memory, scope=ANN)
        with pytest.raises(InvalidInput):
            await engine.memory.add(
                NewMemory("x", valid_from="2021-01-01", valid_until="2020-01-01"), scope=ANN
            )
        assert await engine.memory.count(scope=ANN) == 0
        for limit in (0, 1_001):
            with pytest.raises(InvalidInput):
                await engine.memory.list(scope=ANN, limit=limit)
        for query, maximum in (("x", -1), ("x" * 2_000_000, 10)):
            with pytest.raises((InvalidInput, TooLarge)):
                await engine.memory.recall(query, scope=ANN, limit=maximum)
        with pytest.raises(InvalidInput, match="zone"):
            await engine.memory.recall("x", scope=ANN, as_of=datetime(2026, 1, 1))
        for work in (
            engine.memory.list(scope=ANN, collection="nowhere"),
            engine.memory.get("a/b", scope=ANN),
        ):
            with pytest.raises(NotFound):
                await work


def _holds(scope: Scope, home: Scope) -> bool:
    """Whether reading in one scope finds what was written into another."""
    if scope.user != home.user:
        return False
    pairs = ((scope.agent, home.agent), (scope.conversation, home.conversation))
    return all(part in {None, there} for part, there in pairs)
