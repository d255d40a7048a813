"""The name reader: it resumes, takes turns with other processes, and reports errors."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.support.samples import SHELF, notes, prepared, shelf

from conspectus.errors import LockLost, ProviderError, ProviderUnavailable, StorageBusy, StorageError
from conspectus.ingest.name_reader import BATCH_PASSAGES, MAX_PASSAGE_NAMES, NameReader, title_names
from conspectus.model.ids import ChunkId, DocumentId
from conspectus.model.records import Mention
from conspectus.ports.jobs import Lock
from conspectus.records.graph.mentions import SqlNames
from conspectus.records.jobs.locks import FileHold
from conspectus.records.store import SqlRecords, open_records
from conspectus.text.name_keys import key_of


class EveryWord:
    """Takes every word for a name; refuses what holds a bad word, with the faults in order before that."""

    name = "every word"

    def __init__(self, *faults: Exception) -> None:
        self.faults = list(faults)
        self.looked_at: list[str] = []
        self.closed = False

    async def extract(self, texts: Sequence[str]) -> Sequence[Sequence[Mention]]:
        if self.faults:
            raise self.faults.pop(0)
        if any("bad" in text for text in texts):
            raise ProviderError("every word", "cannot read it", status=400)
        self.looked_at += texts
        return [[Mention(0, 0, word, key_of(word), "word") for word in text.split()] for text in texts]

    async def close(self) -> None:
        self.closed = True


@asynccontextmanager
async def hold_lock() -> AsyncIterator[Lock]:
    yield FileHold(mine=True)


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[SqlRecords]:
    opened = await open_records(tmp_path / "records.sqlite")
    await opened.create_collection(shelf())
    await opened.put_source(notes())
    yield opened
    await opened.close()


@pytest.fixture
async def names(records: SqlRecords) -> SqlNames:
    rows = SqlNames(records.transactions)
    await rows.enable(SHELF, True)
    return rows


async def count_passages(names: SqlNames) -> dict[str, int]:
    return {name.key: name.passages for name in await names.counts(None, SHELF, begins="", limit=1_000)}


async def test_everything_is_looked_through_and_nothing_twice(records: SqlRecords, names: SqlNames) -> None:
    extractor = EveryWord()
    reader = NameReader(names, hold_lock, lambda: extractor)
    await records.write(
        [prepared(str(number), f"word{number}", title="") for number in range(BATCH_PASSAGES + 5)]
    )
    assert await reader.wait_until_done(SHELF) == BATCH_PASSAGES + 5
    assert await reader.wait_until_done(SHELF) == 0
    await records.write([prepared("new", "fresh", title="Its name")])
    assert await reader.wait_until_done(SHELF) == 1
    assert len(extractor.looked_at) == BATCH_PASSAGES + 6
    assert {"word0", "fresh", "its name"} <= (await count_passages(names)).keys()
    await reader.close()
    assert extractor.closed


async def test_texts_come_with_their_mentions_unless_one_fails(records: SqlRecords, names: SqlNames) -> None:
    reader = NameReader(names, hold_lock, lambda: EveryWord(ProviderUnavailable("p", "away")))
    texts = [prepared("a", "good ", "fine", title="Ann"), prepared("b", "new", title="")]
    assert await reader.with_mentions(texts) == texts
    assert (await records.write(await reader.with_mentions(texts))).has_mentions
    assert await count_passages(names) == {"good": 1, "fine": 1, "ann": 1, "new": 1}
    assert await names.count_unread(SHELF) == 0
    bad = await reader.with_mentions([prepared("c", "bad"), prepared("d", "other")])
    assert not (await records.write(bad)).has_mentions
    assert await names.count_unread(SHELF) == 2


async def test_a_reader_that_was_stopped_is_gone_on_with(records: SqlRecords, names: SqlNames) -> None:
    await records.write([prepared(str(number), f"word{number}") for number in range(3 * BATCH_PASSAGES)])
    first = NameReader(names, hold_lock, EveryWord)
    first.wake(SHELF)
    await first.close()
    left = await names.count_unread(SHELF)
    second = NameReader(names, hold_lock, EveryWord)
    assert await second.wait_until_done(SHELF) == left > 0
    assert await names.count_unread(SHELF) == 0
    await second.close()


async def test_one_process_reads_at_a_time(records: SqlRecords, names: SqlNames) -> None:
    turns = iter([False, True])

    @asynccontextmanager
    async def theirs_then_mine() -> AsyncIterator[Lock]:
        yield FileHold(mine=next(turns))

    await records.write([prepared("a", "word")])
    reader = NameReader(names, theirs_then_mine, EveryWord)
    assert await reader.wait_until_done(SHELF) == 1
    assert next(turns, None) is None
    await reader.close()


async def test_a_text_that_is_refused_holds_up_no_other_and_is_told(
    records: SqlRecords, names: SqlNames
) -> None:
    await records.write([prepared("a", "good"), prepared("b", "bad", title="Ann"), prepared("c", "fine")])
    reader = NameReader(names, hold_lock, EveryWord)
    with pytest.raises(ProviderError, match="cannot read it"):
        await reader.wait_until_done(SHELF)
    assert {"good", "fine", "ann"} <= (await count_passages(names)).keys()
    assert "cannot read it" in str(reader.problem(SHELF))
    assert await names.count_unread(SHELF) == 0
    await reader.close()


@pytest.mark.parametrize(
    "fault", [ProviderError("p", "no key", status=401), StorageError("full"), OSError("gone")]
)
async def test_what_stops_it_is_told_and_leaves_the_rest_for_later(
    records: SqlRecords, names: SqlNames, fault: Exception
) -> None:
    await records.write([prepared("a", "word")])
    reader = NameReader(names, hold_lock, lambda: EveryWord(fault))
    with pytest.raises((ProviderError, StorageError)):
        await reader.wait_until_done(SHELF)
    assert reader.problem(SHELF) is not None
    assert await names.count_unread(SHELF) == 1
    assert await NameReader(names, hold_lock, EveryWord).wait_until_done(SHELF) == 1


async def test_a_fault_of_the_program_itself_is_not_hidden(records: SqlRecords, names: SqlNames) -> None:
    await records.write([prepared("a", "word")])
    with pytest.raises(ZeroDivisionError):
        await NameReader(names, hold_lock, lambda: EveryWord(ZeroDivisionError())).wait_until_done(SHELF)


async def test_a_provider_that_cannot_answer_now_is_asked_again(records: SqlRecords, names: SqlNames) -> None:
    await records.write([prepared("a", "word")])
    extractor = EveryWord(*[ProviderUnavailable("p", "busy", retry_after=0.001) for _ in range(3)])
    reader = NameReader(names, hold_lock, lambda: extractor)
    assert await reader.wait_until_done(SHELF) == 1
    assert reader.problem(SHELF) is None
    await reader.close()


async def test_a_passage_keeps_so_many_names_and_no_more(records: SqlRecords, names: SqlNames) -> None:
    await records.write([prepared("a", " ".join(f"Name{number}" for number in range(10_000)), title="Many")])
    reader = NameReader(names, hold_lock, EveryWord)
    await reader.wait_until_done(SHELF)
    [passage] = await names.of([(await records.document_chunks(DocumentId("a")))[0].chunk.id])
    assert len(passage.names) == MAX_PASSAGE_NAMES
    assert passage.about == {"many"}
    assert isinstance(passage.chunk, int) and ChunkId(passage.chunk) == 1
    await reader.close()


@pytest.mark.parametrize(
    ("title", "keys"),
    [
        ("Lilu (mythology)", ["lilu (mythology)", "lilu"]),
        ("The Beatles", ["beatles"]),
        ("", []),
        (" \t", []),
        ("()", ["()"]),
        ("How do I join?", []),
        ("a very long title that says more than any name would", []),
    ],
)
def test_a_title_is_a_name_unless_it_says_something(title: str, keys: list[str]) -> None:
    assert [name.key for name in title_names(title)] == keys


async def test_what_a_memory_is_told_counts_as_if_it_stood_there(
    records: SqlRecords, names: SqlNames
) -> None:
    """Its fact is what it is about; names that it was told stand behind those of its text."""
    fact = {"subject": "Ada", "predicate": "lives in", "object": "Bonn"}
    metadata = {"fact": fact, "entities": ["Carl", "moved"]}
    await records.write([prepared("m", "I moved", title="", kind="memory", metadata=metadata)])
    reader = NameReader(names, hold_lock, EveryWord)
    await reader.wait_until_done(SHELF)
    await reader.close()
    (mentioned,) = await names.of([ChunkId(1)])
    assert dict(mentioned.names) == {"ada": "Ada", "bonn": "Bonn", "carl": "Carl", "i": "I", "moved": "moved"}
    assert mentioned.about == {"ada", "bonn"}


async def test_who_loses_the_turn_leaves_the_rest_to_the_next(records: SqlRecords, names: SqlNames) -> None:
    lost = iter([True, False])

    @asynccontextmanager
    async def lost_then_mine() -> AsyncIterator[Lock]:
        if next(lost):
            raise LockLost("names")
        yield FileHold(mine=True)

    await records.write([prepared("a", "word")])
    reader = NameReader(names, lost_then_mine, EveryWord)
    assert await reader.wait_until_done(SHELF) == 1
    assert reader.problem(SHELF) is None
    await reader.close()


async def test_a_store_that_is_away_is_told_and_tried_again(records: SqlRecords, names: SqlNames) -> None:
    away = iter([True, False])

    @asynccontextmanager
    async def away_then_mine() -> AsyncIterator[Lock]:
        if next(away):
            raise StorageBusy("the database does not answer")
        yield FileHold(mine=True)

    await records.write([prepared("a", "word")])
    reader = NameReader(names, away_then_mine, EveryWord)
    with pytest.raises(StorageBusy):
        await reader.wait_until_done(SHELF)
    for _ in range(600):
        if not await names.count_unread(SHELF):
            break
        await asyncio.sleep(0.05)
    assert await names.count_unread(SHELF) == 0
    await reader.close()
