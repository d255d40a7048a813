"""What every record store must do with threads and with the newest of a source."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from conspectus.errors import InvalidInput
from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.records import Period, PreparedDocument, StoredChunk, StoredThread
from conspectus.ports import Records
from tests.support.samples import NOON, NOTES, notes, prepared


def message(key: str, *texts: str, minute: int | None = 0, **fields: object) -> PreparedDocument:
    """A message of the thread `t`, at a minute after noon or at no known time."""
    instant = None if minute is None else NOON + timedelta(minutes=minute)
    occurred = None if instant is None else Period(instant, instant)
    return prepared(key, *texts, **{"kind": "message", "thread": "t", "occurred": occurred, **fields})


def texts(chunks: Sequence[StoredChunk]) -> list[str]:
    """What the chunks say, in their order."""
    return [stored.chunk.text for stored in chunks]


class ThreadsContract:
    """Whole threads, both ends of long ones, and the newest messages. Part of RecordsContract."""

    async def test_a_thread_in_its_order(self, records: Records, stocked: None) -> None:
        """By sequence, event time and order of storing, within its source; empty texts do not count."""
        await records.put_source(notes("other"))
        await records.write(
            [
                message("d", "5 ", "and more", sequence=7),
                message("c", "4", sequence=5, minute=2),
                message("b", "2", sequence=5, minute=1),
                message("a", "3", sequence=5, minute=1),
                message("z", "1", minute=None),
                message("empty", sequence=6),
                message("elsewhere", "x", source="other"),
                message("another", "x", thread="u"),
                message("alone", "x", thread=None),
            ]
        )
        thread = await records.thread(NOTES, "t", limit=100)
        assert (texts(thread.chunks), thread.total) == (["1", "2", "3", "4", "5 "], 5)
        assert thread.places == {key: position for position, key in enumerate("zbacd")}
        assert list(thread.chunks) == await records.hydrate([stored.chunk.id for stored in thread.chunks])
        await records.delete([DocumentId("b")])
        thread = await records.thread(NOTES, "t", limit=4)
        assert (texts(thread.chunks), thread.total) == (["1", "3", "4", "5 "], 4)

    async def test_a_changed_message_keeps_its_place(self, records: Records, stocked: None) -> None:
        """Of equal times the order is that of storing, however ids and later writes are ordered."""
        await records.write([message("z", "1"), message("a", "2"), message("m", "3")])
        await records.write([message("z", "one"), message("b", "4")])
        assert texts((await records.thread(NOTES, "t", limit=9)).chunks) == ["one", "2", "3", "4"]
        assert texts(await records.latest(NOTES, limit=9)) == ["4", "3", "2", "one"]

    async def test_of_a_long_thread_some(self, records: Records, stocked: None) -> None:
        """Both ends, and what stands around what was named; nothing twice; places in the whole thread."""
        await records.write([message(f"{number:02}", f"{number}", minute=number) for number in range(30)])
        for limit, around, expected in (
            (1, "", "29"),
            (2, "", "0 29"),
            (5, "", "0 1 2 28 29"),
            (29, "", " ".join(map(str, (*range(15), *range(16, 30))))),
            (9, "15", "0 1 2 14 15 16 27 28 29"),
            (9, "01 nobody", "0 1 2 27 28 29"),
            (3, "03 04 20", "0 1 3 4 20 29"),
        ):
            beside = [DocumentId(key) for key in around.split()]
            thread = await records.thread(NOTES, "t", limit=limit, around=beside)
            assert texts(thread.chunks) == expected.split(), (limit, around)
            assert thread.places == {stored.document.id: int(stored.chunk.text) for stored in thread.chunks}
            assert thread.total == 30

    async def test_a_thread_that_is_not_there(self, records: Records, stocked: None) -> None:
        """Nothing, and no error; a limit that means nothing is one."""
        await records.write([message("a", "x")])
        for source, thread in ((NOTES, "T"), (NOTES, ""), (SourceId("gone"), "t")):
            assert await records.thread(source, thread, limit=5) == StoredThread()
        for attempt in (records.thread(NOTES, "t", limit=0), records.latest(NOTES, limit=0)):
            with pytest.raises(InvalidInput):
                await attempt

    async def test_the_newest_of_a_source(self, records: Records, stocked: None) -> None:
        """By event time, whatever the thread; of equal times the one stored later; then those without."""
        await records.put_source(notes("other"))
        await records.write(
            [
                message("b", "2", minute=1),
                message("old", "4", minute=-90_000_000, sequence=9),
                message("a", "3", minute=1),
                message("new", "1 ", "rest", minute=5, thread=None),
                message("timeless", "x", minute=None),
                message("empty", minute=9),
                message("elsewhere", "x", minute=9, source="other"),
            ]
        )
        latest = await records.latest(NOTES, limit=100)
        assert texts(latest) == ["1 ", "3", "2", "4", "x"]
        assert list(latest) == await records.hydrate([stored.chunk.id for stored in latest])
        assert texts(await records.latest(NOTES, limit=2)) == ["1 ", "3"]
        assert list(await records.latest(SourceId("gone"), limit=2)) == []

    async def test_the_newest_until_some_time(self, records: Records, stocked: None) -> None:
        """That time among them; what comes later does not push out what came before."""
        await records.write(
            [message(str(minute), str(minute), minute=minute) for minute in (1, 2, 90_000_000)]
        )
        for minute, expected in ((0, ""), (1, "1"), (2, "2 1"), (3, "2 1")):
            until = NOON + timedelta(minutes=minute)
            assert texts(await records.latest(NOTES, limit=2, until=until)) == expected.split()

    async def test_the_newest_before_some_document(self, records: Records, stocked: None) -> None:
        """Each page goes on where the one before it ended, whether times or sequences order them."""
        timed = [message(f"{number:02}", f"{number}", minute=number // 3) for number in range(10)]
        counted = [
            message(f"{number:02}", f"{number}", minute=None, sequence=number // 3) for number in range(10)
        ]
        for messages in (timed, counted):
            await records.write(messages)
            newest = list(await records.latest(NOTES, limit=4))
            while page := await records.latest(NOTES, limit=4, before=newest[-1].document):
                newest += page
            assert texts(newest) == [f"{9 - number}" for number in range(10)]
            await records.delete([stored.document.id for stored in newest])

    async def test_the_newest_before_some_document_where_some_have_no_time(
        self, records: Records, stocked: None
    ) -> None:
        """The pages hold all, those without a time after the others, wherever a page ends."""
        timed = [message(f"t{n}", f"{n}", minute=n, sequence=50 - n) for n in (3, 4, 5)]
        counted = [message(f"c{n}", f"{n}", minute=None, sequence=n) for n in range(3)]
        await records.write([counted[0], timed[0], counted[1], *timed[1:], counted[2]])
        for limit in range(1, 7):
            newest = list(await records.latest(NOTES, limit=limit))
            while page := await records.latest(NOTES, limit=limit, before=newest[-1].document):
                newest += page
            assert texts(newest) == ["5", "4", "3", "2", "1", "0"]

    async def test_the_newest_where_there_are_no_times(self, records: Records, stocked: None) -> None:
        """By sequence, after all that have a time."""
        await records.write(
            [message(f"{9 - number}", f"{number}", minute=None, sequence=number) for number in range(4)]
        )
        assert texts(await records.latest(NOTES, limit=3)) == ["3", "2", "1"]
        assert list(await records.latest(NOTES, limit=3, until=NOON)) == []
        await records.write([message("dated", "x")])
        assert texts(await records.latest(NOTES, limit=3)) == ["x", "3", "2"]

    async def test_how_documents_begin(self, records: Records, stocked: None) -> None:
        """In the order asked, with neighbors; what is empty or not there is left out."""
        await records.write([message("a", "1 ", "2"), message("empty"), message("b", "3", minute=1)])
        beginnings = await records.beginnings([DocumentId(key) for key in ("b", "gone", "empty", "a", "b")])
        assert texts(beginnings) == ["3", "1 ", "3"]
        assert list(beginnings) == await records.hydrate([stored.chunk.id for stored in beginnings])
        assert list(await records.beginnings([])) == []
