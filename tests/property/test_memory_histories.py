"""Random histories of memories beside a plain model: what it keeps is what is there, by every way."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.memories import SETTINGS, question, store
from tests.repetitions import tries
from tests.support.postgres_server import PostgresProcess

import conspectus
from conspectus import Engine
from conspectus.memory.scopes import includes_scope
from conspectus.model.memory import MemorySelection, NewMemory, Retention, Scope

HOMES = [
    Scope(user, agent, conversation)
    for user in ("ann", None)
    for agent in ("bot", None)
    for conversation in ("1", None)
]
WORDS = ["otter", "heron", "lynx"]
HOME, KEY, WORD = st.sampled_from(HOMES), st.sampled_from("kl"), st.sampled_from(WORDS)
AGE, FLAG = st.integers(0, 4), st.booleans()
STEPS = st.lists(
    st.one_of(
        *[st.tuples(st.just("remember"), HOME, KEY, WORD, AGE, FLAG, FLAG)] * 4,
        st.tuples(st.just("remember_twice"), HOME, KEY, WORD, WORD, AGE),
        st.tuples(st.just("update"), HOME, KEY, WORD, FLAG),
        st.tuples(st.just("forget"), HOME, HOME, KEY),
        st.tuples(st.just("forget_older"), HOME, AGE, FLAG),
        st.tuples(st.just("forget_all"), HOME, FLAG),
        st.tuples(st.just("rule"), HOME, st.none() | AGE, st.none() | st.integers(0, 2)),
        st.tuples(st.just("apply"), st.none() | HOME),
        st.tuples(st.just("export_and_import"), HOME),
    ),
    min_size=1,
    max_size=25,
)


@dataclass(frozen=True)
class Item:
    """A memory, `age` days and an hour old; `stored` is its place in the order of storing."""

    home: Scope
    key: str
    word: str
    age: int
    pinned: bool
    note: bool
    stored: int = 0
    versions: int = 0

    @property
    def text(self) -> str:
        return f"{self.word} {self.key} {self.home}"

    @property
    def order(self) -> tuple[int, int]:
        return -self.age, self.stored


@dataclass
class Model:
    """What there is, and the rules."""

    items: dict[tuple[Scope, str], Item] = field(default_factory=dict)
    rules: dict[Scope, Retention] = field(default_factory=dict)
    stored: int = 0

    def read(self, scope: Scope) -> list[Item]:
        """What reading in a scope gives, in order."""
        return sorted(
            (memory for memory in self.items.values() if includes_scope(scope, memory.home)),
            key=lambda memory: memory.order,
        )

    def put(self, item: Item) -> None:
        identity = (item.home, item.key)
        before = self.items.get(identity)
        if before is None:
            self.stored += 1
            self.items[identity] = replace(item, stored=self.stored, versions=item.versions)
        elif replace(item, stored=0, versions=0) != replace(before, stored=0, versions=0):
            self.items[identity] = replace(item, stored=before.stored, versions=before.versions + 1)

    def drop(self, items: Iterable[Item]) -> int:
        gone = [self.items.pop((memory.home, memory.key)) for memory in items]
        return len(gone)

    def over_retention(self, home: Scope) -> list[Item]:
        """What the rules do not let stay in a conversation: of a copy, one rule after the other."""
        turns = [turn for turn in self.read(home) if turn.home == home and not (turn.pinned or turn.note)]
        gone: set[Item] = set()
        for rule in (rule for scope, rule in self.rules.items() if includes_scope(scope, home)):
            if rule.days is not None:
                gone |= {turn for turn in turns if turn.age >= rule.days}
            if rule.max_count is not None:
                gone |= set(turns[: max(len(turns) - rule.max_count, 0)])
        return list(gone)


@dataclass
class Life:
    """A store and the model of it."""

    engine: Engine
    begin: datetime
    model: Model = field(default_factory=Model)
    ids: dict[tuple[Scope, str], str] = field(default_factory=dict)

    async def take(self, step: tuple[Any, ...]) -> None:
        """One step in both; what the store says of it is what the model says."""
        await getattr(self, step[0])(*step[1:])

    async def remember(self, home: Scope, key: str, word: str, age: int, pinned: bool, note: bool) -> None:
        await self._add(Item(home, key, word, age, pinned, note))

    async def remember_twice(self, home: Scope, key: str, word: str, then: str, age: int) -> None:
        first = Item(home, key, word, age, pinned=False, note=False)
        await self._add(first, replace(first, word=then))

    async def _add(self, *items: Item) -> None:
        """One or more memories of the same key at once."""
        at = {memory.age: self.begin - timedelta(days=memory.age, hours=1) for memory in items}
        new = [
            NewMemory(
                memory.text,
                memory.key,
                at=at[memory.age],
                pinned=memory.pinned,
                kind="note" if memory.note else "turn",
            )
            for memory in items
        ]
        done = await self.engine.memory.add(new, scope=items[0].home)
        for written, item in zip(done, items, strict=True):
            assert (written.outcome == "added") == ((item.home, item.key) not in self.model.items)
            self.ids[item.home, item.key] = written.id
            self.model.put(item)

    async def update(self, home: Scope, key: str, word: str, pinned: bool) -> None:
        item = self.model.items.get((home, key))
        if item is not None:
            changed = replace(item, word=word, pinned=pinned)
            if changed != item:
                memory = self.ids[home, key]
                await self.engine.memory.update(memory, scope=home, text=changed.text, pinned=pinned)
                self.model.put(changed)

    async def forget(self, scope: Scope, home: Scope, key: str) -> None:
        ids = (self.ids.get((home, key), "unknown"),)
        gone = [memory for memory in self.model.read(scope) if (memory.home, memory.key) == (home, key)]
        await self._forget(MemorySelection(ids), scope, gone)

    async def forget_older(self, scope: Scope, age: int, pinned: bool) -> None:
        gone = [
            memory for memory in self.model.read(scope) if memory.age >= age and (pinned or not memory.pinned)
        ]
        await self._forget(MemorySelection(older_than_days=age, pinned=pinned), scope, gone)

    async def forget_all(self, scope: Scope, pinned: bool) -> None:
        gone = [memory for memory in self.model.read(scope) if pinned or not memory.pinned]
        await self._forget(MemorySelection(everything=True, pinned=pinned), scope, gone)

    async def rule(self, scope: Scope, days: int | None, maximum: int | None) -> None:
        if days is None and maximum is None:
            await self.engine.retention.delete(scope=scope)
            self.model.rules.pop(scope, None)
        else:
            self.model.rules[scope] = Retention(days, maximum)
            await self.engine.retention.set(Retention(days, maximum), scope=scope)

    async def apply(self, scope: Scope | None) -> None:
        homes = [home for home in HOMES if scope is None or includes_scope(scope, home)]
        gone = [memory for home in homes for memory in self.model.over_retention(home)]
        preview = await self.engine.retention.apply(scope=scope, dry_run=True)
        receipt = await self.engine.retention.apply(scope=scope)
        assert replace(preview, dry_run=False) == receipt
        assert set(receipt.ids) == {self.ids[memory.home, memory.key] for memory in gone}
        self.model.drop(gone)

    async def export_and_import(self, scope: Scope) -> None:
        lines = (await self.engine.memory.export(scope=scope)).lines
        await self.engine.memory.forget(MemorySelection(everything=True, pinned=True), scope=scope)
        for outcome in ("added", "unchanged"):
            done = await self.engine.memory.import_lines(lines)
            assert [memory.outcome for memory in done] == [outcome] * len(lines)
        for item in (memories := self.model.read(scope)):
            self.model.drop([item])
        for item in memories:
            self.model.put(item)
        assert [written.id for written in done] == [self.ids[memory.home, memory.key] for memory in memories]

    async def _forget(self, selection: MemorySelection, scope: Scope, gone: list[Item]) -> None:
        preview = await self.engine.memory.forget(selection, scope=scope, dry_run=True)
        receipt = await self.engine.memory.forget(selection, scope=scope)
        assert replace(preview, dry_run=False) == receipt
        assert (receipt.memories, receipt.versions) == (len(gone), sum(memory.versions for memory in gone))
        assert set(receipt.ids) == {self.ids[memory.home, memory.key] for memory in gone}
        self.model.drop(gone)

    async def compare(self, scope: Scope) -> None:
        """Every way of reading gives what the model keeps in a scope, and nothing else."""
        engine, expected = self.engine, self.model.read(scope)
        texts = [memory.text for memory in expected]
        assert [memory.text for memory in (await engine.memory.list(scope=scope)).memories] == texts
        lines = (await engine.memory.export(scope=scope)).lines
        assert len(lines) == await engine.memory.count(scope=scope) == len(expected)
        turns = sorted((memory for memory in expected if not memory.note), key=lambda memory: memory.stored)
        recent = await engine.memory.list_recent(scope=scope, limit=1_000, max_tokens=10_000)
        assert [memory.text for memory in recent] == [memory.text for memory in turns]
        for word in WORDS:
            recalled_page = await engine.memory.recall(**question(word, scope, limit=100))
            recalled = {hit.memory.text for hit in recalled_page.memories}
            assert {memory.text for memory in expected if memory.word == word} <= recalled <= set(texts)
        await self._compare_numbers(scope, expected)

    async def _compare_numbers(self, scope: Scope, expected: list[Item]) -> None:
        stats = await self.engine.memory.stats(scope=scope)
        numbers = (stats.memories, stats.notes, stats.pinned, stats.versions, stats.conversations)
        notes, pinned = sum(memory.note for memory in expected), sum(memory.pinned for memory in expected)
        assert numbers == (
            len(expected),
            notes,
            pinned,
            sum(memory.versions for memory in expected),
            len({memory.home for memory in expected}),
        )
        conversations = await self.engine.memory.list_conversations(scope=scope)
        assert {talk.scope: talk.memories for talk in conversations} == Counter(
            memory.home for memory in expected
        )


async def live(steps: list[tuple[Any, ...]], url: str | None = None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = replace(SETTINGS, cache=folder)
        opened = store(Path(folder)) if url is None else conspectus.open(url, settings=settings)
        async with opened as engine:
            await engine.collections.get_or_create("memory")
            life = Life(engine, datetime.now(UTC))
            for step in steps:
                await life.take(step)
            for scope in HOMES:
                await life.compare(scope)
            assert (await engine.maintenance.check()).clean


@settings(max_examples=tries(20))
@given(STEPS)
def test_what_the_model_keeps_is_what_is_there(steps: list[tuple[Any, ...]]) -> None:
    asyncio.run(live(steps))


@settings(max_examples=4)
@given(STEPS)
def test_what_the_model_keeps_is_what_is_in_postgresql(
    postgres: PostgresProcess, steps: list[tuple[Any, ...]]
) -> None:
    with postgres.fresh() as url:
        asyncio.run(live(steps, url))
