"""What is forgotten is gone at once and everywhere, and nothing else is."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.files import holding
from tests.memories import ANN, BOB, keys, person, question, said, say, store

from conspectus import Engine
from conspectus.errors import InvalidInput, NotFound, PermissionDenied
from conspectus.model.access import Principal
from conspectus.model.graph import Fact
from conspectus.model.memory import MemoryReceipt, MemorySelection, NewMemory, Scope
from conspectus.model.query import Query

EVERYTHING = MemorySelection(everything=True, pinned=True)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with store(tmp_path) as opened:
        yield opened


async def remember_samples(engine: Engine) -> dict[str, str]:
    """Memories of Ann and of Bob; the ids of Ann's by their keys."""
    await say(engine, BOB, said("old", 100), said("new", 10))
    memories = await say(
        engine, ANN, said("old", 100), said("new", 10), said("pinned", 200, pinned=True),
        said("note", 300, kind="note"),
    )  # fmt: skip
    return dict(zip(["old", "new", "pinned", "note"], [memory.id for memory in memories], strict=True))


async def test_a_memory_is_forgotten_once(engine: Engine) -> None:
    ids = await remember_samples(engine)
    receipt = await engine.memory.forget(MemorySelection((ids["new"],)), scope=ANN)
    assert receipt == MemoryReceipt(1, chunks=1, ids=(ids["new"],))
    assert await keys(engine, ANN) == ["note", "pinned", "old"]
    assert await engine.memory.forget(MemorySelection((ids["new"],)), scope=ANN) == MemoryReceipt(0)
    assert await keys(engine, BOB) == ["old", "new"]


@pytest.mark.parametrize("preview", [True, False])
async def test_ninety_days_old_means_older_than_that(engine: Engine, preview: bool) -> None:
    ids = await remember_samples(engine)
    what = MemorySelection(older_than_days=90)
    receipt = await engine.memory.forget(what, scope=ANN, dry_run=preview)
    assert (set(receipt.ids), receipt.dry_run) == ({ids["old"], ids["note"]}, preview)
    stays = ["note", "pinned", "old", "new"] if preview else ["pinned", "new"]
    assert await keys(engine, ANN) == stays
    assert await keys(engine, BOB) == ["old", "new"]


async def test_the_instant_itself_stays(engine: Engine) -> None:
    noon = datetime(2026, 1, 5, 12, tzinfo=UTC)
    [at, before] = await say(
        engine, ANN, NewMemory("at noon", at=noon),
        NewMemory("just before", at=noon.replace(hour=11, minute=59, second=59, microsecond=999_999)),
    )  # fmt: skip
    receipt = await engine.memory.forget(MemorySelection(before=noon), scope=ANN)
    assert receipt.ids == (before.id,)
    assert (await engine.memory.get(at.id, scope=ANN)).text == "at noon"


UNCLEAR: list[dict[str, Any]] = [
    {},
    {"ids": ("x",), "everything": True},
    {"everything": True, "older_than_days": 1},
    {"before": datetime(2026, 1, 1, tzinfo=UTC), "older_than_days": 1},
    *({"older_than_days": days} for days in (-1, float("nan"), float("inf"), 1e300, True)),
]


async def test_what_is_meant_is_said_in_one_way(engine: Engine) -> None:
    await remember_samples(engine)
    for what in UNCLEAR:
        with pytest.raises(InvalidInput):
            await engine.memory.forget(MemorySelection(**what), scope=ANN)
    assert len(await keys(engine, ANN)) == 4


async def test_zero_days_is_all_that_was_said(engine: Engine) -> None:
    await remember_samples(engine)
    await engine.memory.forget(MemorySelection(older_than_days=0), scope=ANN)
    assert await keys(engine, ANN) == ["pinned"]


async def test_pinned_memories_go_when_they_are_named(engine: Engine) -> None:
    ids = await remember_samples(engine)
    assert (await engine.memory.forget(MemorySelection(everything=True), scope=ANN)).memories == 3
    assert await keys(engine, ANN) == ["pinned"]
    assert (await engine.memory.forget(MemorySelection((ids["pinned"],)), scope=ANN)).memories == 1
    assert await keys(engine, ANN) == []


async def test_everything_may_mean_the_pinned_too(engine: Engine) -> None:
    await remember_samples(engine)
    assert (await engine.memory.forget(EVERYTHING, scope=ANN)).memories == 4
    assert await keys(engine, BOB) == ["old", "new"]


async def test_what_the_caller_calls_pinned_is_not(engine: Engine) -> None:
    await say(engine, ANN, NewMemory("x", metadata={"pinned": True, "fact": {"a": 1}}))
    stats = await engine.memory.stats(scope=ANN)
    assert (stats.pinned, stats.facts) == (0, 0)
    assert (await engine.memory.forget(MemorySelection(everything=True), scope=ANN)).memories == 1


OTHERS = [
    Scope("bob"), Scope("bob", "bot", "monday"), Scope(), Scope("ann", "crow"), Scope("ann", "bot", "m"),
    Scope("an"), Scope("ann", None, "tuesday"),
]  # fmt: skip


