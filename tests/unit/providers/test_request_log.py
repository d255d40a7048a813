"""The log of requests to providers: each is written soon and once, and delays no request."""

import asyncio
import logging
from datetime import UTC, datetime

import pytest

from conspectus.errors import ProviderError, ProviderUnavailable, StorageBusy
from conspectus.model.jobs import EmbeddingRequest
from conspectus.providers import request_log
from conspectus.providers.request_log import Calls, RequestNotes, estimate_tokens


class ListLog:
    """A log in a list; busy for the first `busy` writes."""

    def __init__(self, *, busy: int = 0, hold: asyncio.Event | None = None) -> None:
        self.writes: list[list[int]] = []
        self.tried, self.written = asyncio.Event(), asyncio.Event()
        self._busy = busy
        self._hold = hold

    async def add(self, requests) -> None:
        if self._hold is not None:
            await self._hold.wait()
        self.tried.set()
        if self._busy:
            self._busy -= 1
            raise StorageBusy("busy")
        self.writes.append([request.inputs for request in requests])
        self.written.set()

    async def page(self, *, after=None, limit=100):
        return ()

    async def totals(self, since):
        return ()


def make_note(number: int) -> EmbeddingRequest:
    return EmbeddingRequest("embed", "success", "m", 1.0, number, 1, datetime.now(UTC))


async def test_notes_are_written_soon_and_once() -> None:
    log = ListLog()
    notes = RequestNotes(every=0.01)
    notes.write_to(log)
    for number in range(3):
        notes(make_note(number))
    assert log.writes == []
    await log.written.wait()
    await notes.close()
    assert log.writes == [[0, 1, 2]]


async def test_many_notes_do_not_wait() -> None:
    log = ListLog()
    notes = RequestNotes(every=3600.0, rows=5)
    notes.write_to(log)
    for number in range(5):
        notes(make_note(number))
    await log.written.wait()
    assert log.writes == [[0, 1, 2, 3, 4]]
    log.written.clear()
    for number in range(5, 10):
        notes(make_note(number))
    await log.written.wait()
    await notes.close()
    assert log.writes[1:] == [[5, 6, 7, 8, 9]]


async def test_closing_writes_the_rest_and_what_comes_later_is_dropped() -> None:
    log = ListLog()
    notes = RequestNotes(every=3600.0)
    notes.write_to(log)
    notes(make_note(1))
    await notes.close()
    notes(make_note(2))
    await notes.close()
    assert log.writes == [[1]]


async def test_closing_loses_nothing_that_is_being_written() -> None:
    hold = asyncio.Event()
    log = ListLog(hold=hold)
    notes = RequestNotes(every=0.0)
    notes.write_to(log)
    notes(make_note(1))
    await asyncio.sleep(0.02)
    closing = asyncio.create_task(notes.close())
    await asyncio.sleep(0)
    hold.set()
    await closing
    assert log.writes == [[1]]


async def test_notes_wait_for_a_log() -> None:
    log = ListLog()
    notes = RequestNotes(every=0.0)
    notes(make_note(1))
    await asyncio.sleep(0.02)
    notes.write_to(log)
    await notes.close()
    assert log.writes == [[1]]


async def test_a_log_that_is_busy_gets_them_later(caplog) -> None:
    log = ListLog(busy=2)
    notes = RequestNotes(every=0.01)
    notes.write_to(log)
    with caplog.at_level(logging.WARNING):
        notes(make_note(1))
        await log.written.wait()
    await notes.close()
    assert log.writes == [[1]]
    assert [record.getMessage() for record in caplog.records] == [
        "1 requests were not logged: storage_busy"
    ] * 2


async def test_a_log_that_stays_busy_costs_memory_only_to_a_limit(caplog) -> None:
    log = ListLog(busy=1)
    notes = RequestNotes(every=3600.0, rows=request_log.MAX_LOG_ROWS + 10)
    notes.write_to(log)
    for number in range(request_log.MAX_LOG_ROWS + 10):
        notes(make_note(number))
    await log.tried.wait()
    await notes.close()
    assert (len(log.writes[0]), log.writes[0][0]) == (request_log.MAX_LOG_ROWS, 10)


def test_words_make_tokens() -> None:
    assert estimate_tokens(["one two three", " four\nfive  six "]) == 8
    assert estimate_tokens([]) == estimate_tokens(["", " "]) == 0


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (ProviderError("p", "secret words", status=400), "HTTP 400"),
        (ProviderUnavailable("p", "secret words", status=503), "HTTP 503"),
        (ProviderUnavailable("p", "secret words"), "provider_unavailable"),
        (ProviderError("p", "secret words"), "provider_error"),
    ],
)
def test_a_failed_request_is_noted_by_its_code(fault: ProviderError, error: str) -> None:
    noted: list[EmbeddingRequest] = []
    with pytest.raises(ProviderError), Calls(noted.append, "m").one("rerank", ["a b c"], query="d e f"):
        raise fault
    (request,) = noted
    assert (request.kind, request.status, request.error, request.inputs, request.tokens) == (
        "rerank",
        "error",
        error,
        1,
        8,
    )
    assert "secret" not in repr(request)


def test_a_defect_is_noted_as_one() -> None:
    noted: list[EmbeddingRequest] = []
    with pytest.raises(KeyError), Calls(noted.append, "m").one("embed", []):
        raise KeyError
    assert noted[0].error == "failed"
