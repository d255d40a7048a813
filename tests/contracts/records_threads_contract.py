"""What every record store must do with threads and with the newest of a source."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from conspectus.errors import InvalidInput
from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.records import Period, PreparedDocument, StoredChunk, StoredThread
from conspectus.ports import Records
from tests.support.samples import NOON, NOTES, notes, prepared


def said(key: str, *texts: str, minute: int | None = 0, **fields: object) -> PreparedDocument:
    """A message of the thread `t`, at a minute after noon or at no known time."""
    instant = None if minute is None else NOON + timedelta(minutes=minute)
    occurred = None if instant is None else Period(instant, instant)
    return prepared(key, *texts, **{"kind": "message", "thread": "t", "occurred": occurred, **fields})


def texts(found: Sequence[StoredChunk]) -> list[str]:
    """What the chunks say, in their order."""
    return [each.chunk.text for each in found]


class ThreadsContract:
    """Whole threads, both ends of long ones, and the newest messages. Part of RecordsContract."""

    async def test_a_thread_in_its_order(self, records: Records, stocked: None) -> None:
        """By sequence, event time and order of storing, within its source; empty texts do not count."""
        await records.put_source(notes("other"))
        await records.write(
            [
                said("d", "5 ", "and more", sequence=7),
                said("c", "4", sequence=5, minute=2),
                said("b", "2", sequence=5, minute=1),
                said("a", "3", sequence=5, minute=1),
                said("z", "1", minute=None),
                said("empty", sequence=6),
                said("elsewhere", "x", source="other"),
                said("another", "x", thread="u"),
                said("alone", "x", thread=None),
            ]
        )
        found = await records.thread(NOTES, "t", limit=100)
        assert (texts(found.chunks), found.total) == (["1", "2", "3", "4", "5 "], 5)
        assert found.places == {key: place for place, key in enumerate("zbacd")}
        assert list(found.chunks) == await records.hydrate([each.chunk.id for each in found.chunks])
        await records.delete([DocumentId("b")])
        found = await records.thread(NOTES, "t", limit=4)
        assert (texts(found.chunks), found.total) == (["1", "3", "4", "5 "], 4)

    async def test_a_changed_message_keeps_its_place(self, records: Records, stocked: None) -> None:
        """Of equal times the order is that of storing, however ids and later writes are ordered."""
        await records.write([said("z", "1"), said("a", "2"), said("m", "3")])
        await records.write([said("z", "one"), said("b", "4")])
        assert texts((await records.thread(NOTES, "t", limit=9)).chunks) == ["one", "2", "3", "4"]
        assert texts(await records.latest(NOTES, limit=9)) == ["4", "3", "2", "one"]

    async def test_of_a_long_thread_some(self, records: Records, stocked: None) -> None:
        """Both ends, and what stands around what was named; nothing twice; places in the whole thread."""
        await records.write([said(f"{number:02}", f"{number}", minute=number) for number in range(30)])
        for limit, around, expected in (
            (1, "", "29"),
            (2, "", "0 29"),
            (5, "", "0 1 2 28 29"),
            (29, "", " ".join(map(str, (*range(15), *range(16, 30))))),
            (9, "15", "0 1 2 14 15 16 27 28 29"),
            (9, "01 nobody", "0 1 2 27 28 29"),
            (3, "03 04 20", "0 1 3 4 20 29"),
        ):
            beside = [DocumentId(each) for each in around.split()]
            found = await records.thread(NOTES, "t", limit=limit, around=beside)
            assert texts(found.chunks) == expected.split(), (limit, around)
            assert found.places == {each.document.id: int(each.chunk.text) for each in found.chunks}
            assert found.total == 30

    async def test_a_thread_that_is_not_there(self, records: Records, stocked: None) -> None:
        """Nothing, and no error; a limit that means nothing is one."""
        await records.write([said("a", "x")])
        for source, thread in ((NOTES, "T"), (NOTES, ""), (SourceId("gone"), "t")):
            assert await records.thread(source, thread, limit=5) == StoredThread()
        for attempt in (records.thread(NOTES, "t", limit=0), records.latest(NOTES, limit=0)):
            with pytest.raises(InvalidInput):
                await attempt

    async def test_the_newest_of_a_source(self, records: Records, stocked: None) -> None:
        """By event time, whatever the thread; of equal times the one stored later."""
        await records.put_source(notes("other"))
        await records.write(
            [
                said("b", "2", minute=1),
                said("old", "4", minute=-90_000_000, sequence=9),
                said("a", "3", minute=1),
                said("new", "1 ", "rest", minute=5, thread=None),
                said("timeless", "x", minute=None),
                said("empty", minute=9),
                said("elsewhere", "x", minute=9, source="other"),
            ]
        )
        found = await records.latest(NOTES, limit=100)
        assert texts(found) == ["1 ", "3", "2", "4"]
        assert list(found) == await records.hydrate([each.chunk.id for each in found])
        assert texts(await records.latest(NOTES, limit=2)) == ["1 ", "3"]
        assert list(await records.latest(SourceId("gone"), limit=2)) == []

    async def test_the_newest_until_some_time(self, records: Records, stocked: None) -> None:
        """That time among them; what comes later does not push out what came before."""
        await records.write([said(str(minute), str(minute), minute=minute) for minute in (1, 2, 90_000_000)])
        for minute, expected in ((0, ""), (1, "1"), (2, "2 1"), (3, "2 1")):
            until = NOON + timedelta(minutes=minute)
            assert texts(await records.latest(NOTES, limit=2, until=until)) == expected.split()

    async def test_the_newest_before_some_document(self, records: Records, stocked: None) -> None:
        """Each page goes on where the one before it ended, whether times or sequences order them."""
        timed = [said(f"{place:02}", f"{place}", minute=place // 3) for place in range(10)]
        counted = [said(f"{place:02}", f"{place}", minute=None, sequence=place // 3) for place in range(10)]
        for messages in (timed, counted):
            await records.write(messages)
            found = list(await records.latest(NOTES, limit=4))
            while page := await records.latest(NOTES, limit=4, before=found[-1].document):
                found += page
            assert texts(found) == [f"{9 - place}" for place in range(10)]
            await records.delete([each.document.id for each in found])

    async def test_the_newest_where_there_are_no_times(self, records: Records, stocked: None) -> None:
        """By sequence, and only then."""
        await records.write(
            [said(f"{9 - place}", f"{place}", minute=None, sequence=place) for place in range(4)]
        )
        assert texts(await records.latest(NOTES, limit=3)) == ["3", "2", "1"]
        assert list(await records.latest(NOTES, limit=3, until=NOON)) == []
        await records.write([said("dated", "x")])
        assert texts(await records.latest(NOTES, limit=3)) == ["x"]

    async def test_how_documents_begin(self, records: Records, stocked: None) -> None:
        """In the order asked, with neighbors; what is empty or not there is left out."""
        await records.write([said("a", "1 ", "2"), said("empty"), said("b", "3", minute=1)])
        found = await records.beginnings([DocumentId(each) for each in ("b", "gone", "empty", "a", "b")])
        assert texts(found) == ["3", "1 ", "3"]
        assert list(found) == await records.hydrate([each.chunk.id for each in found])
        assert list(await records.beginnings([])) == []