async def test_other_scopes_reach_nothing(engine: Engine) -> None:
    ids = await remember_samples(engine)
    for scope in OTHERS:
        for preview in (True, False):
            receipt = await engine.memory.forget(
                MemorySelection(tuple(ids.values())), scope=scope, dry_run=preview
            )
            assert receipt == MemoryReceipt(0, dry_run=preview), scope
        await engine.memory.forget(EVERYTHING, scope=scope)
        assert len(await keys(engine, ANN)) == 4, scope


async def test_wider_scopes_reach_all_that_is_in_them(engine: Engine) -> None:
    for scope in (ANN, Scope("ann"), Scope("ann", "bot"), Scope("ann", None, "monday")):
        await remember_samples(engine)
        assert (await engine.memory.forget(EVERYTHING, scope=scope)).memories == 4, scope
        assert await keys(engine, BOB) == ["old", "new"]


async def test_names_with_signs_of_names_are_only_names(engine: Engine) -> None:
    tricky = [
        Scope("ann/bot"),
        Scope("ann%2Fbot"),
        Scope("*"),
        Scope("ann", "*"),
        Scope("ann", "bot", "mon%"),
    ]
    for scope in (*tricky, ANN):
        await say(engine, scope, "x")
    for scope in tricky:
        assert (await engine.memory.forget(EVERYTHING, scope=scope)).memories == 1
    assert len(await keys(engine, ANN)) == 1


async def test_all_that_hangs_on_a_memory_is_counted_and_goes(engine: Engine) -> None:
    tea = NewMemory("Ann likes tea", key="k", fact=Fact("Ann", "likes", "tea"), metadata={"a": 1})
    [memory] = await say(engine, ANN, tea)
    await engine.memory.update(memory.id, scope=ANN, text="Ann likes tea a lot")
    await engine.memory.update(memory.id, scope=ANN, metadata={"a": 2})
    receipt = MemoryReceipt(1, versions=2, chunks=3, edges=1, ids=(memory.id,))
    selection = MemorySelection((memory.id,))
    assert await engine.memory.forget(selection, scope=ANN, dry_run=True) == replace(receipt, dry_run=True)
    assert await engine.memory.forget(selection, scope=ANN) == receipt
    [graph] = await engine.graph.list(collection="memory")
    assert (graph.nodes, graph.edges) == (0, 0)
    with pytest.raises(NotFound):
        await engine.memory.list_versions(memory.id, scope=ANN)


async def test_a_fact_that_is_told_twice_stays_as_long_as_one_tells_it(engine: Engine) -> None:
    fact, at = Fact("Ann", "likes", "tea"), datetime(2026, 1, 1, tzinfo=UTC)
    [one, other] = await say(engine, ANN, *(NewMemory(text, fact=fact, valid_from=at) for text in "ab"))
    assert (await engine.memory.forget(MemorySelection((one.id,)), scope=ANN)).edges == 0
    both = MemorySelection((one.id, other.id))
    assert (await engine.memory.forget(both, scope=ANN, dry_run=True)).edges == 1
    assert (await engine.memory.forget(both, scope=ANN)).edges == 1


async def test_a_fact_that_was_changed_goes_with_all_it_was(engine: Engine) -> None:
    [memory] = await say(engine, ANN, NewMemory("Tea!", fact=Fact("Ann", "likes", "tea")))
    milk = Fact("Ann", "likes", "milk")
    await engine.memory.update(memory.id, scope=ANN, text="Milk!", fact=milk)
    edges = (await engine.graph.list_edges(graph="graph/ann/bot/monday", collection="memory")).edges
    assert [edge.target for edge in edges if edge.valid_until is None] == ["milk"]
    assert (await engine.memory.forget(MemorySelection((memory.id,)), scope=ANN)).edges == len(edges)
    [graph] = await engine.graph.list(collection="memory")
    assert (graph.nodes, graph.edges) == (0, 0)


async def test_it_is_gone_at_once_wherever_one_looks(engine: Engine) -> None:
    [memory] = await say(engine, ANN, NewMemory("the zeppelin lands", key="z", entities=("Zeppelin",)))
    before = datetime.now(UTC)
    await engine.memory.update(memory.id, scope=ANN, text="the zeppelin landed")
    await engine.graph.wait_until_extracted(collection="memory")
    assert (await engine.memory.recall(**question("zeppelin", ANN))).memories
    await engine.memory.forget(MemorySelection((memory.id,)), scope=ANN)
    assert not (await engine.memory.recall(**question("zeppelin", ANN))).memories
    assert not (await engine.memory.recall(**question("zeppelin", ANN, as_of=before))).memories
    assert (await engine.memory.window("zeppelin", 500, scope=ANN)).text == ""
    assert await engine.memory.list_recent(scope=ANN) == []
    assert (await engine.memory.export(scope=ANN)).lines == ()
    assert await engine.graph.list_entities(collection="memory") == []
    assert not (await engine.retrieve(Query("zeppelin", collection="memory"))).hits
    assert await engine.memory.list_conversations(scope=ANN) == []
    assert await engine.memory.count(scope=ANN) == 0


