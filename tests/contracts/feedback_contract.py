"""What every store of feedback must do.

Subclass the contract, give it its fixtures, let pytest collect it.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from conspectus.errors import InvalidInput, NotFound
from conspectus.model.ids import ChunkId, CollectionId, SourceId, UserId
from conspectus.model.records import StoredChunk
from conspectus.model.results import Feedback
from conspectus.ports import FeedbackStore, Judgment, Records
from conspectus.ports.accounts import Accounts
from tests.contracts.accounts_contract import a_user
from tests.support.samples import NOON, NOTES, SHELF, notes, prepared, shelf, vector

LETTERS = SourceId("letters")
ANN, BEN = UserId("ann-id"), UserId("ben-id")
MINUTE = timedelta(minutes=1)


def judged(
    row: StoredChunk, name: str, *, user: UserId = ANN, used: bool = True, minute: int = 0
) -> Feedback:
    """Feedback on a stored chunk whose id and query are a name."""
    document = row.document
    return Feedback(
        name,
        document.collection,
        document.source,
        document.id,
        row.chunk.id,
        user,
        f"query {name}",
        used,
        NOON + minute * MINUTE,
    )


class FeedbackContract:
    """The behaviour of every store of feedback.

    Fixtures to override: `store`, and `records` and `accounts` on the same data, which are empty.
    """

    @pytest.fixture
    async def rows(self, records: Records) -> Sequence[StoredChunk]:
        """The chunks of two notes and a letter."""
        await records.create_collection(shelf())
        for name in (NOTES, LETTERS):
            await records.put_source(notes(name))
        written = [prepared("a", "first"), prepared("b", "second"), prepared("c", "third", source=LETTERS)]
        await records.write(written)
        return [(await records.document_chunks(added.document.id))[0] for added in written]

    async def all_of(self, store: FeedbackStore) -> list[str]:
        """The ids of all feedback, newest first."""
        page = await store.list(SHELF, user=None, sources=None, after=None, limit=100)
        return [judgment.id for judgment in page.feedback]

    async def test_feedback_comes_back_as_given(
        self, store: FeedbackStore, rows: Sequence[StoredChunk]
    ) -> None:
        """For ranking with the vector of its query, the newest first, and at most so many."""
        first, second = judged(rows[0], "1"), judged(rows[1], "2", user=BEN, used=False, minute=1)
        await store.add([first], space="model", vector=vector(1.0))
        await store.add([second])
        assert await store.get("1") == first
        assert await store.get("x") is None
        newest = Judgment(second.chunk, BEN, "query 2", used=False)
        oldest = Judgment(first.chunk, ANN, "query 1", used=True, space="model", vector=vector(1.0))
        assert await store.judgments(SHELF, limit=9) == [newest, oldest]
        assert await store.judgments(SHELF, limit=1) == [newest]
        assert await store.judgments(CollectionId("other"), limit=9) == []

    async def test_the_same_id_is_replaced(self, store: FeedbackStore, rows: Sequence[StoredChunk]) -> None:
        """A person may change a judgment."""
        await store.add([judged(rows[0], "1"), judged(rows[1], "2")])
        changed = judged(rows[0], "1", used=False, minute=3)
        await store.add([changed])
        assert await store.get("1") == changed
        assert await self.all_of(store) == ["1", "2"]

    async def test_pages_are_of_a_user_and_of_sources(
        self, store: FeedbackStore, rows: Sequence[StoredChunk]
    ) -> None:
        """Newest first, by id where two were given at once."""
        judgments = [
            judged(row, f"{number}", user=user, minute=number // 2)
            for number, (row, user) in enumerate(zip([*rows, *rows], [ANN, BEN] * 3, strict=True))
        ]
        await store.add(judgments)
        everybody = {"user": None, "sources": None}
        first = await store.list(SHELF, **everybody, after=None, limit=4)
        rest = await store.list(SHELF, **everybody, after=first.next, limit=4)
        assert [*first.feedback, *rest.feedback] == judgments[::-1]
        assert (first.next is None, rest.next) == (False, None)
        page = await store.list(SHELF, user=ANN, sources=[NOTES], after=None, limit=9)
        assert [judgment.id for judgment in page.feedback] == ["4", "0"]
        nothing = await store.list(SHELF, user=ANN, sources=[], after=None, limit=9)
        assert nothing.feedback == ()
        with pytest.raises(InvalidInput):
            await store.list(SHELF, **everybody, after="nonsense", limit=1)

    async def test_every_change_is_one_of_the_collection(
        self, store: FeedbackStore, records: Records, rows: Sequence[StoredChunk]
    ) -> None:
        """So that processes know when to read feedback again, and indexes are not disturbed."""

        async def newest() -> int:
            collection = await records.collection(SHELF)
            return 0 if collection is None else collection.sequence

        before = await newest()
        await store.add([judged(rows[0], "1")])
        between = await newest()
        assert await store.delete("1")
        assert before < between < await newest()
        assert not await store.delete("1")
        changes = await records.reader(SHELF, None).changes_since(before, limit=9)
        assert [(change.first, change.last) for change in changes] == [(0, 0), (0, 0)]

    async def test_feedback_goes_with_its_chunk(
        self, store: FeedbackStore, records: Records, rows: Sequence[StoredChunk]
    ) -> None:
        """Deleted with its document or source, replaced by another text, or with the whole collection."""
        await store.add([judged(row, row.document.key) for row in rows])
        await records.delete([rows[0].document.id])
        assert sorted(await self.all_of(store)) == ["b", "c"]
        await records.write([prepared("b", "another text")])
        assert await self.all_of(store) == ["c"]
        await records.delete_source(LETTERS)
        assert await self.all_of(store) == []
        await records.delete_collection(SHELF)
        assert await store.judgments(SHELF, limit=9) == []

    async def test_feedback_goes_with_its_user(
        self, store: FeedbackStore, records: Records, accounts: Accounts, rows: Sequence[StoredChunk]
    ) -> None:
        """And only that of this user, which is a change of the collection."""
        for name in ("ann", "ben"):
            await accounts.add_user(a_user(name))
        await store.add([judged(rows[0], "1"), judged(rows[0], "2", user=BEN)])
        before = await records.reader(SHELF, None).last_sequence()
        await accounts.delete_user(ANN)
        assert await self.all_of(store) == ["2"]
        assert await records.reader(SHELF, None).last_sequence() > before

    async def test_what_is_not_there_is_not_judged(
        self, store: FeedbackStore, rows: Sequence[StoredChunk]
    ) -> None:
        """Neither an unknown chunk nor one of another collection, and nothing else is stored either."""
        elsewhere = replace(judged(rows[0], "1"), collection=CollectionId("other"))
        unknown = replace(judged(rows[0], "2"), chunk=ChunkId(999_999))
        for wrong in (elsewhere, unknown):
            with pytest.raises(NotFound):
                await store.add([judged(rows[1], "3"), wrong])
        assert await self.all_of(store) == []
