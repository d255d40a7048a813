"""What every store of memories must do.

Subclass the contract, give it its fixtures, let pytest collect it.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from conspectus.errors import InvalidInput
from conspectus.model.filter import EVERYTHING, Eq
from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.memory import ChangesSince, MemoryReceipt, Retention
from conspectus.model.records import Document, Period, PreparedDocument, Source
from conspectus.ports import Records
from conspectus.ports.memories import HomeSpan, Memories, StoredRetention
from tests.support.samples import NOON, SHELF, prepared, shelf

MONDAY, TUESDAY = SourceId("memory/ann//monday"), SourceId("memory/ann//tuesday")
BOTH = (MONDAY, TUESDAY)
HOUR = timedelta(hours=1)


def memory(key: str, hours: float = 0, *, source: SourceId = MONDAY, **fields: Any) -> PreparedDocument:
    """A turn that was said so many hours after noon."""
    instant = NOON + hours * HOUR
    fields_of_turn: dict[str, Any] = {
        "kind": "memory",
        "thread": "turns",
        "occurred": Period(instant, instant),
        **fields,
    }
    return prepared(key, f"what {key} says", source=source, title="", **fields_of_turn)


def note(key: str, **fields: Any) -> PreparedDocument:
    """A standing note."""
    return memory(key, thread=None, metadata={"class": "note"}, **fields)


def version(key: str, of: str, recorded: datetime) -> PreparedDocument:
    """What a memory was until it was changed."""
    return memory(key, kind="version", thread=None, parent=DocumentId(of), recorded=recorded)


def keys(memories: Sequence[tuple[Document, str]]) -> list[str]:
    """The names of what was read."""
    return [memory.key for memory, _ in memories]


class MemoriesContract:
    """The behaviour of every store of memories.

    Fixtures to override: `store`, and `records` on the same data, which are empty.
    """

    @pytest.fixture
    async def shelved(self, records: Records) -> Records:
        """Records with the sources of two conversations."""
        await records.create_collection(shelf())
        for name in BOTH:
            await records.put_source(Source(name, SHELF, name, kind="memory"))
        return records

    async def test_homes_are_found_by_the_beginning_of_their_names(
        self, store: Memories, shelved: Records
    ) -> None:
        """Only sources of memories, in order, up to the name that is beyond."""
        await shelved.put_source(Source(SourceId("plain"), SHELF, "memory/ann//x"))
        await shelved.put_source(Source(SourceId("b"), SHELF, "memory/anna//monday", kind="memory"))
        sources = await store.memory_sources(SHELF, begins="memory/ann/", below="memory/ann0")
        assert [source.id for source in sources] == list(BOTH)
        assert await store.memory_sources(SHELF, begins="memory/b/", below="memory/b0") == []

    async def test_nothing_is_in_no_source(self, store: Memories, shelved: Records) -> None:
        """No source is not every source."""
        await shelved.write([memory("a")])
        assert await store.newest([], limit=5) == []
        assert await store.page([], where=EVERYTHING, after=None, limit=5) == ([], None)
        assert await store.count([], EVERYTHING) == 0
        assert (await store.totals([])).memories == 0
        assert await store.since([], NOON - HOUR) == ChangesSince()

    async def test_the_newest_are_those_stored_last(self, store: Memories, shelved: Records) -> None:
        """Whenever they were said; one that is written again keeps its place, notes have their own list."""
        await shelved.write([memory("a", 5), memory("b", 1), note("n"), memory("c", -9, source=TUESDAY)])
        await shelved.write([memory("a", 5, role="user")])
        assert keys(await store.newest(BOTH, limit=10)) == ["c", "b", "a"]
        assert keys(await store.newest([MONDAY], limit=1)) == ["b"]
        assert keys(await store.notes(BOTH, limit=10)) == ["n"]
        assert (await store.newest([MONDAY], limit=1))[0][1] == "what b says"

    async def test_pages_are_in_the_order_of_saying(self, store: Memories, shelved: Records) -> None:
        """Of equal times what was stored first comes first; every page goes on where the one before ended."""
        days = [("a", 2), ("b", 1), ("c", 1), ("d", 0)]
        await shelved.write([memory(key, hours) for key, hours in days])
        await shelved.write([memory("e", 1, source=TUESDAY)])
        for newest_first in (False, True):
            seen: list[str] = []
            after: str | None = None
            while True:
                rows, after = await store.page(
                    BOTH, where=EVERYTHING, after=after, limit=2, newest_first=newest_first
                )
                seen += keys(rows)
                if after is None:
                    break
            assert (seen[::-1] if newest_first else seen) == ["d", "b", "c", "e", "a"]

    async def test_a_filter_is_applied_before_the_limit(self, store: Memories, shelved: Records) -> None:
        """Though what matches stands behind very many that do not."""
        await shelved.write([memory(f"m{n}", n, metadata={"topic": "x"}) for n in range(1_100)])
        await shelved.write([memory("wanted", 2_000, metadata={"topic": "y"})])
        where = Eq(("topic",), "y")
        rows, after = await store.page(BOTH, where=where, after=None, limit=5)
        assert (keys(rows), after) == (["wanted"], None)
        assert await store.count(BOTH, where) == 1

    @pytest.mark.parametrize("cursor", ["", "x", "MTI=", "é"])
    async def test_a_cursor_that_no_page_gave_is_refused(
        self, store: Memories, shelved: Records, cursor: str
    ) -> None:
        """And not taken for a beginning."""
        await shelved.write([memory("a")])
        with pytest.raises(InvalidInput):
            await store.page(BOTH, where=EVERYTHING, after=cursor, limit=5)

    async def test_old_ones_and_those_beyond_a_number(self, store: Memories, shelved: Records) -> None:
        """Oldest first; pinned ones and notes are neither counted nor named."""
        pinned = memory("pin", -8, metadata={"pinned": True})
        await shelved.write([*(memory(f"m{n}", n) for n in range(4)), pinned, note("n")])
        before = NOON + 2 * HOUR
        assert await store.oldest(MONDAY, before=before, beyond=None, pinned=False, limit=10) == ["m0", "m1"]
        assert await store.oldest(MONDAY, before=None, beyond=1, pinned=False, limit=10) == ["m0", "m1", "m2"]
        assert await store.oldest(MONDAY, before=before, beyond=3, pinned=False, limit=10) == ["m0", "m1"]
        assert await store.oldest(MONDAY, before=None, beyond=0, pinned=False, limit=1) == ["m0"]
        everything = await store.oldest(MONDAY, before=None, beyond=0, pinned=True, limit=10)
        assert everything == ["pin", "m0", "n", "m1", "m2", "m3"]

    async def test_versions_belong_to_their_memory(self, store: Memories, shelved: Records) -> None:
        """In the order in which they came; they are no memories themselves, and go with theirs."""
        await shelved.write([memory("a")])
        assert not await store.has_versions(SHELF)
        await shelved.write([version("a2", "a", NOON + 2 * HOUR), version("a1", "a", NOON + HOUR)])
        assert keys(await store.versions(DocumentId("a"))) == ["a1", "a2"]
        assert await store.has_versions(SHELF)
        assert await store.count(BOTH, EVERYTHING) == 1
        await shelved.delete([DocumentId("a")])
        assert await store.versions(DocumentId("a")) == []
        assert not await store.has_versions(SHELF)

    async def test_what_happened_since_is_told_apart(self, store: Memories, shelved: Records) -> None:
        """Recorded, changed and deleted after an instant; what was recorded later is not called changed."""
        late = NOON + 3 * HOUR
        await shelved.write([memory("a"), memory("b"), memory("c", recorded=late)])
        await shelved.write([version("a1", "a", late), version("a2", "a", late), version("c1", "c", late)])
        await shelved.delete([DocumentId("b")], now=late)
        assert await store.since(BOTH, NOON + HOUR) == ChangesSince(recorded=1, changed=1, deleted=1)
        assert await store.since(BOTH, late) == ChangesSince()
        assert await store.since([TUESDAY], NOON) == ChangesSince()

    async def test_totals(self, store: Memories, shelved: Records) -> None:
        """Over several sources; versions are counted apart."""
        fact = {"fact": {"subject": "a", "predicate": "b", "object": "c"}}
        await shelved.write(
            [
                memory("a", 1, metadata={"pinned": True}),
                memory("b", 3, source=TUESDAY, metadata=fact),
                note("n"),
            ]
        )
        await shelved.write([version("a1", "a", NOON)])
        totals = await store.totals(BOTH)
        assert (totals.memories, totals.notes, totals.pinned, totals.facts, totals.versions) == (
            3,
            1,
            1,
            1,
            1,
        )
        assert (totals.tokens, totals.pending) == (9, 3)
        assert (totals.first, totals.last) == (NOON, NOON + 3 * HOUR)

    async def test_memories_are_forgotten_with_all_that_hangs_on_them(
        self, store: Memories, shelved: Records
    ) -> None:
        """Pinned ones only where they are meant; what is no memory, or not there, counts 0."""
        await shelved.write([memory("a"), memory("b"), memory("p", metadata={"pinned": True})])
        await shelved.write([version("a1", "a", NOON), version("a2", "a", NOON + HOUR)])
        ids = [DocumentId(key) for key in ("a", "p", "a1", "unknown", "a")]
        receipt = MemoryReceipt(1, versions=2, chunks=3, ids=("a",))
        preview = await store.forget(ids, pinned=False, now=NOON, dry_run=True)
        assert preview == replace(receipt, dry_run=True)
        assert await store.forget(ids, pinned=False, now=NOON) == receipt
        assert await store.forget(ids, pinned=False, now=NOON) == MemoryReceipt(0)
        assert (await store.forget(ids, pinned=True, now=NOON)).ids == ("p",)
        assert await store.count(BOTH, EVERYTHING) == 1
        assert (await store.since(BOTH, NOON - HOUR)).deleted == 0

    async def test_histories_end_with_the_memories(self, store: Memories, shelved: Records) -> None:
        """With their texts, by the ids that were asked for."""
        await shelved.write([memory("a"), memory("b"), note("n")])
        await shelved.write([version("a2", "a", NOON + 2 * HOUR), version("a1", "a", NOON + HOUR)])
        histories = await store.histories([DocumentId(key) for key in ("a", "n", "a1", "unknown")])
        assert {name: keys(history) for name, history in histories.items()} == {
            "a": ["a1", "a2", "a"],
            "n": ["n"],
        }
        assert histories[DocumentId("n")][0][1] == "what n says"
        assert await store.histories([]) == {}

    async def test_sources_that_have_memories_say_how_many(self, store: Memories, shelved: Records) -> None:
        """Versions are none; a source without any is not named."""
        await shelved.write([memory("a", 3), memory("b", 1), version("a1", "a", NOON)])
        assert await store.spans(BOTH) == [HomeSpan(MONDAY, 2, NOON + HOUR, NOON + 3 * HOUR)]
        assert await store.spans([TUESDAY]) == await store.spans([]) == []
        assert await store.names(BOTH) == 0

    async def test_retentions_are_kept_and_dropped(self, store: Memories, shelved: Records) -> None:
        """One of each id; they go with their collection."""
        rule = StoredRetention("r", SHELF, "memory/ann/", Retention(30, 100), "local")
        await store.put_retention(StoredRetention("r", SHELF, "memory/ann/", Retention(1), "local"))
        await store.put_retention(rule)
        assert await store.retentions(SHELF) == [rule]
        await store.ran("r", NOON)
        assert [retention.last_run for retention in await store.retentions()] == [NOON]
        assert await store.drop_retention("r")
        assert not await store.drop_retention("r")
        await store.put_retention(rule)
        await shelved.delete_collection(SHELF)
        assert await store.retentions() == []