async def test_that_something_was_deleted_is_known_but_not_what(engine: Engine) -> None:
    ids = await remember_samples(engine)
    before = datetime.now(UTC)
    await engine.memory.forget(MemorySelection((ids["old"],)), scope=ANN)
    recall = await engine.memory.recall(**question("old", ANN, as_of=before))
    assert recall.since is not None and recall.since.deleted == 1


async def test_purging_leaves_nothing_in_any_file(engine: Engine, tmp_path: Path) -> None:
    secret = "xylophonequartz"
    [memory] = await say(engine, ANN, NewMemory(f"the {secret}", fact=Fact("Ann", "plays", secret)))
    await engine.memory.update(memory.id, scope=ANN, text=f"no {secret}")
    await engine.graph.wait_until_extracted(collection="memory")
    assert holding(tmp_path, secret) != []
    receipt = await engine.memory.forget(MemorySelection((memory.id,)), scope=ANN, purge=True)
    assert receipt.purged
    assert holding(tmp_path, secret) == []


async def test_a_preview_purges_nothing(engine: Engine) -> None:
    ids = await remember_samples(engine)
    receipt = await engine.memory.forget(MemorySelection((ids["old"],)), scope=ANN, dry_run=True, purge=True)
    assert (receipt.purged, receipt.memories) == (False, 1)


async def test_more_than_a_page_goes_too(engine: Engine) -> None:
    await say(engine, ANN, *(said(str(number), 100) for number in range(1_203)))
    preview = await engine.memory.forget(MemorySelection(older_than_days=90), scope=ANN, dry_run=True)
    receipt = await engine.memory.forget(MemorySelection(older_than_days=90), scope=ANN)
    assert (receipt.memories, receipt.ids) == (1_203, preview.ids)
    assert await keys(engine, ANN) == []


async def test_those_who_forget_the_same_at_once_count_it_once(engine: Engine) -> None:
    memories = await say(engine, ANN, *(said(str(number), 1) for number in range(20)))
    unknown = tuple(str(number) for number in range(20_000))
    selection = MemorySelection((*(memory.id for memory in memories), *unknown))
    receipts = await asyncio.gather(*(engine.memory.forget(selection, scope=ANN) for _ in range(4)))
    assert (
        sum(receipt.memories for receipt in receipts) == sum(len(receipt.ids) for receipt in receipts) == 20
    )
    assert sum(receipt.chunks for receipt in receipts) == 20


async def test_what_is_told_while_all_is_forgotten_is_there_or_counted(engine: Engine) -> None:
    await say(engine, ANN, *(said(str(number), 1) for number in range(600)))

    async def go_on() -> None:
        for number in range(40):
            await say(engine, ANN, said(f"later {number}", 0))

    receipt, _ = await asyncio.gather(engine.memory.forget(EVERYTHING, scope=ANN), go_on())
    left = await keys(engine, ANN)
    assert receipt.memories + len(left) == 640
    assert all(key.startswith("later") for key in left)


async def test_only_who_may_write_there_may_forget_there(engine: Engine) -> None:
    ids = await remember_samples(engine)
    ann = await person(engine, "ann")
    old = MemorySelection((ids["old"],))
    with pytest.raises(NotFound):
        await ann.memory.forget(old, scope=ANN)
    home = (await engine.memory.get(ids["old"], scope=ANN)).document.source
    await engine.access.grant("memory", Principal("user", "ann"), "viewer", source=home)
    for selection in (old, EVERYTHING):
        with pytest.raises(PermissionDenied):
            await ann.memory.forget(selection, scope=ANN)
    await engine.access.grant("memory", Principal("user", "ann"), "editor", source=home)
    assert (await ann.memory.forget(old, scope=ANN)).memories == 1
    assert (await ann.memory.forget(EVERYTHING, scope=BOB)).memories == 0
    assert await keys(engine, BOB) == ["old", "new"]


async def test_conversations_are_told_by_their_last_word(engine: Engine) -> None:
    for days, name in ((3, "old"), (1, "new"), (2, "between")):
        await say(engine, replace(ANN, conversation=name), said("a", days), said("b", days + 5))
    await say(engine, BOB, "x")
    conversations = await engine.memory.list_conversations(scope=Scope("ann"))
    assert [conversation.scope.conversation for conversation in conversations] == ["new", "between", "old"]
    assert all(
        conversation.memories == 2 and conversation.first != conversation.last
        for conversation in conversations
    )


async def test_a_scope_in_numbers(engine: Engine) -> None:
    ids = await remember_samples(engine)
    await engine.memory.update(ids["new"], scope=ANN, text="newer word")
    await say(engine, replace(ANN, conversation="other"), NewMemory("Tea.", fact=Fact("Ann", "likes", "tea")))
    stats = await engine.memory.stats(scope=Scope("ann"))
    counts = (stats.memories, stats.notes, stats.pinned, stats.facts, stats.versions, stats.conversations)
    assert counts == (5, 1, 1, 1, 1, 2)
    assert stats.tokens > 0 and stats.pending == 0
    none = await engine.memory.stats(scope=Scope("nobody"))
    assert (none.memories, none.conversations, none.tokens, none.first) == (0, 0, 0, None)
