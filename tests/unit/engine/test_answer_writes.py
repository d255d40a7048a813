"""Records on their way into the store, with a store that is slow, lacks a document, or fails."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from conspectus.engine.answer_writes import MAX_BATCH_RECORDS, AnswerWrites
from conspectus.errors import StorageBusy
from conspectus.model.answers import AnswerOptions, AnswerRecord, AnswerSummary, NewAnswer
from conspectus.model.ids import UserId

LOGGER = "conspectus.engine.answer_writes"


def answer(number: int) -> NewAnswer:
    summary = AnswerSummary(str(number), "window", UserId("ann"), datetime.now(UTC), "when?", "found")
    return NewAnswer(AnswerRecord(summary, AnswerOptions(), "At two."))


class Shelf:
    """Keeps the ids of batches; `is_open` ends a write, and documents of `gone` ids were deleted."""

    def __init__(self, gone: Sequence[str] = ()) -> None:
        self.batches: list[list[str]] = []
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.has_batch = asyncio.Event()
        self.gone = gone

    async def store(self, answers: Sequence[NewAnswer]) -> int:
        await self.is_open.wait()
        ids = [new.record.summary.id for new in answers]
        self.batches.append([id for id in ids if id not in self.gone])
        self.has_batch.set()
        return len(self.batches[-1])


async def test_records_of_a_moment_are_one_batch_in_order() -> None:
    shelf = Shelf()
    writes = AnswerWrites(shelf.store)
    for number in range(3):
        await writes.add(answer(number))
    assert shelf.batches == []
    await writes.wait_until_written()
    assert shelf.batches == [["0", "1", "2"]]


async def test_records_are_written_without_anybody_waiting() -> None:
    shelf = Shelf()
    await AnswerWrites(shelf.store).add(answer(0))
    await asyncio.wait_for(shelf.has_batch.wait(), 30)
    assert shelf.batches == [["0"]]


async def test_a_full_batch_holds_up_the_next_answer_and_nothing_is_lost() -> None:
    shelf = Shelf()
    writes = AnswerWrites(shelf.store)
    shelf.is_open.clear()
    adding = asyncio.gather(*(writes.add(answer(number)) for number in range(3 * MAX_BATCH_RECORDS)))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(adding), 0.3)
    shelf.is_open.set()
    await adding
    await writes.wait_until_written()
    stored = [id for batch in shelf.batches for id in batch]
    assert sorted(stored, key=int) == [str(number) for number in range(3 * MAX_BATCH_RECORDS)]


async def test_a_batch_waits_for_the_one_before_it() -> None:
    shelf = Shelf()
    writes = AnswerWrites(shelf.store)
    shelf.is_open.clear()
    await writes.add(answer(0))
    waiting = asyncio.create_task(writes.wait_until_written())
    await asyncio.sleep(0.01)
    await writes.add(answer(1))
    shelf.is_open.set()
    await waiting
    await writes.wait_until_written()
    assert shelf.batches == [["0"], ["1"]]


async def test_losses_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    shelf = Shelf(gone=["1"])
    writes = AnswerWrites(shelf.store)
    with caplog.at_level(logging.WARNING, LOGGER):
        for number in range(3):
            await writes.add(answer(number))
        await writes.wait_until_written()
    assert [record.getMessage() for record in caplog.records] == [
        "answer_not_kept reason=document_deleted count=1"
    ]


async def test_a_store_that_fails_loses_one_batch_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    shelf = Shelf()
    faults = [StorageBusy("the store is busy")]

    async def store(answers: Sequence[NewAnswer]) -> int:
        if faults:
            raise faults.pop()
        return await shelf.store(answers)

    writes = AnswerWrites(store)
    with caplog.at_level(logging.WARNING, LOGGER):
        await writes.add(answer(0))
        await writes.wait_until_written()
    await writes.add(answer(1))
    await writes.wait_until_written()
    assert shelf.batches == [["1"]]
    assert [record.getMessage() for record in caplog.records] == [
        "answer_not_kept reason=storage_busy count=1"
    ]
