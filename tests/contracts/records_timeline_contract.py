"""What every record store must do with captions and events in time."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from conspectus.errors import InvalidInput
from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.records import Period, PreparedDocument
from conspectus.ports import Records
from conspectus.ports.streams import Extent, Span
from conspectus.text.times import to_microseconds
from tests.support.samples import NOON, NOTES, notes, prepared


def seen(key: str, start: float | None, end: float | None = None, **fields: object) -> PreparedDocument:
    """A caption whose text is its key, from and to seconds after noon."""
    occurred = None
    if start is not None:
        occurred = Period(after_noon(start), after_noon(start if end is None else end))
    return prepared(key, key, **{"kind": "caption", "thread": "captions", "occurred": occurred, **fields})


def after_noon(seconds: float) -> datetime:
    """An instant."""
    return NOON + timedelta(seconds=seconds)


def between(start: float | None, end: float | None, *, contains: bool = False) -> Span:
    """From and to seconds after noon."""
    first, last = (None if seconds is None else after_noon(seconds) for seconds in (start, end))
    return Span(first, last, contains)


async def keys(records: Records, span: Span, *, limit: int = 100, source: SourceId = NOTES) -> list[str]:
    """The keys of all pages, each of at most `limit`."""
    keys_in_order: list[str] = []
    after: str | None = None
    while True:
        page = await records.timeline(source, span, after=after, limit=limit)
        assert len(page.documents) <= limit
        assert all(text == document.key for document, text in page.documents)
        keys_in_order += [document.key for document, _ in page.documents]
        after = page.next
        if after is None:
            return keys_in_order


class TimelineContract:
    """Ranges of a stream in the order of time. Part of RecordsContract."""

    @pytest.mark.parametrize(
        ("start", "end", "contains", "expected"),
        [
            (None, None, False, "day a b long c d x none"),
            (60, 120, False, "day b long c"),
            (60, 120, True, "c"),
            (50, 120, True, "b c"),
            (70, 90, False, "day long"),
            (100, 100, False, "day long"),
            (100, 101, False, "day long c"),
            (100, 101, True, "c"),
            (0, 0.5, False, "day a"),
            (200, None, False, "day x"),
            (None, 0, False, "day"),
            (-100, 9_999, True, "a b long c d x"),
            (50_000, 60_000, False, ""),
        ],
    )
    async def test_a_range_by_overlap_or_containment(
        self, records: Records, stocked: None, start: float | None, end: float | None, *, contains: bool,
        expected: str,
    ) -> None:  # fmt: skip
        """A caption of 50 to 70 s belongs to 60 to 120 s; an instant counts as itself; 0 is a time."""
        await records.put_source(notes("other"))
        stored = [seen("d", 150, 200), seen("a", 0, 50), seen("none", None), seen("x", 200, 210)]
        stored += [seen("long", 50.5, 130), seen("c", 100), seen("b", 50, 70), seen("day", -1_000, 40_000)]
        stored += [seen("elsewhere", 60, 70, source="other"), seen("event", 60, 70, kind="event")]
        await records.write(stored)
        span = between(start, end, contains=contains)
        for limit in (1, 3, 100):
            assert await keys(records, span, limit=limit) == expected.split()

    async def test_numbers_bound_a_range_too(self, records: Records, stocked: None) -> None:
        """Both ends belong; what has no number is in no range of numbers; equal times go by number, key."""
        await records.write([seen(f"k{n}", 0, 10, sequence=n) for n in (5, 3, 4, 1, 2)])
        await records.write([seen("z", 0, 10), seen("y", 0, 10), seen("u", None, sequence=3)])
        assert await keys(records, Span(first=2, last=4), limit=2) == ["k2", "k3", "k4", "u"]
        assert await keys(records, Span(first=4)) == ["k4", "k5"]
        assert await keys(records, Span(), limit=1) == ["y", "z", "k1", "k2", "k3", "k4", "k5", "u"]

    async def test_how_far_a_stream_goes(self, records: Records, stocked: None) -> None:
        """The last end is not always that of the last caption; events and other sources do not count."""
        assert await records.extent(NOTES) == Extent(0, None, None)
        await records.write([seen("a", 0, 500), seen("b", 10, 20), seen("none", None)])
        await records.write([seen("event", -50, 900, kind="event")])
        assert await records.extent(NOTES) == Extent(3, NOON, NOON + timedelta(seconds=500))
        await records.delete([DocumentId("a")])
        assert (await records.extent(NOTES)).last == NOON + timedelta(seconds=20)
        uncounted = await records.extent(NOTES, counted=False)
        assert uncounted == replace(await records.extent(NOTES), captions=0)

    async def test_cursors_that_no_page_gave(self, records: Records, stocked: None) -> None:
        """They are refused, whatever they are, and so is a page of nothing."""
        await records.write([seen("a", 0, 1)])
        for cursor in ("", "x", "é", "W10=", "bnVsbA==", "WzEsMiwzLDRd", "WyIxIiwiMiJd", "W3RydWUsImEiXQ=="):
            with pytest.raises(InvalidInput, match="after"):
                await records.timeline(NOTES, Span(), after=cursor, limit=1)
        with pytest.raises(InvalidInput, match="limit"):
            await records.timeline(NOTES, Span(), limit=0)

    async def test_several_stretches_at_once(self, records: Records, stocked: None) -> None:
        """Each caption once, in the order of time; the first or the last of them; events too."""
        await records.write([seen(f"k{n}", 10 * n, 10 * n + 10) for n in range(9)])
        await records.write([seen("e", 12, 13, kind="event"), seen("none", None)])
        spans = [between(5, 15), between(11, 25), between(80, None), between(50, 51)]
        for limit, last, expected in (
            (9, False, "k0 k1 e k2 k5 k8"),
            (2, False, "k0 k1"),
            (2, True, "k5 k8"),
        ):
            stretches = await records.stretches(NOTES, spans, limit=limit, last=last)
            assert names(stretches) == expected.split()
        assert await records.stretches(NOTES, [], limit=5) == []
        assert await records.list_positions(NOTES, []) == []
        for ranges in (spans, [between(None, None)], [between(15, 45, contains=True)]):
            read = await records.stretches(NOTES, ranges, limit=99)
            spots = await records.list_positions(NOTES, ranges)
            assert {spot.document: (spot.start, spot.end) for spot in spots} == {
                document.id: (
                    to_microseconds(document.occurred.start),
                    to_microseconds(document.occurred.end),
                )
                for document, _ in read
                if document.occurred is not None
            }

    async def test_events_are_apart(self, records: Records, stocked: None) -> None:
        """A timeline is of one kind."""
        await records.write([seen("a", 0, 1), seen("e", 0, 2, kind="event")])
        page = await records.timeline(NOTES, Span(), kind="event", limit=10)
        assert names(page.documents) == ["e"]

    async def test_names_are_those_of_entities_and_speakers(self, records: Records, stocked: None) -> None:
        """Each counts once for a caption or an event, as it is spelt; other streams and kinds are apart."""
        metadata = {"entities": ["Ann", "Bo", "Ann", 7, None]}
        await records.put_source(notes("elsewhere"))
        await records.write(
            [
                seen("one", 0, 5, author="Ann", metadata=metadata),
                seen("two", 10, 15, author="ann"),
                seen("three", None, author="Bo", metadata={"entities": "Ö 'x' %"}),
                seen("event", 20, kind="event", metadata={"entities": ["Bo"]}),
                seen("page", 0, kind="page", metadata=metadata),
                seen("other", 0, source=SourceId("elsewhere"), metadata=metadata),
            ]
        )
        assert await records.names(NOTES, Span()) == {"Ann": 1, "Bo": 3, "ann": 1, "Ö 'x' %": 1}
        assert await records.names(NOTES, between(12, 21)) == {"ann": 1, "Bo": 1}
        assert await records.names(SourceId("nothing"), Span()) == {}
        mentions = await records.mentions(NOTES, Span(), names=["Bo", "ann", "nobody"])
        assert sorted((mention.document, mention.name, mention.occurred is None) for mention in mentions) == [
            ("event", "Bo", False),
            ("one", "Bo", False),
            ("three", "Bo", True),
            ("two", "ann", False),
        ]
        assert await records.mentions(NOTES, Span(), names=[]) == []


def names(documents: Sequence[tuple[object, str]]) -> list[str]:
    """The texts of a page."""
    return [text for _, text in documents]
