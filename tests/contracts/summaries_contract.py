"""What every keeper of summaries must do.

Subclass the contract, give it its fixtures, let pytest collect it.
"""

import pytest

from conspectus.errors import NotFound, PreconditionFailed
from conspectus.model.ids import DocumentId, SourceId, UserId
from conspectus.model.records import PreparedDocument
from conspectus.ports import Records
from conspectus.ports.streams import NewSummary, SavedSummary, Summaries, SummaryBounds
from tests.support.samples import NOON, NOTES, OTHER_SPACE, SHELF, SPACE, notes, prepared, shelf, vector

LETTERS = SourceId("letters")
NEVER = float("inf")


def new_summary(
    name: str, *of: PreparedDocument, parts: tuple[str, ...] = (), recipe: str = "r"
) -> NewSummary:
    """A summary of these documents and of these other summaries."""
    captions = tuple((caption.document.id, caption.document.fingerprint) for caption in of)
    return NewSummary(name, recipe, f"what {name} says", captions, parts)


class SummariesContract:
    """The behaviour of every keeper of summaries.

    Fixtures to override: `store`, and `records` on the same data, which are empty.
    """

    @pytest.fixture
    async def captions(self, records: Records) -> list[PreparedDocument]:
        """Four stored captions, `0` to `3`."""
        await records.create_collection(shelf())
        for name in (NOTES, LETTERS):
            await records.put_source(notes(name))
        written = [prepared(str(number), f"scene {number}", kind="caption") for number in range(4)]
        await records.write(written)
        return written

    async def stored_names(self, store: Summaries, *names: str) -> list[str]:
        """Those of the summaries that are kept."""
        return [name for name in names if await store.text(name) is not None]

    async def test_a_summary_is_kept_once(self, store: Summaries, captions: list[PreparedDocument]) -> None:
        """The first text stays: whoever comes later was asked the same."""
        assert await store.text("a") is None
        await store.add(NOTES, new_summary("a", *captions))
        again = NewSummary("a", "other", "another text", ())
        await store.add(NOTES, again)
        assert await store.text("a") == "what a says"
        assert set(await store.select_stored(["a", "b"])) == {"a"}

    async def test_what_was_made_of_a_deleted_caption_goes_with_it(
        self, store: Summaries, records: Records, captions: list[PreparedDocument]
    ) -> None:
        """Directly or through other summaries, and nothing else does."""
        await store.add(NOTES, new_summary("first", *captions[:2]))
        await store.add(NOTES, new_summary("second", *captions[2:]))
        await store.add(NOTES, new_summary("both", parts=("first", "second")))
        await store.add(NOTES, new_summary("above", parts=("both",)))
        await records.delete([captions[1].document.id])
        assert await self.stored_names(store, "first", "second", "both", "above") == ["second"]

    async def test_what_was_made_of_a_replaced_caption_goes(
        self, store: Summaries, records: Records, captions: list[PreparedDocument]
    ) -> None:
        """The old text would live on in it."""
        await store.add(NOTES, new_summary("a", captions[0]))
        await store.add(NOTES, new_summary("b", captions[1]))
        await records.write([prepared("0", "another scene", kind="caption"), captions[1]])
        assert await self.stored_names(store, "a", "b") == ["b"]

    async def test_a_long_chain_goes_at_once(
        self, store: Summaries, records: Records, captions: list[PreparedDocument]
    ) -> None:
        """Longer than databases follow references by themselves."""
        await store.add(NOTES, new_summary("0", captions[0]))
        for number in range(1, 1_200):
            await store.add(NOTES, new_summary(str(number), parts=(str(number - 1),)))
        await records.delete([captions[0].document.id])
        assert await self.stored_names(store, "0", "600", "1199") == []

    async def test_what_changed_meanwhile_is_not_kept(
        self, store: Summaries, records: Records, captions: list[PreparedDocument]
    ) -> None:
        """A caption with another fingerprint, of another source, or none; and a part that is gone."""
        changed = prepared("0", "another scene", kind="caption")
        absent = prepared("9", "never stored")
        for wrong in (
            new_summary("a", changed),
            new_summary("a", captions[0], absent),
            new_summary("a", parts=("none",)),
        ):
            with pytest.raises(PreconditionFailed):
                await store.add(NOTES, wrong)
        with pytest.raises(PreconditionFailed):
            await store.add(LETTERS, new_summary("a", captions[0]))
        assert await store.text("a") is None

    async def test_summaries_go_with_their_source(
        self, store: Summaries, records: Records, captions: list[PreparedDocument]
    ) -> None:
        """And so does all else that is kept of it."""
        await store.add(NOTES, new_summary("a", *captions))
        await store.set_boundaries(NOTES, "r", [SummaryBounds((0.0, "0"), (3.0, "3"), full=True)])
        await store.set_live_summary(NOTES, SavedSummary(UserId("ann"), {}, NOON))
        await records.delete_source(NOTES)
        assert await store.text("a") is None
        assert await store.borders(NOTES, "r") == []
        assert await store.get_live_summary(NOTES) is None
        assert await records.check() == []

    async def test_borders_are_those_that_were_given_last(
        self, store: Summaries, captions: list[PreparedDocument]
    ) -> None:
        """In their order, by stream and by request; also those of captions without times."""
        first = SummaryBounds((-1.5, "b"), (2.25, "a"), full=True)
        same = SummaryBounds((-1.5, "a"), (-1.5, "a"), full=True)
        last = SummaryBounds((NEVER, "a"), (NEVER, "z"), full=False)
        await store.set_boundaries(NOTES, "r", [last, first])
        await store.set_boundaries(NOTES, "s", [last])
        assert await store.borders(NOTES, "r") == [first, last]
        longer = SummaryBounds(last.first, (NEVER, "zz"), full=True)
        await store.set_boundaries(NOTES, "r", [same, first, longer])
        assert await store.borders(NOTES, "r") == [same, first, longer]
        assert await store.borders(NOTES, "s") == [last]
        assert await store.borders(LETTERS, "r") == []
        await store.set_boundaries(NOTES, "r", [])
        assert await store.borders(NOTES, "r") == []

    async def test_what_a_request_does_not_use_is_cleared_away(
        self, store: Summaries, captions: list[PreparedDocument]
    ) -> None:
        """What others had made stays."""
        for name, recipe in (("a", "r"), ("b", "r"), ("c", "s")):
            await store.add(NOTES, new_summary(name, captions[0], recipe=recipe))
        assert await store.tidy(NOTES, "r", {"b"}) == 1
        assert await store.tidy(LETTERS, "r", set()) == 0
        assert await self.stored_names(store, "a", "b", "c") == ["b", "c"]

    async def test_vectors_are_those_of_the_space(
        self, store: Summaries, records: Records, captions: list[PreparedDocument]
    ) -> None:
        """Of the first chunk of each, where there is one."""
        chunks = [(await records.document_chunks(caption.document.id))[0].chunk.id for caption in captions]
        await records.put_vectors(SHELF, SPACE, [(chunks[0], vector(1)), (chunks[2], vector(0, 1))])
        ids = [caption.document.id for caption in captions]
        vectors = await store.vectors([*ids, DocumentId("none")], SPACE)
        assert vectors == {ids[0]: vector(1), ids[2]: vector(0, 1)}
        assert await store.vectors(ids, OTHER_SPACE) == {}

    async def test_one_standing_request_is_kept_for_a_stream(
        self, store: Summaries, captions: list[PreparedDocument]
    ) -> None:
        """The last one; none where it was taken back."""
        assert await store.get_live_summary(NOTES) is None
        for number in (1, 2):
            summary = SavedSummary(UserId(f"u{number}"), {"stream": "r\u00f6hre", "n": number}, NOON)
            await store.set_live_summary(NOTES, summary)
            assert await store.get_live_summary(NOTES) == summary
        await store.set_live_summary(NOTES, None)
        assert await store.get_live_summary(NOTES) is None
        with pytest.raises(NotFound):
            await store.set_live_summary(SourceId("none"), SavedSummary(UserId("ann"), {}, NOON))

    async def test_nothing_is_left_when_a_collection_goes(
        self, store: Summaries, records: Records, captions: list[PreparedDocument]
    ) -> None:
        """Though nobody names its documents."""
        await store.add(NOTES, new_summary("a", *captions))
        await records.delete_collection(SHELF)
        assert await store.text("a") is None
        assert await records.check() == []
