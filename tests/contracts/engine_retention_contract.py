"""What every engine must do when memories go, and when they are carried elsewhere."""

from dataclasses import replace
from datetime import timedelta

import pytest

from conspectus.engine import Engine
from conspectus.errors import InvalidInput, NotFound
from conspectus.model.graph import Fact
from conspectus.model.memory import (
    ConversationSummary,
    Memory,
    MemorySelection,
    NewMemory,
    Retention,
    Scope,
)
from conspectus.text.times import parse_instant
from tests.support.engine_samples import AnyEngine

ONE, TWO = Scope("ann/1", "bot", "one"), Scope("ann/1", "bot", "two")
OTHER = Scope("bob", "bot", "one")
ALL = MemorySelection(everything=True)
DAY = timedelta(days=1)
START = parse_instant("2026-03-02T08:00:00.000001Z")
HOME = Fact("Ann", "lives in", "Köln 🎉")


class RetentionContract:
    """Forgetting, retention, numbers, export and import."""

    async def carrying(self, engine: AnyEngine) -> list[str]:
        """Four turns and a pinned one in one conversation, one in another, and one of another user; ids."""
        turns = [NewMemory(f"turn {number}", key=str(number), at=START + number * DAY) for number in range(4)]
        turns.append(NewMemory("keep this", key="p", at=START - DAY, pinned=True))
        done = await engine.memory.add(turns, scope=ONE, wait=True)
        await engine.memory.add(NewMemory("elsewhere", key="x", at=START), scope=TWO, wait=True)
        await engine.memory.add(NewMemory("of bob", at=START), scope=OTHER, wait=True)
        return [written.id for written in done]

    async def left(self, engine: AnyEngine, scope: Scope = ONE) -> list[str]:
        """The keys of what is left of a scope."""
        page = await engine.memory.list(scope=scope)
        return [memory.document.key for memory in page.memories]

    async def test_memories_are_forgotten_by_their_ids(self, engine: AnyEngine) -> None:
        """Those of other scopes and unknown ones count as nothing; then they are nowhere."""
        ids = await self.carrying(engine)
        [bobs] = (await engine.memory.list(scope=OTHER)).memories
        what = MemorySelection(ids=(ids[0], ids[4], bobs.id, "nothing"))
        preview = await engine.memory.forget(what, scope=ONE, dry_run=True)
        assert (preview.memories, preview.dry_run, set(preview.ids)) == (2, True, {ids[0], ids[4]})
        assert await self.left(engine) == ["p", "0", "1", "2", "3"]
        gone = await engine.memory.forget(what, scope=ONE, purge=True)
        assert (gone.memories, gone.chunks, gone.vectors, gone.purged) == (2, 2, 2, True)
        assert await self.left(engine) == ["1", "2", "3"]
        assert (await engine.memory.forget(what, scope=ONE)).memories == 0
        recall = await engine.memory.recall("turn 0", scope=ONE)
        assert ids[0] not in {hit.memory.id for hit in recall.memories}
        assert ids[0] not in {memory.memory.id for memory in await engine.memory.list_recent(scope=ONE)}
        assert (await engine.memory.get(bobs.id, scope=OTHER)).text == "of bob"

    async def test_memories_are_forgotten_by_age_and_all(self, engine: AnyEngine) -> None:
        """The old ones and not the new ones; pinned ones only where it is said; never those of others."""
        await self.carrying(engine)
        assert (
            await engine.memory.forget(MemorySelection(before=START + DAY), scope=Scope(ONE.user))
        ).memories == 2
        assert (await self.left(engine), await self.left(engine, TWO)) == (["p", "1", "2", "3"], [])
        assert (
            await engine.memory.forget(MemorySelection(older_than_days=36_500.0), scope=ONE)
        ).memories == 0
        assert (await engine.memory.forget(ALL, scope=ONE)).memories == 3
        assert await self.left(engine) == ["p"]
        assert (await engine.memory.forget(replace(ALL, pinned=True), scope=ONE)).memories == 1
        assert await engine.memory.count(scope=OTHER) == 1

    async def test_forgetting_needs_one_way(self, engine: AnyEngine) -> None:
        """None or several would be a guess."""
        await self.carrying(engine)
        for what in (
            MemorySelection(),
            MemorySelection(before=START, everything=True),
            MemorySelection(ids=("a",), older_than_days=1.0),
        ):
            with pytest.raises(InvalidInput):
                await engine.memory.forget(what, scope=ONE)
        with pytest.raises(NotFound):
            await engine.memory.forget(ALL, scope=ONE, collection="nowhere")
        assert len(await self.left(engine)) == 5

    async def test_retentions_are_kept_and_carried_out(self, engine: AnyEngine, local: AnyEngine) -> None:
        """For each conversation of a scope, with a preview that says the same."""
        await self.carrying(engine)
        await engine.retention.set(Retention(days=20_000.5, max_count=2), scope=Scope(ONE.user))
        await engine.retention.set(Retention(max_count=9), scope=OTHER)
        rules = {rule.scope: rule for rule in await engine.retention.list()}
        assert rules[Scope(ONE.user)].retention == Retention(20_000.5, 2)
        assert await engine.retention.list() == await local.retention.list()
        preview = await engine.retention.apply(scope=ONE, dry_run=True)
        gone = await engine.retention.apply(scope=ONE)
        assert preview.memories == gone.memories == 2
        assert (await self.left(engine), await self.left(engine, TWO)) == (["p", "2", "3"], ["x"])
        assert (await engine.retention.apply()).memories == 0
        for scope in (Scope(ONE.user), OTHER):
            await engine.retention.delete(scope=scope)
        assert await engine.retention.list() == []
        with pytest.raises(InvalidInput):
            await engine.retention.set(Retention(), scope=ONE)

    async def test_a_job_carries_them_out(self, engine: AnyEngine, local: Engine) -> None:
        """And says what went."""
        await self.carrying(engine)
        await engine.retention.set(Retention(max_count=1), scope=Scope(ONE.user))
        await local.jobs.start()
        job = await engine.jobs.wait((await engine.retention.start_job()).id)
        assert (job.kind, job.state) == ("retention", "succeeded")
        assert job.result is not None
        assert job.result["memories"] == 3
        assert await self.left(engine) == ["p", "3"]
        assert (await engine.retention.list())[0].last_run is not None

    async def test_numbers(self, engine: AnyEngine, local: AnyEngine) -> None:
        """Of a scope and of its conversations, and of nobody else's."""
        await self.carrying(engine)
        conversations = await engine.memory.list_conversations(scope=Scope(ONE.user))
        assert {conversation.scope: conversation.memories for conversation in conversations} == {
            ONE: 5,
            TWO: 1,
        }
        assert ConversationSummary(TWO, 1, START, START) in conversations
        stats = await engine.memory.stats(scope=Scope(ONE.user))
        assert (stats.memories, stats.pinned, stats.conversations, stats.pending) == (6, 1, 2, 0)
        assert (stats.first, stats.last) == (START - DAY, START + 3 * DAY)
        assert stats == await local.memory.stats(scope=Scope(ONE.user))
        nobody = Scope("nobody")
        assert await engine.memory.list_conversations(scope=nobody) == []
        assert (await engine.memory.stats(scope=nobody)).memories == 0

    async def described_memories(self, engine: AnyEngine) -> list[tuple[object, ...]]:
        """What is known of the memories of a user, apart from when it was written down."""
        page = await engine.memory.list(scope=Scope(ONE.user))
        return [_described(memory) for memory in page.memories]

    async def exported(self, engine: AnyEngine, scope: Scope, limit: int | None = 2) -> list[str]:
        """All lines of a scope, page by page."""
        lines: list[str] = []
        after: str | None = None
        while True:
            page = await engine.memory.export(scope=scope, after=after, limit=limit)
            assert limit is None or len(page.lines) <= limit
            lines += page.lines
            after = page.next
            if after is None:
                return lines

    async def test_what_is_exported_is_imported(self, engine: AnyEngine, local: AnyEngine) -> None:
        """Complete: times, versions, facts and metadata; again it changes nothing."""
        await self.carrying(engine)
        full = NewMemory("I live there.", key="f", fact=HOME, metadata={"a": [1]}, entities=("Ann",))
        [done] = await engine.memory.add(full, scope=ONE)
        await engine.memory.update(done.id, scope=ONE, text="I live in Köln.")
        lines = await self.exported(engine, Scope(ONE.user))
        assert len(lines) == 7
        assert lines == await self.exported(local, Scope(ONE.user), None)
        assert {written.outcome for written in await engine.memory.import_lines(lines)} == {"unchanged"}
        before = await self.described_memories(engine)
        await engine.memory.forget(replace(ALL, pinned=True), scope=Scope(ONE.user))
        assert {written.outcome for written in await engine.memory.import_lines(lines)} == {"added"}
        assert await self.exported(engine, Scope(ONE.user)) == lines
        assert await self.described_memories(engine) == before

    async def test_lines_go_into_another_scope(self, engine: AnyEngine) -> None:
        """Where one is named; and the line at fault is named by its number."""
        await self.carrying(engine)
        lines = await self.exported(engine, ONE)
        await engine.memory.import_lines(lines, scope=Scope("eve"))
        assert await self.left(engine, Scope("eve")) == await self.left(engine)
        with pytest.raises(InvalidInput) as caught:
            await engine.memory.import_lines([lines[0], "", "{}"])
        assert caught.value.field == "line 3"
        for limit in (0, 1_000_000):
            with pytest.raises(InvalidInput):
                await engine.memory.export(scope=ONE, limit=limit)
        assert await engine.memory.import_lines([]) == []


def _described(memory: Memory) -> tuple[object, ...]:
    document = memory.document
    return (memory.text, memory.scope, document.key, document.occurred, memory.known_from, memory.fact,
            memory.metadata, memory.entities, memory.pinned)  # fmt: skip
