"""What every record store must do with threads and with the newest of a source."""

from datetime import timedelta

import pytest

from conspectus.errors import InvalidInput
from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.records import Period, PreparedDocument, StoredChunk
from conspectus.ports import Records
from conspectus.testing.samples import NOON, NOTES, notes, prepared


def said(key: str, *texts: str, minute: int | None = 0, **fields: object) -> PreparedDocument:
    """A message of the thread `t`, at a minute after noon or at no known time."""
    instant = None if minute is None else NOON + timedelta(minutes=minute)
    occurred = None if instant is None else Period(instant, instant)
    return prepared(key, *texts, **{"kind": "message", "thread": "t", "occurred": occurred, **fields})


def texts(found: list[StoredChunk]) -> list[str]:
    """What the chunks say, in their order."""
    return [each.chunk.text for each in found]


class ThreadsContract:
    """Whole threads, both ends of long ones, and the newest messages. Part of RecordsContract."""

    async def test_a_thread_in_its_order(self, records: Records, stocked: None) -> None:
        """By sequence, event time, id and position, within its source; texts that are empty do not count."""
        await records.put_source(notes("other"))
        await records.write(
            [
                said("d", "5 ", "6", sequence=7),
                said("c", "4", sequence=5, minute=2),
                said("b", "3", sequence=5, minute=1),
                said("a", "2", sequence=5, minute=1),
                said("z", "1", minute=None),
                said("empty", sequence=6),
                said("elsewhere", "x", source="other"),
                said("another", "x", thread="u"),
                said("alone", "x", thread=None),
            ]
        )
        found, total = await records.thread(NOTES, "t", limit=100)
        assert (texts(list(found)), total) == (["1", "2", "3", "4", "5 ", "6"], 6)
        assert list(found) == await records.hydrate([each.chunk.id for each in found])
        await records.delete([DocumentId("b")])
        found, total = await records.thread(NOTES, "t", limit=5)
        assert (texts(list(found)), total) == (["1", "2", "4", "5 ", "6"], 5)

    async def test_of_a_long_thread_both_ends(self, records: Records, stocked: None) -> None:
        """Half of the limit each, the first one more; nothing twice, also inside a document."""
        batch = [said(f"{number:02}", f"{number} ", f"{number}+", minute=number) for number in range(10)]
        await records.write(batch)
        whole = texts(list((await records.thread(NOTES, "t", limit=20))[0]))
        assert len(whole) == len(set(whole)) == 20
        for limit in (1, 2, 3, 19):
            found, total = await records.thread(NOTES, "t", limit=limit)
            last = limit // 2
            assert texts(list(found)) == [*whole[: limit - last], *whole[20 - last :]]
            assert total == 20

    async def test_a_thread_that_is_not_there(self, records: Records, stocked: None) -> None:
        """Nothing, and no error; a limit that means nothing is one."""
        await records.write([said("a", "x")])
        for source, thread in ((NOTES, "T"), (NOTES, ""), (SourceId("gone"), "t")):
            assert await records.thread(source, thread, limit=5) == ([], 0)
        for attempt in (records.thread(NOTES, "t", limit=0), records.latest(NOTES, limit=0)):
            with pytest.raises(InvalidInput):
                await attempt

    async def test_the_newest_of_a_source(self, records: Records, stocked: None) -> None:
        """By event time, whatever the thread; of equal times the larger id first."""
        await records.put_source(notes("other"))
        await records.write(
            [
                said("b", "3", minute=1),
                said("old", "4", minute=-90_000_000, sequence=9),
                said("a", "2", minute=1),
                said("new", "1 ", "rest", minute=5, thread=None),
                said("timeless", "x", minute=None),
                said("empty", minute=9),
                said("elsewhere", "x", minute=9, source="other"),
            ]
        )
        found = list(await records.latest(NOTES, limit=100))
        assert texts(found) == ["1 ", "3", "2", "4"]
        assert found == await records.hydrate([each.chunk.id for each in found])
        assert texts(list(await records.latest(NOTES, limit=2))) == ["1 ", "3"]
        assert list(await records.latest(SourceId("gone"), limit=2)) == []
