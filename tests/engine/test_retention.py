"""Retention rules: which memories they delete, which process applies them, and what the job reports."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memories import ANN, BOB, SETTINGS, keys, person, said, say, store

from conspectus import Engine
from conspectus.errors import InvalidInput, PermissionDenied
from conspectus.memory.retention import combine_rules, days_before, read_from, rule_address, strictest
from conspectus.memory.scopes import includes_scope
from conspectus.model.access import Principal
from conspectus.model.jobs import Job
from conspectus.model.memory import NewMemory, Retention, RetentionRule, Scope

PATIENCE = 6_000
NAMES = st.none() | st.sampled_from(["a", "b", "*", "a/b", "%2A", "ü"])
SCOPES = st.builds(Scope, NAMES, NAMES, NAMES)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with store(tmp_path) as opened:
        yield opened


async def add_memories(engine: Engine) -> None:
    """Five turns of Ann's, the oldest first, with a pinned one and a note that are older; one of Bob's."""
    await say(
        engine, ANN, said("note", 500, kind="note"), said("pinned", 400, pinned=True),
        *(said(str(days), days) for days in (100, 80, 60, 40, 20)),
    )  # fmt: skip
    await say(engine, BOB, said("100", 100))


@given(SCOPES)
def test_a_rule_is_read_as_it_was_written(scope: Scope) -> None:
    assert read_from(rule_address(scope)) == scope


@given(
    st.lists(st.tuples(SCOPES, st.builds(Retention, st.integers(0, 9), st.none() | st.integers(0, 9)))),
    SCOPES,
)
def test_the_strictest_rule_holds(rules: list[tuple[Scope, Retention]], home: Scope) -> None:
    strictest_rule = combine_rules(rules, home)
    matching = [rule for scope, rule in rules if includes_scope(scope, home)]
    assert (strictest_rule is None) == (not matching)
    if strictest_rule is not None:
        assert strictest_rule.days == min(rule.days for rule in matching if rule.days is not None)
        assert strictest_rule.max_count == min(
            (rule.max_count for rule in matching if rule.max_count is not None), default=None
        )


def test_no_rule_bounds_nothing() -> None:
    assert strictest([]) == Retention()
    assert days_before(datetime(2026, 1, 1, tzinfo=UTC), 900_000) == datetime.min.replace(tzinfo=UTC)


CASES = [
    (Retention(days=50), ["note", "pinned", "40", "20"]),
    (Retention(max_count=2), ["note", "pinned", "40", "20"]),
    (Retention(days=30, max_count=4), ["note", "pinned", "20"]),
    (Retention(days=90, max_count=1), ["note", "pinned", "20"]),
    (Retention(days=0), ["note", "pinned"]),
    (Retention(max_count=0), ["note", "pinned"]),
    (Retention(days=300, max_count=300), ["note", "pinned", "100", "80", "60", "40", "20"]),
]


async def test_what_a_rule_lets_stay_stays(engine: Engine) -> None:
    for rule, stays in CASES:
        await add_memories(engine)
        await engine.retention.set(rule, scope=ANN)
        preview = await engine.retention.apply(dry_run=True)
        assert len(await keys(engine, ANN)) == 7
        receipt = await engine.retention.apply()
        assert (receipt, receipt.memories) == (replace(preview, dry_run=False), 7 - len(stays)), rule
        assert await keys(engine, ANN) == stays, rule
        assert await keys(engine, BOB) == ["100"]
        assert (await engine.retention.apply()).memories == 0


async def test_nothing_goes_without_being_asked(engine: Engine) -> None:
    await add_memories(engine)
    await engine.retention.set(Retention(days=1), scope=ANN)
    assert len(await keys(engine, ANN)) == 7
    await engine.retention.delete(scope=ANN)
    assert await engine.retention.list() == []
    assert (await engine.retention.apply()).memories == 0


async def test_the_newest_are_counted_in_each_conversation(engine: Engine) -> None:
    for name in ("monday", "tuesday", None):
        await say(engine, replace(ANN, conversation=name), *(said(str(days), days) for days in (3, 2, 1)))
    await engine.retention.set(Retention(max_count=2), scope=Scope("ann"))
    assert (await engine.retention.apply()).memories == 3
    for name in ("monday", "tuesday"):
        assert await keys(engine, replace(ANN, conversation=name)) == ["2", "1"]


async def test_several_rules_for_one_conversation(engine: Engine) -> None:
    await add_memories(engine)
    await engine.retention.set(Retention(days=90), scope=Scope("ann"))
    await engine.retention.set(Retention(days=70, max_count=9), scope=Scope("ann", None, "monday"))
    await engine.retention.set(Retention(max_count=2), scope=ANN)
    await engine.retention.set(Retention(max_count=0), scope=replace(ANN, conversation="tuesday"))
    rules = {rule.scope: rule for rule in await engine.retention.list()}
    assert len(rules) == 4
    expected = RetentionRule(Scope("ann", None, "monday"), Retention(70, 9), "memory")
    assert rules[Scope("ann", None, "monday")] == expected
    assert (await engine.retention.apply()).memories == 3
    assert await keys(engine, ANN) == ["note", "pinned", "40", "20"]


async def test_a_rule_takes_the_place_of_the_one_before(engine: Engine) -> None:
    for rule in (Retention(days=1), Retention(max_count=7)):
        await engine.retention.set(rule, scope=ANN)
    [stored] = await engine.retention.list()
    assert (stored.retention, stored.last_run) == (Retention(max_count=7), None)


async def test_one_scope_alone_can_be_looked_after(engine: Engine) -> None:
    await add_memories(engine)
    for scope in (ANN, BOB):
        await engine.retention.set(Retention(max_count=0), scope=scope)
    assert (await engine.retention.apply(scope=BOB)).memories == 1
    assert len(await keys(engine, ANN)) == 7
    assert [rule.last_run for rule in await engine.retention.list()] == [None, None]


UNCLEAR: list[dict[str, Any]] = [
    {}, {"days": -1}, {"days": float("nan")}, {"days": 1e300}, {"max_count": -1}, {"max_count": True},
    {"days": 1, "max_count": 10**30},
]  # fmt: skip


async def test_a_rule_has_to_bound_something(engine: Engine) -> None:
    for rule in UNCLEAR:
        with pytest.raises(InvalidInput):
            await engine.retention.set(Retention(**rule), scope=ANN)
    with pytest.raises(InvalidInput):
        await engine.retention.set(Retention(days=1), scope=Scope(" "))


async def test_a_pinned_memory_stays_whenever_it_was_pinned(engine: Engine) -> None:
    await add_memories(engine)
    [old] = [
        memory for memory in (await engine.memory.list(scope=ANN)).memories if memory.document.key == "100"
    ]
    await engine.retention.set(Retention(days=50), scope=ANN)
    await engine.memory.update(old.id, scope=ANN, pinned=True)
    await engine.retention.apply()
    assert await keys(engine, ANN) == ["note", "pinned", "100", "40", "20"]


async def test_rules_of_people(engine: Engine) -> None:
    await add_memories(engine)
    ann = await person(engine, "ann")
    home = next(
        source
        for source in await engine.collections.list_sources(collection="memory")
        if "ann" in source.name
    )
    await engine.access.grant("memory", Principal("user", "ann"), "viewer", source=home.id)
    for scope in (ANN, BOB, Scope("carl")):
        with pytest.raises(PermissionDenied):
            await ann.retention.set(Retention(max_count=0), scope=scope)
    await engine.access.grant("memory", Principal("user", "ann"), "editor", source=home.id)
    await ann.retention.set(Retention(max_count=2), scope=ANN)
    await engine.retention.set(Retention(max_count=0), scope=BOB)
    assert [rule.scope for rule in await ann.retention.list()] == [ANN]
    assert (await ann.retention.apply(dry_run=True)).memories == 3
    await engine.access.grant("memory", Principal("user", "ann"), "viewer", source=home.id)
    with pytest.raises(PermissionDenied):
        await ann.retention.apply()
    assert (len(await keys(engine, ANN)), len(await keys(engine, BOB))) == (7, 1)


async def test_a_job_tells_what_went(engine: Engine) -> None:
    await add_memories(engine)
    await engine.retention.set(Retention(max_count=2), scope=ANN)
    job = await engine.jobs.wait((await engine.retention.start_job()).id)
    assert (job.kind, job.state, job.done, job.total) == ("retention", "succeeded", 3, 3)
    assert job.result == {
        "memories": 3,
        "versions": 0,
        "chunks": 3,
        "vectors": 0,
        "edges": 0,
        "facts": 0,
        "answers": 0,
    }
    [rule] = await engine.retention.list()
    assert rule.last_run is not None
    again = await engine.jobs.wait((await engine.retention.start_job()).id)
    assert again.id != job.id and again.result is not None and again.result["memories"] == 0


async def list_retention_jobs(engine: Engine) -> list[Job]:
    return [job for job in (await engine.jobs.list()).jobs if job.kind == "retention"]


async def wait_until_kept(engine: Engine, scope: Scope, count: int) -> None:
    for _ in range(PATIENCE):
        jobs = await list_retention_jobs(engine)
        if len(await keys(engine, scope)) == count and all(job.state == "succeeded" for job in jobs):
            return
        await asyncio.sleep(0.02)
    raise TimeoutError


async def test_rules_are_carried_out_without_being_asked(engine: Engine, tmp_path: Path) -> None:
    await add_memories(engine)
    await engine.retention.set(Retention(max_count=2), scope=ANN)
    await engine.retention.start()
    await engine.retention.start()
    async with store(tmp_path) as other:
        await other.retention.start()
        await wait_until_kept(engine, ANN, 4)
    [job] = await list_retention_jobs(engine)
    assert job.result is not None and job.result["memories"] == 3


async def test_another_process_goes_on_where_one_ends(tmp_path: Path) -> None:
    async with store(tmp_path) as first:
        await add_memories(first)
        await first.retention.set(Retention(max_count=4), scope=ANN)
        await first.retention.start()
        await wait_until_kept(first, ANN, 6)
    async with store(tmp_path) as second:
        await second.retention.set(Retention(max_count=0), scope=BOB)
        await second.retention.set(Retention(max_count=1), scope=ANN)
        await second.retention.start()
        await wait_until_kept(second, BOB, 0)
        assert len(await keys(second, ANN)) == 6, "its rule was carried out less than an hour ago"


async def test_nothing_is_carried_out_where_the_settings_say_so(tmp_path: Path) -> None:
    async with store(tmp_path, replace(SETTINGS, retention_interval_minutes=0)) as engine:
        await engine.retention.set(Retention(max_count=0), scope=ANN)
        await say(engine, ANN, "x")
        await engine.retention.start()
        await asyncio.sleep(0.1)
        assert await list_retention_jobs(engine) == []


async def test_a_rule_is_carried_out_with_the_rights_of_who_keeps_it(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    await add_memories(engine)
    ann = await person(engine, "ann")
    await engine.access.grant("memory", Principal("user", "ann"), "editor")
    await ann.retention.set(Retention(max_count=0), scope=ANN)
    await engine.access.revoke("memory", Principal("user", "ann"))
    await engine.retention.set(Retention(max_count=0), scope=BOB)
    await engine.retention.start()
    await wait_until_kept(engine, BOB, 0)
    assert len(await keys(engine, ANN)) == 7
    assert "code=not_found" in caplog.text


async def test_the_future_is_not_old(engine: Engine) -> None:
    later = datetime.now(UTC) + timedelta(days=400)
    await say(engine, ANN, NewMemory("later", key="later", at=later), said("now", 0))
    await engine.retention.set(Retention(days=0), scope=ANN)
    await engine.retention.apply()
    assert await keys(engine, ANN) == ["later"]
