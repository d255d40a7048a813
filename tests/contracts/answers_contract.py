"""What every store of answer records must do.

Subclass the contract, give it its fixtures, let pytest collect it.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from conspectus.errors import InvalidInput
from conspectus.model.answers import (
    AnswerAccess,
    AnswerCandidate,
    AnswerLimits,
    AnswerOptions,
    AnswerRecord,
    AnswerSelection,
    AnswerSummary,
    NewAnswer,
)
from conspectus.model.filter import Eq
from conspectus.model.ids import CollectionId, SourceId, UserId
from conspectus.model.memory import Scope
from conspectus.model.records import StoredChunk
from conspectus.model.results import Citation, Message
from conspectus.ports import Records
from conspectus.ports.answers import AnswerStore
from tests.support.samples import NOON, NOTES, SHELF, notes, prepared, shelf

LETTERS = SourceId("letters")
ANN, BEN = UserId("ann-id"), UserId("ben-id")
MINUTE = timedelta(minutes=1)
LIMITS = AnswerLimits(NOON - timedelta(days=30), max_count=100, max_bytes=1_000_000)
EVERYTHING = AnswerAccess(ANN, (SHELF,), (), NOON - timedelta(days=30))
ALL = AnswerSelection()
ORIGINAL = {"kind": "page", "metadata": {}, "trust": "untrusted"}
MARK = {"quarantine": {"pattern": "override", "given": ORIGINAL}}


def answer(name: str, *documents: str, user: UserId = ANN, minute: int = 0, text: str = "") -> NewAnswer:
    """A record with texts of documents whose id and question are a name."""
    summary = AnswerSummary(
        name, "window", user, NOON + minute * MINUTE, f"question {name}", "found", SHELF, passages=1, tokens=9
    )
    candidates = [
        AnswerCandidate(rank, rank, document, 0, 5, 1 / rank, {"keyword": 1 / rank}, "included", 4)
        for rank, document in enumerate(documents, 1)
    ]
    citations = [
        Citation(rank, document, NOTES, document, f"About {document}", 0, 5, (rank,), box=(1, 2, 3, 4))
        for rank, document in enumerate(documents, 1)
    ]
    options = AnswerOptions(
        max_tokens=500, filter=Eq("kind", "page"), as_of=NOON, scope=Scope("ann"), min_trust="trusted"
    )
    record = AnswerRecord(summary, options, text or f"[1] {name}", tuple(citations), tuple(candidates))
    return NewAnswer(record, documents, f"digest {name}")


def readable(user: UserId, *sources: SourceId) -> AnswerAccess:
    """The access of a person to sources."""
    return AnswerAccess(user, (), sources, NOON - timedelta(days=30))


class AnswersContract:
    """The behaviour of every store of answer records.

    Fixtures to override: `store`, and `records` on the same data, which are empty.
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

    async def ids_of(self, store: AnswerStore, access: AnswerAccess = EVERYTHING) -> list[str]:
        """The ids of the records that a person may read, newest first."""
        page = await store.list(ALL, access, after=None, limit=100)
        return [summary.id for summary in page.answers]

    async def test_a_record_comes_back_as_given(
        self, store: AnswerStore, rows: Sequence[StoredChunk]
    ) -> None:
        """With the names that the documents of its candidates have now."""
        new = answer("1", "a", "c")
        record = replace(
            new.record, prompt=(Message("user", "x"),), answer="yes [1]", cited=(1,), unknown=("7",)
        )
        assert await store.add([replace(new, record=record)], LIMITS)
        stored = await store.get("1", EVERYTHING)
        named = tuple(
            replace(candidate, source=source, key=candidate.document, title=f"About {candidate.document}")
            for candidate, source in zip(record.candidates, (NOTES, LETTERS), strict=True)
        )
        assert stored == replace(record, candidates=named)
        assert await store.get("2", EVERYTHING) is None

    async def test_only_who_may_read_all_documents_reads_a_record(
        self, store: AnswerStore, rows: Sequence[StoredChunk]
    ) -> None:
        """Also the person who was given it; one without documents is for that person alone."""
        for new in (answer("1", "a"), answer("2", "a", "c", minute=1), answer("3", minute=2)):
            assert await store.add([new], LIMITS)
        assert await self.ids_of(store, readable(ANN, NOTES, LETTERS)) == ["3", "2", "1"]
        assert await self.ids_of(store, readable(BEN, NOTES, LETTERS)) == ["2", "1"]
        assert await self.ids_of(store, readable(BEN, NOTES)) == ["1"]
        assert await self.ids_of(store, readable(ANN, LETTERS)) == ["3"]
        assert await store.get("2", readable(ANN, NOTES)) is None
        assert await store.get("2", readable(BEN, NOTES, LETTERS)) is not None

    async def test_quarantined_documents_hide_a_record(
        self, store: AnswerStore, records: Records, rows: Sequence[StoredChunk]
    ) -> None:
        await store.add([answer("1", "a")], LIMITS)
        await records.write([prepared("a", "first", kind="quarantined", metadata=MARK)])
        assert await store.get("1", EVERYTHING) is None

    async def test_pages_are_of_a_person_a_kind_and_a_collection(
        self, store: AnswerStore, rows: Sequence[StoredChunk]
    ) -> None:
        """Newest first, by id where two were given at once."""
        for number in range(6):
            user = (ANN, BEN)[number % 2]
            assert await store.add([answer(f"{number}", "a", user=user, minute=number // 2)], LIMITS)
        first = await store.list(ALL, EVERYTHING, after=None, limit=4)
        rest = await store.list(ALL, EVERYTHING, after=first.next, limit=4)
        assert [summary.id for summary in (*first.answers, *rest.answers)] == ["5", "4", "3", "2", "1", "0"]
        assert (first.next is None, rest.next) == (False, None)
        for selection, ids in (
            (AnswerSelection(user=BEN), ["5", "3", "1"]),
            (AnswerSelection(kind="chat"), []),
            (AnswerSelection(collection=CollectionId("other")), []),
            (AnswerSelection(BEN, "window", SHELF), ["5", "3", "1"]),
        ):
            page = await store.list(selection, EVERYTHING, after=None, limit=9)
            assert [summary.id for summary in page.answers] == ids
        with pytest.raises(InvalidInput):
            await store.list(ALL, EVERYTHING, after="nonsense", limit=1)

    async def test_records_have_a_maximum_age_number_and_size(
        self, store: AnswerStore, rows: Sequence[StoredChunk]
    ) -> None:
        for number in range(5):
            await store.add([answer(f"{number}", "a", minute=number)], LIMITS)
        await store.add([answer("5", "a", minute=5)], replace(LIMITS, max_count=4))
        assert await self.ids_of(store) == ["5", "4", "3", "2"]
        await store.add([answer("6", "a", minute=6)], replace(LIMITS, since=NOON + 4 * MINUTE))
        assert await self.ids_of(store) == ["6", "5", "4"]
        large = answer("7", "a", minute=7, text="x" * 10_000)
        await store.add([large], replace(LIMITS, max_bytes=11_000))
        assert await self.ids_of(store) == ["7"]
        assert await self.ids_of(store, replace(EVERYTHING, since=NOON + 8 * MINUTE)) == []

    async def test_a_record_ends_with_each_of_its_documents(
        self, store: AnswerStore, records: Records, rows: Sequence[StoredChunk]
    ) -> None:
        """The receipt counts it. A document that is gone before the record is kept prevents it."""
        await store.add([answer("1", "a", "c")], LIMITS)
        await store.add([answer("2", "b")], LIMITS)
        receipt = await records.delete([rows[2].document.id])
        assert receipt.answers == 1
        assert await self.ids_of(store) == ["2"]
        assert not await store.add([answer("3", "b", "c")], LIMITS)
        assert await self.ids_of(store) == ["2"]
        assert (await records.delete_collection(SHELF)).answers == 1
        assert await self.ids_of(store) == []

    async def test_changed_documents_are_named_and_a_purge_deletes_the_record(
        self, store: AnswerStore, records: Records, rows: Sequence[StoredChunk]
    ) -> None:
        """It has a text that the document has no more; a question without an answer may repeat it too."""
        for new in (answer("1", "a"), answer("2", "b"), answer("3")):
            await store.add([new], LIMITS)
        await records.write([prepared("a", "another first")])
        stored = await store.get("1", EVERYTHING)
        assert stored is not None
        assert stored.changed == ("a",)
        await records.purge()
        assert await self.ids_of(store) == ["3", "2", "1"]
        await records.begin_purge(SHELF)
        await records.purge()
        assert await self.ids_of(store) == ["2"]

    async def test_a_change_between_question_and_record_counts_as_one_after_it(
        self, store: AnswerStore, records: Records, rows: Sequence[StoredChunk]
    ) -> None:
        await records.write([prepared("a", "another first", updated=NOON + MINUTE)])
        assert await store.add([answer("1", "a"), answer("2", "a", minute=1)], LIMITS) == 2
        earlier, later = await store.get("1", EVERYTHING), await store.get("2", EVERYTHING)
        assert earlier is not None
        assert later is not None
        assert (earlier.changed, later.changed) == (("a",), ())

    async def test_a_deleted_document_prevents_its_record_only(
        self, store: AnswerStore, rows: Sequence[StoredChunk]
    ) -> None:
        assert await store.add([answer("1", "a"), answer("2", "gone"), answer("3", "b")], LIMITS) == 2
        assert await self.ids_of(store) == ["3", "1"]

    async def test_answers_are_known_by_digest(self, store: AnswerStore, rows: Sequence[StoredChunk]) -> None:
        for new in (answer("1", "a", "b"), answer("2"), answer("3", "c", user=BEN)):
            await store.add([new], LIMITS)
        linked = await store.documents_of(ANN, ["digest 1", "digest 2", "digest 3", "digest 4"])
        assert {digest: sorted(ids) for digest, ids in linked.items()} == {
            "digest 1": ["a", "b"],
            "digest 2": [],
        }

    async def test_documents_of_records_are_listed(
        self, store: AnswerStore, rows: Sequence[StoredChunk]
    ) -> None:
        """For each record that has some, whoever it was given to."""
        for new in (answer("1", "a", "b"), answer("2"), answer("3", "c", user=BEN)):
            await store.add([new], LIMITS)
        linked = await store.list_documents(["1", "2", "3", "4"])
        assert {record: sorted(ids) for record, ids in linked.items()} == {"1": ["a", "b"], "3": ["c"]}
        assert await store.list_documents([]) == {}

    async def test_records_are_deleted(self, store: AnswerStore, rows: Sequence[StoredChunk]) -> None:
        await store.add([answer("1", "a")], LIMITS)
        assert [await store.delete("1"), await store.delete("1")] == [True, False]
        assert await self.ids_of(store) == []
